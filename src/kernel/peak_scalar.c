/* SPDX-License-Identifier: Apache-2.0
 * peak.h in plain C: four floats at a time, which every processor of the last twenty years takes in
 * one instruction, and the compiler cuts up elsewhere; product and sum apart. */
#define PEAK laci_peak_f32_scalar
#define VECTOR four_floats
#define NEXT(x, half, one) ((x) * (half) + (one))
enum { LANES = 4, CHAINS = 12 };
typedef float four_floats __attribute__((vector_size(16)));
#include "kernel/peak_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * gate.h by AVX2 and FMA. */
#define GATE laci_gate_avx2
#include "kernel/gate_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * peak.h by NEON: large cores have four units of four cycles. */
#include <arm_neon.h>

#define PEAK laci_peak_f32_neon
#define VECTOR float32x4_t
#define NEXT(x, half, one) vfmaq_f32(one, x, half)
enum { LANES = 4, CHAINS = 24 };
#include "kernel/peak_text.h"

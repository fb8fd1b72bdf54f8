/* SPDX-License-Identifier: Apache-2.0
 * peak.h by AVX2 and FMA: two units of four cycles want eight chains; twelve leave no gap. */
#include <immintrin.h>

#define PEAK laci_peak_f32_avx2
#define VECTOR __m256
#define NEXT(x, half, one) _mm256_fmadd_ps(x, half, one)
enum { LANES = 8, CHAINS = 12 };
#include "kernel/peak_text.h"

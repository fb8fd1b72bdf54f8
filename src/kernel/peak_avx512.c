/* SPDX-License-Identifier: Apache-2.0
 * peak.h by AVX-512: two units of four cycles want eight chains; twelve leave no gap. */
#include <immintrin.h>

#define PEAK laci_peak_f32_avx512
#define VECTOR __m512
#define NEXT(x, half, one) _mm512_fmadd_ps(x, half, one)
enum { LANES = 16, CHAINS = 12 };
#include "kernel/peak_text.h"

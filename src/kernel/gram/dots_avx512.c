/* SPDX-License-Identifier: Apache-2.0
 * dots.h for AVX-512: 24 of 32 registers are sums. */
#include "kernel/gram/dots.h"

#include <immintrin.h>

typedef __m512 vector;
enum { LANES = 16 };
#define ROWS 4
#define COLUMNS 6
#define LOAD(at) _mm512_loadu_ps(at)
#define TIMES(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#define TOTAL(v) _mm512_reduce_add_ps(v)

#include "kernel/gram/dots_text.def"

void laci_dots_avx512(const laci_dots *dots) { sum_runs(dots); }

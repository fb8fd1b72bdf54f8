/* SPDX-License-Identifier: Apache-2.0
 * swish.h for every instruction set that has vectors: the build compiles this once for each
 * (variants.h).
 *
 *     exp(-x) = 2^t,  t = -x / ln 2 = whole + part,  |part| <= 1/2
 *
 * 2^part is computed by a polynomial (relative error 8e-8); 2^whole is added to the exponent. */
#include <string.h>

#include "kernel/pointwise/swish.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8 };
#else
#include <arm_neon.h>
enum { LANES = 4 };
#endif

typedef float lanes __attribute__((vector_size(4 * LANES)));

static const float log2_e = 1.44269504F, lowest = -126, highest = 126; /* lowest, highest: bounds of
                                                                          t, the exponent in 2^t */
static const float factors[] = {1.32764640e-3F, 9.67554127e-3F, 5.55071330e-2F,
                                2.40221197e-1F, 6.93146967e-1F, 1.00000007F};

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)

INLINE lanes swish_of_lanes(lanes x) {
  __m512 t = (__m512)(x * -log2_e);
  __mmask16 vanishes = _mm512_cmp_ps_mask(t, _mm512_set1_ps(highest), _CMP_GT_OQ);
  t = _mm512_max_ps(_mm512_set1_ps(lowest), t); /* if t is NaN, the result is NaN, the second
                                                   operand */
  __m512 whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 part = _mm512_sub_ps(t, whole), p = _mm512_set1_ps(factors[0]);
  for (int at = 1; at < 6; at++) p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(factors[at]));
  __m512 sum = _mm512_add_ps(_mm512_scalef_ps(p, whole), _mm512_set1_ps(1));
  /* 14 bits of 1 / sum, then a Newton step for the other bits. */
  __m512 inverse = _mm512_rcp14_ps(sum);
  __m512 error = _mm512_fnmadd_ps(inverse, sum, _mm512_set1_ps(1));
  inverse = _mm512_fmadd_ps(inverse, error, inverse);
  return (lanes)_mm512_maskz_mul_ps((__mmask16)~vanishes, (__m512)x, inverse);
}

#else

typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

INLINE lanes multiply_add(lanes a, lanes b, lanes sum) {
#if defined(__AVX2__)
  return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#else
  return (lanes)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#endif
}

INLINE lanes blend_by_mask(ints mask, lanes yes, lanes no) {
  return (lanes)(((ints)yes & mask) | ((ints)no & ~mask));
}

INLINE lanes swish_of_lanes(lanes x) {
  const float magic = 12582912.0F; /* 1.5 * 2^23: its last bit has the value 1 */
  lanes t = x * -log2_e, p = (lanes){0} + factors[0];
  ints vanishes = t > highest;
  t = blend_by_mask(t < lowest, (lanes){0} + lowest, t);
  lanes shifted = t + magic, part = t - (shifted - magic);
  words whole = (words)shifted - (words)((lanes){0} + magic);
  for (int at = 1; at < 6; at++) p = multiply_add(p, part, (lanes){0} + factors[at]);
  lanes power = (lanes)((words)p + (whole << 23));
  return blend_by_mask(vanishes, (lanes){0},
                       x / (power + 1.0F)); /* if x is NaN, the division gives NaN */
}

#endif

void LACI_VARIANT(laci_swish)(float *x, int64_t n) {
  lanes v;
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) {
    memcpy(&v, x + at, sizeof v);
    v = swish_of_lanes(v);
    memcpy(x + at, &v, sizeof v);
  }
  if (at == n) return;
  v = (lanes){0};
  memcpy(&v, x + at, (size_t)(n - at) * sizeof *x);
  v = swish_of_lanes(v);
  memcpy(x + at, &v, (size_t)(n - at) * sizeof *x);
}

/* SPDX-License-Identifier: Apache-2.0
 * function.h for every instruction set: the build compiles this once for each (variants.h).
 *
 *     exp(x) = 2^n exp(r),  x = n ln 2 + r,  |r| <= ln 2 / 2,  exp(r) - 1 = r + r^2 P(r)
 *
 * All functions that approach a limit are computed from exp(-|x|), which does not overflow, so that
 * values near the limit keep their precision. Arguments of exp that are products are given in two
 * parts; the second is the rounding error of the first. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/pointwise/function.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
#if defined(LACI_ISA_NEON)
#include <arm_neon.h>
#endif

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

/* Returns a * b + sum, rounded once. */
INLINE lanes fused_multiply_add(lanes a, lanes b, lanes sum) {
#if defined(__AVX512F__)
  return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
  return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(LACI_ISA_NEON)
  return (lanes)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  for (int lane = 0; lane < LANES; lane++) sum[lane] = fmaf(a[lane], b[lane], sum[lane]);
  return sum;
#endif
}

INLINE lanes broadcast(float x) { return x - (lanes){0}; } /* a load; 0 + -0 would be +0 */
INLINE lanes blend_by_mask(ints mask, lanes yes, lanes no) {
  return (lanes)(((ints)yes & mask) | ((ints)no & ~mask));
}
/* Returns max(low, x); if x is NaN, the result is NaN: x86's instructions then return their second
 * operand. */
INLINE lanes at_least(float low, lanes x) {
#if defined(__AVX512F__)
  return (lanes)_mm512_max_ps(_mm512_set1_ps(low), (__m512)x);
#elif defined(__AVX2__)
  return (lanes)_mm256_max_ps(_mm256_set1_ps(low), (__m256)x);
#else
  return blend_by_mask(low > x, broadcast(low), x);
#endif
}
INLINE lanes at_most(float high, lanes x) {
#if defined(__AVX512F__)
  return (lanes)_mm512_min_ps(_mm512_set1_ps(high), (__m512)x);
#elif defined(__AVX2__)
  return (lanes)_mm256_min_ps(_mm256_set1_ps(high), (__m256)x);
#else
  return blend_by_mask(high < x, broadcast(high), x);
#endif
}
INLINE lanes magnitude(lanes x) { return (lanes)((ints)x & INT32_MAX); }
/* Returns `yes` where x has its sign bit set, otherwise `no`. */
INLINE lanes select_by_sign(lanes x, lanes yes, lanes no) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return (lanes)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)x);
#else
  return blend_by_mask((ints)x < 0, yes, no);
#endif
}

INLINE lanes polynomial(const float *factors, int n, lanes x) {
  lanes sum = broadcast(factors[0]);
  for (int at = 1; at < n; at++) sum = fused_multiply_add(sum, x, broadcast(factors[at]));
  return sum;
}

/* Splits x into n ln 2 + r, returns exp(r) - 1, and sets *n to n shifted to the exponent of a
 * float; for NaN, it is arbitrary. */
INLINE lanes exp_minus_1_reduced(lanes x, words *n) {
  static const float factors[] = {1.39012991e-3F, 8.36320128e-3F, 4.16668542e-2F, 1.66665763e-1F,
                                  0.5F};
  const float magic = 12582912.0F; /* 1.5 * 2^23: its last bit has the value 1 */
  const lanes shifted = fused_multiply_add(x, broadcast(1.44269504F), broadcast(magic)),
              whole = shifted - magic;
  /* ln 2 in two parts; the first has so few digits that its multiples are exact. */
  const lanes r = fused_multiply_add(whole, broadcast(-1.42860677e-6F),
                                     fused_multiply_add(whole, broadcast(-0.693145752F), x));
  *n = (words)shifted << 23;
  return fused_multiply_add(r * r, polynomial(factors, 5, r), r);
}

/* Returns exp(-z) for z >= 0; 0 where the result would be denormal. */
INLINE lanes exp_of_minus(lanes z) {
  const float most = 86.9F;
  words n;
  const lanes part = exp_minus_1_reduced(-at_most(most, z), &n) + 1.0F;
  return (lanes)((ints)(part * (lanes)((words)broadcast(1) + n)) & ~(z > most));
}

/* Returns exp(-z - rest) for a tiny `rest`. */
INLINE lanes exp_of_minus_sum(lanes z, lanes rest) {
  const lanes e = exp_of_minus(z);
  return fused_multiply_add(e, -rest, e);
}

/* Returns exp(x) - 1 for x <= 0. */
INLINE lanes exp_minus_1(lanes x) {
  words n;
  const lanes part = exp_minus_1_reduced(at_least(-30, x), &n),
              power = (lanes)((words)broadcast(1) + n);
  return fused_multiply_add(power, part, power - 1.0F);
}

/* Returns 1 / (1 + exp(-x)) from e = exp(-|x|). */
INLINE lanes logistic_from_exp(lanes x, lanes e) {
  return select_by_sign(x, e, broadcast(1)) / (e + 1.0F);
}

/* Returns x * gate, but 0 where the gate is 0, even for an infinite x. */
INLINE lanes multiply_by_gate(lanes x, lanes gate) {
  return blend_by_mask(gate == 0.0F, broadcast(0), x * gate);
}

/* ---- The functions ---- */

INLINE lanes relu(const laci_pointwise *f, lanes x) {
  return f->alpha == 0 ? at_least(0, x) : blend_by_mask(x > 0.0F, x, x * f->alpha);
}

INLINE lanes elu(const laci_pointwise *f, lanes x) {
  return blend_by_mask(x > 0.0F, x, exp_minus_1(x) * f->alpha);
}

INLINE lanes logistic(const laci_pointwise *f, lanes x) {
  (void)f;
  return logistic_from_exp(x, exp_of_minus(magnitude(x)));
}

INLINE lanes hyperbolic_tangent(const laci_pointwise *f, lanes x) {
  (void)f;
  const lanes e = exp_minus_1(magnitude(x) * -2.0F), y = e / (e + 2.0F);
  return select_by_sign(x, y, -y);
}

INLINE lanes linear(const laci_pointwise *f, lanes x) {
  return fused_multiply_add(broadcast(f->alpha), x, broadcast(f->beta));
}

/* Swish with alpha = 1; x is clamped, so that it is never -inf. */
INLINE lanes silu(const laci_pointwise *f, lanes x) {
  (void)f;
  x = at_least(-FLT_MAX, x);
  return x * logistic_from_exp(x, exp_of_minus(magnitude(x)));
}

INLINE lanes swish(const laci_pointwise *f, lanes x) {
  const lanes alpha = broadcast(f->alpha), product = alpha * x,
              z = at_most(128, magnitude(product));
  const lanes lost =
      blend_by_mask(z < 128.0F, fused_multiply_add(alpha, x, -product), broadcast(0));
  return multiply_by_gate(
      x, logistic_from_exp(product, exp_of_minus_sum(z, select_by_sign(product, -lost, lost))));
}

INLINE lanes hardswish(const laci_pointwise *f, lanes x) {
  return multiply_by_gate(x, at_most(1, at_least(0, linear(f, x))));
}

/* Returns x times the normal distribution function of x; 1 minus that function at z is exp(-z^2 /
 * 2) R(z). */
INLINE lanes gelu_erf(const laci_pointwise *f, lanes x) {
  static const float factors[] = {-2.91635673e-2F, 1.44059196e-1F,  -2.55898833e-1F,
                                  1.59389794e-1F,  -2.32618991e-2F, 1.05574071e-1F,
                                  1.19815655e-1F,  1.39864311e-1F,  1.39621258e-1F};
  (void)f;
  const lanes z = at_most(15, magnitude(x)), square = z * z,
              lost = fused_multiply_add(z, z, -square);
  const lanes t = 1.0F / fused_multiply_add(z, broadcast(0.35F), broadcast(1));
  const lanes above = exp_of_minus_sum(square * 0.5F, lost * 0.5F) * t * polynomial(factors, 9, t);
  return multiply_by_gate(x, select_by_sign(x, above, 1.0F - above));
}

/* Uses (1 + tanh(u)) / 2 = logistic(2 u), with 2 u = z (a + b z^2). */
INLINE lanes gelu_tanh(const laci_pointwise *f, lanes x) {
  const float a = 1.59576917F, a_rest = -4.53406803e-8F;
  const float b = 7.13548139e-2F, b_rest = 2.3988324e-9F;
  (void)f;
  const lanes z = at_most(15, magnitude(x)), square = z * z;
  const lanes cubic = square * b, cubic_lost = fused_multiply_add(square, broadcast(b), -cubic);
  const lanes sum = cubic + a, of_a = sum - cubic;
  const lanes sum_lost = (cubic - (sum - of_a)) + (a - of_a);
  const lanes square_lost = fused_multiply_add(z, z, -square);
  const lanes lost = fused_multiply_add(square_lost, broadcast(b), sum_lost + cubic_lost) +
                     fused_multiply_add(square, broadcast(b_rest), broadcast(a_rest));
  const lanes product = z * sum;
  const lanes e =
      exp_of_minus_sum(product, fused_multiply_add(z, lost, fused_multiply_add(z, sum, -product)));
  return multiply_by_gate(x, logistic_from_exp(x, e));
}

INLINE lanes clip(const laci_pointwise *f, lanes x) {
  return at_most(f->beta, at_least(f->alpha, x));
}

/* ---- Loops ---- */

typedef lanes function(const laci_pointwise *f, lanes x);

INLINE void apply_to_all(function *of, const laci_pointwise *f, float *x, int64_t n) {
  lanes v = {0};
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) {
    memcpy(&v, x + at, sizeof v);
    v = of(f, v);
    memcpy(x + at, &v, sizeof v);
  }
  if (at == n) return;
  v = broadcast(0);
  memcpy(&v, x + at, (size_t)(n - at) * sizeof *x);
  v = of(f, v);
  memcpy(x + at, &v, (size_t)(n - at) * sizeof *x);
}

void LACI_VARIANT(laci_pointwise_apply)(const laci_pointwise *f, float *x, int64_t n) {
  switch (f->kind) {
    case LACI_POINTWISE_RELU: apply_to_all(relu, f, x, n); break;
    case LACI_POINTWISE_ELU: apply_to_all(elu, f, x, n); break;
    case LACI_POINTWISE_LOGISTIC: apply_to_all(logistic, f, x, n); break;
    case LACI_POINTWISE_TANH: apply_to_all(hyperbolic_tangent, f, x, n); break;
    case LACI_POINTWISE_LINEAR: apply_to_all(linear, f, x, n); break;
    case LACI_POINTWISE_SWISH:
      f->alpha == 1 ? apply_to_all(silu, f, x, n) : apply_to_all(swish, f, x, n);
      break;
    case LACI_POINTWISE_HARDSWISH: apply_to_all(hardswish, f, x, n); break;
    case LACI_POINTWISE_GELU_ERF: apply_to_all(gelu_erf, f, x, n); break;
    case LACI_POINTWISE_GELU_TANH: apply_to_all(gelu_tanh, f, x, n); break;
    case LACI_POINTWISE_CLIP: apply_to_all(clip, f, x, n); break;
    case LACI_N_POINTWISE: break;
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * update.h for every instruction set: the build compiles this once for each (variants.h). Loops are
 * plain, so that the compiler vectorizes them; conditions that do not change inside a loop are
 * tested outside of it. */
#include <math.h>

#include "kernel/optimizer/update.h"

enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

INLINE void update_elements_by_sgd(const laci_sgd_rule *rule, bool nesterov, float *restrict w,
                                   const float *restrict g, float *restrict v, size_t n) {
  const float momentum = rule->momentum, decay = rule->decay, scale = rule->scale;
  const bool inside = rule->rate_inside;
  const float before = inside ? rule->rate : 1, after = inside ? 1 : rule->rate;
  for (size_t i = 0; i < n; i++) {
    float d = before * (scale * g[i] + decay * w[i]);
    float speed = momentum * v[i] + d;
    v[i] = speed;
    w[i] -= after * (nesterov ? d + momentum * speed : speed);
  }
}

static void update_sgd(const laci_sgd_rule *rule, float *w, const float *g, float *v, size_t n) {
  if (rule->nesterov) update_elements_by_sgd(rule, true, w, g, v, n);
  else update_elements_by_sgd(rule, false, w, g, v, n);
}

static void update_adam(const laci_adam_rule *rule, float *restrict w, const float *restrict g,
                        float *restrict m, float *restrict s, size_t n) {
  const laci_adam_rule r = *rule;
  for (size_t i = 0; i < n; i++) {
    float x = r.scale * g[i];
    float mean = m[i] + r.one_less_beta1 * (x - m[i]);
    float square = r.beta2 * s[i] + r.one_less_beta2 * (x * x);
    m[i] = mean;
    s[i] = square;
    w[i] = r.keep * w[i] - r.step * (mean / (sqrtf(square) / r.root + r.epsilon));
  }
}

/* Sets masked elements to zero by bit operations: a product with 0 would keep NaN, and compilers
 * make a branch of a choice between floats. */
static void apply_mask(float *restrict x, const uint8_t *restrict kept, size_t n) {
  uint32_t __attribute__((may_alias)) *bits = (void *)x;
  for (size_t i = 0; i < n; i++) bits[i] &= kept[i] ? UINT32_MAX : 0;
}

static double sum_squares(const float *x, size_t n) {
  double lane[LANES] = {0};
  size_t whole = n - n % LANES;
  for (size_t i = 0; i < whole; i += LANES) {
    for (size_t k = 0; k < LANES; k++) lane[k] += (double)x[i + k] * (double)x[i + k];
  }
  for (size_t k = 0; k < n - whole; k++) lane[k] += (double)x[whole + k] * (double)x[whole + k];
  for (size_t step = LANES / 2; step > 0; step /= 2) {
    for (size_t k = 0; k < step; k++) lane[k] += lane[k + step];
  }
  return lane[0];
}

const laci_update_kernels LACI_VARIANT(laci_update) = {
    .sgd = update_sgd, .adam = update_adam, .mask = apply_mask, .squares = sum_squares};

/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer does to flat float32 buffers, element by element.
 *
 * Every operation rounds once, nothing is fused, and sums are taken in a fixed order of lanes, so
 * that every variant gives the same bits. update_isa.c is the common source of all variants;
 * update.c chooses one. Read next: train/optimizer.h, which knows tensors, learning rates and
 * masks. */
#ifndef LACI_KERNEL_OPTIMIZER_UPDATE_H
#define LACI_KERNEL_OPTIMIZER_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

/** Gradient descent with momentum:
 *      d = scale g + decay w
 *      rate outside:  v' = momentum v + d         w' = w - rate u,  u = v', or d + momentum v'
 *      rate inside:   v' = momentum v + rate d    w' = w - u,       u = v', or rate d + momentum v'
 * where the second form of u is Nesterov's. With a constant rate, "outside" and "inside" give the
 * same w. */
typedef struct laci_sgd_rule {
  float rate, momentum, decay, scale;
  bool nesterov, rate_inside;
} laci_sgd_rule;

/** Adam with decoupled decay:
 *      g' = scale g    m' = m + (1 - beta1) (g' - m)    s' = beta2 s + (1 - beta2) g' g'
 *      w' = keep w - step m' / (sqrt(s') / root + epsilon)
 *  keep = 1 - rate decay, step = rate / (1 - beta1^t), root = sqrt(1 - beta2^t) at step t. */
typedef struct laci_adam_rule {
  float keep, step, root, epsilon, scale;
  float one_less_beta1, beta2, one_less_beta2;
} laci_adam_rule;

/** Updates n elements. The buffers may not overlap and need only the alignment of a float. */
typedef struct laci_update_kernels {
  void (*sgd)(const laci_sgd_rule *rule, float *w, const float *g, float *v, size_t n);
  void (*adam)(const laci_adam_rule *rule, float *w, const float *g, float *m, float *s, size_t n);
  /** x[i] = mask[i] ? x[i] : 0. A masked NaN becomes 0, too. */
  void (*mask)(float *x, const uint8_t *mask, size_t n);
  /** Returns the sum of squares in float64. Element i is added to lane i % 16; lanes are then added
   * in pairs, l and l + 8, then l + 4, l + 2, l + 1. */
  double (*squares)(const float *x, size_t n);
} laci_update_kernels;

#define LACI_UPDATE_DECLARE(name, level) extern const laci_update_kernels laci_update_##name;
LACI_KERNEL_VARIANTS(LACI_UPDATE_DECLARE)
#undef LACI_UPDATE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
const laci_update_kernels *laci_update_variant(void);

#endif

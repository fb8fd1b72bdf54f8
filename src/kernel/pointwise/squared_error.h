/* SPDX-License-Identifier: Apache-2.0
 * How far values x are from their targets t, and the gradient:
 *
 *     sums[0] = sum over i of (x[i] - t[i])^2        sums[1] = sum over i of t[i]^2
 *     to[i] = factor * (x[i] - t[i])
 *
 * Differences in f32, squares and their sums in double: element i counts in lane i % 16, and lanes
 * are added in order; of bf16 the last line is rounded to bf16. The same bits from every variant.
 * squared_error_isa.c is the one text of all variants; the scalar one is the definition of right.
 * Next: engine/cpu/lower/squared_error.c, the reader. */
#ifndef LACI_KERNEL_POINTWISE_SQUARED_ERROR_H
#define LACI_KERNEL_POINTWISE_SQUARED_ERROR_H

#include <stdint.h>

#include "kernel/variants.h"

/** [n] each, of any alignment; `to` may be one of the others. Any thread. */
typedef struct laci_squared_error {
  void (*sum_f32)(const float *x, const float *t, int64_t n, double sums[2]);
  void (*sum_bf16)(const uint16_t *x, const uint16_t *t, int64_t n, double sums[2]);
  void (*slope_f32)(const float *x, const float *t, float factor, int64_t n, float *to);
  void (*slope_bf16)(const uint16_t *x, const uint16_t *t, float factor, int64_t n, uint16_t *to);
} laci_squared_error;

#define LACI_SQUARED_ERROR_DECLARE(name, level) \
  extern const laci_squared_error laci_squared_error_##name;
LACI_KERNEL_VARIANTS(LACI_SQUARED_ERROR_DECLARE)
#undef LACI_SQUARED_ERROR_DECLARE

/** The variant in force (cpu/cpu.h). */
const laci_squared_error *laci_squared_error_now(void);

#endif

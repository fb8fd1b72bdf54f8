/* SPDX-License-Identifier: Apache-2.0
 * The squared distance of values x from their targets t, and its gradient:
 *
 *     sums[0] = sum over i of (x[i] - t[i])^2        sums[1] = sum over i of t[i]^2
 *     to[i] = factor * (x[i] - t[i])
 *
 * Differences are f32, squares and their sums double: element i is added to lane i % 16, and lanes
 * are added in order. With bf16, to[i] is rounded to bf16. Every variant gives the same bits.
 * squared_error_isa.c is the common source of all variants; the scalar variant is the reference.
 * Caller: engine/cpu/lower/squared_error.c. */
#ifndef LACI_KERNEL_POINTWISE_SQUARED_ERROR_H
#define LACI_KERNEL_POINTWISE_SQUARED_ERROR_H

#include <stdint.h>

#include "kernel/variants.h"

/** All arrays are [n] and need only the alignment of their elements; `to` may be x or t. The sum_
 * functions overwrite sums, the slope_ functions write `to`. Callable from any thread. */
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

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
const laci_squared_error *laci_squared_error_variant(void);

#endif

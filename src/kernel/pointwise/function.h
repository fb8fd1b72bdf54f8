/* SPDX-License-Identifier: Apache-2.0
 * The activation functions that follow convolutions, applied element by element and in place.
 *
 * Each result is within 1e-6 |y| + 2e-38 (1 + |x|) of the function in double; functions that use
 * exp return 0 for smaller results. NaN stays NaN. Infinities give the limit of the function;
 * HARDSWISH, SWISH and GELU of -inf are 0. Operations have a fixed order and are rounded as IEEE
 * 754 says, so that every variant gives the same bits. function_isa.c is the common source of all
 * variants; the scalar variant is the reference. Caller: kernel/sparse/product.h. */
#ifndef LACI_KERNEL_POINTWISE_FUNCTION_H
#define LACI_KERNEL_POINTWISE_FUNCTION_H

#include <stdint.h>

#include "kernel/variants.h"

typedef enum laci_pointwise_kind {
  LACI_POINTWISE_RELU, /* alpha: the slope below 0 */
  LACI_POINTWISE_ELU,  /* alpha * (exp(x) - 1) below 0 */
  LACI_POINTWISE_LOGISTIC,
  LACI_POINTWISE_TANH,
  LACI_POINTWISE_LINEAR,    /* alpha * x + beta, rounded once */
  LACI_POINTWISE_SWISH,     /* x * logistic(alpha * x) */
  LACI_POINTWISE_HARDSWISH, /* x * min(max(alpha * x + beta, 0), 1) */
  LACI_POINTWISE_GELU_ERF,  /* x * (1 + erf(x / sqrt(2))) / 2 */
  LACI_POINTWISE_GELU_TANH, /* x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 */
  LACI_POINTWISE_CLIP,      /* alpha > x ? alpha : x, then beta < x ? beta : x */
  LACI_N_POINTWISE
} laci_pointwise_kind;

typedef struct laci_pointwise {
  laci_pointwise_kind kind;
  float alpha, beta;
} laci_pointwise;

/** Replaces every element of x [n] by f(x). Needs only the alignment of floats. Callable from any
 * thread. */
typedef void laci_pointwise_apply(const laci_pointwise *f, float *x, int64_t n);

#define LACI_POINTWISE_DECLARE(name, level) laci_pointwise_apply laci_pointwise_apply_##name;
LACI_KERNEL_VARIANTS(LACI_POINTWISE_DECLARE)
#undef LACI_POINTWISE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_pointwise_apply *laci_pointwise_apply_variant(void);

#endif

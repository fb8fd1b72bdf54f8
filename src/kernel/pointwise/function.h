/* SPDX-License-Identifier: Apache-2.0
 * The functions that follow convolutions, element by element and in place.
 *
 * Each result is within 1e-6 |y| + 2e-38 (1 + |x|) of the function in double: what is smaller is 0
 * where it is made of exp. NaN stays NaN, and infinities give what the function comes to: 0 for a
 * gate that closes, so that HARDSWISH, SWISH and GELU of -inf are 0. Sums, products and quotients
 * are in one order, rounded as IEEE 754 says: the same bits from every variant. function_isa.c is
 * the one text of all of them; the scalar one is the definition of right. Next:
 * kernel/sparse/product.h, the reader. */
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

/** x [n], replaced by f(x); any alignment. Any thread. */
typedef void laci_pointwise_apply(const laci_pointwise *f, float *x, int64_t n);

#define LACI_POINTWISE_DECLARE(name, level) laci_pointwise_apply laci_pointwise_apply_##name;
LACI_KERNEL_VARIANTS(LACI_POINTWISE_DECLARE)
#undef LACI_POINTWISE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_pointwise_apply *laci_pointwise_apply_now(void);

#endif

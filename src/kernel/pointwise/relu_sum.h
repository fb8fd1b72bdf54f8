/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a Relu's input, where two nodes read the Relu's result y and so give it the
 * gradients a and b:
 *
 *     to[i] = y[i] > 0 ? a[i] + b[i] : 0
 *
 * Each element is one sum, rounded to bf16 if the elements are bf16. So every variant gives the
 * same bits, which are those of a separate addition and Relu gradient. relu_sum_isa.c is the common
 * source of all variants; the scalar variant is the reference. Caller:
 * engine/cpu/lower/relu_sum.c. */
#ifndef LACI_KERNEL_POINTWISE_RELU_SUM_H
#define LACI_KERNEL_POINTWISE_RELU_SUM_H

#include <stdint.h>

#include "kernel/variants.h"

/** All arrays are [n] and need only the alignment of their elements; `to` may be a, b or y.
 * Callable from any thread. */
typedef struct laci_relu_sum {
  void (*f32)(const float *a, const float *b, const float *y, int64_t n, float *to);
  void (*bf16)(const uint16_t *a, const uint16_t *b, const uint16_t *y, int64_t n, uint16_t *to);
} laci_relu_sum;

#define LACI_RELU_SUM_DECLARE(name, level) extern const laci_relu_sum laci_relu_sum_##name;
LACI_KERNEL_VARIANTS(LACI_RELU_SUM_DECLARE)
#undef LACI_RELU_SUM_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
const laci_relu_sum *laci_relu_sum_variant(void);

#endif

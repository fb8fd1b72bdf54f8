/* SPDX-License-Identifier: Apache-2.0
 * Swish (SiLU), the activation function of newer convolutional networks, element by element and in
 * place:
 *
 *     y = x * sigmoid(x) = x / (1 + exp(-x))
 *
 * The error is at most (5e-7 + 1e-7 |x|) |y|. y is 0 for x below -87, -inf included; NaN stays NaN.
 * Variants differ in the last bits. swish_isa.c is compiled for every instruction set;
 * swish_scalar.c is the reference. Caller: engine/cpu/lower/convolution.c. */
#ifndef LACI_KERNEL_POINTWISE_SWISH_H
#define LACI_KERNEL_POINTWISE_SWISH_H

#include <stdint.h>

#include "kernel/variants.h"

/** Replaces every element of x [n] by y. Needs only the alignment of floats. Callable from any
 * thread. */
typedef void laci_swish(float *x, int64_t n);

#define LACI_SWISH_DECLARE(name, level) laci_swish laci_swish_##name;
LACI_KERNEL_VARIANTS(LACI_SWISH_DECLARE)
#undef LACI_SWISH_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_swish *laci_swish_variant(void);

#endif

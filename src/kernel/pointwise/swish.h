/* SPDX-License-Identifier: Apache-2.0
 * The function between convolutions of newer networks, element by element and in place:
 *
 *     y = x * sigmoid(x) = x / (1 + exp(-x))
 *
 * Within (5e-7 + 1e-7 |x|) |y|; 0 below x = -87, where y vanishes, and for -inf; NaN stays NaN.
 * Variants differ in the last bits. One text of vectors (swish_isa.c) is compiled for every
 * instruction set; swish_scalar.c is the definition. Next: engine/cpu/lower/convolution.c, the
 * reader. */
#ifndef LACI_KERNEL_POINTWISE_SWISH_H
#define LACI_KERNEL_POINTWISE_SWISH_H

#include <stdint.h>

#include "kernel/variants.h"

/** x [n], replaced by y; any alignment. Any thread. */
typedef void laci_swish(float *x, int64_t n);

#define LACI_SWISH_DECLARE(name, level) laci_swish laci_swish_##name;
LACI_KERNEL_VARIANTS(LACI_SWISH_DECLARE)
#undef LACI_SWISH_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_swish *laci_swish_now(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The largest or the smallest of floats: NaN if there is one, and among zeros +0 is larger than -0.
 * So the order of elements changes no bit, whichever vectors or parts they are reduced in.
 * extreme_isa.c is the common source of all variants; the scalar variant is the reference. Callers:
 * engine/cpu/lower/extreme.c. */
#ifndef LACI_KERNEL_POINTWISE_EXTREME_H
#define LACI_KERNEL_POINTWISE_EXTREME_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/variants.h"

/** Sets y [inner] to the extremes of the columns of x [n, inner], n >= 1: the largest elements, or
 * the smallest. Callable from any thread. */
typedef void laci_extreme(const float *x, int64_t n, int64_t inner, bool largest, float *y);

#define LACI_EXTREME_DECLARE(name, level) laci_extreme laci_extreme_##name;
LACI_KERNEL_VARIANTS(LACI_EXTREME_DECLARE)
#undef LACI_EXTREME_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_extreme *laci_extreme_variant(void);

#endif

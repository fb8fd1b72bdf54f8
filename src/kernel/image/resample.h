/* SPDX-License-Identifier: Apache-2.0
 * Resamples floats along one axis: every result is a weighted sum of a few numbers.
 *
 *     y[o, p, i] = sum over k < width of weight[p, k] * x[o, index[p, k], i]
 *
 * Terms are added in order of k, each rounded by itself, so that every variant gives the same bits.
 * Without weights, width is 1 and numbers are copied. resample_isa.c is the common source of all
 * variants; the scalar variant is the reference. Caller: engine/cpu/lower/resample.c. */
#ifndef LACI_KERNEL_IMAGE_RESAMPLE_H
#define LACI_KERNEL_IMAGE_RESAMPLE_H

#include <stdint.h>

#include "kernel/variants.h"

/** x is [outer, in, inner], y is [outer, out, inner]. */
typedef struct laci_resample_pass {
  int64_t in, out, inner, width; /* sizes of the arrays; width: numbers that are added for one
                                    result */
  const int32_t *index;          /* [out, width] positions of the numbers that are added, each from
                                    0 to in - 1 */
  const float *weight;           /* [out, width] weights of these numbers; NULL: numbers are
                                    copied */
} laci_resample_pass;

/** Computes lines [begin, end) of y: line number o * out + p has y[o, p, ...]. Needs only the
 * alignment of floats. Callable from any thread. */
typedef void laci_resample_lines(const laci_resample_pass *pass, const float *x, float *y,
                                 int64_t begin, int64_t end);

#define LACI_RESAMPLE_DECLARE(name, level) laci_resample_lines laci_resample_##name;
LACI_KERNEL_VARIANTS(LACI_RESAMPLE_DECLARE)
#undef LACI_RESAMPLE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_resample_lines *laci_resample_variant(void);

#endif

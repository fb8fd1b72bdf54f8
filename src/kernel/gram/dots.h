/* SPDX-License-Identifier: Apache-2.0
 * Inner products of the rows of two matrices; Gram matrices are computed from them.
 *
 * The elements of a row are the positions that are summed over. They are stored in runs; for images
 * that have a border, a run is an image. Runs are read in whole vectors; the caller makes sure that
 * what is read beyond the end of a run is multiplied by zero. Neither row has to be aligned, so a
 * shifted image is the same memory at another offset.
 *
 * Up to LACI_DOTS_CHUNK positions are summed in float32, and these chunks in double. The order
 * inside a chunk depends on the variant: results differ between instruction sets by rounding, about
 * 1e-6 of sum |a b|. */
#ifndef LACI_KERNEL_GRAM_DOTS_H
#define LACI_KERNEL_GRAM_DOTS_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_DOTS_LANES = 16, LACI_DOTS_CHUNK = 1024 };

/** out[i, j] += sum over runs r and e < length of a[i, r * stride + e] b[j, r * stride + e] */
typedef struct laci_dots {
  int m, n; /* number of rows of a, and of b; out is [m, n] */
  const float *a, *b;
  int64_t lda, ldb, ldo; /* row strides of a, b and out, in elements */
  int64_t n_runs, stride,
      length; /* number of runs; floats from the beginning of a run to the next; floats of a run, a
                 multiple of LACI_DOTS_LANES */
  double *out;
} laci_dots;

typedef void laci_dots_kernel(const laci_dots *dots);

#define LACI_DOTS_DECLARE(name, level) laci_dots_kernel laci_dots_##name;
LACI_KERNEL_VARIANTS(LACI_DOTS_DECLARE)
#undef LACI_DOTS_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_dots_kernel *laci_dots_variant(void);

#endif

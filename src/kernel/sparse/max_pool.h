/* SPDX-License-Identifier: Apache-2.0
 * Computes max pooling of floats, or of bytes (int8x4.h). Padding is ignored, and every window must
 * contain a pixel. Input and output bytes have the same scale and zero point, so that nothing is
 * rounded. A NaN counts as less than any number. */
#ifndef LACI_KERNEL_SPARSE_BYTES_POOL_H
#define LACI_KERNEL_SPARSE_BYTES_POOL_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** A max pooling that can be computed. `in` and `out` are layouts of floats or of int8x4, as
 * window.values says; either both or neither are HWC16N. The window has 1 group, dilations of 1 and
 * any number of channels. laci_max_pool_can_compute must be true for it. */
typedef struct laci_max_pool {
  laci_sparse_window window;
  laci_sparse_layout in, out;
  int64_t n_image_blocks; /* number of images, or of groups of 16 images in HWC16N */
} laci_max_pool;

/** Is there a kernel for windows of this size and stride? */
bool laci_max_pool_can_compute(const laci_sparse_window *g);

/** Returns the number of work items, which may be computed at the same time. An item is a band of a
 * channel's rows; in HWC16N, a row of pixels. */
int64_t laci_max_pool_n_items(const laci_max_pool *p);

/** Computes items [first, last). x and y do not overlap and need only the alignment of floats.
 * Floats of y that are not pixels are not written. */
typedef void laci_max_pool_run(const laci_max_pool *p, const float *x, float *y, int64_t first,
                               int64_t last);

#define LACI_MAX_POOL_DECLARE(name, level) laci_max_pool_run laci_max_pool_##name;
LACI_KERNEL_VARIANTS(LACI_MAX_POOL_DECLARE)
#undef LACI_MAX_POOL_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_max_pool_run *laci_max_pool_variant(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The maximum of each window of floats, or of bytes (int8x4.h). Padding is ignored, and every
 * window has a pixel in it. Input and output bytes have the same scale and zero point, so that
 * nothing is rounded. A NaN is less than anything. */
#ifndef LACI_KERNEL_SPARSE_BYTES_POOL_H
#define LACI_KERNEL_SPARSE_BYTES_POOL_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** From one native layout to another, of floats or of int8x4 as the window's values are, neither or
 * both of them HWC16N. The window's groups and dilations are 1, its channels any number;
 * laci_max_pool_fits is true for it. */
typedef struct laci_max_pool {
  laci_sparse_window window;
  laci_sparse_layout in, out;
  int64_t n_image_blocks; /* images, or groups of 16 */
} laci_max_pool;

/** Is there a kernel for windows of that size and stride? */
bool laci_max_pool_fits(const laci_sparse_window *g);

/** The number of items of the work, which are independent of each other: bands of a channel's rows,
 * or rows of HWC16N. */
int64_t laci_max_pool_items(const laci_max_pool *p);

/** Items [first, last), apart, any alignment of floats. What is no pixel of y is left alone. */
typedef void laci_max_pool_run(const laci_max_pool *p, const float *x, float *y, int64_t first,
                               int64_t last);

#define LACI_MAX_POOL_DECLARE(name, level) laci_max_pool_run laci_max_pool_##name;
LACI_KERNEL_VARIANTS(LACI_MAX_POOL_DECLARE)
#undef LACI_MAX_POOL_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_max_pool_run *laci_max_pool_now(void);

#endif

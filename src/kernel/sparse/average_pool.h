/* SPDX-License-Identifier: Apache-2.0
 * Computes average pooling of int8 (int8x4.h). Sums of bytes are exact integers:
 *
 *     v = (sum of x - n_inside * x_zero) * (scale / n)
 *     y = clip(low, high, whole(v) + zero)
 *
 * n_inside is the number of pixels of a window, and n is that, or with counts_padding the size of
 * the window. Each operation of floats rounds to the nearest; whole() takes halves to even. Every
 * window must contain a pixel. */
#ifndef LACI_KERNEL_SPARSE_AVERAGE_POOL_H
#define LACI_KERNEL_SPARSE_AVERAGE_POOL_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** An average pooling that can be computed. `in` and `out` are layouts of int8x4; either both or
 * neither are HWC16N, and `in` is not PC16P. All memory of x that is not a pixel holds zero points.
 * The window has 1 group, dilations of 1 and any number of channels.
 * laci_average_pool_can_compute must be true for it. */
typedef struct laci_average_pool {
  laci_sparse_window window;
  laci_sparse_layout in, out;
  int64_t n_image_blocks; /* number of images, or of groups of 16 images in HWC16N */
  bool counts_padding;    /* padding counts as pixels whose value is 0 */
  float scale;            /* scale of x divided by that of y */
  int32_t x_zero, zero;   /* zero points of x and y, 0 to 255 */
  uint8_t low, high;      /* bounds of y */
} laci_average_pool;

/** Are there kernels for this window? */
bool laci_average_pool_can_compute(const laci_sparse_window *g);

/** Returns the number of work items, which may be computed at the same time. An item is four
 * channels of an image block. */
int64_t laci_average_pool_n_items(const laci_average_pool *p);

/** Computes items [first, last). x and y do not overlap and need only the alignment of floats. Only
 * pixels of y are written. */
typedef void laci_average_pool_run(const laci_average_pool *p, const float *x, float *y,
                                   int64_t first, int64_t last);

#define LACI_AVERAGE_POOL_DECLARE(name, level) laci_average_pool_run laci_average_pool_##name;
LACI_KERNEL_VARIANTS(LACI_AVERAGE_POOL_DECLARE)
#undef LACI_AVERAGE_POOL_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_average_pool_run *laci_average_pool_variant(void);

#endif

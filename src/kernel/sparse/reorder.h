/* SPDX-License-Identifier: Apache-2.0
 * Tensors from one layout of window.h to another, with zeros on what is no pixel.
 *
 *     to[image][channel][y][x] = from[image][channel][y * stride_h][x * stride_w]
 *
 * or, where the reorder normalizes, of that value v
 *
 *     max(scale[channel] * v + shift[channel], low)
 *
 * laci_sparse_at says where both are. Everything else of the target's memory becomes zero: borders,
 * what is between rows, phases or channels, the ends of vectors, lanes of images that are not
 * there. The work is a number of items of about equal size, independent of each other; all of them
 * write every float of the target, each once. Which item writes which float is a variant's choice.
 *
 * reorder_scalar.c is the definition; reorder_isa.c the one text of other variants. */
#ifndef LACI_KERNEL_SPARSE_REORDER_H
#define LACI_KERNEL_SPARSE_REORDER_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** The product is rounded before the sum; NaN stays. */
typedef struct laci_sparse_norm {
  const float *scale, *shift; /* [channels]; NULL, both: values stay as they are */
  float low;                  /* -INFINITY: no bound */
} laci_sparse_norm;

/** CHW16C takes multiples of 16 channels only. stride_h, stride_w: every so many rows and pixels
 * are taken, 1 for all, as a window of one pixel does; `size` is the target's. Only targets that
 * windows read (CHW, PC16P, HWC16N) can be normalized. */
typedef struct laci_sparse_reorder {
  laci_sparse_layout from, to;
  laci_sparse_size size;
  int64_t stride_h, stride_w;
  laci_sparse_norm norm;
} laci_sparse_reorder;

/** Into how many items the work falls. */
int64_t laci_sparse_reorder_items(const laci_sparse_reorder *r);

/** Does items [first, last). from, to: image blocks that follow each other in memory; the two do
 * not overlap; any alignment of floats. No float beyond the last image block is read. */
typedef void laci_sparse_reorder_run(const laci_sparse_reorder *r, const float *from, float *to,
                                     int64_t first, int64_t last);

#define LACI_SPARSE_REORDER_DECLARE(name, level) laci_sparse_reorder_run laci_sparse_reorder_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_REORDER_DECLARE)
#undef LACI_SPARSE_REORDER_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_sparse_reorder_run *laci_sparse_reorder_now(void);

/** Writes a word to all that is no pixel, for a layout whose pixels another kernel writes into
 * memory that held other values: zero, or of int8 four times the zero point. Lanes of images that
 * are not there are left alone: a product writes all 16. Items as above; there are none where every
 * float is a pixel's. */
int64_t laci_sparse_border_items(const laci_sparse_layout *l, const laci_sparse_size *size);
void laci_sparse_fill_border(const laci_sparse_layout *l, const laci_sparse_size *size,
                             uint32_t with, float *values, int64_t first, int64_t last);

#endif

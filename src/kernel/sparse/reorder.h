/* SPDX-License-Identifier: Apache-2.0
 * Copies tensors from one layout of window.h to another, and writes zeros to all padding.
 *
 *     to[image][channel][y][x] = from[image][channel][y * stride_h][x * stride_w]
 *
 * If the reorder normalizes, a value v that is copied becomes
 *
 *     max(scale[channel] * v + shift[channel], low)
 *
 * laci_sparse_offset gives the positions in both layouts. All other memory of the target becomes
 * zero: borders, gaps between rows, phases or channels, the ends of vectors, and lanes of images
 * that do not exist. The work is divided into items of about equal size, which are independent of
 * each other. Together they write every float of the target once. Which item writes which float
 * depends on the variant.
 *
 * reorder_scalar.c is the definition; reorder_isa.c the common source of the other variants. */
#ifndef LACI_KERNEL_SPARSE_REORDER_H
#define LACI_KERNEL_SPARSE_REORDER_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** The normalization. scale * v is rounded before shift is added; a NaN stays. */
typedef struct laci_sparse_norm {
  const float *scale, *shift; /* [channels] factor and summand of each channel; both NULL: values
                                 are not changed */
  float low;                  /* lower bound of the result; -INFINITY: no bound */
} laci_sparse_norm;

/** A copy of a tensor from the layout `from` to the layout `to`. size: that of the target.
 * stride_h, stride_w: only every stride_h-th row and stride_w-th pixel is copied, as a window of
 * one pixel with that stride reads them; 1: all are copied. CHW16C needs a multiple of 16 channels.
 * Only targets that windows read (CHW, PC16P, HWC16N) can be normalized. */
typedef struct laci_sparse_reorder {
  laci_sparse_layout from, to;
  laci_sparse_size size;
  int64_t stride_h, stride_w;
  laci_sparse_norm norm;
} laci_sparse_reorder;

/** Returns the number of work items. */
int64_t laci_sparse_reorder_n_items(const laci_sparse_reorder *r);

/** Computes items [first, last). from, to: arrays of image blocks, contiguous in memory. They do
 * not overlap and need only the alignment of floats. Nothing after the last image block of `from`
 * is read. */
typedef void laci_sparse_reorder_run(const laci_sparse_reorder *r, const float *from, float *to,
                                     int64_t first, int64_t last);

#define LACI_SPARSE_REORDER_DECLARE(name, level) laci_sparse_reorder_run laci_sparse_reorder_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_REORDER_DECLARE)
#undef LACI_SPARSE_REORDER_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_sparse_reorder_run *laci_sparse_reorder_variant(void);

/** laci_sparse_fill_border writes a 32-bit word to all padding of a layout. It is for memory that
 * held other values before; another kernel writes the pixels. The word is zero, or with int8 the
 * zero point in all four bytes. Lanes of images that do not exist are not written, since a product
 * writes all 16 lanes. The work is divided into laci_sparse_border_n_items items; there are none if
 * the layout has no padding. */
int64_t laci_sparse_border_n_items(const laci_sparse_layout *l, const laci_sparse_size *size);
void laci_sparse_fill_border(const laci_sparse_layout *l, const laci_sparse_size *size,
                             uint32_t with, float *values, int64_t first, int64_t last);

#endif

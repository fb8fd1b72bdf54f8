/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution, channel by channel, in native layouts (window.h). Networks for small
 * devices have it between two sparse 1x1 convolutions. No weight is pruned; the gain is that values
 * need no reorder before and after it.
 *
 * Every sum begins at the bias and adds the taps in ascending order, one fused multiply-add each.
 * So it gives the bits of a product (product.h) that keeps all weights. A window may stride by 1 or
 * 2 along a row, and by any number from row to row. The input is HWC16N, or CHW that is not split
 * by stride. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

enum {
  LACI_DEPTHWISE_MOST_TAPS = 121,
  LACI_DEPTHWISE_TILES = 16,    /* maximum number of tiles of a channel that are computed at once */
  LACI_DEPTHWISE_PHASES = 8192, /* size in floats of a stack array. If windows stride along a row,
                                   it holds the input split into even and odd pixels */
};

/** A prepared depthwise convolution. Only `tiles` is owned. */
typedef struct laci_depthwise {
  laci_sparse_window window;
  laci_sparse_layout in, out; /* `in` is CHW and `out` CHW or PC16P; or both are HWC16N */
  int64_t n_images;           /* number of images, or of groups of 16 images in HWC16N */
  laci_sparse_tile *tiles;    /* tiles of the results, owned. The field `in` of a tile is the offset
                                 in x of its image block */
  int64_t tiles_per_block;    /* number of tiles in one image block */
  int64_t tiles_at_once;      /* maximum number of tiles of a channel that are computed at once */
} laci_depthwise;

/** Can this kernel compute the convolution? */
bool laci_depthwise_can_compute(const laci_sparse_window *g);
/** Returns the number of pixels in a row of a phase. A phase holds every second pixel of a row of
 * the input: what windows of stride 2 read there. */
static inline int64_t laci_depthwise_phase_width(const laci_sparse_window *g) {
  return (2 * (g->out_w - 1) + (g->kernel_w - 1) * g->dilation_w) / 2 + 1;
}
/** Returns the number of floats in a phase that n_rows rows of results read, with padding for the
 * last vector. A phase holds every second pixel of every stride_h-th row. */
static inline int64_t laci_depthwise_phase_floats(const laci_depthwise *d, int64_t n_rows) {
  const laci_sparse_window *g = &d->window;
  const int64_t half = laci_depthwise_phase_width(g), width = d->out.row_stride;
  const int64_t rows = n_rows + (g->kernel_h - 1) * g->dilation_h / g->stride_h;
  return rows * (width > half ? width : half) + LACI_SPARSE_LANES;
}
/** Prepares a convolution. Fails with LAC_NO_MEMORY, or with LAC_UNSUPPORTED if a window strides
 * along rows that are too wide; *d is then empty. */
LAC_MUST_CHECK lac_status laci_depthwise_init(const laci_sparse_window *g,
                                              const laci_sparse_layouts *layouts, laci_depthwise *d,
                                              lac_error *err);
void laci_depthwise_clear(laci_depthwise *d);

/** Computes the part of the results that `part` describes: its rows are channels, and its tiles are
 * elements of d->tiles. o->weight is [channels][kernel_h][kernel_w]. Parts that share no result may
 * be computed at the same time. */
typedef void laci_depthwise_multiply(const laci_depthwise *d, const laci_sparse_operands *o,
                                     const laci_sparse_part *part);

#define LACI_DEPTHWISE_DECLARE(name, level) laci_depthwise_multiply laci_depthwise_multiply_##name;
LACI_KERNEL_VARIANTS(LACI_DEPTHWISE_DECLARE)
#undef LACI_DEPTHWISE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_depthwise_multiply *laci_depthwise_multiply_variant(void);

#endif

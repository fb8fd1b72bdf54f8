/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution, channel by channel, in native layouts (window.h). In networks for small
 * machines it is found between two sparse 1x1 convolutions. All of its weights are kept; the gain
 * is that values need no reorder before and after it.
 *
 * Every sum begins at the bias and goes through the taps in ascending order, one fused multiply-add
 * each, as that of a product (product.h) whose weights are all kept: that is the definition.
 * Strides are one or two along a row, any number across rows; the input is CHW without phases, or
 * HWC16N. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_H

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

enum {
  LACI_DEPTHWISE_MOST_TAPS = 121,
  LACI_DEPTHWISE_TILES = 16,    /* of a channel at a time, at most */
  LACI_DEPTHWISE_PHASES = 8192, /* floats: what these read where windows stride along a row */
};

/** Borrowed arrays but for the tiles, which it owns. */
typedef struct laci_depthwise {
  laci_sparse_window window;
  laci_sparse_layout in, out; /* CHW in, CHW or PC16P out; or both HWC16N */
  int64_t n_images;           /* or groups of 16 */
  laci_sparse_tile *tiles;    /* of results; `in` is where their image block begins */
  int64_t n_each;             /* tiles of an image block */
  int64_t n_together;         /* tiles of a channel at a time */
} laci_depthwise;

/** Can a convolution be one of these? */
bool laci_depthwise_fits(const laci_sparse_window *g);
/** Of what a window that strides reads of a row for all results, every second pixel. */
static inline int64_t laci_depthwise_half(const laci_sparse_window *g) {
  return (2 * (g->out_w - 1) + (g->kernel_w - 1) * g->dilation_w) / 2 + 1;
}
/** Floats of a phase, every second pixel of every stride_h-th row, that so many rows of results
 * read, with padding for the last vector. */
static inline int64_t laci_depthwise_phase(const laci_depthwise *d, int64_t n_rows) {
  const laci_sparse_window *g = &d->window;
  const int64_t half = laci_depthwise_half(g), width = d->out.row_stride;
  const int64_t rows = n_rows + (g->kernel_h - 1) * g->dilation_h / g->stride_h;
  return rows * (width > half ? width : half) + LACI_SPARSE_LANES;
}
/** Fails LAC_NO_MEMORY, and LAC_UNSUPPORTED where a window strides over rows that are too wide; d
 * is then empty. */
LAC_MUST_CHECK lac_status laci_depthwise_init(const laci_sparse_window *g,
                                              const laci_sparse_layouts *layouts, laci_depthwise *d,
                                              lac_error *err);
void laci_depthwise_clear(laci_depthwise *d);

/** Rows of the part are channels, its tiles d->tiles; o->weight is [channels][kernel_h][kernel_w].
 * Parts that share no result are independent of each other. */
typedef void laci_depthwise_multiply(const laci_depthwise *d, const laci_sparse_operands *o,
                                     const laci_sparse_part *part);

#define LACI_DEPTHWISE_DECLARE(name, level) laci_depthwise_multiply laci_depthwise_multiply_##name;
LACI_KERNEL_VARIANTS(LACI_DEPTHWISE_DECLARE)
#undef LACI_DEPTHWISE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_depthwise_multiply *laci_depthwise_multiply_now(void);

#endif

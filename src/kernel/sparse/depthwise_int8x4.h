/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution of int8 (int8x4.h), four channels at a time:
 *
 *     sum[channel] = bias[channel] + sum over taps of weight[channel][tap] * x[channel][tap]
 *
 * Sums are exact integers, and become results as int8x4.h says. So it gives the bits of a product
 * of int8 that keeps all weights, in every variant. A window may stride by 1 or 2 along a row, and
 * by any number from row to row. The input is HWC16N, or CHW that is not split by stride; what is
 * between its pixels holds the zero point. The bias accounts for the zero point, as there. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_INT8X4_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_INT8X4_H

#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/window.h"

enum { LACI_DEPTHWISE_INT8X4_MOST_TAPS = 121 };

/** A depthwise convolution that can be computed. It owns nothing. */
typedef struct laci_depthwise_int8x4 {
  laci_sparse_window window;
  laci_sparse_layout in, out; /* `in` is CHW and `out` CHW or PC16P, or both are HWC16N. `out` is a
                                 layout of floats if results are floats, else of int8x4 */
  int64_t n_image_blocks;     /* number of images, or of groups of 16 images in HWC16N */
  const int8_t *weight;       /* [laci_depthwise_int8x4_weight_bytes] the packed weights */
} laci_depthwise_int8x4;

/** Can this kernel compute the convolution? */
bool laci_depthwise_int8x4_can_compute(const laci_sparse_window *g);

/** Weights are packed as [four channels][four rows of the window][kernel_w][channel][row], with
 * zeros for channels and rows that do not exist. Returns the position of a weight. */
static inline int64_t laci_depthwise_int8x4_weight_at(const laci_sparse_window *g, int64_t channel,
                                                      int64_t row, int64_t column) {
  enum { SIDE = LACI_INT8X4_CHANNELS };
  const int64_t row_groups = (g->kernel_h + SIDE - 1) / SIDE;
  const int64_t at = (channel / SIDE * row_groups + row / SIDE) * g->kernel_w + column;
  return (at * SIDE + channel % SIDE) * SIDE + row % SIDE;
}
/** Returns the number of bytes of the packed weights. */
int64_t laci_depthwise_int8x4_weight_bytes(const laci_sparse_window *g);
/** Packs weights [channels][kernel_h][kernel_w], integers from -128 to 127. */
void laci_depthwise_int8x4_pack(const laci_sparse_window *g, const float *weight, int8_t *packed);

/** Returns the number of work items, which may be computed at the same time. An item is a band of
 * rows of four channels of an image block. */
int64_t laci_depthwise_int8x4_n_items(const laci_depthwise_int8x4 *d);

/** Computes items [first, last). Arrays need only the alignment of floats. o->weight and o->bias
 * are not read, and o->residual is NULL. In o->quantized, bias and scale have a multiple of four
 * elements; those after the last channel are 0. Only pixels of y are written. */
typedef void laci_depthwise_int8x4_run(const laci_depthwise_int8x4 *d,
                                       const laci_sparse_operands *o, int64_t first, int64_t last);

laci_depthwise_int8x4_run laci_depthwise_int8x4_scalar;
#if defined(__x86_64__)
laci_depthwise_int8x4_run laci_depthwise_int8x4_avx2, laci_depthwise_int8x4_avx512;
#endif

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_depthwise_int8x4_run *laci_depthwise_int8x4_variant(void);

/* ---- How the work is divided ---- */

/** A work item: the rows [row_first, row_last) of results of four channels, or fewer. */
typedef struct laci_depthwise_int8x4_item {
  int64_t image_block, channel, n_channels; /* channel: the first of n_channels */
  int64_t row_first, row_last;
} laci_depthwise_int8x4_item;
laci_depthwise_int8x4_item laci_depthwise_int8x4_find_item(const laci_depthwise_int8x4 *d,
                                                           int64_t item);

#endif

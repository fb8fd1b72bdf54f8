/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a convolution's weights, by products of bf16 pairs:
 *
 *     dw[k][c][i][j] = sum over images, y and x of
 *                      dy[k][y][x] * in[c][y * stride + i - pad][x * stride + j - pad]
 *
 * Images have the layout nChw16c: blocks of 16 channels. An instruction that multiplies bf16 pairs
 * reads two neighbouring positions along x, for the 16 channels of a block. Both operands are
 * therefore paired once per band of rows, and then read for every product of blocks. Windows of
 * three pixels and stride 1 can save a third of the products by the transposed filtering of
 * kernel/convolution/winograd.h, F(3, 2). Sums are then of 4 points per row of the window,
 *
 *     two pixels y of dy  -> (y0, y0 + y1, y0 - y1, -y1), four pixels of the input as there
 *     sums m              -> (m0 + (m1 + m2) / 2, (m1 - m2) / 2, (m1 + m2) / 2 + m3)
 *
 * Sums are float32 in an order that differs between variants; weight_gradient_scalar.c is the
 * definition of right. Next: engine/cpu/native/train/blocked_weight_gradient.c, the reader. */
#ifndef LACI_KERNEL_CONVOLUTION_WEIGHT_GRADIENT_H
#define LACI_KERNEL_CONVOLUTION_WEIGHT_GRADIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/convolution/winograd.h"

enum {
  LACI_GRADIENT_BLOCK = 16, /* channels */
  LACI_GRADIENT_TILE = LACI_GRADIENT_BLOCK * LACI_GRADIENT_BLOCK
};

/** Sizes are >= 1, pads >= 0. Where the window reaches beyond an edge of the image, it reads
 * zeros. */
typedef struct laci_weight_gradient {
  int64_t c_blocks, k_blocks; /* of channels in and out */
  int64_t h, w, out_h, out_w; /* pixels of an image in and out */
  int64_t kernel_h, kernel_w; /* the window */
  int64_t stride_h, stride_w; /* >= 1 */
  int64_t pad_top, pad_left;
  bool winograd; /* kernel_w 3, stride_w 1: sums of points */
} laci_weight_gradient;

/** Sums of one channel in and out: places of the window, or rows of it times points. */
static inline int64_t laci_weight_gradient_sums(const laci_weight_gradient *g) {
  return g->kernel_h * (g->winograd ? LACI_WINOGRAD_POINTS : g->kernel_w);
}

/** Some images, and the products of some blocks of channels. sums: of all blocks,
 * [k_blocks][c_blocks][sums of a window][16 in][16 out]; those of the part are overwritten.
 * scratch: laci_weight_gradient_scratch bytes, aligned to 64. Parts run on any threads. */
typedef struct laci_weight_gradient_part {
  const uint16_t *x, *dy; /* of all images, [n][blocks][h][w][16] of bf16 */
  int64_t n_first, n_last, k_first, k_last, c_first, c_last; /* the last one is not in it */
  float *sums;
  void *scratch;
} laci_weight_gradient_part;

typedef void laci_weight_sums(const laci_weight_gradient *g, const laci_weight_gradient_part *part);

laci_weight_sums laci_weight_sums_scalar;
#if defined(__x86_64__)
laci_weight_sums laci_weight_sums_avx512bf16;
#endif

/** The fast variant, by the processor and the level in force (cpu/cpu.h); NULL: there is none. */
laci_weight_sums *laci_weight_sums_now(void);

/** The weights of one channel in and out, [kernel_h][kernel_w], from their sums, which are TILE
 * floats apart. */
void laci_weight_gradient_window(const laci_weight_gradient *g, const float *sums, float *weights);

/** A band: as many rows, of as many images, as the cache nearest to the processor holds when its
 * input is paired. An entry is two places along x of 16 channels. */
typedef struct laci_gradient_band {
  int64_t rows, images; /* of dy; several images only where all their rows fit */
  int64_t pairs;        /* entries of a row of dy, or of one of its points */
  int64_t in_rows;      /* rows of the input, of `entries` each */
  int64_t entries;      /* of all points */
  int64_t pair_step;    /* entries of the input from one of dy to the next */
} laci_gradient_band;
laci_gradient_band laci_weight_gradient_band(const laci_weight_gradient *g);

/** Bytes for a part of so many blocks out; 0: more than can be counted. */
size_t laci_weight_gradient_scratch(const laci_weight_gradient *g, int64_t k_blocks);

#endif

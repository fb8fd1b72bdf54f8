/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a convolution's weights, by products of bf16 pairs:
 *
 *     dw[k][c][i][j] = sum over images, y and x of
 *                      dy[k][y][x] * in[c][y * stride + i - pad][x * stride + j - pad]
 *
 * Images have the layout nChw16c: blocks of 16 channels. An instruction that multiplies bf16 pairs
 * reads two neighbouring positions along x, for the 16 channels of a block. So both operands are
 * interleaved into pairs once per band of rows, and then read for every product of two channel
 * blocks. Windows of three pixels and stride 1 can save a third of the products by the transposed
 * filtering of kernel/convolution/winograd.h, F(3, 2). For each row of the window, it sums products
 * of 4 transformed values (points):
 *
 *     two pixels y of dy  -> (y0, y0 + y1, y0 - y1, -y1), the input as in winograd.h
 *     sums m of products  -> (m0 + (m1 + m2) / 2, (m1 - m2) / 2, (m1 + m2) / 2 + m3)
 *
 * Sums are float32 in an order that differs between variants; weight_gradient_scalar.c is the
 * reference. Caller: engine/cpu/native/train/blocked_weight_gradient.c. */
#ifndef LACI_KERNEL_CONVOLUTION_WEIGHT_GRADIENT_H
#define LACI_KERNEL_CONVOLUTION_WEIGHT_GRADIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/convolution/winograd.h"

enum {
  LACI_GRADIENT_BLOCK = 16, /* channels of a block */
  LACI_GRADIENT_TILE = LACI_GRADIENT_BLOCK * LACI_GRADIENT_BLOCK
};

/** Sizes are >= 1, pads >= 0. Where the window reaches beyond an edge of the image, it reads
 * zeros. */
typedef struct laci_weight_gradient {
  int64_t c_blocks, k_blocks; /* number of blocks of input channels, and of output channels */
  int64_t h, w, out_h, out_w; /* height and width in pixels of an input image, and of an output
                                 image */
  int64_t kernel_h, kernel_w; /* size of the window */
  int64_t stride_h, stride_w; /* >= 1 */
  int64_t pad_top, pad_left;
  bool winograd; /* use the filtering F(3, 2); needs kernel_w 3 and stride_w 1. Each sum then
                    belongs to a point, not to a tap */
} laci_weight_gradient;

/** Returns the number of sums for one input channel and one output channel: one for each tap; with
 * `winograd`, one for each point of each row of the window. */
static inline int64_t laci_weight_gradient_n_sums(const laci_weight_gradient *g) {
  return g->kernel_h * (g->winograd ? LACI_WINOGRAD_POINTS : g->kernel_w);
}

/** A part of the work: the products of some images and of some blocks of channels. `sums` is the
 * array for all blocks, [k_blocks][c_blocks][laci_weight_gradient_n_sums][16 in][16 out]; those of
 * this part's blocks are overwritten. scratch has laci_weight_gradient_scratch_bytes bytes, aligned
 * to 64. Parts may run on any threads. */
typedef struct laci_weight_gradient_part {
  const uint16_t *x, *dy; /* whole arrays of all images, [n][blocks][h][w][16], bf16 */
  int64_t n_first, n_last, k_first, k_last, c_first,
      c_last; /* half-open ranges: of images, of blocks of output channels, of blocks of input
                 channels */
  float *sums;
  void *scratch;
} laci_weight_gradient_part;

typedef void laci_weight_sums(const laci_weight_gradient *g, const laci_weight_gradient_part *part);

laci_weight_sums laci_weight_sums_scalar;
#if defined(__x86_64__)
laci_weight_sums laci_weight_sums_avx512bf16;
#endif

/** Returns the fast variant for this processor and the SIMD level in force (cpu/cpu.h), or NULL if
 * there is none. */
laci_weight_sums *laci_weight_sums_variant(void);

/** Computes the weight gradient [kernel_h][kernel_w] of one input and one output channel from its
 * sums. Consecutive sums are LACI_GRADIENT_TILE floats apart. */
void laci_weight_gradient_from_sums(const laci_weight_gradient *g, const float *sums,
                                    float *weights);

/** The rows and images whose paired input fits in the first-level cache (a band). An entry holds,
 * for the 16 channels of a block, a pair of neighbouring positions along x; with `winograd`, the
 * pair of the same point of two neighbouring tiles. */
typedef struct laci_gradient_band {
  int64_t rows, images; /* number of rows of dy; number of images, more than one only where all
                           their rows fit */
  int64_t pairs;        /* number of entries in a row of dy; with `winograd`, for one point of the
                           row */
  int64_t in_rows;      /* number of rows of the input that the band reads */
  int64_t entries;    /* number of entries in a row of the input; with `winograd`, for all points of
                         the row */
  int64_t input_step; /* distance, in entries, from the input of an entry of dy to the input of the
                         next one */
} laci_gradient_band;
laci_gradient_band laci_weight_gradient_choose_band(const laci_weight_gradient *g);

/** Returns the bytes of scratch memory for a part of k_blocks blocks of output channels; 0: the
 * size overflows. */
size_t laci_weight_gradient_scratch_bytes(const laci_weight_gradient *g, int64_t k_blocks);

#endif

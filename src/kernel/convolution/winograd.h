/* SPDX-License-Identifier: Apache-2.0
 * A 3x3 convolution of stride 1 in bf16 that saves a third of the products by Winograd's minimal
 * filtering, F(2, 3), along the rows (A. Lavin and S. Gray, "Fast Algorithms for Convolutional
 * Neural Networks", 2016), and sums directly over the three rows of the window.
 *
 *     four pixels d of a row -> (d0 - d2, d1 + d2, d2 - d1, d1 - d3)
 *     three weights g        -> (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2)
 *     products m, summed over rows and channels -> (m0 + m1 + m2, m1 - m2 - m3), two pixels
 *
 * Only one axis is transformed, since every transformed value is rounded to bf16 before it is
 * multiplied: along a row two values are added at most, and the error stays at what rounding the
 * result costs (a few 2^-9 of its size). Sums are float32. Images have the layout nChw16c: blocks
 * of 16 channels. winograd_scalar.c is the reference. Read next:
 * engine/cpu/native/train/blocked_winograd.c. */
#ifndef LACI_KERNEL_CONVOLUTION_WINOGRAD_H
#define LACI_KERNEL_CONVOLUTION_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LACI_WINOGRAD_BLOCK = 16, /* channels of a block */
  LACI_WINOGRAD_WINDOW = 3, /* height and width of the window, in pixels */
  LACI_WINOGRAD_POINTS = 4, /* transformed values of a tile */
  LACI_WINOGRAD_OUT = 2,    /* result pixels of a tile */
};

/** Sizes are >= 1. The pads are rows of zeros above the image and columns of zeros left of it. */
typedef struct laci_winograd {
  int64_t c_blocks, k_blocks; /* number of blocks of input channels, and of output channels */
  int64_t h, w, out_h, out_w, pad_top, pad_left;
} laci_winograd;

/** The part of the result that is computed at once: some rows of some images. */
typedef struct laci_winograd_band {
  int64_t n_first, n_last, row_first, row_last; /* half-open ranges of images, and of rows of the
                                                   result */
} laci_winograd_band;

/** Returns the number of bf16 values of the transformed weights, [k_blocks][c_blocks][3 rows][8
 * pairs in][4 points][16 out][2 in]. */
static inline int64_t laci_winograd_n_weights(const laci_winograd *g) {
  return g->k_blocks * g->c_blocks * LACI_WINOGRAD_WINDOW * LACI_WINOGRAD_POINTS *
         LACI_WINOGRAD_BLOCK * LACI_WINOGRAD_BLOCK;
}

/** Transforms the weights of output channel blocks [first_last[0], first_last[1]). weight is
 * row-major f32, [out][in][3][3]. With `gradient`, the result is for the gradient of a
 * convolution's input: weight is then that convolution's own weight, [in][out][3][3], and its
 * window is rotated by 180 degrees. */
typedef void laci_winograd_transform(const laci_winograd *g, const float *weight, bool gradient,
                                     const int64_t first_last[2], uint16_t *to);

/** Computes the band of y [n][k_blocks][out_h][out_w][16] from x [n][c_blocks][h][w][16] and
 * transformed weights. scratch has laci_winograd_scratch_bytes bytes, aligned to 64. Bands are
 * independent of each other. */
typedef void laci_winograd_convolve(const laci_winograd *g, const laci_winograd_band *band,
                                    const uint16_t *x, const uint16_t *weights, uint16_t *y,
                                    void *scratch);

typedef struct laci_winograd_kernel {
  laci_winograd_transform *transform;
  laci_winograd_convolve *convolve;
} laci_winograd_kernel;

laci_winograd_transform laci_winograd_transform_scalar;
laci_winograd_convolve laci_winograd_convolve_scalar;
#if defined(__x86_64__)
laci_winograd_transform laci_winograd_transform_avx512bf16;
laci_winograd_convolve laci_winograd_convolve_avx512bf16;
#endif

/** Returns the fast variant for this processor and the SIMD level in force (cpu/cpu.h); both
 * members are NULL if there is none. */
laci_winograd_kernel laci_winograd_variant(void);

/** Chooses how many rows and images a band has, so that its transformed input fits in a core's
 * cache. */
void laci_winograd_choose_band(const laci_winograd *g, int64_t *rows, int64_t *images);

/** Returns the bytes of scratch memory for a band of that many rows and images; 0: the size
 * overflows. */
size_t laci_winograd_scratch_bytes(const laci_winograd *g, int64_t rows, int64_t images);

static inline int64_t laci_winograd_n_tiles(
    const laci_winograd *g) { /* tiles in a row of the result */
  return (g->out_w + LACI_WINOGRAD_OUT - 1) / LACI_WINOGRAD_OUT;
}

#endif

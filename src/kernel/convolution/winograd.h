/* SPDX-License-Identifier: Apache-2.0
 * A 3x3 convolution of stride 1 in bf16 with a third of its products saved: F(2, 3) of Winograd's
 * minimal filtering along the rows (A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
 * Networks", 2016), the plain sum over the three rows of the window.
 *
 *     four pixels d of a row -> (d0 - d2, d1 + d2, d2 - d1, d1 - d3)
 *     three weights g        -> (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2)
 *     products m, summed over rows and channels -> (m0 + m1 + m2, m1 - m2 - m3), two pixels
 *
 * Only one axis is transformed, since every transformed value is rounded to bf16 before it is
 * multiplied: along a row two values are added at most, and the error stays at what rounding the
 * result costs (a few 2^-9 of its size). Sums are float32. Images have the layout nChw16c: blocks
 * of 16 channels. winograd_scalar.c is the definition of right. Next:
 * engine/cpu/native/train/blocked_winograd.c. */
#ifndef LACI_KERNEL_CONVOLUTION_WINOGRAD_H
#define LACI_KERNEL_CONVOLUTION_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LACI_WINOGRAD_BLOCK = 16, /* channels */
  LACI_WINOGRAD_WINDOW = 3, /* pixels */
  LACI_WINOGRAD_POINTS = 4, /* transformed values a tile */
  LACI_WINOGRAD_OUT = 2,    /* pixels of a tile in the result */
};

/** Sizes >= 1; pads: rows and columns of zeros above and left of the image. */
typedef struct laci_winograd {
  int64_t c_blocks, k_blocks; /* of channels in and out */
  int64_t h, w, out_h, out_w, pad_top, pad_left;
} laci_winograd;

/** What is done at once: some rows of the result, of some images. */
typedef struct laci_winograd_band {
  int64_t n_first, n_last, row_first, row_last; /* the last one is not in it */
} laci_winograd_band;

/** Transformed weights, bf16: [k_blocks][c_blocks][3 rows][8 pairs in][4 points][16 out][2 in]. */
static inline int64_t laci_winograd_weights(const laci_winograd *g) {
  return g->k_blocks * g->c_blocks * LACI_WINOGRAD_WINDOW * LACI_WINOGRAD_POINTS *
         LACI_WINOGRAD_BLOCK * LACI_WINOGRAD_BLOCK;
}

/** Makes them of some blocks out [first, last). weight: row-major f32, [out][in][3][3]; or, for
 * the gradient of a convolution's input, its own weight, [in][out][3][3], whose window is flipped
 * by half a circle. */
typedef void laci_winograd_transform(const laci_winograd *g, const float *weight, bool gradient,
                                     const int64_t first_last[2], uint16_t *to);

/** x [n][c_blocks][h][w][16] and weights -> the band of y [n][k_blocks][out_h][out_w][16]. scratch:
 * laci_winograd_scratch bytes, aligned to 64. Bands are independent of each other. */
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

/** The fast variant, by the processor and the level in force (cpu/cpu.h); NULLs: there is none. */
laci_winograd_kernel laci_winograd_now(void);

/** Rows and images of a band whose transformed input a core's cache holds. */
void laci_winograd_cut(const laci_winograd *g, int64_t *rows, int64_t *images);

/** Bytes for a band of so many rows and images; 0: more than can be counted. */
size_t laci_winograd_scratch(const laci_winograd *g, int64_t rows, int64_t images);

static inline int64_t laci_winograd_tiles(const laci_winograd *g) { /* of a row */
  return (g->out_w + LACI_WINOGRAD_OUT - 1) / LACI_WINOGRAD_OUT;
}

#endif

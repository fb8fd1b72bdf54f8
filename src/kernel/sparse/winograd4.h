/* SPDX-License-Identifier: Apache-2.0
 * A convolution with all of its weights, in native layouts (window.h), in f32, with a quarter of
 * its products and less: F(4x4, 3x3) and F(4x4, 4x4) of Winograd's minimal filtering (A. Lavin and
 * S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). It is for layers between
 * sparse ones that are faster so than with half of their weights left out, and for the first layer
 * of many networks.
 *
 *   source  a channel that a window without a stride reads. A window that strides by 2 is the sum
 *           of four that do not, of even and odd rows and columns of taps, over the same of
 *           pixels: each channel is four sources then, of (row, column) 0 0, 0 1, 1 0, 1 1
 *   taps    3 x 3 or 4 x 4 of a source; a window of 7 x 7 that strides has some that are zero
 *   tile    4 x 4 results of a channel, which read 6 x 6 or 7 x 7 pixels of a source; tiles begin
 *           at the first result
 *   point   one of the 36 or 49 values that pixels of a tile become, d -> B' d B; a product of
 *           points, summed over sources, is one of those that results are made of, m -> A' m A
 *
 * The interpolation points are 0, 5/8, -5/8, 3/2, -3/2 and infinity, or 1/4, -1/4, 7/8, -7/8, 7/4,
 * -7/4 and infinity: all factors of pixels and results are exact, and the error is that of a direct
 * sum, within a factor of two, or of four (with 0, 1, -1, 2, -2 it is six times as large). Vertical
 * transforms come first. Sums begin at zero and go through sources in ascending order, one fused
 * multiply-add each; the bias is added at the end. winograd4_scalar.c is the definition; every
 * variant gives the same bits.
 *
 * Lanes are tiles along a row of tiles, or the same tile of 16 images. Some of them are done
 * together, a block: points of all sources, [points][sources][lanes], then products,
 * [points][channels_out][lanes], then results. A NaN or an infinity in a tile's pixels makes all of
 * its results so. Next: engine/cpu/native/algorithms/winograd.c. */
#ifndef LACI_KERNEL_SPARSE_WINOGRAD4_H
#define LACI_KERNEL_SPARSE_WINOGRAD4_H

#include <stddef.h>

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

enum {
  LACI_WINOGRAD4_SIDE = 4,    /* results */
  LACI_WINOGRAD4_READ = 7,    /* pixels, and points, at most */
  LACI_WINOGRAD4_POINTS = 49, /* of a tile, at most */
  LACI_WINOGRAD4_TAPS = 4,
  LACI_WINOGRAD4_PARTS = 4,    /* sources of a channel, at most */
  LACI_WINOGRAD4_WIDTH = 1792, /* results of a row, at most */
  LACI_WINOGRAD4_LINE = 8192,  /* floats: rows of results that are made at once */
};

/* Factors of the transforms of six pixels, from the points 5/8 and 3/2 = a and b. */
#define LACI_WINOGRAD4_A 0.625F
#define LACI_WINOGRAD4_B 1.5F
#define LACI_WINOGRAD4_A2 0.390625F
#define LACI_WINOGRAD4_B2 2.25F
#define LACI_WINOGRAD4_A3 0.244140625F
#define LACI_WINOGRAD4_B3 3.375F
#define LACI_WINOGRAD4_A2B2 0.87890625F    /* a^2 b^2 */
#define LACI_WINOGRAD4_A2_AND_B2 2.640625F /* a^2 + b^2 */

/* And of seven, from 1/4, 7/8 and 7/4 = p, q and r. */
#define LACI_WINOGRAD4_P 0.25F
#define LACI_WINOGRAD4_Q 0.875F
#define LACI_WINOGRAD4_R 1.75F
#define LACI_WINOGRAD4_P2 0.0625F
#define LACI_WINOGRAD4_Q2 0.765625F
#define LACI_WINOGRAD4_R2 3.0625F
#define LACI_WINOGRAD4_P3 0.015625F
#define LACI_WINOGRAD4_Q3 0.669921875F
#define LACI_WINOGRAD4_R3 5.359375F
#define LACI_WINOGRAD4_P2Q2 0.0478515625F
#define LACI_WINOGRAD4_P2R2 0.19140625F
#define LACI_WINOGRAD4_Q2R2 2.3447265625F
#define LACI_WINOGRAD4_P2_AND_Q2 0.828125F
#define LACI_WINOGRAD4_P2_AND_R2 3.125F
#define LACI_WINOGRAD4_Q2_AND_R2 3.828125F
#define LACI_WINOGRAD4_SQUARES 3.890625F         /* p^2 + q^2 + r^2 */
#define LACI_WINOGRAD4_BF16 2.583984375F         /* p^2 q^2 + p^2 r^2 + q^2 r^2 */
#define LACI_WINOGRAD4_PRODUCT 0.14654541015625F /* p^2 q^2 r^2 */

/** Owns its tiles. Weights are made for it, floats [points][groups of `rows`][sources][rows], where
 * rows that are not there are zeros. */
typedef struct laci_winograd4 {
  laci_sparse_window window;
  laci_sparse_layout in, out; /* CHW without phases in, CHW or PC16P out; or both HWC16N. Where the
                                 window strides, `in` needs no border; where it does not, CHW may be
                                 unpadded if as much as the window reaches before a row is readable
                                 memory */
  int64_t n_image_blocks;     /* images, or groups of 16 */
  int64_t stride;             /* of the window, in both directions */
  int64_t sources;            /* stride^2 of each channel */
  int64_t taps, points;       /* of a side of a source's; of a tile */
  int64_t tiles_h, tiles_w;   /* of an image */
  int64_t n_units, unit;      /* rows of tiles of all images, or tiles of groups of 16 images; lanes
                                 of one */
  laci_sparse_tile *results;  /* laci_sparse_result_tiles */
  int64_t n_each;             /* of these, of an image block */
  int64_t rows;               /* channels out whose weights are stored together */
} laci_winograd4;

/** Pixels of a side of a tile, and points, for so many taps. */
static inline int64_t laci_winograd4_read(int64_t taps) { return LACI_WINOGRAD4_SIDE - 1 + taps; }
/** Can a convolution be one of these? */
bool laci_winograd4_fits(const laci_sparse_window *g);
/** Fails LAC_NO_MEMORY, and LAC_UNSUPPORTED where rows are too wide; w is then empty. */
LAC_MUST_CHECK lac_status laci_winograd4_init(const laci_sparse_window *g,
                                              const laci_sparse_layouts *layouts, laci_winograd4 *w,
                                              lac_error *err);
void laci_winograd4_clear(laci_winograd4 *w);
/** Sources of such a convolution, taps of a side, and points of a tile. */
int64_t laci_winograd4_sources(const laci_sparse_window *g);
int64_t laci_winograd4_taps(const laci_sparse_window *g);
int64_t laci_winograd4_points(const laci_sparse_window *g);
/** Bytes that the weights take. */
size_t laci_winograd4_bytes(const laci_sparse_window *g);
/** Groups of channels out whose weights are stored together. */
static inline int64_t laci_winograd4_groups(const laci_winograd4 *w) {
  return (w->window.channels_out + w->rows - 1) / w->rows;
}
/** Makes the weights of groups [first, last): dense is [channels_out][channels_in][rows and
 * columns of the window]. */
void laci_winograd4_fill(const laci_winograd4 *w, const float *dense, const int64_t first_last[2],
                         float *weights);

/** Units [first, last), which are done together. */
typedef struct laci_winograd4_block {
  int64_t first, last;
  int64_t n_lanes, stride; /* floats from a channel of a point to the next one */
} laci_winograd4_block;
laci_winograd4_block laci_winograd4_block_of(const laci_winograd4 *w, int64_t first, int64_t last);
/** Floats from a point to the next one, of so many channels, or sources. */
static inline int64_t laci_winograd4_apart(const laci_winograd4_block *b, int64_t channels) {
  return channels * b->stride + LACI_SPARSE_LANES; /* else lines of points share a set of a cache */
}
/** Units of a block that a core's caches hold; or of one that all threads do together. */
int64_t laci_winograd4_cut(const laci_winograd4 *w, bool together);
/** Floats of a block's points, or sums: [points][apart]. */
int64_t laci_winograd4_floats(const laci_winograd4 *w, const laci_winograd4_block *b,
                              int64_t channels);

/** Points of sources [first, last) of a block. */
typedef void laci_winograd4_transform(const laci_winograd4 *w, const laci_winograd4_block *b,
                                      const float *x, const int64_t first_last[2], float *points);
/** Sums of points [first, last), of all sources. */
typedef void laci_winograd4_multiply(const laci_winograd4 *w, const laci_winograd4_block *b,
                                     const float *weights, const float *points,
                                     const int64_t first_last[2], float *sums);
/** Results of channels [first, last); o->weight and o->x are not read. */
typedef void laci_winograd4_finish(const laci_winograd4 *w, const laci_winograd4_block *b,
                                   const float *sums, const int64_t first_last[2],
                                   const laci_sparse_operands *o);

#define LACI_WINOGRAD4_DECLARE(name, level)                 \
  laci_winograd4_transform laci_winograd4_transform_##name; \
  laci_winograd4_multiply laci_winograd4_multiply_##name;   \
  laci_winograd4_finish laci_winograd4_finish_##name;
LACI_KERNEL_VARIANTS(LACI_WINOGRAD4_DECLARE)
#undef LACI_WINOGRAD4_DECLARE

typedef struct laci_winograd4_kernel {
  laci_winograd4_transform *transform;
  laci_winograd4_multiply *multiply;
  laci_winograd4_finish *finish;
} laci_winograd4_kernel;
/** The variant by the level in force (cpu/cpu.h), which weights are made for. */
laci_winograd4_kernel laci_winograd4_now(const laci_winograd4 *w);

#endif

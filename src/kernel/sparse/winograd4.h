/* SPDX-License-Identifier: Apache-2.0
 * A dense f32 convolution in native layouts (window.h), with at most a quarter of the direct sum's
 * products: F(4x4, 3x3) and F(4x4, 4x4) of Winograd's minimal filtering (A. Lavin and S. Gray,
 * "Fast Algorithms for Convolutional Neural Networks", 2016). It is for layers that are faster so
 * than with half of their weights pruned, and for the first layer of many networks.
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
 * Lanes are tiles along a row of tiles, or the same tile of 16 images. A block is a number of lanes
 * that are computed together: points of all sources, [points][sources][lanes], then products,
 * [points][channels_out][lanes], then results. A NaN or an infinity in a tile's pixels makes all
 * results of the tile NaN or infinite. Read next: engine/cpu/native/algorithms/winograd.c. */
#ifndef LACI_KERNEL_SPARSE_WINOGRAD4_H
#define LACI_KERNEL_SPARSE_WINOGRAD4_H

#include <stddef.h>

#include "kernel/sparse/window.h"
#include "kernel/variants.h"

enum {
  LACI_WINOGRAD4_SIDE = 4,     /* height and width of a tile, in results */
  LACI_WINOGRAD4_READ = 7,     /* maximum number of pixels along one side of a tile, and of points,
                                  which are values after the transform */
  LACI_WINOGRAD4_POINTS = 49,  /* maximum number of points of a tile, which are its values after the
                                  transform */
  LACI_WINOGRAD4_TAPS = 4,     /* maximum number of taps along one side of a source, which is a
                                  channel read by a window without a stride */
  LACI_WINOGRAD4_PARTS = 4,    /* maximum number of sources of a channel: a window of stride 2 reads
                                  even and odd rows and columns separately */
  LACI_WINOGRAD4_WIDTH = 1792, /* maximum number of results in a row */
  LACI_WINOGRAD4_LINE = 8192,  /* maximum number of floats in the rows of results that are computed
                                  at once */
};

/* Factors of the transforms of six pixels; a and b are the interpolation points 5/8 and 3/2. */
#define LACI_WINOGRAD4_A 0.625F
#define LACI_WINOGRAD4_B 1.5F
#define LACI_WINOGRAD4_A2 0.390625F
#define LACI_WINOGRAD4_B2 2.25F
#define LACI_WINOGRAD4_A3 0.244140625F
#define LACI_WINOGRAD4_B3 3.375F
#define LACI_WINOGRAD4_A2B2 0.87890625F    /* a^2 b^2 */
#define LACI_WINOGRAD4_A2_AND_B2 2.640625F /* a^2 + b^2 */

/* Factors of the transforms of seven pixels; p, q and r are the points 1/4, 7/8 and 7/4. */
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

/** A prepared convolution; only its tiles are owned. Transformed weights are floats [points][groups
 * of `rows`][sources][rows], with zeros for rows that do not exist. */
typedef struct laci_winograd4 {
  laci_sparse_window window;
  laci_sparse_layout in,
      out; /* layouts of input and result. `in` is CHW without phases and `out` CHW or PC16P; or
              both are HWC16N. If the window strides, `in` needs no border. If it does not, CHW may
              be unpadded; then the memory before a row that a window reads must be readable */
  int64_t n_image_blocks;   /* number of images, or of groups of 16 images in HWC16N */
  int64_t stride;           /* stride of the window, the same in both directions */
  int64_t sources;          /* number of sources of the input: stride^2 for each input channel,
                               since each reads every stride-th row and column */
  int64_t taps, points;     /* taps: number of taps along one side of a source. points: number of
                               points of a tile (its values after the transform) */
  int64_t tiles_h, tiles_w; /* number of tiles of an image: tiles_h from top to bottom, tiles_w from
                               left to right */
  int64_t n_units,
      unit; /* n_units: number of units. unit: number of lanes in a unit. A unit is a row of tiles
               of an image; in HWC16N, one tile of 16 images */
  laci_sparse_tile *results; /* tiles of 16 results (product.h), as laci_sparse_result_tiles returns
                                them; owned */
  int64_t results_per_block; /* number of elements of `results` for an image block */
  int64_t rows;              /* number of output channels in a group, whose weights are stored
                                together */
} laci_winograd4;

/** Returns the number of pixels along one side of a tile, which is also that of points. taps:
 * number of taps along one side of a source. */
static inline int64_t laci_winograd4_tile_side(int64_t taps) {
  return LACI_WINOGRAD4_SIDE - 1 + taps;
}
/** Can this kernel compute the convolution of a window? */
bool laci_winograd4_can_compute(const laci_sparse_window *g);
/** Prepares a convolution. Fails with LAC_NO_MEMORY, or with LAC_UNSUPPORTED if rows are too wide;
 * *w is then empty. */
LAC_MUST_CHECK lac_status laci_winograd4_init(const laci_sparse_window *g,
                                              const laci_sparse_layouts *layouts, laci_winograd4 *w,
                                              lac_error *err);
void laci_winograd4_clear(laci_winograd4 *w);
/** laci_winograd4_n_sources: returns the number of sources of the input (channels, each split by
 * stride). laci_winograd4_taps_per_side: returns the number of taps along one side of a source.
 * laci_winograd4_n_points: returns the number of points of a tile (its values after the
 * transform). */
int64_t laci_winograd4_n_sources(const laci_sparse_window *g);
int64_t laci_winograd4_taps_per_side(const laci_sparse_window *g);
int64_t laci_winograd4_n_points(const laci_sparse_window *g);
/** Returns the size of the transformed weights, in bytes. */
size_t laci_winograd4_weight_bytes(const laci_sparse_window *g);
/** Returns the number of groups of output channels whose weights are stored together. */
static inline int64_t laci_winograd4_n_groups(const laci_winograd4 *w) {
  return (w->window.channels_out + w->rows - 1) / w->rows;
}
/** Transforms the weights of the groups (of output channels) from first_last[0] up to, but without,
 * first_last[1]. dense is [channels_out][channels_in][window rows][window columns]. */
void laci_winograd4_transform_weights(const laci_winograd4 *w, const float *dense,
                                      const int64_t first_last[2], float *weights);

/** A block: the units [first, last), which are computed together. A unit is a row of tiles of an
 * image, or one tile of 16 images. */
typedef struct laci_winograd4_block {
  int64_t first, last;
  int64_t n_lanes, stride; /* n_lanes: number of lanes of all units of the block. stride: number of
                              floats from one channel to the next, in a point of the transform */
} laci_winograd4_block;
laci_winograd4_block laci_winograd4_block_of_units(const laci_winograd4 *w, int64_t first_unit,
                                                   int64_t end_unit);
/** Returns the number of floats from one point of the transform to the next, if a point has
 * `channels` channels (or sources). */
static inline int64_t laci_winograd4_point_stride(const laci_winograd4_block *b, int64_t channels) {
  return channels * b->stride +
         LACI_SPARSE_LANES; /* otherwise all points would map to the same cache sets */
}
/** Returns how many units (rows of tiles of an image, or tiles of 16 images) a block should have to
 * fit in a core's caches. together: all threads compute one block at a time. */
int64_t laci_winograd4_units_per_block(const laci_winograd4 *w, bool together);
/** Returns the number of floats for the points of a block (values after the transform), or for its
 * sums, [points][laci_winograd4_point_stride]. */
int64_t laci_winograd4_block_floats(const laci_winograd4 *w, const laci_winograd4_block *b,
                                    int64_t channels);

/** Transforms the pixels of a block in x to points, for the sources (channels, split by stride) in
 * [first_last[0], first_last[1]). */
typedef void laci_winograd4_transform(const laci_winograd4 *w, const laci_winograd4_block *b,
                                      const float *x, const int64_t first_last[2], float *points);
/** Multiplies points by transformed weights and sums over all sources (channels, split by stride),
 * for the points in [first_last[0], first_last[1]). */
typedef void laci_winograd4_multiply(const laci_winograd4 *w, const laci_winograd4_block *b,
                                     const float *weights, const float *points,
                                     const int64_t first_last[2], float *sums);
/** Transforms sums to results, for the output channels in [first_last[0], first_last[1]). o->weight
 * and o->x are not read. */
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
/** Returns the variant for the SIMD level in force (cpu/cpu.h); the weights must have been
 * transformed for it. */
laci_winograd4_kernel laci_winograd4_variant(const laci_winograd4 *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A convolution as a sparse product (product.h): the memory formats of its input and result, the
 * columns and tiles that follow from these, and the packed weights.
 *
 * SIMD lanes are 16 neighbouring pixels of one image, or one pixel of 16 images. Where lanes are
 * pixels, tiles traverse an image row after row, its border included, as if it were one long row.
 * Each tap of the window is then at a fixed distance, and results on the border are not stored.
 * There are three formats:
 *
 *   CHW     [channel][row of pixels, border included]: any window can read it. Rows share the zeros
 *           between them, or are unpadded (laci_sparse_may_be_unpadded). Where a window strides,
 *           the image is split by stride: one small image for each remainder of the coordinates
 *           (a phase), over which the window does not stride
 *   PC16P   [16 pixels of the long row][channel][16]: for windows of one pixel only
 *   HWC16N  [row][pixel][channel][16 images]: a tile is one pixel of 16 images
 *
 * and two more that windows cannot read; they are for reorders (reorder.h):
 *
 *   CHW16C  [16 channels][row][pixel][16]: oneDNN's nChw16c; channels are a multiple of 16
 *   HWC     [row][pixel][channel]: channels last, or [token][feature]
 *
 * An image block is the images that are stored together: one image, or 16 images in HWC16N.
 *
 * Columns have the order (block of 4 channels, tap, channel). product.h sums in this order, in
 * which a few consecutive columns read few cache lines of the image. */
#ifndef LACI_KERNEL_SPARSE_WINDOW_H
#define LACI_KERNEL_SPARSE_WINDOW_H

#include <stdbool.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"

typedef enum laci_memory_format {
  LACI_FORMAT_CHW, /* this format is for few images */
  LACI_FORMAT_PC16P,
  LACI_FORMAT_HWC16N, /* this format is for 16 images or more, in groups of 16 */
  LACI_FORMAT_CHW16C,
  LACI_FORMAT_HWC,
} laci_memory_format;

/** The geometry of a convolution, [n, channels_in, h, w] -> [n, channels_out, out_h, out_w]. A 1-D
 * convolution has h = 1; a Gemm has windows of 1 x 1 on images of 1 x 1. With bf16 (product.h),
 * channels 2 i and 2 i + 1 share one channel of a layout; if their number is odd, the unused half
 * must be zero. */
typedef struct laci_sparse_window {
  int64_t channels_in, channels_out, groups;
  int64_t h, w, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left;
  laci_sparse_values values;
} laci_sparse_window;

/** Returns the number of weights that an output channel has in the dense weight. */
static inline int64_t laci_sparse_weights_per_row(const laci_sparse_window *g) {
  return g->channels_in / g->groups * g->kernel_h * g->kernel_w;
}

/** Returns how many channels of a layout hold `channels` channels of values. */
static inline int64_t laci_sparse_layout_channels(int64_t channels, laci_sparse_values values) {
  return (channels + laci_sparse_values_per_word(values) - 1) / laci_sparse_values_per_word(values);
}

/** Where the value of each pixel is in memory. Strides are in floats. An image block has n_floats
 * floats, and the next one follows directly. In CHW and HWC16N, all memory that is not a pixel must
 * be zero. */
typedef struct laci_sparse_layout {
  laci_memory_format format;
  /* number of floats from one channel to the next; in CHW16C, from one block of 16 channels to the
     next */
  int64_t channel_stride;
  /* phase_stride, row_stride, pixel_stride: number of floats from one phase, row, pixel to the
     next. n_floats: number of floats in an image block */
  int64_t phase_stride, row_stride, pixel_stride, n_floats;
  /* An image may be split by stride into phases. phases_h, phases_w: number of phases of rows, and
     of columns; 1: it is not split. top, left: number of padding rows above the image, and of
     padding columns to its left */
  int64_t phases_h, phases_w, top, left;
} laci_sparse_layout;

bool laci_sparse_layout_equal(const laci_sparse_layout *a, const laci_sparse_layout *b);

/** The size of a tensor of images. n_images counts single images in every layout. In HWC16N, the
 * last group of 16 may be incomplete. */
typedef struct laci_sparse_size {
  int64_t channels, h, w, n_images;
} laci_sparse_size;

/** What laci_sparse_padded_layout needs to know. top to right: number of rows and columns of zeros
 * around an image. stride_h, stride_w: strides of the window that will read it, which matter for
 * CHW only; 1: no stride. PC16P has no rows above or below. */
typedef struct laci_sparse_border {
  int64_t top, left, bottom, right, stride_h, stride_w;
} laci_sparse_border;

/** Returns a layout with a border around each image, in CHW, PC16P or HWC16N. */
laci_sparse_layout laci_sparse_padded_layout(laci_memory_format format, int64_t channels, int64_t h,
                                             int64_t w, laci_sparse_border border);
/** Returns a layout without border or gaps, in CHW (row-major [channel][h][w]), CHW16C or HWC.
 * Windows cannot read this CHW: they read whole vectors, which may end after its last float. */
laci_sparse_layout laci_sparse_layout_contiguous(laci_memory_format format, int64_t channels,
                                                 int64_t h, int64_t w);
/** Returns the border of zeros, and the strides, that a convolution needs in the layout of its
 * input. */
laci_sparse_border laci_sparse_needed_border(const laci_sparse_window *g);
/** May the CHW input of a convolution of floats be unpadded, with no zeros between its rows? That
 * is possible if each tap lacks a pixel for at most the first or the last result of a row, and a
 * row has no more results than pixels. There are still zeros above and below the image. Of the
 * sparse products, only generated code of AVX-512 and the scalar reference can read it. */
bool laci_sparse_may_be_unpadded(const laci_sparse_window *g);
/** Returns the layout that the input of a convolution needs in this format. */
laci_sparse_layout laci_sparse_input_layout(laci_memory_format format, const laci_sparse_window *g);
/** Returns the layout of a convolution's result that needs the fewest tiles. If `border` fits
 * between rows, its rows are as far apart as the input's. PC16P requires that, so it may be
 * impossible with a wide border. */
laci_sparse_layout laci_sparse_output_layout(laci_memory_format format, const laci_sparse_window *g,
                                             const laci_sparse_layout *in,
                                             laci_sparse_border border);

/** Returns the offset of a pixel of a channel, in floats from the beginning of an image block. In
 * HWC16N that is its lane 0. */
static inline int64_t laci_sparse_offset(const laci_sparse_layout *l, int64_t channel, int64_t y,
                                         int64_t x) {
  const int64_t row = y + l->top, column = x + l->left;
  if (l->format == LACI_FORMAT_PC16P) {
    const int64_t place = row * l->row_stride + column, lane = place % LACI_SPARSE_LANES;
    return (place - lane) * l->pixel_stride + channel * l->channel_stride + lane;
  }
  if (l->format == LACI_FORMAT_CHW16C) {
    const int64_t lane = channel % LACI_SPARSE_LANES;
    return (channel - lane) / LACI_SPARSE_LANES * l->channel_stride + row * l->row_stride +
           column * l->pixel_stride + lane;
  }
  const int64_t phase = row % l->phases_h * l->phases_w + column % l->phases_w;
  return channel * l->channel_stride + phase * l->phase_stride + row / l->phases_h * l->row_stride +
         column / l->phases_w * l->pixel_stride;
}

/** The kept weights of a matrix, row by row. It owns its arrays. */
typedef struct laci_sparse_kept_weights {
  /* [n_rows + 1] index of each row's first kept weight: row r has those in [row_begin[r],
     row_begin[r + 1]) */
  int64_t *row_begin;
  int32_t *column; /* [n_kept] column of each kept weight, ascending in a row */
  float *weight;   /* [n_kept] value of each kept weight */
} laci_sparse_kept_weights;
void laci_sparse_kept_weights_clear(laci_sparse_kept_weights *kept);

/** laci_sparse_dense_row_length: returns the number of weights in a row of the dense weight.
 * laci_sparse_row_length: returns the number of columns that a row of the product can read. With
 * bf16 and int8 this is larger, since blocks of channels are filled up. */
int64_t laci_sparse_dense_row_length(const laci_sparse_window *g);
int64_t laci_sparse_row_length(const laci_sparse_window *g);
/** Sets dense_at, [laci_sparse_row_length]. dense_at[column] is the index of that column's weight
 * in a row of the dense weight, [channels_in / groups][kernel_h][kernel_w]; -1: the column has no
 * weight. */
void laci_sparse_order_columns(const laci_sparse_window *g, int32_t *dense_at);

/** A convolution that is ready to be computed. It owns all its memory. */
typedef struct laci_sparse_convolution {
  laci_sparse_product product;
  laci_sparse_layout in, out;
  laci_sparse_tile *tiles;
  int64_t n_tiles, n_kept;
  laci_sparse_kept_weights kept;    /* values and positions of the kept weights; `product` points to
                                       its arrays */
  int64_t row_length, dense_length; /* row_length: number of columns that a row of the product can
                                       read. dense_length: number of weights in a row of the dense
                                       weight */
  int32_t *dense_at; /* [row_length] index of each column's weight in a row of the dense weight; -1:
                        the column has no weight */
  void *memory;      /* memory of dense_at, and of the arrays of `product` that describe columns */
} laci_sparse_convolution;

/** The layouts of a convolution's input and result. Either both or neither are HWC16N. `in` is that
 * of laci_sparse_input_layout, or has a larger border, or is unpadded CHW. n_images: number of
 * image blocks. */
typedef struct laci_sparse_layouts {
  laci_sparse_layout in, out;
  int64_t n_images;
} laci_sparse_layouts;

/** Makes a convolution ready to be computed from its kept weights, and takes ownership of `take`.
 * Rows are output channels, and columns are numbered through all groups in order. Fails with
 * LAC_NO_MEMORY; or with LAC_UNSUPPORTED for more than 2^31 columns, for bf16 with an odd number of
 * channels in a group, or for PC16P if rows of input and result are not equally far apart. After a
 * failure, *form is empty and `take` still belongs to the caller. */
LAC_MUST_CHECK lac_status laci_sparse_convolution_init_from_kept(
    const laci_sparse_window *g, laci_sparse_kept_weights *take, const laci_sparse_layouts *layouts,
    laci_sparse_convolution *convolution, lac_error *err);
/** Makes a convolution ready to be computed from a mask, [channels_out][channels_in /
 * groups][kernel_h][kernel_w] bytes, not 0 where a weight is kept. Weights are zero. Fails like
 * laci_sparse_convolution_init_from_kept. */
LAC_MUST_CHECK lac_status laci_sparse_convolution_init(const laci_sparse_window *g,
                                                       const uint8_t *mask,
                                                       const laci_sparse_layouts *layouts,
                                                       laci_sparse_convolution *convolution,
                                                       lac_error *err);
void laci_sparse_convolution_clear(laci_sparse_convolution *convolution);
/** Returns the tiles of the results, for kernels that do not read the input by tiles. The rows of
 * an image are one long row. The field `in` of a tile is the offset in x of its image block.
 * *n_each: number of tiles in an image block. The caller frees the array; NULL: no memory. */
laci_sparse_tile *laci_sparse_result_tiles(const laci_sparse_window *g,
                                           const laci_sparse_layouts *layouts, int64_t *n_each);
/** Frees the product and its weights, 8 bytes for each kept weight, but not the layouts and tiles.
 * For callers that have generated code for the product and copied the weights into it. */
void laci_sparse_convolution_free_weights(laci_sparse_convolution *convolution);
/** Copies the kept weights from a dense weight, which has the shape of the mask. */
void laci_sparse_convolution_set_weights(laci_sparse_convolution *convolution, const float *dense);

#endif

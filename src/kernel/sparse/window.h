/* SPDX-License-Identifier: Apache-2.0
 * A convolution as a sparse product (product.h): the memory formats of its input and result, the
 * columns and tiles that follow from these, and the packed weights.
 *
 * SIMD lanes are 16 neighbouring pixels of one image, or one pixel of 16 images. With pixels, tiles
 * walk an image row after row, its border included, as if it were one long row. A tap of the window
 * is then a fixed distance, and results on the border are not stored. Three formats:
 *
 *   CHW     [channel][row of pixels, border included]: any window reads it. Rows share the zeros
 *           between them, or are unpadded (laci_sparse_may_be_unpadded). Where a window strides,
 *           the image is split by stride: one small image for each remainder of the coordinates
 *           (a phase), over which the window does not stride
 *   PC16P   [16 pixels of the long row][channel][16]: windows of one pixel read it, from end to end
 *   HWC16N  [row][pixel][channel][16 images]: a tile is one pixel of 16 images
 *
 * and two that no window reads, so that one type describes all that is reordered (reorder.h):
 *
 *   CHW16C  [16 channels][row][pixel][16]: oneDNN's nChw16c; channels are a multiple of 16
 *   HWC     [row][pixel][channel]: channels last, or tokens times features
 *
 * An image block is what is stored together: one image, or 16 of them in HWC16N.
 *
 * Columns are in the order (block of 4 channels, tap, channel): product.h sums in it, and a code
 * block of a few columns reads few cache lines of the image. */
#ifndef LACI_KERNEL_SPARSE_WINDOW_H
#define LACI_KERNEL_SPARSE_WINDOW_H

#include <stdbool.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"

typedef enum laci_memory_format {
  LACI_FORMAT_CHW, /* for few images */
  LACI_FORMAT_PC16P,
  LACI_FORMAT_HWC16N, /* for 16 images or more, in groups of 16 */
  LACI_FORMAT_CHW16C,
  LACI_FORMAT_HWC,
} laci_memory_format;

/** A convolution: [n, channels_in, h, w] -> [n, channels_out, out_h, out_w]. 1-D: h is 1. Gemm: a
 * window of 1 x 1 on images of 1 x 1. With bf16 (product.h), channels 2 i and 2 i + 1 are one
 * channel of a layout; the half after an odd number of them must be zero. */
typedef struct laci_sparse_window {
  int64_t channels_in, channels_out, groups;
  int64_t h, w, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left;
  laci_sparse_values values;
} laci_sparse_window;

/** Weights of a channel out. */
static inline int64_t laci_sparse_row_weights(const laci_sparse_window *g) {
  return g->channels_in / g->groups * g->kernel_h * g->kernel_w;
}

/** How many channels of a layout so many are. */
static inline int64_t laci_sparse_channels(int64_t channels, laci_sparse_values values) {
  return (channels + laci_sparse_each(values) - 1) / laci_sparse_each(values);
}

/** Where the value of a pixel is; strides are numbers of floats. An image block takes `n_floats`;
 * the next one follows it directly. What is no pixel must be zero in CHW and HWC16N. */
typedef struct laci_sparse_layout {
  laci_memory_format format;
  int64_t channel_stride; /* from a channel to the next; in CHW16C, from 16 channels to the next
                             16 */
  int64_t phase_stride, row_stride, pixel_stride, n_floats;
  int64_t phases_h, phases_w, top, left;
} laci_sparse_layout;

bool laci_sparse_layout_equal(const laci_sparse_layout *a, const laci_sparse_layout *b);

/** n_images counts single images in every layout; the last 16 lanes of HWC16N may be partly used.
 */
typedef struct laci_sparse_size {
  int64_t channels, h, w, n_images;
} laci_sparse_size;

/** What a layout is made of: rows and columns of zeros around an image, and how a window will
 * stride over it (1: it does not; matters for CHW only). PC16P has no rows above or below. */
typedef struct laci_sparse_border {
  int64_t top, left, bottom, right, stride_h, stride_w;
} laci_sparse_border;

/** CHW, PC16P or HWC16N. */
laci_sparse_layout laci_sparse_layout_of(laci_memory_format format, int64_t channels, int64_t h,
                                         int64_t w, laci_sparse_border border);
/** The layout without a border or a gap: CHW (row-major [channel][h][w]), CHW16C or HWC. Windows
 * may not read such a CHW: they read whole vectors, beyond the end. */
laci_sparse_layout laci_sparse_layout_contiguous(laci_memory_format format, int64_t channels,
                                                 int64_t h, int64_t w);
/** What a convolution reads around an image, and how it strides. */
laci_sparse_border laci_sparse_border_of(const laci_sparse_window *g);
/** May the CHW that a convolution of floats reads be unpadded, with no zeros between its rows? It
 * may where no tap misses more than the first or the last result's pixel of a row, and a row has no
 * more results than pixels. There are still zeros above and below, and only generated code of
 * AVX-512 and compiled products read it. */
bool laci_sparse_may_be_unpadded(const laci_sparse_window *g);
/** The layout that a convolution reads. */
laci_sparse_layout laci_sparse_layout_in(laci_memory_format format, const laci_sparse_window *g);
/** A layout of its results that makes the fewest tiles: rows as far apart as those it reads, if
 * `border` fits in between. PC16P is possible only if so: a border may be too wide for it. */
laci_sparse_layout laci_sparse_layout_out(laci_memory_format format, const laci_sparse_window *g,
                                          const laci_sparse_layout *in, laci_sparse_border border);

/** Floats from the beginning of an image, or of 16, to a pixel of a channel (lane 0). */
static inline int64_t laci_sparse_at(const laci_sparse_layout *l, int64_t channel, int64_t y,
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

/** What is kept of a matrix, row by row; owns its arrays. */
typedef struct laci_sparse_kept {
  int64_t *row_begin; /* [n_rows + 1]; of row r: k of [row_begin[r], row_begin[r + 1]) */
  int32_t *column;    /* [n_kept], ascending in a row */
  float *weight;      /* [n_kept] */
} laci_sparse_kept;
void laci_sparse_kept_clear(laci_sparse_kept *kept);

/** Weights that a row of a convolution's group has, and columns: with bf16, all blocks are whole.
 */
int64_t laci_sparse_dense_length(const laci_sparse_window *g);
int64_t laci_sparse_row_length(const laci_sparse_window *g);
/** Where these are in a row of the dense weight, [channels_in / groups][kernel_h][kernel_w]:
 * dense_at [row length], in the order of columns; -1: nowhere. */
void laci_sparse_order_columns(const laci_sparse_window *g, int32_t *dense_at);

/** A convolution that is ready to be computed; owns all of it. */
typedef struct laci_sparse_form {
  laci_sparse_product product;
  laci_sparse_layout in, out;
  laci_sparse_tile *tiles;
  int64_t n_tiles, n_kept;
  laci_sparse_kept kept;            /* of the product */
  int64_t row_length, dense_length; /* columns that the rows of a group have, and weights */
  int32_t *dense_at; /* [row_length]: where these are in a row of the dense weight; -1: nowhere */
  void *memory;      /* of the product's columns, and dense_at */
} laci_sparse_form;

/** What is read and written, neither or both in HWC16N. `in` is as laci_sparse_layout_in makes it,
 * or has a larger border, or is unpadded CHW; n_images: how many image blocks. */
typedef struct laci_sparse_layouts {
  laci_sparse_layout in, out;
  int64_t n_images;
} laci_sparse_layouts;

/** Takes what is kept of [channels_out] rows, its columns being numbers of all groups' columns in
 * their order. Fails LAC_NO_MEMORY, LAC_UNSUPPORTED beyond 2^31 columns; form is then empty, and
 * `take` the caller's. LAC_UNSUPPORTED, too: PC16P whose rows are not as far apart as those of the
 * other layout, and with bf16, groups of an odd number of channels. */
LAC_MUST_CHECK lac_status laci_sparse_form_take(const laci_sparse_window *g, laci_sparse_kept *take,
                                                const laci_sparse_layouts *layouts,
                                                laci_sparse_form *form, lac_error *err);
/** The same from a mask: [channels_out][channels_in / groups][kernel_h][kernel_w] bytes, not 0
 * where a weight is kept. Weights are zero. */
LAC_MUST_CHECK lac_status laci_sparse_form_init(const laci_sparse_window *g, const uint8_t *mask,
                                                const laci_sparse_layouts *layouts,
                                                laci_sparse_form *form, lac_error *err);
void laci_sparse_form_clear(laci_sparse_form *form);
/** Tiles of the results alone, whatever a kernel reads for them: rows make one long row; `in` is
 * where a tile's image block begins. The caller's to free; NULL: no memory. */
laci_sparse_tile *laci_sparse_result_tiles(const laci_sparse_window *g,
                                           const laci_sparse_layouts *layouts, int64_t *n_each);
/** Frees the product and its weights; layouts and tiles stay. For who has generated code of it and
 * has filled in its weights: 8 bytes for each of them less. */
void laci_sparse_form_keep_tiles(laci_sparse_form *form);
/** Takes the kept weights out of the dense ones, laid out as the mask. */
void laci_sparse_form_fill(laci_sparse_form *form, const float *dense);

#endif

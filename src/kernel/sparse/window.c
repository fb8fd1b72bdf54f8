/* SPDX-License-Identifier: Apache-2.0
 * Makes the layouts of window.h, and a convolution's columns, tiles and weights for the product. */
#include "kernel/sparse/window.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/divide.h"

enum {
  LANES = LACI_SPARSE_LANES,
  BLOCK = 4,           /* number of channels whose taps are stored together */
  ALIASES = 4096 / 4,  /* addresses with this distance, in floats, map to the same cache set */
  APART = 2 * LANES,   /* where channels would be nearly a multiple of ALIASES apart, this many
                          floats are added */
  BETWEEN = 5 * LANES, /* pixels between two channels: so many that a 3x3 window reads other cache
                          lines of each */
};

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- Layouts ---- */

static bool is_near_alias(int64_t floats) {
  const int64_t rest = floats % ALIASES;
  return floats > ALIASES / 2 && (rest < APART || rest > ALIASES - APART);
}

static laci_sparse_layout hwc16n_layout(int64_t channels, int64_t h, int64_t w,
                                        laci_sparse_border border) {
  const int64_t width = border.left + w + border.right;
  int64_t pixel = channels * LANES;
  if (is_near_alias(pixel)) pixel += BETWEEN;
  return (laci_sparse_layout){.format = LACI_FORMAT_HWC16N,
                              .channel_stride = LANES,
                              .row_stride = width * pixel,
                              .pixel_stride = pixel,
                              .n_floats = (border.top + h + border.bottom) * width * pixel,
                              .phases_h = 1,
                              .phases_w = 1,
                              .top = border.top,
                              .left = border.left};
}

/* Returns a PC16P layout for h rows, each row_stride pixels after the one before. The rows follow
 * each other as one long row of pixels, which is cut into blocks of 16. */
static laci_sparse_layout pc16p_layout(int64_t channels, int64_t h, int64_t row_stride) {
  return (laci_sparse_layout){.format = LACI_FORMAT_PC16P,
                              .channel_stride = LANES,
                              .row_stride = row_stride,
                              .pixel_stride = channels,
                              .n_floats = laci_ceil_div(h * row_stride, LANES) * LANES * channels,
                              .phases_h = 1,
                              .phases_w = 1};
}

/* Returns a CHW layout whose channels are whole vectors, so that a tile which begins in a channel
 * ends in it. They are an odd number of cache lines apart: the same pixels of neighbouring channels
 * are then in different cache sets. beyond: number of pixels that a window reads after the last
 * row. */
static laci_sparse_layout chw_layout(int64_t channels, laci_sparse_layout l, int64_t rows,
                                     int64_t beyond) {
  l.format = LACI_FORMAT_CHW;
  l.pixel_stride = 1;
  l.phase_stride = laci_ceil_div(rows * l.row_stride + beyond + LANES - 1, LANES) * LANES;
  l.channel_stride = l.phase_stride * l.phases_h * l.phases_w;
  if (is_near_alias(l.channel_stride)) l.channel_stride += 2 * APART;
  if (l.channel_stride / LANES % 2 == 0) l.channel_stride += LANES;
  l.n_floats = channels * l.channel_stride;
  return l;
}

laci_sparse_layout laci_sparse_padded_layout(laci_memory_format format, int64_t channels, int64_t h,
                                             int64_t w, laci_sparse_border border) {
  assert(format != LACI_FORMAT_CHW16C && format != LACI_FORMAT_HWC);
  if (format == LACI_FORMAT_HWC16N) return hwc16n_layout(channels, h, w, border);
  const int64_t height = border.top + h + border.bottom;
  const int64_t between = larger_of(border.left, border.right);
  if (format == LACI_FORMAT_PC16P) return pc16p_layout(channels, h, w + between);
  const bool strides = border.stride_h > 1 || border.stride_w > 1;
  laci_sparse_layout l = {.phases_h = border.stride_h,
                          .phases_w = border.stride_w,
                          .top = border.top,
                          .left = border.left};
  l.row_stride =
      strides ? laci_ceil_div(border.left + w + border.right, border.stride_w) : w + between;
  return chw_layout(channels, l, laci_ceil_div(height, border.stride_h),
                    strides ? 0 : larger_of(between, 1));
}

laci_sparse_layout laci_sparse_layout_contiguous(laci_memory_format format, int64_t channels,
                                                 int64_t h, int64_t w) {
  assert(format != LACI_FORMAT_PC16P && format != LACI_FORMAT_HWC16N);
  assert(format != LACI_FORMAT_CHW16C || channels % LANES == 0);
  laci_sparse_layout l = {.format = format,
                          .channel_stride = h * w,
                          .phase_stride = h * w,
                          .pixel_stride = 1,
                          .n_floats = channels * h * w,
                          .phases_h = 1,
                          .phases_w = 1};
  if (format == LACI_FORMAT_CHW16C) {
    l.channel_stride *= LANES;
    l.pixel_stride = LANES;
  } else if (format == LACI_FORMAT_HWC) {
    l.channel_stride = 1;
    l.pixel_stride = channels;
  }
  l.row_stride = w * l.pixel_stride;
  return l;
}

laci_sparse_border laci_sparse_needed_border(const laci_sparse_window *g) {
  const int64_t reach_h = (g->out_h - 1) * g->stride_h + (g->kernel_h - 1) * g->dilation_h + 1;
  const int64_t reach_w = (g->out_w - 1) * g->stride_w + (g->kernel_w - 1) * g->dilation_w + 1;
  return (laci_sparse_border){.top = g->pad_top,
                              .left = g->pad_left,
                              .bottom = larger_of(0, reach_h - g->h - g->pad_top),
                              .right = larger_of(0, reach_w - g->w - g->pad_left),
                              .stride_h = g->stride_h,
                              .stride_w = g->stride_w};
}

laci_sparse_layout laci_sparse_input_layout(laci_memory_format format,
                                            const laci_sparse_window *g) {
  const int64_t channels = laci_sparse_layout_channels(g->channels_in, g->values);
  return laci_sparse_padded_layout(format, channels, g->h, g->w, laci_sparse_needed_border(g));
}

laci_sparse_layout laci_sparse_output_layout(laci_memory_format format, const laci_sparse_window *g,
                                             const laci_sparse_layout *in,
                                             laci_sparse_border border) {
  border.stride_h = border.stride_w = 1;
  const int64_t channels = laci_sparse_layout_channels(g->channels_out, g->values);
  laci_sparse_layout l = laci_sparse_padded_layout(format, channels, g->out_h, g->out_w, border);
  if (format == LACI_FORMAT_HWC16N || in->row_stride <= l.row_stride) return l;
  if (format == LACI_FORMAT_PC16P) return pc16p_layout(channels, g->out_h, in->row_stride);
  l.row_stride = in->row_stride;
  return chw_layout(channels, l, border.top + g->out_h + border.bottom,
                    larger_of(1, larger_of(border.left, border.right)));
}

/* ---- Tiles ---- */

/* Does every tile of a long row of this length end in its channel (CHW) or pixel block (PC16P)?
 * Padding in these layouts is zeros. */
static bool has_tiles_within_channels(const laci_sparse_layout *out, int64_t length) {
  const int64_t begin = laci_sparse_offset(out, 0, 0, 0);
  if (out->format == LACI_FORMAT_PC16P) return begin % LANES == 0;
  return begin + laci_ceil_div(length, LANES) * LANES <= out->phase_stride;
}

/* Are rows of results as far apart as rows of the input? Then all results make one long row. */
static bool has_one_long_row(const laci_sparse_convolution *convolution) {
  return convolution->in.row_stride == convolution->out.row_stride;
}

/* Sets which lanes of a tile are results. at: position in the row of its first result. length:
 * number of positions in the row. */
static void set_tile_lanes(const laci_sparse_window *g, int64_t length, int64_t at,
                           int64_t row_stride, laci_sparse_tile *tile) {
  for (int lane = 0; lane < LANES && at + lane < length; lane++) {
    const int64_t column = (at + lane) % row_stride;
    if (column >= g->out_w) continue;
    tile->lanes |= (uint64_t)1 << lane;
    if (column > 0) tile->before |= (uint16_t)(1 << lane);
    if (column < g->out_w - 1) tile->after |= (uint16_t)(1 << lane);
  }
}

static int64_t list_pixel_tiles(const laci_sparse_window *g,
                                const laci_sparse_convolution *convolution, laci_sparse_tile *to) {
  const laci_sparse_layout *in = &convolution->in, *out = &convolution->out;
  const bool flat = has_one_long_row(convolution);
  const int64_t n_rows = flat ? 1 : g->out_h;
  const int64_t length = flat ? (g->out_h - 1) * in->row_stride + g->out_w : g->out_w;
  const int64_t begin = laci_sparse_offset(out, 0, 0, 0);
  const uint64_t around =
      flat && has_tiles_within_channels(out, length) ? LACI_SPARSE_ZEROS_AROUND : 0;
  int64_t n = 0;
  for (int64_t row = 0; row < n_rows; row++) {
    for (int64_t at = 0; at < length; at += LANES, n++) {
      if (!to) continue;
      to[n] = (laci_sparse_tile){(row * in->row_stride + at) * in->pixel_stride,
                                 begin + (row * out->row_stride + at) * out->pixel_stride, around,
                                 0, 0};
      set_tile_lanes(g, length, at, in->row_stride, &to[n]);
    }
  }
  return n;
}

static int64_t list_image_tiles(const laci_sparse_window *g,
                                const laci_sparse_convolution *convolution, laci_sparse_tile *to) {
  const int64_t step_row = g->stride_h * convolution->in.row_stride;
  const int64_t step_pixel = g->stride_w * convolution->in.pixel_stride;
  int64_t n = 0;
  for (int64_t row = 0; row < g->out_h; row++) {
    for (int64_t column = 0; column < g->out_w; column++, n++) {
      if (!to) continue;
      to[n] = (laci_sparse_tile){row * step_row + column * step_pixel,
                                 laci_sparse_offset(&convolution->out, 0, row, column),
                                 LACI_SPARSE_ALL_LANES, 0, 0};
    }
  }
  return n;
}

static int64_t list_tiles(const laci_sparse_window *g, const laci_sparse_convolution *convolution,
                          laci_sparse_tile *to) {
  return convolution->in.format == LACI_FORMAT_HWC16N ? list_image_tiles(g, convolution, to)
                                                      : list_pixel_tiles(g, convolution, to);
}

static bool make_tiles(const laci_sparse_window *g, int64_t n_images,
                       laci_sparse_convolution *convolution) {
  const int64_t n = list_tiles(g, convolution, NULL);
  convolution->tiles = laci_alloc((size_t)(n * n_images), sizeof *convolution->tiles);
  if (!convolution->tiles) return false;
  convolution->n_tiles = n * n_images;
  (void)list_tiles(g, convolution, convolution->tiles);
  for (int64_t at = n; at < convolution->n_tiles; at++) {
    convolution->tiles[at] = convolution->tiles[at - n];
    convolution->tiles[at].in += convolution->in.n_floats;
    convolution->tiles[at].out += convolution->out.n_floats;
  }
  return true;
}

laci_sparse_tile *laci_sparse_result_tiles(const laci_sparse_window *g,
                                           const laci_sparse_layouts *layouts, int64_t *n_each) {
  laci_sparse_convolution convolution = {.in = layouts->out, .out = layouts->out};
  if (!make_tiles(g, layouts->n_images, &convolution)) return NULL;
  *n_each = convolution.n_tiles / layouts->n_images;
  for (int64_t at = 0; at < convolution.n_tiles; at++) {
    convolution.tiles[at].in = at / *n_each * layouts->in.n_floats;
  }
  return convolution.tiles;
}

/* ---- Columns and weights ---- */

/* The shape of a row of the dense weight, [channel][tap], and the order of its columns in the
 * product. */
typedef struct order {
  int64_t taps, channels; /* number of taps of a window, and of channels of a group */
  bool whole;             /* true: every block of columns is filled up to BLOCK channels, since
                             values share four bytes */
} order;

static order choose_column_order(const laci_sparse_window *g) {
  return (order){g->kernel_h * g->kernel_w, g->channels_in / g->groups,
                 g->values != LACI_SPARSE_F32};
}

/* Returns the column, in a group, of a channel and a tap. */
static int64_t column_index(const order *o, int64_t channel, int64_t tap) {
  const int64_t first = channel / BLOCK * BLOCK;
  const int64_t left = o->channels - first, width = left < BLOCK && !o->whole ? left : BLOCK;
  return first * o->taps + tap * width + channel - first;
}

int64_t laci_sparse_dense_row_length(const laci_sparse_window *g) {
  const order o = choose_column_order(g);
  return o.channels * o.taps;
}

int64_t laci_sparse_row_length(const laci_sparse_window *g) {
  const order o = choose_column_order(g);
  return (o.whole ? laci_ceil_div(o.channels, BLOCK) * BLOCK : o.channels) * o.taps;
}

void laci_sparse_order_columns(const laci_sparse_window *g, int32_t *dense_at) {
  const order o = choose_column_order(g);
  for (int64_t at = 0; at < laci_sparse_row_length(g); at++) dense_at[at] = -1;
  for (int64_t at = 0; at < o.channels * o.taps; at++) {
    dense_at[column_index(&o, at / o.taps, at % o.taps)] = (int32_t)at;
  }
}

/* Returns how many results of a row read before the row's first pixel (below: after its last pixel)
 * for one tap. x: column that the tap reads for the first result. */
static int64_t count_results_before_row(const laci_sparse_window *g, int64_t x) {
  return x < 0 ? laci_ceil_div(-x, g->stride_w) : 0;
}

static int64_t count_results_after_row(const laci_sparse_window *g, int64_t x) {
  const int64_t further = (g->out_w - 1) * g->stride_w + x - (g->w - 1);
  return further > 0 ? laci_ceil_div(further, g->stride_w) : 0;
}

/* Returns the column that a tap reads for the first result of a row; it is negative in the
 * padding. */
static int64_t tap_offset(const laci_sparse_window *g, int64_t tap) {
  return tap * g->dilation_w - g->pad_left;
}

bool laci_sparse_may_be_unpadded(const laci_sparse_window *g) {
  bool may = g->values == LACI_SPARSE_F32 && g->out_w <= laci_ceil_div(g->w, g->stride_w);
  for (int64_t tap = 0; tap < g->kernel_w; tap++) {
    const int64_t x = tap_offset(g, tap);
    may = may && count_results_before_row(g, x) + count_results_after_row(g, x) <= 1;
  }
  return may;
}

/* Does the layout have fewer zeros around its rows than the window reads? */
static bool is_unpadded(const laci_sparse_window *g, const laci_sparse_layout *in) {
  const laci_sparse_border b = laci_sparse_needed_border(g);
  return in->format == LACI_FORMAT_CHW && laci_sparse_may_be_unpadded(g) &&
         (in->left < b.left ||
          in->row_stride * in->phases_w <
              g->w + (in->phases_w > 1 ? in->left + b.right : larger_of(b.left, b.right)));
}

static void find_column_neighbours(const laci_sparse_window *g, uint8_t *neighbour) {
  const order o = choose_column_order(g);
  const int64_t length = laci_sparse_row_length(g);
  for (int64_t at = 0; at < o.channels * o.taps; at++) {
    const int64_t x = tap_offset(g, at % o.taps % g->kernel_w);
    const int64_t place = column_index(&o, at / o.taps, at % o.taps);
    for (int64_t group = 0; group < g->groups; group++) {
      neighbour[group * length + place] = count_results_before_row(g, x)  ? LACI_SPARSE_BEFORE
                                          : count_results_after_row(g, x) ? LACI_SPARSE_AFTER
                                                                          : LACI_SPARSE_ITSELF;
    }
  }
}

/* Returns the offset of a pixel. A pixel before the first one of a row, for which the layout has no
 * memory, has the offset of the end of the row above. */
static int64_t pixel_offset(const laci_sparse_layout *in, int64_t channel, int64_t y, int64_t x) {
  if (in->format != LACI_FORMAT_CHW || x + in->left >= 0)
    return laci_sparse_offset(in, channel, y, x);
  return pixel_offset(in, channel, y, x + in->phases_w) - in->pixel_stride;
}

static void set_column_offsets(const laci_sparse_window *g, const laci_sparse_layout *in,
                               int64_t *column_at) {
  const order o = choose_column_order(g);
  const int64_t length = laci_sparse_row_length(g);
  for (int64_t channel = 0; channel < g->channels_in; channel++) {
    const int64_t stored = channel / laci_sparse_values_per_word(g->values);
    int64_t *to = column_at + channel / o.channels * length;
    for (int64_t tap = 0; tap < o.taps; tap++) {
      const int64_t y = tap / g->kernel_w * g->dilation_h - g->pad_top;
      const int64_t x = tap_offset(g, tap % g->kernel_w);
      to[column_index(&o, channel % o.channels, tap)] = pixel_offset(in, stored, y, x);
    }
  }
}

void laci_sparse_kept_weights_clear(laci_sparse_kept_weights *kept) {
  laci_free(kept->row_begin);
  laci_free(kept->column);
  laci_free(kept->weight);
  *kept = (laci_sparse_kept_weights){.row_begin = NULL};
}

/* Writes the columns of a row's kept weights in ascending order, and returns their number. Branches
 * could not be predicted, so there are none: every column is written, and the next one overwrites
 * it if it is not kept. */
static int64_t find_kept_in_row(const uint8_t *mask, const int32_t *dense_at, int64_t length,
                                int64_t first_column, int32_t *column) {
  int64_t n = 0;
  for (int64_t at = 0; at < length; at++) {
    const int32_t from = dense_at[at];
    column[n] = (int32_t)(first_column + at);
    n += from >= 0 && mask[from] != 0;
  }
  return n;
}

/* Sets *kept to the kept weights of a mask. Returns false if there is no memory. */
static bool find_kept_weights(const laci_sparse_window *g, const uint8_t *mask,
                              laci_sparse_kept_weights *kept) {
  const int64_t length = laci_sparse_row_length(g), rows = g->channels_out / g->groups;
  const int64_t n_dense = laci_sparse_dense_row_length(g);
  int64_t n = 0;
  for (int64_t at = 0; at < g->channels_out * n_dense; at++) n += mask[at] != 0;
  int32_t *dense_at = laci_alloc((size_t)length, sizeof *dense_at);
  *kept = (laci_sparse_kept_weights){
      .row_begin = laci_alloc((size_t)g->channels_out + 1, sizeof *kept->row_begin),
      .column = laci_alloc((size_t)n + 1, sizeof *kept->column), /* find_kept_in_row writes one more
                                                              element */
      .weight = laci_alloc((size_t)n, sizeof *kept->weight)};
  const bool good = dense_at && kept->row_begin && kept->column && kept->weight;
  if (good) laci_sparse_order_columns(g, dense_at);
  for (int64_t row = 0; good && row < g->channels_out; row++) {
    const int64_t begin = kept->row_begin[row];
    kept->row_begin[row + 1] = begin + find_kept_in_row(mask + row * n_dense, dense_at, length,
                                                        row / rows * length, kept->column + begin);
  }
  laci_free(dense_at);
  return good;
}

/* Makes all of the product but its kept weights. */
static bool make_product(const laci_sparse_window *g, const laci_sparse_kept_weights *kept,
                         laci_sparse_convolution *convolution) {
  const int64_t length = laci_sparse_row_length(g), n_columns = length * g->groups;
  const size_t n_neighbours =
      is_unpadded(g, &convolution->in) ? (size_t)n_columns / sizeof(int64_t) + 1 : 0;
  const size_t n_dense_at = (size_t)length / 2 + 1;
  int64_t *column_at = laci_alloc((size_t)n_columns + n_dense_at + n_neighbours, sizeof *column_at);
  if (!column_at) return false;
  convolution->memory = column_at;
  convolution->row_length = length;
  convolution->dense_length = laci_sparse_dense_row_length(g);
  convolution->dense_at = (int32_t *)(column_at + n_columns);
  convolution->n_kept = kept->row_begin[g->channels_out];
  set_column_offsets(g, &convolution->in, column_at);
  laci_sparse_order_columns(g, convolution->dense_at);
  uint8_t *neighbour = n_neighbours ? (uint8_t *)(column_at + n_columns + n_dense_at) : NULL;
  if (neighbour) find_column_neighbours(g, neighbour);
  convolution->product = (laci_sparse_product){.n_rows = g->channels_out,
                                               .n_columns = n_columns,
                                               .rows_together = g->channels_out / g->groups,
                                               .row_begin = kept->row_begin,
                                               .column = kept->column,
                                               .column_at = column_at,
                                               .neighbour = neighbour,
                                               .row_stride = convolution->out.channel_stride,
                                               .values = g->values};
  return true;
}

static lac_status check_window(const laci_sparse_window *g,
                               const laci_sparse_convolution *convolution, lac_error *err) {
  const int64_t each = laci_sparse_values_per_word(g->values);
  const int64_t most = each > 1 ? BLOCK : 1; /* maximum number of columns that one channel adds */
  if (g->channels_in * g->kernel_h * g->kernel_w > INT32_MAX / most) {
    return laci_fail(err, LAC_UNSUPPORTED, "a sparse convolution of %lld columns",
                     (long long)(g->channels_in * g->kernel_h * g->kernel_w));
  }
  const int64_t in = g->channels_in / g->groups, out = g->channels_out / g->groups;
  if (g->groups > 1 && (in % each || out % each)) {
    return laci_fail(err, LAC_UNSUPPORTED, "channels by %lld in groups of %lld to %lld",
                     (long long)each, (long long)in, (long long)out);
  }
  const bool pc16p =
      convolution->in.format == LACI_FORMAT_PC16P || convolution->out.format == LACI_FORMAT_PC16P;
  if (!pc16p || has_one_long_row(convolution)) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "PC16P of a sparse convolution: rows %lld and %lld apart",
                   (long long)convolution->in.row_stride, (long long)convolution->out.row_stride);
}

lac_status laci_sparse_convolution_init_from_kept(const laci_sparse_window *g,
                                                  laci_sparse_kept_weights *take,
                                                  const laci_sparse_layouts *layouts,
                                                  laci_sparse_convolution *convolution,
                                                  lac_error *err) {
  assert((layouts->in.format == LACI_FORMAT_HWC16N) == (layouts->out.format == LACI_FORMAT_HWC16N));
  *convolution = (laci_sparse_convolution){.in = layouts->in, .out = layouts->out};
  lac_status st = check_window(g, convolution, err);
  if (!st &&
      (!make_product(g, take, convolution) || !make_tiles(g, layouts->n_images, convolution))) {
    st = laci_fail_memory(err, "a sparse convolution");
  }
  if (st) {
    laci_sparse_convolution_clear(convolution);
    return st;
  }
  convolution->kept = *take;
  *take = (laci_sparse_kept_weights){.row_begin = NULL};
  return LAC_OK;
}

lac_status laci_sparse_convolution_init(const laci_sparse_window *g, const uint8_t *mask,
                                        const laci_sparse_layouts *layouts,
                                        laci_sparse_convolution *convolution, lac_error *err) {
  laci_sparse_kept_weights kept;
  *convolution = (laci_sparse_convolution){.n_tiles = 0};
  lac_status st =
      find_kept_weights(g, mask, &kept) ? LAC_OK : laci_fail_memory(err, "a sparse convolution");
  if (!st) st = laci_sparse_convolution_init_from_kept(g, &kept, layouts, convolution, err);
  laci_sparse_kept_weights_clear(&kept);
  return st;
}

void laci_sparse_convolution_free_weights(laci_sparse_convolution *convolution) {
  laci_sparse_kept_weights_clear(&convolution->kept);
  laci_free(convolution->memory);
  convolution->memory = NULL;
  convolution->dense_at = NULL;
  convolution->product = (laci_sparse_product){.n_rows = 0};
}

void laci_sparse_convolution_clear(laci_sparse_convolution *convolution) {
  laci_sparse_convolution_free_weights(convolution);
  laci_free(convolution->tiles);
  *convolution = (laci_sparse_convolution){.n_tiles = 0};
}

void laci_sparse_convolution_set_weights(laci_sparse_convolution *convolution, const float *dense) {
  const laci_sparse_product *p = &convolution->product;
  for (int64_t row = 0; row < p->n_rows; row++, dense += convolution->dense_length) {
    const int64_t first_column = row / p->rows_together * convolution->row_length;
    for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
      convolution->kept.weight[k] = dense[convolution->dense_at[p->column[k] - first_column]];
    }
  }
}

bool laci_sparse_layout_equal(const laci_sparse_layout *a, const laci_sparse_layout *b) {
  return a->format == b->format && a->channel_stride == b->channel_stride &&
         a->phase_stride == b->phase_stride && a->row_stride == b->row_stride &&
         a->pixel_stride == b->pixel_stride && a->n_floats == b->n_floats &&
         a->phases_h == b->phases_h && a->phases_w == b->phases_w && a->top == b->top &&
         a->left == b->left;
}

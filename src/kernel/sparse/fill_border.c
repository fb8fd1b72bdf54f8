/* SPDX-License-Identifier: Apache-2.0
 * Writes a constant to all padding of a layout (reorder.h). It fills one run of padding after the
 * other: from the end of a row's pixels to the beginning of the next row's. If rows are so short
 * that every vector has padding, it blends the constant into all vectors of a channel. */
#include <string.h>

#include "base/divide.h"
#include "cpu/cpu.h"
#include "kernel/sparse/reorder.h"
#include "kernel/sparse/reorder_in.h"

enum {
  LANES = LACI_SPARSE_LANES,
  MOST_BLENDED = 1024, /* maximum number of words of a channel that is blended */
};

/* Writes the 32-bit word `with` to words[begin] to words[end - 1]. They may hold floats or
 * int8x4. Between two rows there are usually only a few. */
static inline void fill_words(float *words, int64_t begin, int64_t end, uint32_t with) {
  enum { FEW = 8 };
  const uint8_t byte = (uint8_t)with;
  if (end - begin > FEW && with == byte * 0x01010101U) {
    memset(words + begin, byte, (size_t)(end - begin) * sizeof *words);
    return;
  }
  for (int64_t at = begin; at < end; at++) memcpy(words + at, &with, sizeof with);
}

/* A range of coordinates in a phase (window.h) of an image with its border: c / phases for all c in
 * [begin, begin + n) with c % phases == phase. */
typedef struct span {
  int64_t begin, end;
} span;

static span find_phase_span(int64_t begin, int64_t n, int64_t phases, int64_t phase) {
  return (span){laci_ceil_div(begin - phase, phases), laci_ceil_div(begin + n - phase, phases)};
}

/* ---- CHW: an item is a channel; channels of all images are equally far apart ---- */

static void fill_phase_border(const laci_sparse_layout *l, span rows, span columns, uint32_t with,
                              float *to) {
  int64_t end = 0;
  for (int64_t row = rows.begin; row < rows.end; row++) {
    fill_words(to, end, row * l->row_stride + columns.begin, with);
    end = row * l->row_stride + columns.end;
  }
  fill_words(to, end, l->phase_stride, with);
}

static laci_sparse_replace_bits *const replace_bits_of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_replace_bits_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

static bool is_blended(const laci_sparse_layout *l) {
  return l->row_stride <= LANES && l->phases_h * l->phases_w == 1 &&
         l->channel_stride <= MOST_BLENDED;
}

static void blend_channel_borders(const laci_sparse_layout *l, const laci_sparse_size *size,
                                  uint32_t with, float *channels, int64_t n) {
  uint32_t keep[MOST_BLENDED] = {0}, fill[MOST_BLENDED];
  for (int64_t at = 0; at < l->channel_stride; at++) fill[at] = with;
  for (int64_t at = 0; at < size->h * size->w; at++) {
    const int64_t pixel = laci_sparse_offset(l, 0, at / size->w, at % size->w);
    keep[pixel] = UINT32_MAX;
    fill[pixel] = 0;
  }
  replace_bits_of_level[laci_cpu_level_in_force()](keep, fill, l->channel_stride, channels, n);
}

static void fill_channel_borders(const laci_sparse_layout *l, const laci_sparse_size *size,
                                 uint32_t with, float *channels, int64_t n) {
  const int64_t n_phases = l->phases_h * l->phases_w;
  if (is_blended(l)) {
    blend_channel_borders(l, size, with, channels, n);
    return;
  }
  for (int64_t phase = 0; phase < n_phases; phase++) {
    const span rows = find_phase_span(l->top, size->h, l->phases_h, phase / l->phases_w);
    const span columns = find_phase_span(l->left, size->w, l->phases_w, phase % l->phases_w);
    for (int64_t at = 0; at < n; at++) {
      fill_phase_border(l, rows, columns, with,
                        channels + at * l->channel_stride + phase * l->phase_stride);
    }
  }
  for (int64_t at = 0; at < n; at++) {
    fill_words(channels + at * l->channel_stride, n_phases * l->phase_stride, l->channel_stride,
               with);
  }
}

/* ---- PC16P: an item is a block of 16 pixels ---- */

/* Finds the lanes of the block that begins at pixel `first` of the long row which are no pixels of
 * the image. Returns their number. */
static int find_padding_lanes(const laci_sparse_layout *l, const laci_sparse_size *size,
                              int64_t first, int *lanes) {
  int64_t row = first / l->row_stride, column = first % l->row_stride;
  int n = 0;
  if (row < size->h && column + LANES <= size->w) return 0;
  for (int lane = 0; lane < LANES; lane++) {
    if (row >= size->h || column >= size->w) lanes[n++] = lane;
    if (++column == l->row_stride) {
      column = 0;
      row++;
    }
  }
  return n;
}

static void fill_pixel_block(const laci_sparse_layout *l, const laci_sparse_size *size,
                             uint32_t with, int64_t first, float *block) {
  int lanes[LANES];
  const int n = find_padding_lanes(l, size, first, lanes);
  for (int at = 0; at < n; at++) {
    float *to = block + lanes[at];
    for (int64_t channel = 0; channel < size->channels; channel++)
      memcpy(to + channel * LANES, &with, sizeof with);
  }
}

/* ---- HWC16N: an item is a row ---- */

static void fill_row_of_images(const laci_sparse_layout *l, const laci_sparse_size *size,
                               uint32_t with, int64_t row, float *to) {
  const int64_t used = size->channels * LANES;
  int64_t end = 0;
  if (row >= l->top && row < l->top + size->h) {
    fill_words(to, 0, l->left * l->pixel_stride, with);
    for (int64_t x = l->left; x < l->left + size->w; x++) {
      fill_words(to, x * l->pixel_stride + used, (x + 1) * l->pixel_stride, with);
    }
    end = (l->left + size->w) * l->pixel_stride;
  }
  fill_words(to, end, l->row_stride, with);
}

/* ---- All formats ---- */

/* Returns the number of work items of an image block. */
static int64_t items_per_block(const laci_sparse_layout *l, const laci_sparse_size *size) {
  switch (l->format) {
    case LACI_FORMAT_CHW: return l->channel_stride > size->h * size->w ? size->channels : 0;
    case LACI_FORMAT_PC16P: return l->n_floats / (size->channels * LANES);
    case LACI_FORMAT_HWC16N: return l->n_floats / l->row_stride;
    default: return 0;
  }
}

int64_t laci_sparse_border_n_items(const laci_sparse_layout *l, const laci_sparse_size *size) {
  const int64_t images = l->format == LACI_FORMAT_HWC16N ? LANES : 1;
  return laci_ceil_div(size->n_images, images) * items_per_block(l, size);
}

void laci_sparse_fill_border(const laci_sparse_layout *l, const laci_sparse_size *size,
                             uint32_t with, float *values, int64_t first, int64_t last) {
  if (l->format == LACI_FORMAT_CHW) {
    fill_channel_borders(l, size, with, values + first * l->channel_stride, last - first);
    return;
  }
  const int64_t each = items_per_block(l, size);
  for (int64_t item = first; item < last; item++) {
    float *to = values + item / each * l->n_floats;
    const int64_t at = item % each;
    if (l->format == LACI_FORMAT_PC16P) {
      fill_pixel_block(l, size, with, at * LANES, to + at * LANES * l->pixel_stride);
    } else {
      fill_row_of_images(l, size, with, at, to + at * l->row_stride);
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Zeros of reorder.h, run by run: from where one row's pixels end to where the next one's begin. */
#include <string.h>

#include "base/divide.h"
#include "kernel/sparse/reorder.h"

enum { LANES = LACI_SPARSE_LANES };

static void zero(float *floats, int64_t begin, int64_t end) {
  if (end - begin == 1) floats[begin] = 0; /* between two rows, mostly */
  else if (end > begin) memset(floats + begin, 0, (size_t)(end - begin) * sizeof *floats);
}

/* Of coordinates c of a bordered picture with c % phases == phase, those in [begin, begin + n), as
 * c / phases. */
typedef struct span {
  int64_t begin, end;
} span;

static span span_of(int64_t begin, int64_t n, int64_t phases, int64_t phase) {
  return (span){laci_ceil_div(begin - phase, phases), laci_ceil_div(begin + n - phase, phases)};
}

/* ---- planes: an item is a plane; those of all images are as far apart ---- */

static void zero_phase(const laci_sparse_layout *l, span rows, span columns, float *to) {
  int64_t end = 0;
  for (int64_t row = rows.begin; row < rows.end; row++) {
    zero(to, end, row * l->row_stride + columns.begin);
    end = row * l->row_stride + columns.end;
  }
  zero(to, end, l->phase_stride);
}

static void zero_planes(const laci_sparse_layout *l, const laci_sparse_size *size, float *planes,
                        int64_t n) {
  const int64_t n_phases = l->phases_h * l->phases_w;
  for (int64_t phase = 0; phase < n_phases; phase++) {
    const span rows = span_of(l->top, size->h, l->phases_h, phase / l->phases_w);
    const span columns = span_of(l->left, size->w, l->phases_w, phase % l->phases_w);
    for (int64_t at = 0; at < n; at++) {
      zero_phase(l, rows, columns, planes + at * l->channel_stride + phase * l->phase_stride);
    }
  }
  for (int64_t at = 0; at < n; at++) {
    zero(planes + at * l->channel_stride, n_phases * l->phase_stride, l->channel_stride);
  }
}

/* ---- panels: an item is 16 places ---- */

static void zero_panel(const laci_sparse_layout *l, const laci_sparse_size *size, int64_t first,
                       float *panel) {
  int64_t row = first / l->row_stride;
  for (int64_t end = first - LANES; end < first + LANES; row++) {
    const int64_t next = row < size->h ? row * l->row_stride : first + LANES;
    const int64_t from = end > first ? end - first : 0, to = next - first;
    for (int64_t channel = 0; from < to && channel < size->channels; channel++) {
      zero(panel + channel * LANES, from, to < LANES ? to : LANES);
    }
    end = next + size->w;
  }
}

/* ---- images: an item is a row ---- */

static void zero_row_of_images(const laci_sparse_layout *l, const laci_sparse_size *size,
                               int64_t row, float *to) {
  const int64_t used = size->channels * LANES;
  int64_t end = 0;
  if (row >= l->top && row < l->top + size->h) {
    zero(to, 0, l->left * l->pixel_stride);
    for (int64_t x = l->left; x < l->left + size->w; x++) {
      zero(to, x * l->pixel_stride + used, (x + 1) * l->pixel_stride);
    }
    end = (l->left + size->w) * l->pixel_stride;
  }
  zero(to, end, l->row_stride);
}

/* ---- all ---- */

/* How many items a picture, or a group of 16, has. */
static int64_t items_each(const laci_sparse_layout *l, const laci_sparse_size *size) {
  switch (l->lanes) {
    case LACI_SPARSE_PLANES: return l->channel_stride > size->h * size->w ? size->channels : 0;
    case LACI_SPARSE_PANELS: return l->n_floats / (size->channels * LANES);
    case LACI_SPARSE_IMAGES: return l->n_floats / l->row_stride;
    default: return 0;
  }
}

int64_t laci_sparse_zero_border_items(const laci_sparse_layout *l, const laci_sparse_size *size) {
  const int64_t images = l->lanes == LACI_SPARSE_IMAGES ? LANES : 1;
  return laci_ceil_div(size->n_images, images) * items_each(l, size);
}

void laci_sparse_zero_border(const laci_sparse_layout *l, const laci_sparse_size *size,
                             float *pictures, int64_t first, int64_t last) {
  if (l->lanes == LACI_SPARSE_PLANES) {
    zero_planes(l, size, pictures + first * l->channel_stride, last - first);
    return;
  }
  const int64_t each = items_each(l, size);
  for (int64_t item = first; item < last; item++) {
    float *to = pictures + item / each * l->n_floats;
    const int64_t at = item % each;
    if (l->lanes == LACI_SPARSE_PANELS) {
      zero_panel(l, size, at * LANES, to + at * LANES * l->pixel_stride);
    } else {
      zero_row_of_images(l, size, at, to + at * l->row_stride);
    }
  }
}

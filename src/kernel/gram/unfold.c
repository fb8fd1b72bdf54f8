/* SPDX-License-Identifier: Apache-2.0
 * Writes out the inputs of a layer, column by column. */
#include "kernel/gram/unfold.h"

#include <string.h>

#include "base/min.h"

int64_t laci_unfold_n_taps(const laci_unfold *u) {
  return u->axis[0].kernel * u->axis[1].kernel * u->axis[2].kernel;
}

int64_t laci_unfold_n_columns(const laci_unfold *u) { return laci_unfold_n_taps(u) * u->channels; }

static int64_t count_image_positions(const laci_unfold *u) {
  return u->axis[0].out * u->axis[1].out * u->axis[2].out;
}

int64_t laci_unfold_n_positions(const laci_unfold *u) {
  return u->images * count_image_positions(u);
}

bool laci_unfold_equal(const laci_unfold *a, const laci_unfold *b) {
  bool same = a->images == b->images && a->groups == b->groups && a->channels == b->channels &&
              a->transposed == b->transposed;
  for (int i = 0; i < LACI_UNFOLD_AXES && same; i++) {
    const laci_unfold_axis *p = &a->axis[i], *q = &b->axis[i];
    same = p->in == q->in && p->out == q->out && p->kernel == q->kernel && p->stride == q->stride &&
           p->dilation == q->dilation && p->pad == q->pad;
  }
  return same;
}

/* Returns the input position at which position `o` meets tap `t`, or -1. */
static int64_t input_position(const laci_unfold_axis *axis, bool transposed, int64_t o, int64_t t) {
  int64_t at = transposed ? o + axis->pad - t * axis->dilation
                          : o * axis->stride - axis->pad + t * axis->dilation;
  if (transposed) {
    if (at < 0 || at % axis->stride != 0) return -1;
    at /= axis->stride;
  }
  return at >= 0 && at < axis->in ? at : -1;
}

/* ---- One line for each column ---- */

static void copy_strided_elements(const float *from, int64_t stride, float *to, int64_t n) {
  if (stride == 1) memcpy(to, from, sizeof *to * (size_t)n);
  else {
    for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
  }
}

/* Fills positions [o, o + n) of the last axis for tap t, from one row of the input. */
static void fill_tap_row(const laci_unfold *u, int64_t t, const float *from, int64_t o, int64_t n,
                         float *to) {
  const laci_unfold_axis *axis = &u->axis[2];
  if (u->transposed) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = input_position(axis, true, o + i, t);
      to[i] = at < 0 ? 0 : from[at];
    }
    return;
  }
  const int64_t before = axis->pad - t * axis->dilation; /* position o reads o * stride - before */
  int64_t low = before > 0 ? (before + axis->stride - 1) / axis->stride : 0;
  int64_t high = axis->in - 1 + before < 0 ? 0 : (axis->in - 1 + before) / axis->stride + 1;
  low = low < o ? o : laci_min(low, o + n);
  high = high < low ? low : laci_min(high, o + n);
  memset(to, 0, sizeof *to * (size_t)(low - o));
  if (low < high)
    copy_strided_elements(from + low * axis->stride - before, axis->stride, to + (low - o),
                          high - low);
  memset(to + (high - o), 0, sizeof *to * (size_t)(o + n - high));
}

static void fill_column_line(const laci_unfold_lines *l, int64_t column, float *line) {
  const laci_unfold *u = l->unfold;
  const laci_unfold_axis *axis = u->axis;
  const int64_t tap = column / u->channels, channel = column % u->channels;
  const int64_t t2 = tap % axis[2].kernel, t1 = tap / axis[2].kernel % axis[1].kernel;
  const int64_t t0 = tap / axis[2].kernel / axis[1].kernel;
  const int64_t channel_stride = axis[0].in * axis[1].in * axis[2].in;
  for (int64_t done = 0, n; done < l->n; done += n) {
    const int64_t at = l->first + done, o2 = at % axis[2].out, row = at / axis[2].out;
    const int64_t o1 = row % axis[1].out, o0 = row / axis[1].out % axis[0].out;
    const int64_t image = row / axis[1].out / axis[0].out;
    const int64_t i0 = input_position(&axis[0], u->transposed, o0, t0);
    const int64_t i1 = input_position(&axis[1], u->transposed, o1, t1);
    n = laci_min(axis[2].out - o2, l->n - done);
    if (i0 < 0 || i1 < 0) {
      memset(line + done, 0, sizeof *line * (size_t)n);
      continue;
    }
    const float *from = l->value +
                        ((image * u->groups + l->group) * u->channels + channel) * channel_stride +
                        (i0 * axis[1].in + i1) * axis[2].in;
    fill_tap_row(u, t2, from, o2, n, line + done);
  }
}

enum { SQUARE = 16, AT_ONCE = 512 };

/* Fills the lines of chosen positions, for all channels of a tap, which read the same offsets. */
static void gather_tap_lines(const laci_unfold_lines *l, int64_t begin, int64_t end) {
  const laci_unfold *u = l->unfold;
  const laci_unfold_axis *axis = u->axis;
  const int64_t tap = begin / u->channels;
  const int64_t t2 = tap % axis[2].kernel, t1 = tap / axis[2].kernel % axis[1].kernel;
  const int64_t t0 = tap / axis[2].kernel / axis[1].kernel;
  const int64_t channel_stride = axis[0].in * axis[1].in * axis[2].in;
  int64_t places[AT_ONCE]; /* offsets in the group's channel 0; -1: none */
  for (int64_t done = 0; done < l->n; done += AT_ONCE) {
    const int64_t n = laci_min(AT_ONCE, l->n - done);
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = l->positions[l->first + done + i], o2 = at % axis[2].out;
      const int64_t row = at / axis[2].out, o1 = row % axis[1].out;
      const int64_t o0 = row / axis[1].out % axis[0].out, image = row / axis[1].out / axis[0].out;
      const int64_t i0 = input_position(&axis[0], u->transposed, o0, t0);
      const int64_t i1 = input_position(&axis[1], u->transposed, o1, t1);
      const int64_t i2 = input_position(&axis[2], u->transposed, o2, t2);
      const int64_t channel = (image * u->groups + l->group) * u->channels;
      places[i] = i0 < 0 || i1 < 0 || i2 < 0
                      ? -1
                      : channel * channel_stride + (i0 * axis[1].in + i1) * axis[2].in + i2;
    }
    for (int64_t column = begin; column < end; column++) {
      const float *from = l->value + column % u->channels * channel_stride;
      float *line = l->lines + column * l->distance + done;
      for (int64_t i = 0; i < n; i++) line[i] = places[i] < 0 ? 0 : from[places[i]];
    }
  }
}

/* Fills lines from a value without spatial axes: it is a matrix, which is transposed in squares
 * that fit in the cache. */
static void transpose_positions(const laci_unfold_lines *l, int64_t begin, int64_t end) {
  const laci_unfold *u = l->unfold;
  const int64_t width = u->groups * u->channels;
  const float *from = l->value + l->first * width + l->group * u->channels;
  for (int64_t p = 0; p < l->n; p += SQUARE) {
    const int64_t rows = laci_min(SQUARE, l->n - p);
    for (int64_t c = begin; c < end; c++) {
      for (int64_t i = 0; i < rows; i++)
        l->lines[c * l->distance + p + i] = from[(p + i) * width + c];
    }
  }
}

void laci_unfold_fill_lines(const laci_unfold_lines *l, int64_t begin, int64_t end) {
  const laci_unfold_axis *axis = l->unfold->axis;
  const int64_t channels = l->unfold->channels;
  const bool matrix = laci_unfold_n_taps(l->unfold) == 1 && count_image_positions(l->unfold) == 1 &&
                      axis[0].in * axis[1].in * axis[2].in == 1;
  if (l->positions) {
    for (int64_t column = begin, next; column < end; column = next) {
      next = laci_min(end, (column / channels + 1) * channels);
      gather_tap_lines(l, column, next);
    }
  } else if (matrix) {
    transpose_positions(l, begin, end);
  } else {
    for (int64_t column = begin; column < end; column++)
      fill_column_line(l, column, l->lines + column * l->distance);
  }
  for (int64_t column = begin; column < end; column++) {
    float *line = l->lines + column * l->distance;
    memset(line + l->n, 0, sizeof *line * (size_t)(l->distance - l->n));
  }
}

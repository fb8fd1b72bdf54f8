/* SPDX-License-Identifier: Apache-2.0
 * Computes the inputs x of a layer (kernel/gram/unfold.h) by definition, element by element. */
#ifndef TESTS_SUPPORT_UNFOLD_ROWS_H
#define TESTS_SUPPORT_UNFOLD_ROWS_H

#include "kernel/gram/unfold.h"

/** Returns the element of one position and column. */
static inline float unfold_element(const laci_unfold *u, int64_t group, const float *value,
                                   int64_t position, int64_t column) {
  int64_t o[3], tap[3], t = column / u->channels, at = position, place = 0;
  for (int i = 2; i >= 0; i--) {
    tap[i] = t % u->axis[i].kernel;
    o[i] = at % u->axis[i].out;
    t /= u->axis[i].kernel;
    at /= u->axis[i].out;
  }
  for (int i = 0; i < 3; i++) { /* at is now the index of the image */
    const laci_unfold_axis *axis = &u->axis[i];
    int64_t in = o[i] * axis->stride - axis->pad + tap[i] * axis->dilation;
    if (u->transposed) {
      in = o[i] + axis->pad - tap[i] * axis->dilation;
      if (in % axis->stride != 0) return 0;
      in /= axis->stride;
    }
    if (in < 0 || in >= axis->in) return 0;
    place = place * axis->in + in;
  }
  const int64_t channel_places = u->axis[0].in * u->axis[1].in * u->axis[2].in;
  const int64_t channel = (at * u->groups + group) * u->channels + column % u->channels;
  return value[channel * channel_places + place];
}

/** Fills rows [positions, columns] with the elements of a group. */
static inline void unfold_rows(const laci_unfold *u, int64_t group, const float *value,
                               float *rows) {
  const int64_t columns = laci_unfold_n_columns(u), n = laci_unfold_n_positions(u);
  for (int64_t at = 0; at < n * columns; at++) {
    rows[at] = unfold_element(u, group, value, at / columns, at % columns);
  }
}

#endif

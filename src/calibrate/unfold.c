/* SPDX-License-Identifier: Apache-2.0
 * Inputs of a layer, a row a position, columns tap-major, then channel. */
#include <string.h>

#include "calibrate/layer_in.h"

int64_t laci_unfold_taps(const laci_unfold *u) {
  return u->axis[0].kernel * u->axis[1].kernel * u->axis[2].kernel;
}

int64_t laci_unfold_columns(const laci_unfold *u) { return laci_unfold_taps(u) * u->channels; }

static int64_t positions_of_image(const laci_unfold *u) {
  return u->axis[0].out * u->axis[1].out * u->axis[2].out;
}

int64_t laci_unfold_positions(const laci_unfold *u) { return u->images * positions_of_image(u); }

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

/* The input position at which position `o` meets tap `t`, or -1. */
static int64_t meeting(const laci_unfold_axis *axis, bool transposed, int64_t o, int64_t t) {
  int64_t at = transposed ? o + axis->pad - t * axis->dilation
                          : o * axis->stride - axis->pad + t * axis->dilation;
  if (transposed) {
    if (at < 0 || at % axis->stride != 0) return -1;
    at /= axis->stride;
  }
  return at >= 0 && at < axis->in ? at : -1;
}

/* x of one position. */
static void unfold_position(const laci_unfold *u, const float *channels, const int64_t o[3],
                            float *row) {
  const laci_unfold_axis *axis = u->axis;
  int64_t plane = axis[0].in * axis[1].in * axis[2].in;
  for (int64_t t0 = 0; t0 < axis[0].kernel; t0++) {
    int64_t i0 = meeting(&axis[0], u->transposed, o[0], t0);
    for (int64_t t1 = 0; t1 < axis[1].kernel; t1++) {
      int64_t i1 = meeting(&axis[1], u->transposed, o[1], t1);
      for (int64_t t2 = 0; t2 < axis[2].kernel; t2++, row += u->channels) {
        int64_t i2 = meeting(&axis[2], u->transposed, o[2], t2);
        if (i0 < 0 || i1 < 0 || i2 < 0) {
          memset(row, 0, (size_t)u->channels * sizeof *row);
          continue;
        }
        const float *from = channels + (i0 * axis[1].in + i1) * axis[2].in + i2;
        for (int64_t c = 0; c < u->channels; c++) row[c] = from[c * plane];
      }
    }
  }
}

void laci_unfold_rows(const laci_unfold *u, const laci_unfold_of *of, float *rows) {
  int64_t per_image = positions_of_image(u), columns = laci_unfold_columns(u);
  int64_t plane = u->axis[0].in * u->axis[1].in * u->axis[2].in;
  for (int64_t i = 0; i < of->n; i++, rows += columns) {
    int64_t image = of->positions[i] / per_image, at = of->positions[i] % per_image;
    const float *channels = of->value + (image * u->groups + of->group) * u->channels * plane;
    const int64_t o[3] = {at / u->axis[2].out / u->axis[1].out,
                          at / u->axis[2].out % u->axis[1].out, at % u->axis[2].out};
    unfold_position(u, channels, o, rows);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * The reference of strips.h. */
#include <math.h>

#include "kernel/linear/strips.h"

void laci_multiply_strips_scalar(const laci_strip_product *p) {
  for (int64_t row = 0; row < p->n_rows; row++) {
    const float *x = p->x + row * p->x_row;
    for (int64_t column = 0; column < p->n_strips * LACI_STRIP; column++) {
      const float *w =
          p->strips + column / LACI_STRIP * p->depth * LACI_STRIP + column % LACI_STRIP;
      float sum = p->start[row * p->start_row + column];
      for (int64_t k = 0; k < p->depth; k++) sum = fmaf(x[k], w[k * LACI_STRIP], sum);
      p->y[row * p->y_row + column] = sum;
    }
  }
}

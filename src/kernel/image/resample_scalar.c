/* SPDX-License-Identifier: Apache-2.0
 * resample.h in plain C: the reference for the other variants. */
#include "kernel/image/resample.h"

void laci_resample_scalar(const laci_resample_pass *pass, const float *x, float *y, int64_t begin,
                          int64_t end) {
  for (int64_t line = begin; line < end; line++) {
    const float *from = x + line / pass->out * pass->in * pass->inner;
    const int64_t first = line % pass->out * pass->width;
    for (int64_t i = 0; i < pass->inner; i++) {
      float sum = 0;
      for (int64_t k = first; k < first + pass->width; k++) {
        const float term = from[pass->index[k] * pass->inner + i];
        sum =
            k > first ? sum + pass->weight[k] * term : (pass->weight ? pass->weight[k] : 1) * term;
      }
      y[line * pass->inner + i] = sum;
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * swish.h in plain C: the reference for the other variants. */
#include <math.h>

#include "kernel/pointwise/swish.h"

void laci_swish_scalar(float *x, int64_t n) {
  for (int64_t at = 0; at < n; at++) x[at] = x[at] < -87.0F ? 0 : x[at] / (1 + expf(-x[at]));
}

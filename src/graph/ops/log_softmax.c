/* SPDX-License-Identifier: Apache-2.0
 * LogSoftmax: y = x - log(sum e^x) along a line; the largest is taken off first, so that nothing
 * overflows. */
#include <math.h>

#include "graph/ops/line_in.h"

static void log_softmax_line(const double *x, double *y, int64_t n, int64_t stride,
                             const void *context) {
  (void)context;
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i * stride] > largest) largest = x[i * stride];
  }
  for (int64_t i = 0; i < n; i++) sum += exp(x[i * stride] - largest);
  for (int64_t i = 0; i < n; i++) y[i * stride] = x[i * stride] - largest - log(sum);
}

static lac_status eval(laci_eval *eval) {
  return laci_line_eval(eval, laci_softmax_axis(eval->node), log_softmax_line, NULL);
}

const laci_op laci_op_log_softmax = {.name = "LogSoftmax",
                                     .role = LACI_ROLE_CLEAR,
                                     .infer = laci_softmax_infer,
                                     .eval = eval,
                                     .couple = laci_softmax_couple};

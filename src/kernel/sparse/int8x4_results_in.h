/* SPDX-License-Identifier: Apache-2.0
 * What the kernels that make bytes of int8 sums by vectors ask before they do (int8x4.h). */
#ifndef LACI_KERNEL_SPARSE_INT8X4_RESULTS_IN_H
#define LACI_KERNEL_SPARSE_INT8X4_RESULTS_IN_H

#include <math.h>
#include <stdbool.h>

#include "kernel/sparse/product.h"

/* How a residual is added to the sums. */
typedef enum addition {
  NO_RESIDUAL,
  ADD_RESIDUAL,         /* to the sum */
  ADD_RESIDUAL_TO_BYTE, /* to the quantized sum (laci_sparse_middle) */
  ADD_BYTE_TO_RESIDUAL, /* laci_sparse_middle.last */
} addition;

static inline addition find_addition(const laci_sparse_operands *o) {
  const laci_sparse_middle *middle = o->quantized->middle;
  if (!o->residual) return NO_RESIDUAL;
  return !middle ? ADD_RESIDUAL : middle->last ? ADD_BYTE_TO_RESIDUAL : ADD_RESIDUAL_TO_BYTE;
}

/* Are the results of the rows [first, last), before they are rounded, below 2^31? */
static inline bool fit_32_bits(const laci_sparse_quantized *q, int64_t first, int64_t last) {
  const float most = 1 << 20; /* 255 times it are below 2^30 */
  bool fits = q->residual_scale < most && (!q->middle || q->middle->scale < most);
  for (int64_t row = first; row < last; row++) {
    fits &= fabsf(q->scale[row]) < 0.5F;
    fits &= !q->rest || fabsf(q->rest[row]) < most;
  }
  return fits;
}

#endif

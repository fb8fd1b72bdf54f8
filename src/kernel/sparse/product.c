/* SPDX-License-Identifier: Apache-2.0
 * Checks whether a product's columns meet the conditions that some kernels have. */
#include "kernel/sparse/product.h"

#include "base/error.h"

lac_status laci_sparse_check_columns(const laci_sparse_product *p, lac_error *err) {
  if (p->neighbour) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a sparse product: rows of pixels without zeros between them");
  }
  for (int64_t at = 0; at < p->n_columns; at++) {
    if (p->column_at[at] > INT32_MAX || p->column_at[at] < INT32_MIN) {
      return laci_fail(err, LAC_UNSUPPORTED, "a sparse product: operands of more than 2^31 floats");
    }
  }
  return LAC_OK;
}

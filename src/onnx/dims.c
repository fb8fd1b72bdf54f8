/* SPDX-License-Identifier: Apache-2.0
 * Computes the number of elements of a tensor in a file. */
#include <inttypes.h>

#include "base/error.h"
#include "onnx/onnx_in.h"

lac_status laci_onnx_count_elements(const Onnx__TensorProto *tensor, const char *name,
                                    int64_t *count, lac_error *err) {
  bool is_empty = false, overflows = false;
  *count = 1;
  for (size_t axis = 0; axis < tensor->n_dims; axis++) {
    int64_t dim = tensor->dims[axis];
    if (dim < 0) {
      return laci_fail(err, LAC_BAD_FILE, "tensor '%s': dim %zu is %" PRId64 ", not a size", name,
                       axis, dim);
    }
    is_empty |= dim == 0;
    overflows |= __builtin_mul_overflow(*count, dim, count);
  }
  if (is_empty) *count = 0;
  else if (overflows) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': its dims overflow 64 bits", name);
  }
  return LAC_OK;
}

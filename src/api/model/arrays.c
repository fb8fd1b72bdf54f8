/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model/arrays.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/buf.h"

lac_status laci_array_read_shape(const lac_array *array, const char *name, laci_shape *shape,
                                 lac_error *err) {
  if (array->rank < 0 || array->rank > LACI_MAX_RANK) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: rank %d, wanted 0 to %d", name, array->rank,
                     LACI_MAX_RANK);
  }
  *shape = laci_shape_of(array->rank, array->shape);
  const int64_t count = laci_shape_count(shape);
  if (count >= 0 && count <= INT64_MAX / (int64_t)sizeof(double)) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: a size is negative, or the array is too large", name);
}

lac_status laci_array_check_bytes(const lac_array *array, const char *name, const laci_shape *shape,
                                  lac_error *err) {
  const size_t wanted = (size_t)laci_shape_count(shape) * lac_dtype_size(array->dtype);
  char text[256];
  if (array->size_bytes == wanted) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: size_bytes is %zu, wanted %zu for %s of shape %s",
                   name, array->size_bytes, wanted, lac_dtype_name(array->dtype),
                   laci_shape_text(shape, text, sizeof text));
}

/* Checks an array before its elements are looked at. */
static lac_status check_array(const lac_array *array, int at, bool has_read, lac_error *err) {
  laci_shape shape;
  if (!array->name) return laci_fail(err, LAC_BAD_ARGUMENT, "array %d has no name", at);
  if (!laci_dtype_is_float(array->dtype) && !laci_dtype_is_integer(array->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s, wanted floats or integers",
                     array->name, lac_dtype_name(array->dtype));
  }
  lac_status st = laci_array_read_shape(array, array->name, &shape, err);
  if (st) return st;
  if (array->data) return laci_array_check_bytes(array, array->name, &shape, err);
  if (has_read || laci_shape_count(&shape) == 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: it has no data, and there is no read_row",
                   array->name);
}

lac_status laci_arrays_as_rows(const lac_array *arrays, int n, laci_rows_fetch *read, void *context,
                               laci_rows_memory **rows, lac_error *err) {
  *rows = NULL;
  if (n < 0 || (n > 0 && !arrays)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d arrays, but no list of them", n);
  }
  for (int at = 0; at < n; at++) {
    lac_status st = check_array(&arrays[at], at, read != NULL, err);
    if (st) return st;
  }
  laci_rows_memory *made = laci_alloc((size_t)n, sizeof *made);
  if (!made) return laci_fail_memory(err, "the arrays");
  for (int at = 0; at < n; at++) {
    const lac_array *array = &arrays[at];
    made[at] = (laci_rows_memory){.name = array->name,
                                  .type = {array->dtype, laci_shape_of(array->rank, array->shape)},
                                  .bytes = array->data,
                                  .fetch = array->data ? NULL : read,
                                  .context = context};
  }
  *rows = made;
  return LAC_OK;
}

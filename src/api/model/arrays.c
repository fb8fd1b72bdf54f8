/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model/arrays.h"

#include "base/error.h"
#include "base/memory.h"

/* Checks an array before its elements are looked at. */
static lac_status check_array(const lac_array *array, int at, bool has_read, lac_error *err) {
  if (!array->name) return laci_fail(err, LAC_BAD_ARGUMENT, "array %d has no name", at);
  if (array->rank < 0 || array->rank > LACI_MAX_RANK) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: rank %d, wanted 0 to %d", array->name, array->rank,
                     LACI_MAX_RANK);
  }
  const size_t element = lac_dtype_size(array->dtype);
  if (element == 0) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s, wanted floats or integers",
                     array->name, lac_dtype_name(array->dtype));
  }
  const laci_shape shape = laci_shape_of(array->rank, array->shape);
  const int64_t count = laci_shape_count(&shape);
  if (count < 0 || count > INT64_MAX / (int64_t)sizeof(double)) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: a size is negative, or the array is too large",
                     array->name);
  }
  if (!array->data) {
    if (has_read || count == 0) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: it has no data, and there is no read_row",
                     array->name);
  }
  if (array->size_bytes == (size_t)count * element) return LAC_OK;
  char text[256];
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: size_bytes is %zu, wanted %zu for %s %s",
                   array->name, array->size_bytes, (size_t)count * element,
                   lac_dtype_name(array->dtype), laci_shape_text(&shape, text, sizeof text));
}

lac_status laci_arrays_describe(const lac_array *arrays, int n, laci_rows_fetch *read,
                                void *context, laci_rows_memory **rows, lac_error *err) {
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

/* SPDX-License-Identifier: Apache-2.0
 * Replaces elements of stored tensors by a caller's. */
#include <string.h>

#include "api/model/arrays.h"
#include "api/model/model_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/model.h"
#include "tensor/buf.h"

static lac_status check_type(const laci_stored *stored, const lac_array *values, lac_error *err) {
  const lac_dtype dtype = stored->dtype;
  const bool floats = laci_dtype_is_float(dtype);
  const bool bytes = laci_dtype_is_integer(dtype) && lac_dtype_size(dtype) == 1;
  if ((!floats && !bytes) || dtype == LAC_DTYPE_BOOL) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: elements of type %s, wanted a tensor of floats or of integers of a byte",
                     stored->name, lac_dtype_name(dtype));
  }
  if (values->dtype == dtype || (floats && values->dtype == LAC_DTYPE_F32)) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: values of type %s, wanted %s%s", stored->name,
                   lac_dtype_name(values->dtype), lac_dtype_name(dtype), floats ? " or f32" : "");
}

static lac_status check_array_fits(const laci_stored *stored, const lac_array *values,
                                   lac_error *err) {
  laci_shape shape;
  char found[256], wanted[256];
  lac_status st = check_type(stored, values, err);
  if (!st) st = laci_array_read_shape(values, stored->name, &shape, err);
  if (st) return st;
  bool same = shape.rank == stored->shape.rank;
  for (int axis = 0; axis < shape.rank && same; axis++)
    same = shape.dims[axis] == stored->shape.dims[axis];
  if (!same) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: values of shape %s, wanted %s", stored->name,
                     laci_shape_text(&shape, found, sizeof found),
                     laci_shape_text(&stored->shape, wanted, sizeof wanted));
  }
  if (!values->data && stored->size_bytes) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: values without data", stored->name);
  }
  return laci_array_check_bytes(values, stored->name, &shape, err);
}

/* Copies the values in parts, since those of another type, and of any alignment, pass through
 * floats. */
static void copy_values(const laci_stored *stored, const lac_array *values, uint8_t *to) {
  enum { PART = 1024 };
  float part[PART];
  const size_t size = lac_dtype_size(stored->dtype);
  if (values->dtype == stored->dtype) {
    if (stored->size_bytes) memcpy(to, values->data, stored->size_bytes);
    return;
  }
  for (size_t left = stored->size_bytes / size, n, at = 0; left > 0; left -= n, at += n) {
    n = left < PART ? left : PART;
    memcpy(part, (const uint8_t *)values->data + at * sizeof *part, n * sizeof *part);
    laci_write_f32(stored->dtype, part, (int64_t)n, to + at * size);
  }
}

lac_status lac_model_set_tensor(lac_model *model, const lac_array *values, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"values", values});
  if (!st) st = LACI_CHECK_GIVEN(err, {"values->name", values->name});
  if (st) return st;
  const int value = laci_graph_find_value(model->graph, values->name);
  const int at = value < 0 ? -1 : model->graph->values[value].stored;
  if (at < 0) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: no stored tensor has this name", values->name);
  }
  laci_stored *stored = &model->graph->stored[at];
  if (stored->in_constant_node && stored->overridable) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: calls of a function share it, so it stays as it is",
                     stored->name);
  }
  st = check_array_fits(stored, values, err);
  if (st) return st;
  uint8_t *bytes = laci_alloc(stored->size_bytes, 1);
  if (!bytes) return laci_fail_memory(err, stored->name);
  copy_values(stored, values, bytes);
  laci_stored_replace_bytes(stored, bytes, false);
  return LAC_OK;
}

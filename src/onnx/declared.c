/* SPDX-License-Identifier: Apache-2.0
 * Imports what a file declares about values: their types, whose sizes may be names, and
 * initializers. Next: import.c (the main graph), open.c (bodies). */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"

#include <inttypes.h>
#include <string.h>

/* ---- Types ---- */

/** Is this a name that exporters write for any unknown size? Two sizes with this name are not
 * equal. */
static bool is_placeholder_name(const char *name) {
  static const char *const none[] = {"", "?", "-1", "*", "None", "none", "unk", "unknown"};
  for (size_t k = 0; k < sizeof none / sizeof *none; k++)
    if (strcmp(name, none[k]) == 0) return true;
  return false;
}

/** Converts a size of a declared type. Sizes with the same name become one symbol; a size without a
 * name becomes a new symbol. */
static lac_status convert_dim(laci_importer *im, const Onnx__TensorShapeProto__Dimension *dim,
                              const char *name, int64_t *size, lac_error *err) {
  if (dim->has_dim_value && dim->dim_value != -1) { /* some exporters write -1 for "unknown" */
    *size = dim->dim_value;
    if (*size >= 0) return LAC_OK;
    return laci_fail(err, LAC_BAD_FILE, "value '%s': %" PRId64 " is no size", name, *size);
  }
  if (!dim->dim_param || is_placeholder_name(dim->dim_param)) {
    *size = laci_graph_add_symbol(im->graph);
    return LAC_OK;
  }
  int symbol = laci_name_find(&im->symbols, dim->dim_param);
  if (symbol < 0) {
    symbol = (int)-laci_graph_add_symbol(im->graph);
    if (!laci_name_add(&im->symbols, dim->dim_param, symbol)) return laci_fail_memory(err, name);
  }
  *size = -symbol;
  return LAC_OK;
}

lac_status laci_import_convert_type(laci_importer *im, const Onnx__ValueInfoProto *info,
                                    laci_type *type, lac_error *err) {
  const char *name = laci_onnx_text_or_empty(info->name);
  const Onnx__TypeProto__Tensor *tensor = info->type ? info->type->tensor_type : NULL;
  *type = (laci_type){.shape = laci_shape_unknown()};
  if (!tensor) return LAC_OK;
  if (tensor->elem_type > 0 && tensor->elem_type < LAC_DTYPE_COUNT) {
    type->dtype = (lac_dtype)tensor->elem_type;
  }
  if (!tensor->shape) return LAC_OK;
  int64_t dims[LACI_MAX_RANK], beyond;
  lac_status st = LAC_OK;
  for (size_t axis = 0; axis < tensor->shape->n_dim && !st; axis++) {
    int64_t *size = axis < LACI_MAX_RANK ? &dims[axis] : &beyond;
    st = convert_dim(im, tensor->shape->dim[axis], name, size, err);
  }
  if (!st && tensor->shape->n_dim <= LACI_MAX_RANK) {
    type->shape = laci_shape_of((int)tensor->shape->n_dim, dims);
  }
  return st;
}

/** Sets the type that a file declares for a value which is not an input; shape inference refines
 * it. */
lac_status laci_import_declare_type(laci_importer *im, int value, const Onnx__ValueInfoProto *info,
                                    bool in_body, lac_error *err) {
  laci_type type;
  lac_status st = laci_import_convert_type(im, info, &type, err);
  for (int axis = 0; in_body && !st && axis < type.shape.rank; axis++) {
    if (type.shape.dims[axis] < 0) type.shape.dims[axis] = laci_graph_add_symbol(im->graph);
  }
  laci_value *v = &im->graph->values[value];
  if (!st && !v->is_input && v->stored < 0) v->type = type;
  return st;
}

lac_status laci_import_add_initializer(laci_importer *im, Onnx__TensorProto *tensor,
                                       const laci_stored *about, lac_error *err) {
  const char *name = about->name;
  laci_tensor_view view;
  int id;
  lac_status st = laci_onnx_view_tensor(im->file, tensor, name, &view, err);
  if (st) return st;
  laci_source *source = laci_arena_alloc(&im->file->arena, 1, sizeof *source);
  if (!source) return laci_fail_memory(err, name);
  *source = view.source;
  laci_stored stored = *about;
  stored.dtype = view.dtype;
  stored.shape = view.shape;
  stored.bytes = view.bytes;
  stored.size_bytes = view.size_bytes;
  stored.source = source;
  return laci_graph_add_stored(im->graph, &stored, &id, err);
}

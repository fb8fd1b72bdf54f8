/* SPDX-License-Identifier: Apache-2.0
 * Imports Constant nodes, which are another form of stored tensors in ONNX. Next: node.c; open.c
 * for Constant nodes in bodies. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/buf.h"

#include <string.h>

/** Returns the type of an attribute. Files of IR version 1, and some writers, leave it out; then it
 * follows from the field that is set. */
Onnx__AttributeProto__AttributeType laci_import_find_attr_type(const Onnx__AttributeProto *attr) {
  if (attr->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) return attr->type;
  if (attr->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  if (attr->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  if (attr->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
  if (attr->n_ints) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  if (attr->n_strings) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
  if (attr->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  if (attr->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  if (attr->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

Onnx__AttributeProto *laci_import_find_constant_attr(const Onnx__NodeProto *node) {
  static const char *const names[] = {"value", "value_float", "value_floats", "value_int",
                                      "value_ints"};
  if (laci_onnx_canonical_domain(node->domain)[0] ||
      strcmp(laci_onnx_text_or_empty(node->op_type), "Constant") != 0) {
    return NULL;
  }
  if (node->n_input || node->n_output != 1 || !node->output[0][0] || node->n_attribute != 1) {
    return NULL;
  }
  const char *name = laci_onnx_text_or_empty(node->attribute[0]->name);
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    if (strcmp(name, names[at]) == 0) return node->attribute[0];
  }
  return NULL;
}

/** Sets *view to a number, or a list of numbers, of an attribute as a tensor. */
static lac_status view_numbers_as_tensor(Onnx__AttributeProto *attr, laci_tensor_view *view,
                                         lac_error *err) {
  int64_t n_floats = (int64_t)attr->n_floats, n_ints = (int64_t)attr->n_ints;
  static const uint8_t nothing[1];
  *view = (laci_tensor_view){.shape = {.rank = 0}};
  switch (laci_import_find_attr_type(attr)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
      view->dtype = LAC_DTYPE_F32;
      view->source = (laci_source){.kind = LACI_SOURCE_SCALAR, .scalar = &attr->f};
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
      view->dtype = LAC_DTYPE_I64;
      view->source = (laci_source){.kind = LACI_SOURCE_SCALAR, .scalar = &attr->i};
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
      view->dtype = LAC_DTYPE_F32;
      view->shape = laci_shape_of(1, &n_floats);
      view->source = (laci_source){.kind = LACI_SOURCE_ARRAY, .array = (void **)&attr->floats};
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
      view->dtype = LAC_DTYPE_I64;
      view->shape = laci_shape_of(1, &n_ints);
      view->source = (laci_source){.kind = LACI_SOURCE_ARRAY, .array = (void **)&attr->ints};
      break;
    default:
      return laci_fail(err, LAC_BAD_FILE, "attribute '%s': not what a Constant can hold",
                       laci_onnx_text_or_empty(attr->name));
  }
  view->bytes = view->source.array ? *view->source.array : view->source.scalar;
  if (!view->bytes) view->bytes = nothing;
  view->size_bytes = (size_t)laci_shape_count(&view->shape) * lac_dtype_size(view->dtype);
  return LAC_OK;
}

lac_status laci_import_add_constant(laci_importer *im, Onnx__AttributeProto *attr,
                                    const laci_stored *about, bool is_shared, int *value,
                                    lac_error *err) {
  laci_tensor_view view;
  int id;
  bool is_tensor =
      laci_import_find_attr_type(attr) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR && attr->t;
  lac_status st = is_tensor ? laci_onnx_view_tensor(im->file, attr->t, about->name, &view, err)
                            : view_numbers_as_tensor(attr, &view, err);
  if (st) return st;
  laci_stored stored = *about;
  stored.dtype = view.dtype;
  stored.shape = view.shape;
  stored.bytes = view.bytes;
  stored.size_bytes = view.size_bytes;
  stored.in_constant_node = true;
  if (is_shared) {
    /* Another node may read the same attribute, so the tensor is declared replaceable, which
     * freezes its channel orders. Integers are not declared so. They are axes and sizes, whose
     * contents must stay known, and which are never permuted. */
    view.source = (laci_source){.kind = LACI_SOURCE_NONE};
    stored.overridable |= laci_dtype_is_float(view.dtype);
  }
  laci_source *source = laci_arena_alloc(&im->file->arena, 1, sizeof *source);
  if (!source) return laci_fail_memory(err, about->name);
  *source = view.source;
  stored.source = source;
  st = laci_graph_add_stored(im->graph, &stored, &id, err);
  if (!st) *value = im->graph->stored[id].value;
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Nodes of the message as nodes of the graph: names become values, attributes become data.
 *
 * Three kinds are not handed on as they are: calls of local functions are expanded (function.c,
 * which calls this file), Constant nodes become stored tensors, and If, Loop, Scan keep only what
 * their bodies read (body.c). Constant is the only operator that is known by name: it is ONNX's
 * second way to store a tensor. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/buf.h"

#include <string.h>

/* ---- Attributes ---- */

/** Files of IR 1 and careless writers leave the type out; then it is the field that is set. */
static Onnx__AttributeProto__AttributeType type_of(const Onnx__AttributeProto *attr) {
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

/** A tensor in an attribute becomes exact numbers, where it is made of numbers. */
static lac_status convert_tensor(laci_importer *im, Onnx__TensorProto *tensor, laci_attr *attr,
                                 lac_error *err) {
  laci_tensor_view view;
  laci_buf *buf = NULL;
  lac_status st = laci_onnx_view(im->file, tensor, attr->name, &view, err);
  if (st) return st;
  attr->kind = LACI_ATTR_OTHER;
  bool is_float = laci_dtype_is_float(view.dtype);
  if (view.shape.rank < 0 || (!is_float && !laci_dtype_is_integer(view.dtype))) return LAC_OK;
  st = laci_buf_create(view.dtype, &view.shape, &buf, err);
  if (st) return st;
  if (is_float) laci_read_f(view.dtype, view.bytes, 0, buf->count, buf->f);
  else laci_read_i(view.dtype, view.bytes, 0, buf->count, buf->i);
  attr->kind = LACI_ATTR_TENSOR;
  attr->tensor = buf;
  return LAC_OK;
}

static lac_status convert_texts(laci_importer *im, const Onnx__AttributeProto *from,
                                laci_attr *attr, lac_error *err) {
  const char **texts = laci_arena_alloc(&im->scratch, from->n_strings, sizeof *texts);
  if (!texts) return laci_fail_memory(err, attr->name);
  for (size_t at = 0; at < from->n_strings; at++) texts[at] = laci_onnx_text(&from->strings[at]);
  attr->kind = LACI_ATTR_TEXTS;
  attr->n = from->n_strings;
  attr->texts = texts;
  return LAC_OK;
}

static lac_status convert_attr(laci_importer *im, const Onnx__AttributeProto *from,
                               const char *name, laci_attr *attr, lac_error *err) {
  *attr = (laci_attr){.name = name, .kind = LACI_ATTR_OTHER};
  switch (type_of(from)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
      attr->kind = LACI_ATTR_FLOAT;
      attr->f = from->f;
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
      attr->kind = LACI_ATTR_INT;
      attr->i = from->i;
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
      attr->kind = LACI_ATTR_TEXT;
      attr->text = laci_onnx_text(&from->s);
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
      attr->kind = LACI_ATTR_FLOATS;
      attr->n = from->n_floats;
      attr->floats = from->floats;
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
      attr->kind = LACI_ATTR_INTS;
      attr->n = from->n_ints;
      attr->ints = from->ints;
      break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: return convert_texts(im, from, attr, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
      if (!from->t) return laci_fail(err, LAC_BAD_FILE, "attribute '%s': no tensor in it", name);
      return convert_tensor(im, from->t, attr, err);
    default: break; /* graphs, sparse tensors, types: only the file keeps them */
  }
  return LAC_OK;
}

static void drop_tensors(const laci_node *node) {
  for (int at = 0; at < node->n_attrs; at++) laci_buf_destroy(node->attrs[at].tensor);
}

/** The node's attributes in a scope; those that stand for nothing are left out. */
static lac_status convert_attrs(laci_importer *im, const laci_scope *scope,
                                const Onnx__NodeProto *from, laci_node *node, lac_error *err) {
  laci_attr *attrs = laci_arena_alloc(&im->scratch, from->n_attribute, sizeof *attrs);
  if (!attrs) return laci_fail_memory(err, "a node's attributes");
  node->attrs = attrs;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < from->n_attribute && !st; at++) {
    Onnx__AttributeProto *attr = from->attribute[at], *resolved = NULL;
    const char *name = laci_onnx_name(attr->name);
    st = laci_import_resolve(scope, attr, &resolved, err);
    if (st || !resolved) continue;
    if (scope->function) {
      size_t size_bytes = sizeof *resolved + protobuf_c_message_get_packed_size(&resolved->base);
      st = laci_import_spend(im, size_bytes, err);
    }
    if (!st) st = convert_attr(im, resolved, name, &attrs[node->n_attrs], err);
    if (!st) node->n_attrs++;
  }
  if (st) drop_tensors(node);
  return st;
}

/* ---- Constant nodes ---- */

Onnx__AttributeProto *laci_import_constant_attr(const Onnx__NodeProto *node) {
  static const char *const names[] = {"value", "value_float", "value_floats", "value_int",
                                      "value_ints"};
  if (laci_onnx_domain(node->domain)[0] || strcmp(laci_onnx_name(node->op_type), "Constant") != 0) {
    return NULL;
  }
  if (node->n_input || node->n_output != 1 || !node->output[0][0] || node->n_attribute != 1) {
    return NULL;
  }
  const char *name = laci_onnx_name(node->attribute[0]->name);
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    if (strcmp(name, names[at]) == 0) return node->attribute[0];
  }
  return NULL;
}

/** A number or a list of numbers in an attribute, as a tensor. */
static lac_status view_numbers(Onnx__AttributeProto *attr, laci_tensor_view *view, lac_error *err) {
  int64_t n_floats = (int64_t)attr->n_floats, n_ints = (int64_t)attr->n_ints;
  static const uint8_t nothing[1];
  *view = (laci_tensor_view){.shape = {.rank = 0}};
  switch (type_of(attr)) {
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
                       laci_onnx_name(attr->name));
  }
  view->bytes = view->source.array ? *view->source.array : view->source.scalar;
  if (!view->bytes) view->bytes = nothing;
  view->size_bytes = (size_t)laci_shape_count(&view->shape) * lac_dtype_size(view->dtype);
  return LAC_OK;
}

lac_status laci_import_constant(laci_importer *im, Onnx__AttributeProto *attr,
                                const laci_stored *about, bool is_shared, int *value,
                                lac_error *err) {
  laci_tensor_view view;
  int id;
  bool is_tensor = type_of(attr) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR && attr->t;
  lac_status st = is_tensor ? laci_onnx_view(im->file, attr->t, about->name, &view, err)
                            : view_numbers(attr, &view, err);
  if (st) return st;
  laci_stored stored = *about;
  stored.dtype = view.dtype;
  stored.shape = view.shape;
  stored.bytes = view.bytes;
  stored.size_bytes = view.size_bytes;
  stored.in_constant_node = true;
  if (is_shared) {
    /* The same attribute may be read in other ways, too. Declaring the tensor replaceable freezes
     * its orders; integers are axes and sizes, whose contents must stay known and which no search
     * touches. */
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

/* ---- Nodes ---- */

static lac_status look_up_all(laci_importer *im, const laci_scope *scope, char *const *names,
                              size_t n, const int **values, lac_error *err) {
  int *ids = laci_arena_alloc(&im->scratch, n, sizeof *ids);
  if (!ids) return laci_fail_memory(err, "a node's values");
  *values = ids;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n && !st; at++) {
    st = laci_import_lookup(im, scope, names[at], &ids[at], err);
  }
  return st;
}

static lac_status add_plain_node(laci_importer *im, const laci_scope *scope,
                                 const Onnx__NodeProto *from, laci_node *node, lac_error *err) {
  int id;
  node->n_inputs = (int)from->n_input;
  node->n_outputs = (int)from->n_output;
  lac_status st = look_up_all(im, scope, from->input, from->n_input, &node->inputs, err);
  if (!st) st = look_up_all(im, scope, from->output, from->n_output, &node->outputs, err);
  if (!st) st = laci_import_captures(im, scope, from, &node->captures, &node->n_captures, err);
  if (!st) st = convert_attrs(im, scope, from, node, err);
  if (st) return st;
  st = laci_graph_add_node(im->graph, node, &id, err);
  if (st) drop_tensors(node);
  return st;
}

/** A Constant node of the main graph, or of a function where the call says what it holds. Others of
 * a function are added with the function. */
static lac_status add_constant_node(laci_importer *im, const laci_scope *scope,
                                    const Onnx__NodeProto *from, bool *is_done, lac_error *err) {
  Onnx__AttributeProto *attr = laci_import_constant_attr(from), *resolved = NULL;
  *is_done = attr != NULL;
  if (!attr) return LAC_OK;
  bool is_shared = attr->ref_attr_name && attr->ref_attr_name[0];
  if (scope->function && !is_shared) return LAC_OK;
  lac_status st = laci_import_resolve(scope, attr, &resolved, err);
  if (st) return st;
  if (!resolved) {
    return laci_fail(err, LAC_BAD_FILE, "Constant '%s': the call gives no attribute '%s'",
                     from->output[0], attr->ref_attr_name);
  }
  int value;
  st = laci_import_lookup(im, scope, from->output[0], &value, err);
  if (st) return st;
  laci_stored about = {.name = im->graph->values[value].name,
                       .in_function = scope->function != NULL};
  return laci_import_constant(im, resolved, &about, is_shared, &value, err);
}

lac_status laci_import_own_node(laci_importer *im, const laci_scope *scope,
                                const Onnx__NodeProto *from, lac_error *err) {
  const char *type = laci_onnx_name(from->op_type);
  const char *own = laci_onnx_name(from->name)[0] ? from->name : type;
  bool is_done = false;
  laci_node node = {.name = from->name, .type = type, .domain = laci_onnx_domain(from->domain)};
  if (!type[0]) {
    return laci_fail(err, LAC_BAD_FILE, "node '%s': no operator", laci_onnx_name(from->name));
  }
  lac_status st = add_constant_node(im, scope, from, &is_done, err);
  if (st || is_done) return st;
  node.version = laci_import_version(im, scope, node.domain);
  if (!node.domain[0] && !node.version) {
    return laci_fail(err, LAC_BAD_FILE, "node '%s' (%s): the model imports no operators of ai.onnx",
                     own, type);
  }
  if (scope->function) st = laci_import_join(im, scope->prefix, own, &node.name, err);
  if (st) return st;
  return add_plain_node(im, scope, from, &node, err);
}

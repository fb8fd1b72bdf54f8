/* SPDX-License-Identifier: Apache-2.0
 * Imports the nodes of a decoded file into the graph: names become values, attributes become data.
 *
 * Three kinds of nodes are not copied directly: calls of local functions are expanded (function.c,
 * which calls this file), Constant nodes become stored tensors, and the bodies of If, Loop, Scan
 * are imported (open.c), or only the values that they read are recorded (body.c). Only Constant is
 * known by name here, since it is another form of a stored tensor. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

#include <string.h>

/* ---- Attributes ---- */

/** Converts a tensor in an attribute to exact numbers. Tensors of other than numeric types are left
 * out. */
static lac_status convert_tensor_attribute(laci_importer *im, Onnx__TensorProto *tensor,
                                           laci_attr *attr, lac_error *err) {
  laci_tensor_view view;
  laci_buf *buf = NULL;
  lac_status st = laci_onnx_view_tensor(im->file, tensor, attr->name, &view, err);
  if (st) return st;
  attr->kind = LACI_ATTR_OTHER;
  bool is_float = laci_dtype_is_float(view.dtype);
  if (view.shape.rank < 0 || (!is_float && !laci_dtype_is_integer(view.dtype))) return LAC_OK;
  st = laci_buf_create(view.dtype, &view.shape, &buf, err);
  if (st) return st;
  if (is_float) laci_read_f64(view.dtype, view.bytes, 0, buf->count, buf->f);
  else laci_read_i64(view.dtype, view.bytes, 0, buf->count, buf->i);
  attr->kind = LACI_ATTR_TENSOR;
  attr->tensor = buf;
  return LAC_OK;
}

static lac_status convert_text_attributes(laci_importer *im, const Onnx__AttributeProto *from,
                                          laci_attr *attr, lac_error *err) {
  const char **texts = laci_arena_alloc(&im->scratch, from->n_strings, sizeof *texts);
  if (!texts) return laci_fail_memory(err, attr->name);
  for (size_t at = 0; at < from->n_strings; at++)
    texts[at] = laci_onnx_bytes_as_text(&from->strings[at]);
  attr->kind = LACI_ATTR_TEXTS;
  attr->n = from->n_strings;
  attr->texts = texts;
  return LAC_OK;
}

static lac_status convert_attr(laci_importer *im, const Onnx__AttributeProto *from,
                               const char *name, laci_attr *attr, lac_error *err) {
  *attr = (laci_attr){.name = name, .kind = LACI_ATTR_OTHER};
  switch (laci_import_find_attr_type(from)) {
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
      attr->text = laci_onnx_bytes_as_text(&from->s);
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
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
      return convert_text_attributes(im, from, attr, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
      if (!from->t) return laci_fail(err, LAC_BAD_FILE, "attribute '%s': no tensor in it", name);
      return convert_tensor_attribute(im, from->t, attr, err);
    default:
      break; /* these kinds of attributes (graphs, sparse tensors, types) are not imported, and stay
                in the file alone */
  }
  return LAC_OK;
}

static void free_attribute_tensors(const laci_node *node) {
  for (int at = 0; at < node->n_attrs; at++) laci_buf_destroy(node->attrs[at].tensor);
}

/** Converts the node's attributes in a scope. Attributes that refer to an argument which the call
 * does not pass are left out. */
static lac_status convert_attrs(laci_importer *im, const laci_scope *scope,
                                const Onnx__NodeProto *from, laci_node *node, lac_error *err) {
  laci_attr *attrs = laci_arena_alloc(&im->scratch, from->n_attribute, sizeof *attrs);
  if (!attrs) return laci_fail_memory(err, "a node's attributes");
  node->attrs = attrs;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < from->n_attribute && !st; at++) {
    Onnx__AttributeProto *attr = from->attribute[at], *resolved = NULL;
    const char *name = laci_onnx_text_or_empty(attr->name);
    st = laci_import_resolve_attribute(scope, attr, &resolved, err);
    if (st || !resolved) continue;
    if (scope->function) {
      size_t size_bytes = sizeof *resolved + protobuf_c_message_get_packed_size(&resolved->base);
      st = laci_import_spend_budget(im, size_bytes, err);
    }
    if (!st) st = convert_attr(im, resolved, name, &attrs[node->n_attrs], err);
    if (!st) node->n_attrs++;
  }
  if (st) free_attribute_tensors(node);
  return st;
}

/* ---- Nodes ---- */

static lac_status find_values_of_names(laci_importer *im, const laci_scope *scope,
                                       char *const *names, size_t n, const int **values,
                                       lac_error *err) {
  int *ids = laci_arena_alloc(&im->scratch, n, sizeof *ids);
  if (!ids) return laci_fail_memory(err, "a node's values");
  *values = ids;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n && !st; at++) {
    st = laci_import_find_value_or_fail(im, scope, names[at], &ids[at], err);
  }
  return st;
}

static lac_status add_node_without_bodies(laci_importer *im, const laci_scope *scope,
                                          const Onnx__NodeProto *from, laci_node *node,
                                          lac_error *err) {
  int id;
  node->n_inputs = (int)from->n_input;
  node->n_outputs = (int)from->n_output;
  lac_status st = find_values_of_names(im, scope, from->input, from->n_input, &node->inputs, err);
  if (!st) st = find_values_of_names(im, scope, from->output, from->n_output, &node->outputs, err);
  if (!st) st = laci_import_find_captures(im, scope, from, &node->captures, &node->n_captures, err);
  if (!st) st = laci_import_hide_functions_in_bodies(im, from, err);
  if (!st) st = convert_attrs(im, scope, from, node, err);
  if (st) return st;
  st = laci_graph_add_node(im->graph, node, &id, err);
  if (st) free_attribute_tensors(node);
  return st;
}

static bool has_bodies(const Onnx__NodeProto *node) {
  for (size_t at = 0; at < node->n_attribute; at++) {
    if (node->attribute[at]->g) return true;
  }
  return false;
}

/** Adds an If, a Loop or a Scan together with its bodies, if these can be imported. */
static lac_status add_node_with_bodies(laci_importer *im, const laci_scope *scope,
                                       const Onnx__NodeProto *from, laci_node *node, bool *is_done,
                                       lac_error *err) {
  *is_done = false;
  if (!has_bodies(from)) return LAC_OK;
  lac_status st = convert_attrs(im, scope, from, node, err);
  if (st) return st;
  st = laci_import_bodies(im, scope, from, node, is_done, err);
  free_attribute_tensors(node); /* the graph has copies of them */
  node->attrs = NULL;
  node->n_attrs = 0;
  return st;
}

/** Adds a Constant node as a stored tensor. It is a node of the main graph, or one of a function
 * whose content is an argument of the call. Other Constant nodes are added together with their
 * function or body. */
static lac_status add_constant_node(laci_importer *im, const laci_scope *scope,
                                    const Onnx__NodeProto *from, bool *is_done, lac_error *err) {
  Onnx__AttributeProto *attr = laci_import_find_constant_attr(from), *resolved = NULL;
  *is_done = attr != NULL;
  if (!attr) return LAC_OK;
  bool is_shared = attr->ref_attr_name && attr->ref_attr_name[0];
  if ((scope->function || scope->outer) && !is_shared) return LAC_OK;
  lac_status st = laci_import_resolve_attribute(scope, attr, &resolved, err);
  if (st) return st;
  if (!resolved) {
    return laci_fail(err, LAC_BAD_FILE, "Constant '%s': the call gives no attribute '%s'",
                     from->output[0], attr->ref_attr_name);
  }
  int value;
  st = laci_import_find_value_or_fail(im, scope, from->output[0], &value, err);
  if (st) return st;
  laci_stored about = {.name = im->graph->values[value].name,
                       .in_function = scope->function != NULL};
  return laci_import_add_constant(im, resolved, &about, is_shared, &value, err);
}

/* Fails if a function imports another version of the operators than the model does, and the node
 * has another meaning in it. Runtimes that inline functions use the model's version, so results
 * would differ. */
static lac_status check_same_meaning_in_both_opsets(laci_importer *im, const laci_scope *scope,
                                                    const laci_node *node, lac_error *err) {
  const laci_scope model = {0};
  const int other = laci_import_find_domain_version(im, &model, node->domain);
  if (node->domain[0] || !scope->function || !other || other == node->version) return LAC_OK;
  if (!laci_op_differs_between_versions(node->type, node->version, other)) return LAC_OK;
  const Onnx__FunctionProto *f = scope->function->proto;
  return laci_fail(
      err, LAC_UNSUPPORTED,
      "function '%s' of domain '%s' imports version %d of ai.onnx and the model version "
      "%d, in which %s means something else; wanted one version",
      laci_onnx_text_or_empty(f->name), laci_onnx_text_or_empty(f->domain), node->version, other,
      node->type);
}

lac_status laci_import_operator_node(laci_importer *im, const laci_scope *scope,
                                     const Onnx__NodeProto *from, lac_error *err) {
  const char *type = laci_onnx_text_or_empty(from->op_type);
  const char *own = laci_onnx_text_or_empty(from->name)[0] ? from->name : type;
  bool is_done = false;
  laci_node node = {
      .name = from->name, .type = type, .domain = laci_onnx_canonical_domain(from->domain)};
  if (!type[0]) {
    return laci_fail(err, LAC_BAD_FILE, "node '%s': no operator",
                     laci_onnx_text_or_empty(from->name));
  }
  lac_status st = add_constant_node(im, scope, from, &is_done, err);
  if (st || is_done) return st;
  node.version = laci_import_find_domain_version(im, scope, node.domain);
  if (!node.domain[0] && !node.version) {
    return laci_fail(err, LAC_BAD_FILE, "node '%s' (%s): the model imports no operators of ai.onnx",
                     own, type);
  }
  st = check_same_meaning_in_both_opsets(im, scope, &node, err);
  if (!st && scope->prefix[0]) st = laci_import_join_names(im, scope->prefix, own, &node.name, err);
  if (!st) st = add_node_with_bodies(im, scope, from, &node, &is_done, err);
  if (st || is_done) return st;
  return add_node_without_bodies(im, scope, from, &node, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * Imports calls of local functions: each call is replaced by the function's nodes, with names of
 * their own.
 *
 * The file keeps its functions, so what the graph changes in one call changes in all calls. A
 * Constant node of a function is one stored tensor, which all calls share. Functions may also be
 * called from graphs that are not imported (bodies, training graphs). The constants of such a
 * function must not change: they are declared replaceable, which freezes them. A small file can
 * describe an enormous expansion, so memory has a budget. Next: node.c (all other nodes), scope.c
 * (names). */
#include "onnx/import_in.h"

#include "base/error.h"
#include "base/plural.h"
#include "graph/graph.h"

#include <string.h>

static lac_status register_function(laci_importer *im, size_t at, lac_error *err) {
  const Onnx__FunctionProto *proto = im->file->model->functions[at];
  const char *name = laci_onnx_text_or_empty(proto->name);
  Onnx__NodeProto call = ONNX__NODE_PROTO__INIT;
  call.op_type = proto->name;
  call.domain = proto->domain;
  call.overload = proto->overload;
  if (!name[0]) return laci_fail(err, LAC_BAD_FILE, "local function %zu has no name", at);
  if (laci_import_find_called_function(im, &call)) {
    return laci_fail(err, LAC_BAD_FILE, "function '%s' of domain '%s' is defined twice", name,
                     laci_onnx_text_or_empty(proto->domain));
  }
  int first = laci_name_find(&im->function_ids, name);
  laci_onnx_function *function = &im->functions[im->n_functions];
  *function = (laci_onnx_function){.proto = proto, .next_of_name = -1};
  if (first >= 0) {
    function->next_of_name = im->functions[first].next_of_name;
    im->functions[first].next_of_name = (int)im->n_functions;
  } else if (!laci_name_add(&im->function_ids, name, (int)im->n_functions)) {
    return laci_fail_memory(err, name);
  }
  im->n_functions++;
  return LAC_OK;
}

lac_status laci_import_list_functions(laci_importer *im, lac_error *err) {
  size_t n = im->file->model->n_functions;
  if (n == 0) return LAC_OK;
  im->functions = laci_alloc(n, sizeof *im->functions);
  lac_status st = im->functions ? LAC_OK : laci_fail_memory(err, "local functions");
  for (size_t at = 0; at < n && !st; at++) st = register_function(im, at, err);
  return st ? st : laci_import_hide_training_functions(im, err);
}

/* ---- Calls ---- */

/** Adds the function's Constant nodes as stored tensors, when its first call is imported. */
static lac_status add_constants_of_function(laci_importer *im, laci_onnx_function *function,
                                            lac_error *err) {
  const Onnx__FunctionProto *proto = function->proto;
  const char *prefix, *name;
  lac_status st =
      laci_import_join_names(im, laci_onnx_text_or_empty(proto->name), "/", &prefix, err);
  for (size_t at = 0; at < proto->n_node && !st; at++) {
    const Onnx__NodeProto *node = proto->node[at];
    Onnx__AttributeProto *attr = laci_import_find_constant_attr(node);
    if (!attr || (attr->ref_attr_name && attr->ref_attr_name[0])) continue;
    if (laci_name_find(&function->constants, node->output[0]) >= 0) {
      return laci_fail(err, LAC_BAD_FILE, "function '%s': '%s' is defined twice", proto->name,
                       node->output[0]);
    }
    st = laci_import_unique_value_name(im, prefix, node->output[0], &name, err);
    laci_stored about = {.name = name, .in_function = true, .overridable = function->is_hidden};
    int value = -1;
    if (!st) st = laci_import_add_constant(im, attr, &about, false, &value, err);
    if (!st && !laci_name_add(&function->constants, node->output[0], value)) {
      st = laci_fail_memory(err, name);
    }
  }
  function->has_constants = !st;
  return st;
}

static lac_status define_inputs_of_call(laci_importer *im, laci_scope *scope, lac_error *err) {
  const Onnx__FunctionProto *f = scope->function->proto;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < f->n_input && !st; at++) {
    int value = -1;
    if (at < scope->call->n_input) {
      st = laci_import_find_value_or_fail(im, scope->caller, scope->call->input[at], &value, err);
    }
    if (!st) st = laci_import_define_value(scope, f->input[at], value, err);
  }
  return st;
}

/** Finds the value that the call has for the function's output `name`. -1: `name` is no output of
 * the function, or the call does not use it. */
static lac_status find_output_of_call(laci_importer *im, const laci_scope *scope, const char *name,
                                      int *value, lac_error *err) {
  const Onnx__FunctionProto *f = scope->function->proto;
  *value = -1;
  for (size_t at = 0; at < f->n_output && at < scope->call->n_output; at++) {
    if (strcmp(f->output[at], name) != 0) continue;
    return laci_import_find_value_or_fail(im, scope->caller, scope->call->output[at], value, err);
  }
  return LAC_OK;
}

/** Defines a value for each output of a node in a function: the call's output, the shared constant,
 * or a new value. */
static lac_status define_node_outputs(laci_importer *im, laci_scope *scope,
                                      const Onnx__NodeProto *node, lac_error *err) {
  const char *fresh;
  lac_status st = LAC_OK;
  Onnx__AttributeProto *constant = laci_import_find_constant_attr(node);
  if (constant && !(constant->ref_attr_name && constant->ref_attr_name[0])) {
    int shared = laci_name_find(&scope->function->constants, node->output[0]);
    return laci_import_define_value(scope, node->output[0], shared, err);
  }
  for (size_t at = 0; at < node->n_output && !st; at++) {
    int value = -1;
    if (!node->output[at][0]) continue;
    st = find_output_of_call(im, scope, node->output[at], &value, err);
    if (!st && value < 0) {
      st = laci_import_unique_value_name(im, scope->prefix, node->output[at], &fresh, err);
      if (!st) value = laci_graph_intern_value(im->graph, fresh);
      if (!st && value < 0) st = laci_fail_memory(err, fresh);
    }
    if (!st) st = laci_import_define_value(scope, node->output[at], value, err);
  }
  return st;
}

/** Adds an Identity node for each output of the function that no node of it computes: an input that
 * is returned as it is, or a shared constant. */
static lac_status add_identity_for_passed_outputs(laci_importer *im, const laci_scope *scope,
                                                  lac_error *err) {
  const Onnx__FunctionProto *f = scope->function->proto;
  const laci_scope model = {0};
  lac_status st = LAC_OK;
  for (size_t at = 0; at < f->n_output && at < scope->call->n_output && !st; at++) {
    int inner, outer, id;
    st = laci_import_find_value_or_fail(im, scope->caller, scope->call->output[at], &outer, err);
    if (st || outer < 0) continue;
    st = laci_import_find_value_or_fail(im, scope, f->output[at], &inner, err);
    if (st || inner == outer) continue;
    if (inner < 0) {
      st = laci_fail(err, LAC_BAD_FILE, "function '%s': output '%s' is an input that is left out",
                     laci_onnx_text_or_empty(f->name), f->output[at]);
      continue;
    }
    laci_node node = {.type = "Identity", .domain = "", .n_inputs = 1, .n_outputs = 1};
    node.inputs = &inner;
    node.outputs = &outer;
    node.version = laci_import_find_domain_version(im, &model, "");
    st = laci_import_join_names(im, scope->prefix, f->output[at], &node.name, err);
    if (!st) st = laci_graph_add_node(im->graph, &node, &id, err);
  }
  return st;
}

static lac_status check_call_arguments(const laci_scope *scope, const Onnx__NodeProto *call,
                                       const laci_onnx_function *function, lac_error *err) {
  const Onnx__FunctionProto *f = function->proto;
  if (call->n_input > f->n_input || call->n_output > f->n_output) {
    return laci_fail(err, LAC_BAD_FILE,
                     "call '%s' of function '%s': %zu input%s and %zu output%s, it has %zu and %zu",
                     laci_onnx_text_or_empty(call->name), f->name, call->n_input,
                     laci_plural((int64_t)call->n_input), call->n_output,
                     laci_plural((int64_t)call->n_output), f->n_input, f->n_output);
  }
  if (scope->depth >= LACI_MAX_SCOPES) {
    return laci_fail(err, LAC_UNSUPPORTED, "function '%s': calls nested more than %d deep", f->name,
                     LACI_MAX_SCOPES);
  }
  for (const laci_scope *s = scope; s; s = s->caller) {
    if (s->function != function) continue;
    return laci_fail(err, LAC_BAD_FILE, "function '%s' calls itself", f->name);
  }
  return laci_import_check_opsets(f->opset_import, f->n_opset_import, err);
}

static lac_status inline_function_call(laci_importer *im, const laci_scope *scope,
                                       const Onnx__NodeProto *call, laci_onnx_function *function,
                                       lac_error *err) {
  const Onnx__FunctionProto *f = function->proto;
  laci_scope inner = {
      .caller = scope, .function = function, .call = call, .depth = scope->depth + 1};
  const char *own = laci_onnx_text_or_empty(call->name)[0] ? call->name : f->name;
  lac_status st = check_call_arguments(scope, call, function, err);
  if (!st) st = laci_import_join_names(im, scope->prefix, own, &inner.prefix, err);
  if (!st) st = laci_import_join_names(im, inner.prefix, "/", &inner.prefix, err);
  if (!st && !function->has_constants) st = add_constants_of_function(im, function, err);
  if (!st) st = define_inputs_of_call(im, &inner, err);
  for (size_t at = 0; at < f->n_node && !st; at++) {
    st = define_node_outputs(im, &inner, f->node[at], err);
  }
  for (size_t at = 0; at < f->n_node && !st; at++) {
    st = laci_import_any_node(im, &inner, f->node[at], err);
  }
  if (!st) st = add_identity_for_passed_outputs(im, &inner, err);
  laci_name_table_clear(&inner.values);
  return st;
}

lac_status laci_import_any_node(laci_importer *im, const laci_scope *scope,
                                const Onnx__NodeProto *node, lac_error *err) {
  laci_onnx_function *function = laci_import_find_called_function(im, node);
  return function ? inline_function_call(im, scope, node, function, err)
                  : laci_import_operator_node(im, scope, node, err);
}

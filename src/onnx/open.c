/* SPDX-License-Identifier: Apache-2.0
 * Opens (imports) bodies of If, Loop and Scan: their nodes become nodes of the graph, with unique
 * names, between a node that begins an iteration and one that ends it (graph.h, laci_body).
 *
 * These three operators are known by name here, because the file defines how names of a body map to
 * values. A body whose names or numbers of inputs and outputs do not fit stays closed: the graph
 * only records what it reads (body.c), and channels of these values are frozen. Next: scope.c. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_SCAN = 9 /* first opset whose Scan has no batch axis */ };

/* ---- Deciding which bodies are imported ---- */

typedef enum body_kind { KIND_NONE, KIND_IF, KIND_LOOP, KIND_SCAN } body_kind;

static body_kind body_kind_of_node(const Onnx__NodeProto *node) {
  static const char *const names[] = {"", "If", "Loop", "Scan"};
  if (laci_onnx_canonical_domain(node->domain)[0]) return KIND_NONE;
  for (int kind = KIND_IF; kind <= KIND_SCAN; kind++) {
    if (strcmp(laci_onnx_text_or_empty(node->op_type), names[kind]) == 0) return (body_kind)kind;
  }
  return KIND_NONE;
}

static const Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *node, const char *name) {
  for (size_t at = 0; at < node->n_attribute; at++) {
    const Onnx__AttributeProto *attr = node->attribute[at];
    if (strcmp(laci_onnx_text_or_empty(attr->name), name) == 0) return attr;
  }
  return NULL;
}

static const Onnx__GraphProto *find_body(const Onnx__NodeProto *node, const char *name) {
  const Onnx__AttributeProto *attr = find_attribute(node, name);
  bool is_own = attr && !(attr->ref_attr_name && attr->ref_attr_name[0]);
  return is_own ? attr->g : NULL;
}

static size_t count_scanned_inputs(const Onnx__NodeProto *node) {
  const Onnx__AttributeProto *attr = find_attribute(node, "num_scan_inputs");
  bool fits = attr && attr->has_i && attr->i >= 0 && (uint64_t)attr->i <= node->n_input;
  return fits ? (size_t)attr->i : SIZE_MAX;
}

/** Checks that all inputs, outputs and stored tensors of a body have names, and that it holds no
 * sparse tensor. Returns what is wrong, or NULL. */
static const char *find_fault_in_names(const Onnx__GraphProto *body) {
  for (size_t at = 0; at < body->n_input; at++) {
    if (!laci_onnx_text_or_empty(body->input[at]->name)[0])
      return "an input of its body has no name";
  }
  for (size_t at = 0; at < body->n_output; at++) {
    if (!laci_onnx_text_or_empty(body->output[at]->name)[0])
      return "an output of its body has no name";
  }
  for (size_t at = 0; at < body->n_initializer; at++) {
    if (!laci_onnx_text_or_empty(body->initializer[at]->name)[0])
      return "a stored tensor of its body has no name";
  }
  return body->n_sparse_initializer ? "its body holds a sparse tensor" : NULL;
}

static const char *find_fault_in_inputs(const Onnx__NodeProto *node, size_t from) {
  for (size_t at = from; at < node->n_input; at++) {
    if (!node->input[at][0]) return "what its body is to read is left out";
  }
  return NULL;
}

static const char *find_fault_of_if(const Onnx__NodeProto *node) {
  const Onnx__GraphProto *then = find_body(node, "then_branch"),
                         *other = find_body(node, "else_branch");
  if (!then || !other) return "it has not two bodies";
  if (then->n_output != other->n_output || then->n_output < node->n_output)
    return "its bodies give another number of results";
  if (then->n_input || other->n_input) return "its bodies have inputs";
  if (node->n_input != 1) return "it has not one condition";
  const char *why = find_fault_in_inputs(node, 0);
  if (!why) why = find_fault_in_names(then);
  return why ? why : find_fault_in_names(other);
}

static const char *find_fault_of_loop(const Onnx__NodeProto *node) {
  const Onnx__GraphProto *body = find_body(node, "body");
  if (!body) return "it has no body";
  size_t n = body->n_input >= 2 ? body->n_input - 2 : SIZE_MAX;
  if (n == SIZE_MAX || node->n_input != n + 2 || body->n_output < n + 1 ||
      node->n_output > body->n_output - 1) {
    return "its body has another number of inputs or results";
  }
  const char *why = find_fault_in_inputs(node, 2);
  return why ? why : find_fault_in_names(body);
}

static const char *find_fault_of_scan(const Onnx__NodeProto *node) {
  const Onnx__GraphProto *body = find_body(node, "body");
  size_t scanned = count_scanned_inputs(node);
  if (!body) return "it has no body";
  if (scanned == SIZE_MAX || scanned < 1 || body->n_input != node->n_input ||
      body->n_output < node->n_input - scanned || node->n_output > body->n_output) {
    return "its body has another number of inputs or results";
  }
  const char *why = find_fault_in_inputs(node, 0);
  return why ? why : find_fault_in_names(body);
}

/** Checks that the body defines no name that exists outside of it. Such a name would change its
 * meaning at some node of the body. Returns what is wrong, or NULL. */
static const char *find_shadowed_name(const laci_importer *im, const laci_scope *scope,
                                      const Onnx__GraphProto *body) {
  for (size_t at = 0; body && at < body->n_node; at++) {
    const Onnx__NodeProto *node = body->node[at];
    for (size_t out = 0; out < node->n_output; out++) {
      int value;
      if (laci_import_find_value(im, scope, node->output[out], &value))
        return "its body gives a name from outside another meaning";
    }
  }
  return NULL;
}

/** Returns why the node's bodies are not imported; NULL: they can be imported. */
static const char *find_fault_of_node(const laci_importer *im, const laci_scope *scope,
                                      const Onnx__NodeProto *node, int version) {
  static const char *const names[] = {"then_branch", "else_branch", "body"};
  const char *why = NULL;
  switch (body_kind_of_node(node)) {
    case KIND_IF: why = find_fault_of_if(node); break;
    case KIND_LOOP: why = find_fault_of_loop(node); break;
    case KIND_SCAN:
      why = version < FIRST_SCAN ? "a Scan of version 8" : find_fault_of_scan(node);
      break;
    case KIND_NONE: break;
  }
  for (int at = 0; at < 3 && !why; at++)
    why = find_shadowed_name(im, scope, find_body(node, names[at]));
  return why;
}

/* ---- Defining the names of a body ---- */

/** A node whose bodies are being imported. */
typedef struct opening {
  laci_importer *im;
  const laci_scope *scope; /* the scope around the node */
  const Onnx__NodeProto *from;
  laci_node *node; /* the node of the graph that ends the bodies; its inputs and outputs are not
                      filled in yet */
  int body;        /* index of the body that the node itself belongs to */
  int stride;      /* difference between the indices of the node's two bodies */
  const int *begin_inputs;
} opening;

/** Defines a new value for a name in a body. */
static lac_status define_new_value_of_body(laci_importer *im, laci_scope *body, const char *name,
                                           int *value, lac_error *err) {
  const char *fresh;
  lac_status st = laci_import_unique_value_name(im, body->prefix, name, &fresh, err);
  if (st) return st;
  *value = laci_graph_intern_value(im->graph, fresh);
  if (*value < 0) return laci_fail_memory(err, name);
  return laci_import_define_value(body, name, *value, err);
}

/** Makes a key from the address of a tensor in the file. A tensor in a function has the same key in
 * all calls, so that it becomes one stored tensor. */
static void format_address_key(const void *place, char key[32]) {
  (void)snprintf(key, 32, "%p", place);
}

static bool find_shared_tensor(const laci_importer *im, const laci_scope *body, const void *place,
                               int *value) {
  char key[32];
  format_address_key(place, key);
  *value = body->function ? laci_name_find(&im->shared, key) : -1;
  return *value >= 0;
}

static lac_status record_shared_tensor(laci_importer *im, const laci_scope *body, const void *place,
                                       int value, lac_error *err) {
  char key[32];
  if (!body->function) return LAC_OK;
  format_address_key(place, key);
  const char *copy = laci_arena_text(&im->scratch, key);
  bool kept = copy && laci_name_add(&im->shared, copy, value);
  return kept ? LAC_OK : laci_fail_memory(err, "a tensor of a function");
}

static laci_stored make_stored_description(const laci_importer *im, const laci_scope *body,
                                           int value) {
  return (laci_stored){.name = im->graph->values[value].name,
                       .in_function = body->function != NULL,
                       .overridable = body->function && body->function->is_hidden};
}

static lac_status add_initializer_of_body(laci_importer *im, laci_scope *body,
                                          Onnx__TensorProto *tensor, lac_error *err) {
  int value;
  if (find_shared_tensor(im, body, tensor, &value))
    return laci_import_define_value(body, tensor->name, value, err);
  lac_status st = define_new_value_of_body(im, body, tensor->name, &value, err);
  if (!st) st = record_shared_tensor(im, body, tensor, value, err);
  if (st) return st;
  laci_stored about = make_stored_description(im, body, value);
  return laci_import_add_initializer(im, tensor, &about, err);
}

static lac_status add_constant_of_body(laci_importer *im, laci_scope *body,
                                       const Onnx__NodeProto *node, Onnx__AttributeProto *attr,
                                       lac_error *err) {
  int value;
  if (find_shared_tensor(im, body, attr, &value))
    return laci_import_define_value(body, node->output[0], value, err);
  lac_status st = define_new_value_of_body(im, body, node->output[0], &value, err);
  if (!st) st = record_shared_tensor(im, body, attr, value, err);
  if (st) return st;
  laci_stored about = make_stored_description(im, body, value);
  return laci_import_add_constant(im, attr, &about, false, &value, err);
}

static lac_status define_outputs_of_node(laci_importer *im, laci_scope *body,
                                         const Onnx__NodeProto *node, lac_error *err) {
  lac_status st = LAC_OK;
  Onnx__AttributeProto *attr = laci_import_find_constant_attr(node);
  bool is_constant = attr && !(attr->ref_attr_name && attr->ref_attr_name[0]);
  for (size_t at = 0; at < node->n_output && !st; at++) {
    int value;
    if (!node->output[at][0]) continue;
    if (is_constant) st = add_constant_of_body(im, body, node, attr, err);
    else st = define_new_value_of_body(im, body, node->output[at], &value, err);
  }
  return st;
}

/* ---- Importing one body ---- */

static lac_status declare_type_of_value(laci_importer *im, const laci_scope *body,
                                        const Onnx__ValueInfoProto *info, lac_error *err) {
  int value = laci_name_find(&body->values, laci_onnx_text_or_empty(info->name)) - 1;
  return value < 0 ? LAC_OK : laci_import_declare_type(im, value, info, true, err);
}

/** Defines values for the inputs of a body, and lists them in `inputs`. */
static lac_status define_inputs_of_body(laci_importer *im, laci_scope *body,
                                        const Onnx__GraphProto *proto, int *inputs,
                                        lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < proto->n_input && !st; at++) {
    st = define_new_value_of_body(im, body, proto->input[at]->name, &inputs[at], err);
  }
  for (size_t at = 0; at < proto->n_initializer && !st; at++) {
    st = add_initializer_of_body(im, body, proto->initializer[at], err);
  }
  for (size_t at = 0; at < proto->n_node && !st; at++) {
    st = define_outputs_of_node(im, body, proto->node[at], err);
  }
  return st;
}

/** Adds the nodes of a body, as part of body `id` of the graph. Lists the values of its results in
 * `outputs`. */
static lac_status add_nodes_of_body(laci_importer *im, laci_scope *body,
                                    const Onnx__GraphProto *proto, int id, int *outputs,
                                    lac_error *err) {
  lac_status st = LAC_OK;
  int outer = im->body;
  im->body = id;
  laci_graph_set_current_body(im->graph, id);
  for (size_t at = 0; at < proto->n_node && !st; at++) {
    st = im->add_node(im, body, proto->node[at], err);
  }
  for (size_t at = 0; at < proto->n_value_info && !st; at++)
    st = declare_type_of_value(im, body, proto->value_info[at], err);
  for (size_t at = 0; at < proto->n_output && !st; at++) {
    st = laci_import_find_value_or_fail(im, body, proto->output[at]->name, &outputs[at], err);
    if (!st) st = declare_type_of_value(im, body, proto->output[at], err);
  }
  im->body = outer;
  laci_graph_set_current_body(im->graph, outer);
  return st;
}

/** Begins to import a body: fills its scope *inner, and defines values for the body's inputs. */
static lac_status begin_body_import(const opening *o, const char *name, laci_scope *inner,
                                    int *inputs, lac_error *err) {
  *inner = *o->scope; /* the body belongs to the same call of a function as the node */
  inner->values = (laci_name_table){0};
  inner->outer = o->scope;
  inner->depth++;
  if (inner->depth > LACI_MAX_SCOPES) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): bodies nested more than %d deep",
                     o->node->name, o->node->type, LACI_MAX_SCOPES);
  }
  lac_status st = laci_import_join_names(o->im, o->node->name, "/", &inner->prefix, err);
  if (!st) st = laci_import_join_names(o->im, inner->prefix, name, &inner->prefix, err);
  if (!st) st = laci_import_join_names(o->im, inner->prefix, "/", &inner->prefix, err);
  const Onnx__GraphProto *proto = find_body(o->from, name);
  if (!st) st = define_inputs_of_body(o->im, inner, proto, inputs, err);
  for (size_t at = 0; at < proto->n_input && !st; at++)
    st = declare_type_of_value(o->im, inner, proto->input[at], err);
  return st;
}

/** Adds a body to the graph, and sets *id to its index; where it ends is set later. */
static lac_status add_branch_or_loop_body(const opening *o, int begin, int branch, int *id,
                                          lac_error *err) {
  laci_body body = {.outer = o->body, .begin = begin, .end = -1, .branch = branch};
  *id = laci_graph_add_body(o->im->graph, &body);
  return *id < 0 ? laci_fail_memory(err, o->node->name) : LAC_OK;
}

/** Adds the node that ends the bodies. It has n_outputs outputs: those of the file's node, then
 * outputs that nothing reads. */
static lac_status add_body_end_node(const opening *o, const int *inputs, size_t n_inputs,
                                    size_t n_outputs, int n_bodies, lac_error *err) {
  laci_node *node = o->node;
  int *outputs = laci_arena_alloc(&o->im->scratch, n_outputs, sizeof *outputs), id;
  if (!outputs) return laci_fail_memory(err, node->name);
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n_outputs && !st; at++) {
    const char *name = at < o->from->n_output ? o->from->output[at] : "";
    st = laci_import_find_value_or_fail(o->im, o->scope, name, &outputs[at], err);
  }
  node->inputs = inputs;
  node->n_inputs = (int)n_inputs;
  node->outputs = outputs;
  node->n_outputs = (int)n_outputs;
  if (!st) st = laci_graph_add_node_copy(o->im->graph, node, &id, err);
  for (int at = 0; at < n_bodies && !st; at++)
    o->im->graph->bodies[node->frames - 1 + at * o->stride].end = id;
  return st;
}

/* ---- If, Loop, Scan ---- */

static lac_status import_if(opening *o, lac_error *err) {
  static const char *const names[] = {"then_branch", "else_branch"};
  laci_importer *im = o->im;
  size_t n = find_body(o->from, names[0])->n_output;
  int *inputs = laci_arena_alloc(&im->scratch, 1 + 2 * n, sizeof *inputs);
  if (!inputs) return laci_fail_memory(err, o->node->name);
  int ids[2] = {0, 0};
  lac_status st = laci_import_find_value_or_fail(im, o->scope, o->from->input[0], &inputs[0], err);
  for (int at = 0; at < 2 && !st; at++) {
    laci_scope inner;
    st = begin_body_import(o, names[at], &inner, NULL, err);
    if (!st) st = add_branch_or_loop_body(o, -1, 1 - at, &ids[at], err);
    int *outputs = inputs + 1 + (size_t)at * n;
    if (!st)
      st = add_nodes_of_body(im, &inner, find_body(o->from, names[at]), ids[at], outputs, err);
    laci_name_table_clear(&inner.values);
  }
  if (st) return st;
  o->node->frames = ids[0];
  o->stride = ids[1] - ids[0];
  return add_body_end_node(o, inputs, 1 + 2 * n, n, 2, err);
}

/** Adds the node that begins an iteration of a Loop or a Scan. It reads the inputs of the file's
 * node, and outputs the body's inputs. */
static lac_status add_iteration_begin_node(opening *o, const char *type, const laci_scope *inner,
                                           const int *values, int *id, lac_error *err) {
  size_t n = o->from->n_input;
  int *inputs = laci_arena_alloc(&o->im->scratch, n, sizeof *inputs);
  laci_node begin = {.type = type, .domain = "lacuna", .version = 1};
  if (!inputs) return laci_fail_memory(err, o->node->name);
  lac_status st = laci_import_join_names(o->im, inner->prefix, "begin", &begin.name, err);
  for (size_t at = 0; at < n && !st; at++)
    st = laci_import_find_value_or_fail(o->im, o->scope, o->from->input[at], &inputs[at], err);
  begin.inputs = inputs;
  begin.outputs = values;
  begin.n_inputs = begin.n_outputs = (int)n;
  begin.n_attrs = o->node->n_attrs;
  begin.attrs = o->node->attrs;
  begin.frames = o->im->graph->n_bodies + 1;
  o->node->frames = begin.frames;
  o->begin_inputs = inputs;
  return st ? st : laci_graph_add_node_copy(o->im->graph, &begin, id, err);
}

/** Imports a Loop or a Scan. Inputs from, ..., from + carried - 1 of the body are values carried
 * from one iteration to the next. As many of its results are, too (after the condition of a Loop).
 * The remaining inputs and results are slices. */
static lac_status import_loop_or_scan(opening *o, const char *type, size_t from, size_t carried,
                                      lac_error *err) {
  laci_importer *im = o->im;
  const Onnx__GraphProto *proto = find_body(o->from, "body");
  size_t before = from ? 1 : 0, n_slices = proto->n_output - before - carried;
  size_t n_inputs = before + 3 * carried + n_slices;
  int *values = laci_arena_alloc(&im->scratch, proto->n_input, sizeof *values);
  int *results = laci_arena_alloc(&im->scratch, proto->n_output, sizeof *results);
  int *inputs = laci_arena_alloc(&im->scratch, n_inputs, sizeof *inputs), begin, id;
  if (!values || !results || !inputs) return laci_fail_memory(err, o->node->name);
  laci_scope inner;
  lac_status st = begin_body_import(o, "body", &inner, values, err);
  if (!st) st = add_iteration_begin_node(o, type, &inner, values, &begin, err);
  if (!st) st = add_branch_or_loop_body(o, begin, -1, &id, err);
  if (!st) st = add_nodes_of_body(im, &inner, proto, id, results, err);
  laci_name_table_clear(&inner.values);
  if (st) return st;
  size_t at = 0;
  if (before) inputs[at++] = results[0];
  for (size_t k = 0; k < carried; k++) inputs[at++] = o->begin_inputs[from + k];
  for (size_t k = 0; k < carried; k++) inputs[at++] = values[from + k];
  for (size_t k = 0; k < carried + n_slices; k++) inputs[at++] = results[before + k];
  return add_body_end_node(o, inputs, n_inputs, carried + n_slices, 1, err);
}

/** Sets the name of the graph's node, which is also the prefix of the names in its bodies. If the
 * file's node has no name, it is that of an output. */
static lac_status set_node_name(const opening *o, lac_error *err) {
  const Onnx__NodeProto *from = o->from;
  const char *own = laci_onnx_text_or_empty(from->name);
  if (!own[0] && from->n_output) own = from->output[0];
  if (!own[0]) own = from->op_type;
  return laci_import_join_names(o->im, o->scope->prefix, own, &o->node->name, err);
}

lac_status laci_import_bodies(laci_importer *im, const laci_scope *scope,
                              const Onnx__NodeProto *from, laci_node *node, bool *is_done,
                              lac_error *err) {
  body_kind kind = body_kind_of_node(from);
  opening o = {.im = im, .scope = scope, .from = from, .node = node, .stride = 1, .body = im->body};
  *is_done = false;
  if (kind == KIND_NONE) return LAC_OK;
  node->fault = find_fault_of_node(im, scope, from, node->version);
  if (node->fault) return LAC_OK;
  *is_done = true;
  lac_status st = set_node_name(&o, err);
  if (st) return st;
  switch (kind) {
    case KIND_IF: return import_if(&o, err);
    case KIND_LOOP: return import_loop_or_scan(&o, "LoopBegin", 2, from->n_input - 2, err);
    case KIND_SCAN:
      return import_loop_or_scan(&o, "ScanBegin", 0, from->n_input - count_scanned_inputs(from),
                                 err);
    case KIND_NONE: break;
  }
  return LAC_OK;
}

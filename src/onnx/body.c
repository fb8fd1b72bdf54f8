/* SPDX-License-Identifier: Apache-2.0
 * Finds the outer values that a body reads. A body is a subgraph, of If or Loop for example, that
 * is not imported (open.c).
 *
 * The graph only records which outer values such a body reads. The body's nodes are visited in
 * order, so a name means the outer value until the body defines it. Next: node.c. */
#include "onnx/import_in.h"

#include "base/error.h"

/** The names that a body has defined so far, and the scope of the body that contains it. */
typedef struct body_scope {
  laci_name_table defined;
  const struct body_scope *outer;
} body_scope;

typedef struct capture_list {
  laci_importer *im;
  const laci_scope *scope;
  const char *node; /* name of the node that has the body, for messages */
  laci_name_table seen;
  int *ids;
  size_t n, capacity;
} capture_list;

static lac_status define_name_in_body(capture_list *list, body_scope *body, const char *name,
                                      lac_error *err) {
  if (!name || !name[0] || laci_name_find(&body->defined, name) >= 0) return LAC_OK;
  if (laci_name_add(&body->defined, name, 0)) return LAC_OK;
  return laci_fail_memory(err, list->node);
}

/** Returns the value of that name outside of all bodies; -1 if there is none. A body whose nodes
 * are out of order may define the name only later, so this is no error. */
static int find_value_outside_bodies(const capture_list *list, const char *name) {
  int value;
  return laci_import_find_value(list->im, list->scope, name, &value) ? value : -1;
}

static lac_status record_name_if_captured(capture_list *list, const body_scope *body,
                                          const char *name, lac_error *err) {
  if (!name || !name[0]) return LAC_OK;
  for (; body; body = body->outer) {
    if (laci_name_find(&body->defined, name) >= 0) return LAC_OK;
  }
  int value = find_value_outside_bodies(list, name);
  if (value < 0 || laci_name_find(&list->seen, name) >= 0) return LAC_OK;
  void *array = list->ids;
  bool grown = laci_grow(&array, list->n, &list->capacity, sizeof *list->ids);
  list->ids = array;
  if (!grown || !laci_name_add(&list->seen, name, 0)) return laci_fail_memory(err, list->node);
  for (size_t at = 0; at < list->n; at++) {
    /* two names may mean one value, if a call of a function passes it twice */
    if (list->ids[at] == value) return LAC_OK;
  }
  list->ids[list->n++] = value;
  return LAC_OK;
}

static lac_status collect_captures_of_body(capture_list *list, const Onnx__GraphProto *graph,
                                           const body_scope *outer, lac_error *err);

static lac_status collect_captures_of_attribute(capture_list *list,
                                                const Onnx__AttributeProto *attr,
                                                const body_scope *outer, lac_error *err) {
  lac_status st = attr->g ? collect_captures_of_body(list, attr->g, outer, err) : LAC_OK;
  for (size_t at = 0; at < attr->n_graphs && !st; at++) {
    st = collect_captures_of_body(list, attr->graphs[at], outer, err);
  }
  return st;
}

static lac_status collect_captures_of_node(capture_list *list, const Onnx__NodeProto *node,
                                           body_scope *body, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < node->n_input && !st; at++) {
    st = record_name_if_captured(list, body, node->input[at], err);
  }
  for (size_t at = 0; at < node->n_attribute && !st; at++) {
    st = collect_captures_of_attribute(list, node->attribute[at], body, err);
  }
  for (size_t at = 0; at < node->n_output && !st; at++) {
    st = define_name_in_body(list, body, node->output[at], err);
  }
  return st;
}

static lac_status collect_captures_of_body(capture_list *list, const Onnx__GraphProto *graph,
                                           const body_scope *outer, lac_error *err) {
  body_scope body = {.outer = outer};
  lac_status st = LAC_OK;
  for (size_t at = 0; at < graph->n_input && !st; at++) {
    st = define_name_in_body(list, &body, graph->input[at]->name, err);
  }
  for (size_t at = 0; at < graph->n_initializer && !st; at++) {
    st = define_name_in_body(list, &body, graph->initializer[at]->name, err);
  }
  for (size_t at = 0; at < graph->n_sparse_initializer && !st; at++) {
    const Onnx__TensorProto *values = graph->sparse_initializer[at]->values;
    st = define_name_in_body(list, &body, values ? values->name : NULL, err);
  }
  for (size_t at = 0; at < graph->n_node && !st; at++) {
    st = collect_captures_of_node(list, graph->node[at], &body, err);
  }
  for (size_t at = 0; at < graph->n_output && !st; at++) {
    st = record_name_if_captured(list, &body, graph->output[at]->name, err);
  }
  laci_name_table_clear(&body.defined);
  return st;
}

lac_status laci_import_find_captures(laci_importer *im, const laci_scope *scope,
                                     const Onnx__NodeProto *node, const int **ids, int *n,
                                     lac_error *err) {
  capture_list list = {.im = im, .scope = scope, .node = laci_onnx_text_or_empty(node->name)};
  lac_status st = LAC_OK;
  for (size_t at = 0; at < node->n_attribute && !st; at++) {
    st = collect_captures_of_attribute(&list, node->attribute[at], NULL, err);
  }
  int *copy = laci_arena_alloc(&im->scratch, list.n, sizeof *copy);
  if (!st && !copy) st = laci_fail_memory(err, list.node);
  for (size_t at = 0; !st && at < list.n; at++) copy[at] = list.ids[at];
  *ids = copy;
  *n = st ? 0 : (int)list.n;
  laci_name_table_clear(&list.seen);
  laci_free(list.ids);
  return st;
}

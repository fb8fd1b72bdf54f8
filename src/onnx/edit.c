/* SPDX-License-Identifier: Apache-2.0
 * Collects the changes that an edit (edit.h) will make to a file: finds free names, and lists nodes
 * and tensors to add, change or remove. */
#include "onnx/edit_in.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import_in.h"

static lac_status add_used_name(laci_onnx_edit *edit, const char *name, lac_error *err) {
  if (!name || !name[0] || laci_name_find(&edit->names, name) >= 0) return LAC_OK;
  return laci_name_add(&edit->names, name, 0) ? LAC_OK : laci_fail_memory(err, "the file's names");
}

static lac_status add_names_used_in_graph(laci_onnx_edit *edit, const Onnx__GraphProto *graph,
                                          lac_error *err);

static lac_status add_names_used_in_bodies(laci_onnx_edit *edit, const Onnx__NodeProto *node,
                                           lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < node->n_attribute && !st; at++) {
    const Onnx__AttributeProto *attr = node->attribute[at];
    if (attr->g) st = add_names_used_in_graph(edit, attr->g, err);
    for (size_t k = 0; k < attr->n_graphs && !st; k++)
      st = add_names_used_in_graph(edit, attr->graphs[k], err);
  }
  return st;
}

static lac_status add_names_used_in_graph(laci_onnx_edit *edit, const Onnx__GraphProto *graph,
                                          lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < graph->n_node && !st; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    st = add_used_name(edit, node->name, err);
    for (size_t i = 0; i < node->n_input && !st; i++) st = add_used_name(edit, node->input[i], err);
    for (size_t i = 0; i < node->n_output && !st; i++)
      st = add_used_name(edit, node->output[i], err);
    if (!st) st = add_names_used_in_bodies(edit, node, err);
  }
  for (size_t at = 0; at < graph->n_initializer && !st; at++)
    st = add_used_name(edit, graph->initializer[at]->name, err);
  for (size_t at = 0; at < graph->n_sparse_initializer && !st; at++) {
    const Onnx__TensorProto *values = graph->sparse_initializer[at]->values;
    if (values) st = add_used_name(edit, values->name, err);
  }
  for (size_t at = 0; at < graph->n_input && !st; at++)
    st = add_used_name(edit, graph->input[at]->name, err);
  for (size_t at = 0; at < graph->n_output && !st; at++)
    st = add_used_name(edit, graph->output[at]->name, err);
  for (size_t at = 0; at < graph->n_value_info && !st; at++)
    st = add_used_name(edit, graph->value_info[at]->name, err);
  return st;
}

static bool add_name_once(laci_name_table *table, const char *name, size_t at) {
  if (!name || !name[0] || laci_name_find(table, name) >= 0) return true;
  return laci_name_add(table, name, (int)at);
}

static lac_status index_producers_and_stored(laci_onnx_edit *edit, lac_error *err) {
  const Onnx__GraphProto *graph = edit->file->model->graph;
  bool ok = true;
  for (size_t at = 0; at < graph->n_node && ok; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t i = 0; i < node->n_output && ok; i++)
      ok = add_name_once(&edit->producers, node->output[i], at);
    if (ok && laci_import_find_constant_attr(node))
      ok = add_name_once(&edit->sources, node->output[0], at);
  }
  for (size_t at = 0; at < graph->n_initializer && ok; at++)
    ok = add_name_once(&edit->sources, graph->initializer[at]->name, at);
  for (size_t at = 0; at < graph->n_input && ok; at++)
    ok = add_name_once(&edit->sources, graph->input[at]->name, at);
  return ok ? LAC_OK : laci_fail_memory(err, "the file's names");
}

lac_status laci_onnx_edit_begin(laci_onnx *file, laci_onnx_edit **out, lac_error *err) {
  *out = NULL;
  laci_onnx_edit *edit = laci_alloc(1, sizeof *edit);
  if (!edit) return laci_fail_memory(err, "a change of the file");
  edit->file = file;
  lac_status st = add_names_used_in_graph(edit, file->model->graph, err);
  if (!st) st = index_producers_and_stored(edit, err);
  if (st) laci_onnx_edit_undo(edit);
  else *out = edit;
  return st;
}

int laci_edit_find_producer(const laci_onnx_edit *edit, const char *value) {
  return laci_name_find(&edit->producers, value);
}

bool laci_edit_is_computed(const laci_onnx_edit *edit, const char *value) {
  return laci_edit_find_producer(edit, value) >= 0;
}

bool laci_edit_is_output_of(const laci_onnx_edit *edit, const char *value, const char *type,
                            int n_inputs) {
  int producer = laci_edit_find_producer(edit, value);
  if (producer < 0) return false;
  const Onnx__NodeProto *node = edit->file->model->graph->node[producer];
  return !laci_onnx_canonical_domain(node->domain)[0] &&
         strcmp(laci_onnx_text_or_empty(node->op_type), type) == 0 &&
         node->n_input == (size_t)n_inputs;
}

bool laci_edit_is_stored_or_input(const laci_onnx_edit *edit, const char *value) {
  return laci_name_find(&edit->sources, value) >= 0;
}

const char *laci_edit_make_unique_name(laci_onnx_edit *edit, const char *base, const char *suffix) {
  size_t n = strlen(base) + strlen(suffix) + 24;
  char *name = laci_arena_alloc(&edit->arena, n, 1);
  if (!name) return NULL;
  (void)snprintf(name, n, "%s%s", base, suffix);
  for (unsigned number = 1; laci_name_find(&edit->names, name) >= 0; number++)
    (void)snprintf(name, n, "%s%s_%u", base, suffix, number);
  return laci_name_add(&edit->names, name, 0) ? name : NULL;
}

/* ---- Changes ---- */

static void *append_item(void **array, size_t *n, size_t *capacity, size_t size) {
  if (!laci_grow(array, *n, capacity, size)) return NULL;
  return (char *)*array + (*n)++ * size;
}

lac_status laci_edit_add_tensor(laci_onnx_edit *edit, const char *name, lac_dtype dtype,
                                const laci_shape *shape, const void *bytes, lac_error *err) {
  void *array = edit->tensors;
  laci_edit_tensor *tensor =
      name ? append_item(&array, &edit->n_tensors, &edit->tensor_capacity, sizeof *tensor) : NULL;
  edit->tensors = array;
  size_t size_bytes = (size_t)laci_shape_count(shape) * lac_dtype_size(dtype);
  uint64_t in_file = size_bytes;
  void *copy = NULL;
  if (tensor && laci_onnx_elements_per_byte(dtype) > 1) {
    copy = laci_onnx_pack_elements(&edit->arena, dtype, bytes, size_bytes);
    (void)laci_onnx_count_packed_bytes(dtype, (int64_t)size_bytes, &in_file);
  } else if (tensor && (copy = laci_arena_alloc(&edit->arena, size_bytes + 1, 1))) {
    memcpy(copy, bytes, size_bytes);
  }
  if (!copy) return laci_fail_memory(err, name ? name : "a new stored tensor");
  *tensor = (laci_edit_tensor){name, dtype, *shape, copy, (size_t)in_file};
  return LAC_OK;
}

lac_status laci_edit_add_node(laci_onnx_edit *edit, const laci_edit_node *node, lac_error *err) {
  void *array = edit->nodes;
  laci_edit_node *to =
      node->output ? append_item(&array, &edit->n_nodes, &edit->node_capacity, sizeof *to) : NULL;
  edit->nodes = array;
  if (!to) return laci_fail_memory(err, "a new node");
  *to = *node;
  return LAC_OK;
}

static lac_status append_change(laci_onnx_edit *edit, const laci_edit_change *change,
                                lac_error *err) {
  void *array = edit->changes;
  laci_edit_change *to =
      change->to ? append_item(&array, &edit->n_changes, &edit->change_capacity, sizeof *to) : NULL;
  edit->changes = array;
  if (!to) return laci_fail_memory(err, "a change of the file");
  *to = *change;
  return LAC_OK;
}

lac_status laci_edit_redirect_value(laci_onnx_edit *edit, const char *from, const char *to,
                                    lac_error *err) {
  return append_change(edit, &(laci_edit_change){.from = from, .to = to}, err);
}

lac_status laci_edit_set_input(laci_onnx_edit *edit, const char *output, int port,
                               const char *input, lac_error *err) {
  return append_change(edit, &(laci_edit_change){.node = output, .port = port, .to = input}, err);
}

lac_status laci_edit_drop_attribute(laci_onnx_edit *edit, const char *output, const char *name,
                                    lac_error *err) {
  void *array = edit->attributes;
  laci_edit_attribute *to =
      append_item(&array, &edit->n_attributes, &edit->attribute_capacity, sizeof *to);
  edit->attributes = array;
  if (!to) return laci_fail_memory(err, "a change of the file");
  *to = (laci_edit_attribute){output, name};
  return LAC_OK;
}

void laci_edit_set_opset_version(laci_onnx_edit *edit, int64_t version) { edit->opset = version; }

lac_status laci_edit_remove_node(laci_onnx_edit *edit, const char *output, const char *instead,
                                 lac_error *err) {
  void *array = edit->removals;
  laci_edit_removal *to =
      append_item(&array, &edit->n_removals, &edit->removal_capacity, sizeof *to);
  edit->removals = array;
  if (!to) return laci_fail_memory(err, "a change of the file");
  *to = (laci_edit_removal){output, instead};
  return LAC_OK;
}

lac_status laci_edit_replace_value(laci_onnx_edit *edit, const char *value, lac_error *err) {
  void *array = edit->replaced;
  const char **to = append_item(&array, &edit->n_replaced, &edit->replaced_capacity, sizeof *to);
  edit->replaced = array;
  if (!to) return laci_fail_memory(err, "a change of the file");
  *to = value;
  return LAC_OK;
}

const char *const *laci_edit_node_outputs(const laci_onnx_edit *edit, const char *value,
                                          size_t *n) {
  int producer = laci_edit_find_producer(edit, value);
  *n = producer < 0 ? 0 : edit->file->model->graph->node[producer]->n_output;
  return producer < 0 ? NULL
                      : (const char *const *)edit->file->model->graph->node[producer]->output;
}

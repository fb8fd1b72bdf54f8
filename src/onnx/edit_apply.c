/* SPDX-License-Identifier: Apache-2.0
 * Applies an edit: builds new arrays of the decoded file next to the old ones, and exchanges them,
 * so that everything can be undone. Strings and messages that are in both arrays are shared, not
 * copied. */
#include "onnx/edit_in.h"

#include <string.h>

#include "base/error.h"
#include "onnx/import_in.h"

typedef laci_edit_applier applier;

/* ---- Memory that is freed when the edit is kept, or when it is undone ---- */

bool laci_edit_register_block(laci_onnx_edit *edit, void *block, ProtobufCMessage *message,
                              bool is_fresh) {
  void *array = edit->blocks;
  bool ok = laci_grow(&array, edit->n_blocks, &edit->block_capacity, sizeof *edit->blocks);
  edit->blocks = array;
  if (ok) edit->blocks[edit->n_blocks++] = (laci_edit_block){block, message, is_fresh};
  return ok;
}

void *laci_edit_alloc_block(laci_onnx_edit *edit, size_t size_bytes) {
  void *block = laci_onnx_block_alloc(size_bytes);
  if (block && laci_edit_register_block(edit, block, NULL, true)) return block;
  laci_onnx_block_free(block);
  return NULL;
}

char *laci_edit_copy_text(laci_onnx_edit *edit, const char *text) {
  size_t n = strlen(text);
  char *copy = laci_edit_alloc_block(edit, n + 1);
  if (copy) memcpy(copy, text, n + 1);
  return copy;
}

lac_status laci_edit_replace_array(laci_onnx_edit *edit, void *place, size_t *count, void *fresh,
                                   size_t n, lac_error *err) {
  void *array = edit->swaps, *old;
  bool ok = laci_grow(&array, edit->n_swaps, &edit->swap_capacity, sizeof *edit->swaps);
  edit->swaps = array;
  memcpy(&old, place, sizeof old);
  if (!ok || (old && !laci_edit_register_block(edit, old, NULL, false))) {
    return laci_fail_memory(err, "a change of the file");
  }
  edit->swaps[edit->n_swaps++] = (laci_edit_replaced_array){place, old, fresh, count, *count};
  memcpy(place, &fresh, sizeof fresh);
  *count = n;
  return LAC_OK;
}

static bool add_name_once(laci_name_table *table, const char *name, int id) {
  if (!name || !name[0] || laci_name_find(table, name) >= 0) return true;
  return laci_name_add(table, name, id);
}

/* ---- Inputs and outputs of nodes that are kept ---- */

/** Returns the index of the node that will output a value after the edit; -1: there is none. */
static int find_producer_after_edit(const applier *a, const char *value) {
  for (size_t at = 0; at < a->edit->n_removals; at++) {
    if (strcmp(a->edit->removals[at].output, value) == 0)
      return laci_edit_find_producer(a->edit, a->edit->removals[at].instead);
  }
  return laci_edit_find_producer(a->edit, value);
}

static bool has_redirected_input(const applier *a, const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_input; i++) {
    if (laci_name_find(&a->redirects, node->input[i]) >= 0) return true;
  }
  return false;
}

/** Replaces the node's list of inputs by a new array with n entries. */
static lac_status resize_input_list(applier *a, Onnx__NodeProto *node, size_t n, lac_error *err) {
  size_t old_n = node->n_input;
  char **fresh = laci_edit_alloc_block(a->edit, (n + 1) * sizeof *fresh);
  if (!fresh) return laci_fail_memory(err, "a node's inputs");
  for (size_t i = 0; i < n; i++) {
    if (i < old_n) {
      fresh[i] = node->input[i];
      continue;
    }
    fresh[i] = laci_edit_copy_text(a->edit, "");
    if (!fresh[i]) return laci_fail_memory(err, "a node's inputs");
  }
  return laci_edit_replace_array(a->edit, &node->input, &node->n_input, fresh, n, err);
}

/** Replaces the name in an entry of a new array by `text`. */
static lac_status replace_name_in_list(applier *a, char **entry, const char *text, lac_error *err) {
  if (!add_name_once(&a->dropped_reads, *entry, 0) ||
      !laci_edit_register_block(a->edit, *entry, NULL, false))
    return laci_fail_memory(err, "a node's inputs");
  *entry = laci_edit_copy_text(a->edit, text);
  return *entry ? LAC_OK : laci_fail_memory(err, "a node's inputs");
}

static lac_status redirect_values(applier *a, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < a->graph->n_node && !st; at++) {
    Onnx__NodeProto *node = a->graph->node[at];
    if (a->is_removed[at] || !has_redirected_input(a, node)) continue;
    st = resize_input_list(a, node, node->n_input, err);
    for (size_t i = 0; i < node->n_input && !st; i++) {
      int change = laci_name_find(&a->redirects, node->input[i]);
      if (change >= 0)
        st = replace_name_in_list(a, &node->input[i], a->edit->changes[change].to, err);
    }
  }
  return st;
}

static lac_status apply_input_changes(applier *a, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < a->edit->n_changes && !st; at++) {
    const laci_edit_change *change = &a->edit->changes[at];
    if (!change->node) continue;
    Onnx__NodeProto *node = a->graph->node[find_producer_after_edit(a, change->node)];
    size_t port = (size_t)change->port, n = node->n_input;
    st = resize_input_list(a, node, port < n ? n : port + 1, err);
    if (!st) st = replace_name_in_list(a, &node->input[port], change->to, err);
  }
  return st;
}

/** Removes the nodes of edit->removals. The node that computed the operand of such a node outputs
 * the removed node's result instead. */
static lac_status remove_dropped_nodes(applier *a, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < a->edit->n_removals && !st; at++) {
    const laci_edit_removal *removal = &a->edit->removals[at];
    Onnx__NodeProto *goes = a->graph->node[laci_edit_find_producer(a->edit, removal->output)];
    Onnx__NodeProto *stays = a->graph->node[laci_edit_find_producer(a->edit, removal->instead)];
    char **fresh = laci_edit_alloc_block(a->edit, (stays->n_output + 1) * sizeof *fresh);
    bool ok = fresh && laci_edit_register_block(a->edit, NULL, &goes->base, false);
    for (size_t i = 0; i < goes->n_input && ok; i++)
      ok = add_name_once(&a->dropped_reads, goes->input[i], 0);
    for (size_t i = 0; i < stays->n_output && ok; i++) {
      bool is_it = strcmp(stays->output[i], removal->instead) == 0;
      fresh[i] = is_it ? laci_edit_copy_text(a->edit, removal->output) : stays->output[i];
      ok = fresh[i] &&
           (!is_it || (add_name_once(&a->dropped_reads, removal->instead, 0) &&
                       laci_edit_register_block(a->edit, stays->output[i], NULL, false)));
    }
    st = ok ? laci_edit_replace_array(a->edit, &stays->output, &stays->n_output, fresh,
                                      stays->n_output, err)
            : laci_fail_memory(err, "a node's outputs");
  }
  return st;
}

/* ---- New nodes ---- */

static bool set_text_field(char **field, const char *text) {
  *field = laci_onnx_block_alloc(strlen(text) + 1);
  if (*field) memcpy(*field, text, strlen(text) + 1);
  return *field != NULL;
}

static bool add_attribute(Onnx__NodeProto *node, const char *name, int64_t number) {
  node->attribute = laci_onnx_block_alloc(sizeof *node->attribute);
  Onnx__AttributeProto *attr = node->attribute ? laci_onnx_block_alloc(sizeof *attr) : NULL;
  if (!attr) return false;
  *attr = (Onnx__AttributeProto)ONNX__ATTRIBUTE_PROTO__INIT;
  node->attribute[node->n_attribute++] = attr;
  attr->has_type = attr->has_i = true;
  attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  attr->i = number;
  return set_text_field(&attr->name, name);
}

/** Allocates and fills the message of a new node. All its fields are valid from the start, so that
 * it can be freed at any time. */
static Onnx__NodeProto *create_node_message(applier *a, const laci_edit_node *from) {
  Onnx__NodeProto *node = laci_onnx_block_alloc(sizeof *node);
  if (!node) return NULL;
  *node = (Onnx__NodeProto)ONNX__NODE_PROTO__INIT;
  if (!laci_edit_register_block(a->edit, NULL, &node->base, true)) {
    laci_onnx_block_free(node);
    return NULL;
  }
  const char *name =
      from->name ? from->name : laci_edit_make_unique_name(a->edit, from->output, "_node");
  node->input = laci_onnx_block_alloc(LACI_EDIT_INPUTS * sizeof *node->input);
  node->output = laci_onnx_block_alloc(LACI_EDIT_OUTPUTS * sizeof *node->output);
  bool ok = name && node->input && node->output && set_text_field(&node->op_type, from->type) &&
            set_text_field(&node->name, name);
  for (int i = 0; i < from->n_inputs && ok; i++) {
    ok = set_text_field(&node->input[i], from->inputs[i]);
    node->n_input += ok;
  }
  if (ok) ok = set_text_field(&node->output[0], from->output);
  node->n_output = ok;
  for (int i = 0; ok && i < LACI_EDIT_OUTPUTS - 1 && from->others[i]; i++) {
    ok = set_text_field(&node->output[i + 1], from->others[i]);
    node->n_output += ok;
  }
  if (ok && from->attribute) ok = add_attribute(node, from->attribute, from->number);
  return ok ? node : NULL;
}

/** Returns the slot of a new node, a position between the old nodes: 2 * k if it is added before
 * node k, 2 * k + 1 if it is added after node k; -1: before all nodes. */
static int find_slot_of_new_node(const applier *a, const laci_edit_node *node) {
  int place = find_producer_after_edit(a, node->after ? node->after : node->before);
  if (place < 0) return -1;
  return node->after ? 2 * place + 1 : 2 * place;
}

static lac_status append_new_nodes_of_slot(applier *a, int slot, lac_error *err) {
  const laci_onnx_edit *edit = a->edit;
  for (; a->next < edit->n_nodes; a->next++) {
    const laci_edit_node *node = &edit->nodes[a->order[a->next]];
    if (find_slot_of_new_node(a, node) > slot) break;
    a->list[a->n_list] = create_node_message(a, node);
    if (!a->list[a->n_list++]) return laci_fail_memory(err, "a new node");
  }
  return LAC_OK;
}

/** Returns the indices of new nodes sorted by slot, the position between old nodes
 * (find_slot_of_new_node). Nodes of one slot are in the order in which they were added. */
static size_t *sort_new_nodes_by_slot(const applier *a) {
  const laci_onnx_edit *edit = a->edit;
  size_t n_slots = 2 * a->graph->n_node + 2, at = 0;
  size_t *first = laci_alloc(n_slots + 1, sizeof *first);
  size_t *order = laci_alloc(edit->n_nodes + 1, sizeof *order);
  for (size_t k = 0; first && order && k < edit->n_nodes; k++)
    first[find_slot_of_new_node(a, &edit->nodes[k]) + 2]++;
  for (size_t s = 1; first && order && s <= n_slots; s++) first[s] += first[s - 1];
  for (at = 0; first && order && at < edit->n_nodes; at++)
    order[first[find_slot_of_new_node(a, &edit->nodes[at]) + 1]++] = at;
  if (!first) {
    laci_free(order);
    order = NULL;
  }
  laci_free(first);
  return order;
}

static lac_status rebuild_node_list(applier *a, lac_error *err) {
  Onnx__GraphProto *graph = a->graph;
  a->order = sort_new_nodes_by_slot(a);
  a->list =
      laci_edit_alloc_block(a->edit, (graph->n_node + a->edit->n_nodes + 1) * sizeof *a->list);
  lac_status st = a->list && a->order ? LAC_OK : laci_fail_memory(err, "the nodes of the file");
  if (!st) st = append_new_nodes_of_slot(a, -1, err);
  for (size_t at = 0; at < graph->n_node && !st; at++) {
    st = append_new_nodes_of_slot(a, (int)(2 * at), err);
    if (!st && !a->is_removed[at]) a->list[a->n_list++] = graph->node[at];
    if (!st) st = append_new_nodes_of_slot(a, (int)(2 * at + 1), err);
  }
  laci_free(a->order);
  return st ? st
            : laci_edit_replace_array(a->edit, &graph->node, &graph->n_node, a->list, a->n_list,
                                      err);
}

/* ---- Stored tensors that nothing reads any more ---- */

static bool mark_names_read_in_graph(applier *a, const Onnx__GraphProto *graph) {
  bool ok = true;
  for (size_t at = 0; at < graph->n_output && ok; at++)
    ok = add_name_once(&a->read, graph->output[at]->name, 0);
  for (size_t at = 0; at < graph->n_node && ok; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t i = 0; i < node->n_input && ok; i++)
      ok = add_name_once(&a->read, node->input[i], 0);
    for (size_t i = 0; i < node->n_attribute && ok; i++) {
      const Onnx__AttributeProto *attr = node->attribute[i];
      if (attr->g) ok = mark_names_read_in_graph(a, attr->g);
      for (size_t k = 0; k < attr->n_graphs && ok; k++)
        ok = mark_names_read_in_graph(a, attr->graphs[k]);
    }
  }
  return ok;
}

static bool mark_bound_names_read(applier *a, Onnx__StringStringEntryProto *const *bindings,
                                  size_t n) {
  bool ok = true;
  for (size_t at = 0; at < n && ok; at++)
    ok = add_name_once(&a->read, bindings[at]->key, 0) &&
         add_name_once(&a->read, bindings[at]->value, 0);
  return ok;
}

/** Marks the values that the file names outside of the network's nodes (ties.c) as read, so that
 * they are not removed. */
static bool mark_names_used_elsewhere(applier *a, const Onnx__ModelProto *model) {
  bool ok = true;
  for (size_t at = 0; at < model->graph->n_quantization_annotation && ok; at++) {
    const Onnx__TensorAnnotation *note_of = model->graph->quantization_annotation[at];
    ok = add_name_once(&a->read, note_of->tensor_name, 0);
    for (size_t k = 0; k < note_of->n_quant_parameter_tensor_names && ok; k++)
      ok = add_name_once(&a->read, note_of->quant_parameter_tensor_names[k]->value, 0);
  }
  for (size_t at = 0; at < model->n_training_info && ok; at++) {
    const Onnx__TrainingInfoProto *info = model->training_info[at];
    ok = (!info->initialization || mark_names_read_in_graph(a, info->initialization)) &&
         (!info->algorithm || mark_names_read_in_graph(a, info->algorithm)) &&
         mark_bound_names_read(a, info->initialization_binding, info->n_initialization_binding) &&
         mark_bound_names_read(a, info->update_binding, info->n_update_binding);
  }
  return ok;
}

static bool is_name_unread(const applier *a, const char *name) {
  return name && laci_name_find(&a->dropped_reads, name) >= 0 && laci_name_find(&a->read, name) < 0;
}

static lac_status remove_unread_constants(applier *a, lac_error *err) {
  Onnx__GraphProto *graph = a->graph;
  size_t n = 0;
  Onnx__NodeProto **list = laci_edit_alloc_block(a->edit, (graph->n_node + 1) * sizeof *list);
  if (!list) return laci_fail_memory(err, "the nodes of the file");
  for (size_t at = 0; at < graph->n_node; at++) {
    Onnx__NodeProto *node = graph->node[at];
    bool goes = laci_import_find_constant_attr(node) && is_name_unread(a, node->output[0]);
    if (!goes) list[n++] = node;
    else if (!laci_edit_register_block(a->edit, NULL, &node->base, false))
      return laci_fail_memory(err, "the nodes of the file");
  }
  return laci_edit_replace_array(a->edit, &graph->node, &graph->n_node, list, n, err);
}

static Onnx__TensorProto *create_tensor_message(applier *a, const laci_edit_tensor *from) {
  Onnx__TensorProto *tensor = laci_onnx_block_alloc(sizeof *tensor);
  if (!tensor) return NULL;
  *tensor = (Onnx__TensorProto)ONNX__TENSOR_PROTO__INIT;
  if (!laci_edit_register_block(a->edit, NULL, &tensor->base, true)) {
    laci_onnx_block_free(tensor);
    return NULL;
  }
  tensor->dims = laci_onnx_block_alloc((size_t)from->shape.rank * sizeof *tensor->dims);
  tensor->raw_data.data = laci_onnx_block_alloc(from->size_bytes);
  if (!tensor->dims || !tensor->raw_data.data || !set_text_field(&tensor->name, from->name))
    return NULL;
  tensor->n_dims = (size_t)from->shape.rank;
  for (int axis = 0; axis < from->shape.rank; axis++) tensor->dims[axis] = from->shape.dims[axis];
  tensor->has_data_type = tensor->has_raw_data = true;
  tensor->data_type = (int32_t)from->dtype;
  tensor->raw_data.len = from->size_bytes;
  if (from->size_bytes) memcpy(tensor->raw_data.data, from->bytes, from->size_bytes);
  return tensor;
}

static lac_status rebuild_initializer_list(applier *a, lac_error *err) {
  Onnx__GraphProto *graph = a->graph;
  size_t n = 0;
  Onnx__TensorProto **list = laci_edit_alloc_block(
      a->edit, (graph->n_initializer + a->edit->n_tensors + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t at = 0; at < graph->n_initializer && ok; at++) {
    Onnx__TensorProto *tensor = graph->initializer[at];
    if (!is_name_unread(a, tensor->name)) list[n++] = tensor;
    else ok = laci_edit_register_block(a->edit, NULL, &tensor->base, false);
  }
  for (size_t at = 0; at < a->edit->n_tensors && ok; at++) {
    list[n] = create_tensor_message(a, &a->edit->tensors[at]);
    ok = list[n++] != NULL;
  }
  if (!ok) return laci_fail_memory(err, "the stored tensors of the file");
  return laci_edit_replace_array(a->edit, &graph->initializer, &graph->n_initializer, list, n, err);
}

static bool set_type_from_tensor(Onnx__ValueInfoProto *info, const laci_edit_tensor *from) {
  info->type = laci_onnx_block_alloc(sizeof *info->type);
  if (!info->type) return false;
  *info->type = (Onnx__TypeProto)ONNX__TYPE_PROTO__INIT;
  Onnx__TypeProto__Tensor *tensor = laci_onnx_block_alloc(sizeof *tensor);
  if (!tensor) return false;
  *tensor = (Onnx__TypeProto__Tensor)ONNX__TYPE_PROTO__TENSOR__INIT;
  info->type->tensor_type = tensor;
  tensor->has_elem_type = true;
  tensor->elem_type = (int32_t)from->dtype;
  Onnx__TensorShapeProto *shape = laci_onnx_block_alloc(sizeof *shape);
  if (!shape) return false;
  *shape = (Onnx__TensorShapeProto)ONNX__TENSOR_SHAPE_PROTO__INIT;
  tensor->shape = shape;
  shape->dim = laci_onnx_block_alloc((size_t)from->shape.rank * sizeof *shape->dim);
  for (int axis = 0; shape->dim && axis < from->shape.rank; axis++) {
    Onnx__TensorShapeProto__Dimension *dim = laci_onnx_block_alloc(sizeof *dim);
    if (!dim) return false;
    *dim = (Onnx__TensorShapeProto__Dimension)ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    dim->has_dim_value = true;
    dim->dim_value = from->shape.dims[axis];
    shape->dim[shape->n_dim++] = dim;
  }
  return shape->dim != NULL;
}

static Onnx__ValueInfoProto *create_type_message(applier *a, const laci_edit_tensor *from) {
  Onnx__ValueInfoProto *info = laci_onnx_block_alloc(sizeof *info);
  if (!info) return NULL;
  *info = (Onnx__ValueInfoProto)ONNX__VALUE_INFO_PROTO__INIT;
  if (!laci_edit_register_block(a->edit, NULL, &info->base, true)) {
    laci_onnx_block_free(info);
    return NULL;
  }
  return set_text_field(&info->name, from->name) && set_type_from_tensor(info, from) ? info : NULL;
}

/** Lists each new stored tensor as an input of the graph, too. Files of IR versions below 4 must do
 * so. */
static lac_status list_new_tensors_as_inputs(applier *a, lac_error *err) {
  Onnx__GraphProto *graph = a->graph;
  if (a->edit->n_tensors == 0 || a->edit->file->model->ir_version >= LACI_FIRST_IR_WITH_DEFAULTS)
    return LAC_OK;
  size_t n = graph->n_input;
  Onnx__ValueInfoProto **list =
      laci_edit_alloc_block(a->edit, (n + a->edit->n_tensors) * sizeof *list);
  bool ok = list != NULL;
  if (ok && n) memcpy(list, graph->input, n * sizeof *list);
  for (size_t at = 0; at < a->edit->n_tensors && ok; at++) {
    list[n] = create_type_message(a, &a->edit->tensors[at]);
    ok = list[n++] != NULL;
  }
  if (!ok) return laci_fail_memory(err, "the inputs of the file");
  return laci_edit_replace_array(a->edit, &graph->input, &graph->n_input, list, n, err);
}

/** Removes the declared types of values that no longer exist. In files of IR versions below 4, also
 * removes the inputs that list removed stored tensors. */
static lac_status remove_types_of_missing_values(applier *a, Onnx__ValueInfoProto ***types,
                                                 size_t *n_types, lac_error *err) {
  size_t n = 0;
  Onnx__ValueInfoProto **list = laci_edit_alloc_block(a->edit, (*n_types + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t at = 0; at < *n_types && ok; at++) {
    if (!is_name_unread(a, (*types)[at]->name)) list[n++] = (*types)[at];
    else ok = laci_edit_register_block(a->edit, NULL, &(*types)[at]->base, false);
  }
  if (!ok) return laci_fail_memory(err, "the types of the file");
  return laci_edit_replace_array(a->edit, types, n_types, list, n, err);
}

/* ---- Data files ---- */

static lac_status mark_external_tensor_as_present(Onnx__TensorProto *tensor, void *context,
                                                  lac_error *err) {
  applier *a = context;
  laci_external *external = laci_onnx_find_external(a->edit->file, tensor);
  (void)err;
  if (external) external->file = -1;
  return LAC_OK;
}

/** Removes the records of stored tensors that are removed. Their data files will be written without
 * their bytes. */
static lac_status remove_records_of_removed_tensors(applier *a, lac_error *err) {
  laci_onnx *file = a->edit->file;
  laci_onnx_edit *edit = a->edit;
  lac_status st = LAC_OK;
  if (!file->n_externals) return LAC_OK;
  laci_external *kept = laci_alloc(file->n_externals, sizeof *kept);
  edit->was_compact = laci_alloc(file->n_data_files, sizeof *edit->was_compact);
  if (!kept || !edit->was_compact) {
    laci_free(kept);
    return laci_fail_memory(err, "the data files");
  }
  memcpy(kept, file->externals, file->n_externals * sizeof *kept);
  for (size_t at = 0; at < file->n_data_files && !st; at++) {
    edit->was_compact[at] = file->data_files[at].is_compact;
    file->data_files[at].location = laci_arena_text(&file->arena, file->data_files[at].location);
    if (!file->data_files[at].location) st = laci_fail_memory(err, "the data files");
  }
  for (size_t at = 0; at < edit->n_blocks && !st; at++) {
    const laci_edit_block *b = &edit->blocks[at];
    if (b->message && !b->is_fresh)
      st = laci_onnx_visit_tensors(b->message, mark_external_tensor_as_present, a, err);
  }
  size_t n = 0;
  laci_external *all = file->externals;
  for (size_t at = 0; at < file->n_externals; at++) {
    laci_external whole = kept[at];
    if (all[at].file < 0) file->data_files[whole.file].is_compact = true;
    else kept[n++] = whole;
    all[at] = whole.file >= 0 ? whole : all[at];
  }
  edit->externals = all;
  edit->n_externals = file->n_externals;
  file->externals = kept;
  file->n_externals = n;
  file->external_capacity = edit->n_externals;
  return st;
}

/* ---- Applying the whole edit ---- */

static lac_status mark_removals_and_redirects(applier *a, lac_error *err) {
  const laci_onnx_edit *edit = a->edit;
  bool ok = mark_names_used_elsewhere(a, edit->file->model);
  a->is_removed = laci_alloc(a->graph->n_node + 1, sizeof *a->is_removed);
  if (!a->is_removed) return laci_fail_memory(err, "a change of the file");
  for (size_t at = 0; at < edit->n_changes && ok; at++) {
    const laci_edit_change *change = &edit->changes[at];
    if (change->from) ok = add_name_once(&a->redirects, change->from, (int)at);
  }
  for (size_t at = 0; at < edit->n_removals; at++)
    a->is_removed[laci_edit_find_producer(edit, edit->removals[at].output)] = true;
  return ok ? LAC_OK : laci_fail_memory(err, "a change of the file");
}

lac_status laci_onnx_edit_apply(laci_onnx_edit *edit, laci_graph **graph, lac_error *err) {
  applier a = {.edit = edit, .graph = edit->file->model->graph};
  *graph = NULL;
  lac_status st = mark_removals_and_redirects(&a, err);
  if (!st) st = laci_edit_apply_attribute_and_opset_changes(&a, err);
  if (!st) st = remove_dropped_nodes(&a, err);
  if (!st && edit->n_replaced) st = laci_edit_mark_replaced_nodes(&a, err);
  if (!st && edit->n_inner) st = laci_edit_apply_function_changes(&a, err);
  if (!st) st = redirect_values(&a, err);
  if (!st) st = apply_input_changes(&a, err);
  if (!st) st = rebuild_node_list(&a, err);
  if (!st && !mark_names_read_in_graph(&a, a.graph))
    st = laci_fail_memory(err, "a change of the file");
  if (!st) st = remove_unread_constants(&a, err);
  if (!st) st = rebuild_initializer_list(&a, err);
  if (!st) st = list_new_tensors_as_inputs(&a, err);
  if (!st)
    st = remove_types_of_missing_values(&a, &a.graph->value_info, &a.graph->n_value_info, err);
  if (!st) st = remove_types_of_missing_values(&a, &a.graph->input, &a.graph->n_input, err);
  if (!st) st = remove_records_of_removed_tensors(&a, err);
  if (!st) st = laci_onnx_import(edit->file, graph, err);
  if (st) laci_edit_restore_arrays(edit);
  laci_name_table_clear(&a.redirects);
  laci_name_table_clear(&a.dropped_reads);
  laci_name_table_clear(&a.read);
  laci_free(a.is_removed);
  return st;
}

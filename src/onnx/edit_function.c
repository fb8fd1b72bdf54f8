/* SPDX-License-Identifier: Apache-2.0
 * Makes a value that a local function computes an input of the function. Each call then passes its
 * own stored tensor.
 *
 * Inlining names the values of a call CALL/VALUE (function.c), and by these names they are found.
 * Nodes and inputs of the function that nothing reads any more are removed. */
#include "onnx/edit_in.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- Callers and readers ---- */

static bool has_name_and_domain_of(const char *name, const char *domain,
                                   const Onnx__FunctionProto *f) {
  return strcmp(laci_onnx_text_or_empty(name), laci_onnx_text_or_empty(f->name)) == 0 &&
         strcmp(laci_onnx_canonical_domain(domain), laci_onnx_canonical_domain(f->domain)) == 0;
}

static bool is_call_of_function(const Onnx__NodeProto *node, const Onnx__FunctionProto *f) {
  return has_name_and_domain_of(node->op_type, node->domain, f);
}

static bool has_call_in_graph(const Onnx__GraphProto *graph, const Onnx__FunctionProto *f);

static bool has_call_in_bodies(const Onnx__NodeProto *node, const Onnx__FunctionProto *f) {
  bool found = false;
  for (size_t i = 0; i < node->n_attribute && !found; i++) {
    const Onnx__AttributeProto *attr = node->attribute[i];
    if (attr->g) found = has_call_in_graph(attr->g, f);
    for (size_t k = 0; k < attr->n_graphs && !found; k++)
      found = has_call_in_graph(attr->graphs[k], f);
  }
  return found;
}

static bool has_call_in_graph(const Onnx__GraphProto *graph, const Onnx__FunctionProto *f) {
  bool found = false;
  for (size_t at = 0; at < graph->n_node && !found; at++)
    found = is_call_of_function(graph->node[at], f) || has_call_in_bodies(graph->node[at], f);
  return found;
}

/* Do only nodes of the main graph call the function, each with a name of its own, and is it the
 * only function of that name? */
static bool is_called_only_from_main_graph(const laci_onnx_edit *edit,
                                           const Onnx__FunctionProto *f) {
  const Onnx__ModelProto *model = edit->file->model;
  bool plain = model->n_training_info == 0;
  for (size_t k = 0; k < model->n_functions && plain; k++) {
    const Onnx__FunctionProto *other = model->functions[k];
    plain = other == f || !has_name_and_domain_of(other->name, other->domain, f);
    for (size_t at = 0; at < other->n_node && plain; at++)
      plain = !is_call_of_function(other->node[at], f) && !has_call_in_bodies(other->node[at], f);
  }
  for (size_t at = 0; at < model->graph->n_node && plain; at++) {
    const Onnx__NodeProto *node = model->graph->node[at];
    plain = !has_call_in_bodies(node, f) &&
            (!is_call_of_function(node, f) || laci_onnx_text_or_empty(node->name)[0]);
  }
  return plain;
}

static bool is_read_by_graph(const Onnx__GraphProto *graph, const char *name);

static bool is_read_by_node(const Onnx__NodeProto *node, const char *name) {
  bool reads = false;
  for (size_t i = 0; i < node->n_input && !reads; i++) reads = strcmp(node->input[i], name) == 0;
  for (size_t i = 0; i < node->n_attribute && !reads; i++) {
    const Onnx__AttributeProto *attr = node->attribute[i];
    if (attr->g) reads = is_read_by_graph(attr->g, name);
    for (size_t k = 0; k < attr->n_graphs && !reads; k++)
      reads = is_read_by_graph(attr->graphs[k], name);
  }
  return reads;
}

static bool is_read_by_graph(const Onnx__GraphProto *graph, const char *name) {
  bool reads = false;
  for (size_t at = 0; at < graph->n_output && !reads; at++)
    reads = strcmp(laci_onnx_text_or_empty(graph->output[at]->name), name) == 0;
  for (size_t at = 0; at < graph->n_node && !reads; at++)
    reads = is_read_by_node(graph->node[at], name);
  return reads;
}

static int find_producer_in_function(const Onnx__FunctionProto *f, const char *name) {
  for (size_t at = 0; at < f->n_node; at++) {
    for (size_t i = 0; i < f->node[at]->n_output; i++) {
      if (strcmp(f->node[at]->output[i], name) == 0) return (int)at;
    }
  }
  return -1;
}

static bool is_function_output(const Onnx__FunctionProto *f, const char *name) {
  bool found = false;
  for (size_t at = 0; at < f->n_output && !found; at++) found = strcmp(f->output[at], name) == 0;
  return found;
}

/* ---- Changes ---- */

bool laci_edit_find_call_value(const laci_onnx_edit *edit, const char *value,
                               laci_edit_call_value *found) {
  const Onnx__ModelProto *model = edit->file->model;
  for (size_t at = 0; at < model->graph->n_node; at++) {
    const Onnx__NodeProto *node = model->graph->node[at];
    const char *name = laci_onnx_text_or_empty(node->name);
    const size_t n = strlen(name);
    if (!n || strncmp(value, name, n) != 0 || value[n] != '/') continue;
    for (size_t k = 0; k < model->n_functions; k++) {
      const Onnx__FunctionProto *f = model->functions[k];
      const char *inner = value + n + 1;
      int producer = is_call_of_function(node, f) ? find_producer_in_function(f, inner) : -1;
      if (producer < 0 || is_function_output(f, inner) || f->node[producer]->n_output != 1)
        continue;
      *found = (laci_edit_call_value){(int)k, (int)at, f->node[producer]->output[0]};
      return is_called_only_from_main_graph(edit, f);
    }
  }
  return false;
}

const char *laci_edit_find_call_value_name(laci_onnx_edit *edit, const laci_edit_call_value *value,
                                           int at, int *call) {
  const Onnx__ModelProto *model = edit->file->model;
  for (size_t n = 0; n < model->graph->n_node; n++) {
    const Onnx__NodeProto *node = model->graph->node[n];
    if (!is_call_of_function(node, model->functions[value->function]) || at-- > 0) continue;
    const size_t size = strlen(node->name) + strlen(value->value) + 2;
    char *name = laci_arena_alloc(&edit->arena, size, 1);
    if (name) (void)snprintf(name, size, "%s/%s", node->name, value->value);
    *call = (int)n;
    return name;
  }
  return NULL;
}

lac_status laci_edit_replace_call_value(laci_onnx_edit *edit, const laci_edit_call_value *value,
                                        const char *tensor, lac_error *err) {
  void *array = edit->inner;
  bool ok = tensor && laci_grow(&array, edit->n_inner, &edit->inner_capacity, sizeof *edit->inner);
  edit->inner = array;
  if (!ok) return laci_fail_memory(err, "a change of a function");
  edit->inner[edit->n_inner++] = (laci_edit_call_tensor){
      edit->file->model->functions[value->function], value->value, value->call, tensor};
  return LAC_OK;
}

/* ---- One function ---- */

/** A function that is changed, and what is changed in it. */
typedef struct change {
  laci_edit_applier *a;
  Onnx__FunctionProto *f;
  bool *is_removed;   /* [n_node] true: the node is removed */
  bool *keeps;        /* [n_input] true: the input is kept */
  const char **fresh; /* [n_fresh] names of the values that become inputs */
  size_t n_fresh, n_kept;
} change;

static bool is_new_input(const change *c, const char *name) {
  bool found = false;
  for (size_t k = 0; k < c->n_fresh && !found; k++) found = strcmp(c->fresh[k], name) == 0;
  return found;
}

static bool is_read_after_removal(const change *c, const char *name) {
  bool reads = is_function_output(c->f, name);
  for (size_t at = 0; at < c->f->n_node && !reads; at++)
    reads = !c->is_removed[at] && is_read_by_node(c->f->node[at], name);
  return reads;
}

/* Marks the nodes to be removed: those whose outputs become inputs, and those that only such nodes
 * read. It goes from the last node to the first, since a node's readers come after it. Nodes that
 * nothing read before the edit stay. */
static void mark_nodes_to_remove(change *c) {
  for (size_t k = c->f->n_node; k-- > 0;) {
    const Onnx__NodeProto *node = c->f->node[k];
    bool replaced = false, needed = false, dropped_reads = false;
    for (size_t i = 0; i < node->n_output; i++) {
      const char *name = node->output[i];
      if (!name[0]) continue;
      replaced |= is_new_input(c, name);
      needed |= !is_new_input(c, name) && is_read_after_removal(c, name);
      for (size_t at = k + 1; at < c->f->n_node && !dropped_reads; at++)
        dropped_reads = c->is_removed[at] && is_read_by_node(c->f->node[at], name);
    }
    c->is_removed[k] = replaced || (dropped_reads && !needed);
  }
}

static void mark_inputs_still_read(change *c) {
  for (size_t i = 0; i < c->f->n_input; i++) {
    bool dropped_reads = false;
    for (size_t at = 0; at < c->f->n_node && !dropped_reads; at++)
      dropped_reads = c->is_removed[at] && is_read_by_node(c->f->node[at], c->f->input[i]);
    c->keeps[i] = !dropped_reads || is_read_after_removal(c, c->f->input[i]);
    c->n_kept += c->keeps[i];
  }
}

static lac_status remove_marked_nodes(change *c, lac_error *err) {
  laci_onnx_edit *edit = c->a->edit;
  size_t n = 0;
  Onnx__NodeProto **list = laci_edit_alloc_block(edit, (c->f->n_node + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t at = 0; at < c->f->n_node && ok; at++) {
    if (!c->is_removed[at]) list[n++] = c->f->node[at];
    else ok = laci_edit_register_block(edit, NULL, &c->f->node[at]->base, false);
  }
  if (!ok) return laci_fail_memory(err, "a function's nodes");
  return laci_edit_replace_array(edit, &c->f->node, &c->f->n_node, list, n, err);
}

/* Builds a list of inputs: first the old names that stay ("" if the call leaves one out), then the
 * new ones. is_caller: the list is of a calling node, else of the function. */
static lac_status replace_argument_names(const change *c, char ***names, size_t *count,
                                         const char *const *fresh, bool is_caller, lac_error *err) {
  laci_onnx_edit *edit = c->a->edit;
  size_t n = 0;
  char **list = laci_edit_alloc_block(edit, (c->n_kept + c->n_fresh + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t i = 0; i < c->f->n_input && ok; i++) {
    char *old = i < *count ? (*names)[i] : NULL;
    if (c->keeps[i]) {
      list[n] = old ? old : laci_edit_copy_text(edit, "");
      ok = list[n++] != NULL;
    } else if (old) {
      bool noted = !is_caller || !old[0] || laci_name_find(&c->a->dropped_reads, old) >= 0 ||
                   laci_name_add(&c->a->dropped_reads, old, 0);
      ok = noted && laci_edit_register_block(edit, old, NULL, false);
    }
  }
  for (size_t k = 0; k < c->n_fresh && ok; k++) {
    list[n] = laci_edit_copy_text(edit, fresh[k]);
    ok = list[n++] != NULL;
  }
  if (!ok) return laci_fail_memory(err, "a function's inputs");
  return laci_edit_replace_array(edit, names, count, list, n, err);
}

/* Returns the name of the tensor that this call passes for a new input; "": the edit has none for
 * it. */
static const char *find_tensor_passed_by_call(const change *c, int call, const char *value) {
  const laci_onnx_edit *edit = c->a->edit;
  for (size_t k = 0; k < edit->n_inner; k++) {
    const laci_edit_call_tensor *inner = &edit->inner[k];
    if (inner->function == c->f && inner->call == call && strcmp(inner->value, value) == 0)
      return inner->tensor;
  }
  return "";
}

static lac_status replace_arguments_of_calls(const change *c, lac_error *err) {
  const Onnx__GraphProto *graph = c->a->graph;
  const char **tensors = laci_alloc(c->n_fresh, sizeof *tensors);
  lac_status st = tensors ? LAC_OK : laci_fail_memory(err, "a function's calls");
  for (size_t at = 0; at < graph->n_node && !st; at++) {
    Onnx__NodeProto *node = graph->node[at];
    if (c->a->is_removed[at] || !is_call_of_function(node, c->f)) continue;
    for (size_t k = 0; k < c->n_fresh; k++)
      tensors[k] = find_tensor_passed_by_call(c, (int)at, c->fresh[k]);
    st = replace_argument_names(c, &node->input, &node->n_input, tensors, true, err);
  }
  laci_free((void *)tensors);
  return st;
}

static lac_status apply_changes_of_function(change *c, lac_error *err) {
  const laci_onnx_edit *edit = c->a->edit;
  c->is_removed = laci_alloc(c->f->n_node + 1, sizeof *c->is_removed);
  c->keeps = laci_alloc(c->f->n_input + 1, sizeof *c->keeps);
  c->fresh = laci_alloc(edit->n_inner, sizeof *c->fresh);
  lac_status st =
      c->is_removed && c->keeps && c->fresh ? LAC_OK : laci_fail_memory(err, "a function");
  for (size_t k = 0; k < edit->n_inner && !st; k++) {
    const laci_edit_call_tensor *inner = &edit->inner[k];
    if (inner->function == c->f && !is_new_input(c, inner->value))
      c->fresh[c->n_fresh++] = inner->value;
  }
  if (!st) {
    mark_nodes_to_remove(c);
    mark_inputs_still_read(c);
    st = replace_arguments_of_calls(c, err);
  }
  /* calls are changed before this, since their new lists are built from the function's old
     inputs */
  if (!st) st = remove_marked_nodes(c, err);
  if (!st) st = replace_argument_names(c, &c->f->input, &c->f->n_input, c->fresh, false, err);
  laci_free(c->is_removed);
  laci_free(c->keeps);
  laci_free((void *)c->fresh);
  return st;
}

lac_status laci_edit_apply_function_changes(laci_edit_applier *a, lac_error *err) {
  const laci_onnx_edit *edit = a->edit;
  lac_status st = LAC_OK;
  for (size_t k = 0; k < edit->n_inner && !st; k++) {
    bool done = false;
    for (size_t j = 0; j < k && !done; j++)
      done = edit->inner[j].function == edit->inner[k].function;
    change c = {.a = a, .f = edit->inner[k].function};
    if (!done) st = apply_changes_of_function(&c, err);
  }
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Finds the nodes that are removed when a computed value becomes a stored tensor or the output of
 * a new node: the node that computes it, then those whose outputs nothing else reads. */
#include "onnx/edit_in.h"

#include <string.h>

#include "base/error.h"

/** How often each name is read by the remaining and the new nodes, by bodies (subgraphs) and as
 * an output of the graph. */
typedef struct reads {
  laci_name_table ids; /* maps a name to its index in n */
  int *n;
  size_t n_names, capacity;
} reads;

static bool count_read_of_name(reads *r, const char *name) {
  if (!name || !name[0]) return true;
  int id = laci_name_find(&r->ids, name);
  if (id < 0) {
    void *array = r->n;
    bool ok = laci_grow(&array, r->n_names, &r->capacity, sizeof *r->n);
    r->n = array;
    if (!ok || !laci_name_add(&r->ids, name, (int)r->n_names)) return false;
    id = (int)r->n_names++;
    r->n[id] = 0;
  }
  r->n[id]++;
  return true;
}

static bool count_reads_of_graph(reads *r, const Onnx__GraphProto *graph) {
  bool ok = true;
  for (size_t at = 0; at < graph->n_output && ok; at++)
    ok = count_read_of_name(r, graph->output[at]->name);
  for (size_t at = 0; at < graph->n_node && ok; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t i = 0; i < node->n_input && ok; i++) ok = count_read_of_name(r, node->input[i]);
    for (size_t i = 0; i < node->n_attribute && ok; i++) {
      const Onnx__AttributeProto *attr = node->attribute[i];
      if (attr->g) ok = count_reads_of_graph(r, attr->g);
      for (size_t k = 0; k < attr->n_graphs && ok; k++)
        ok = count_reads_of_graph(r, attr->graphs[k]);
    }
  }
  return ok;
}

static bool count_reads_of_new_nodes(reads *r, const laci_onnx_edit *edit) {
  bool ok = true;
  for (size_t at = 0; at < edit->n_nodes && ok; at++) {
    const laci_edit_node *node = &edit->nodes[at];
    for (int i = 0; i < node->n_inputs && ok; i++) ok = count_read_of_name(r, node->inputs[i]);
  }
  return ok;
}

/** The search for the nodes to be removed. It goes backwards from the nodes that compute replaced
 * values. */
typedef struct leaving {
  laci_edit_applier *a;
  reads r;
  int *stack; /* [n_node] nodes to be removed whose inputs have still to be examined; each node is
                 pushed once */
  size_t n;
} leaving;

static bool is_name_read(const leaving *l, const char *name) {
  int id = laci_name_find(&l->r.ids, name);
  return (id >= 0 && l->r.n[id] > 0) || laci_name_find(&l->a->read, name) >= 0;
}

static bool is_unread_node(const leaving *l, const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_output; i++) {
    if (node->output[i][0] && is_name_read(l, node->output[i])) return false;
  }
  return true;
}

static void mark_node_removed(leaving *l, int place) {
  if (place < 0 || l->a->is_removed[place]) return;
  l->a->is_removed[place] = true;
  l->stack[l->n++] = place;
}

/** Decreases the counts of the names that a removed node read. A node whose outputs nothing reads
 * any more may be removed, too, and is pushed on the stack. */
static bool subtract_reads_of_node(leaving *l, const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_input; i++) {
    const char *name = node->input[i];
    int id = name[0] ? laci_name_find(&l->r.ids, name) : -1;
    if (id < 0) continue;
    bool known = laci_name_find(&l->a->dropped_reads, name) >= 0;
    if (!known && !laci_name_add(&l->a->dropped_reads, name, 0)) return false;
    int producer = laci_edit_find_producer(l->a->edit, name);
    if (--l->r.n[id] == 0 && producer >= 0 && is_unread_node(l, l->a->graph->node[producer]))
      mark_node_removed(l, producer);
  }
  return true;
}

lac_status laci_edit_mark_replaced_nodes(laci_edit_applier *a, lac_error *err) {
  const laci_onnx_edit *edit = a->edit;
  leaving l = {.a = a, .stack = laci_alloc(a->graph->n_node + 1, sizeof *l.stack)};
  bool ok = l.stack && count_reads_of_graph(&l.r, a->graph) && count_reads_of_new_nodes(&l.r, edit);
  for (size_t at = 0; at < edit->n_replaced && ok; at++)
    mark_node_removed(&l, laci_edit_find_producer(edit, edit->replaced[at]));
  while (ok && l.n > 0) {
    Onnx__NodeProto *node = a->graph->node[l.stack[--l.n]];
    ok = laci_edit_register_block(a->edit, NULL, &node->base, false) &&
         subtract_reads_of_node(&l, node);
  }
  laci_name_table_clear(&l.r.ids);
  laci_free(l.r.n);
  laci_free(l.stack);
  return ok ? LAC_OK : laci_fail_memory(err, "a change of the file");
}

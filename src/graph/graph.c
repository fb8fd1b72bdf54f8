/* SPDX-License-Identifier: Apache-2.0
 * Building a graph: values by name, stored tensors, nodes with their attributes.
 *
 * A value exists from the first time it is named; its producer is checked as definitions
 * come in, that it is defined at all when building ends (sort.c). Next: sort.c, then infer.c. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/names.h"
#include "graph/op.h"

struct laci_names {
  laci_name_table values, nodes;
};

lac_status laci_graph_create(laci_graph **graph, lac_error *err) {
  *graph = NULL;
  laci_graph *made = laci_alloc(1, sizeof *made);
  struct laci_names *names = made ? laci_alloc(1, sizeof *names) : NULL;
  if (!names) {
    laci_free(made);
    return laci_fail_memory(err, "a graph");
  }
  made->names = names;
  *graph = made;
  return LAC_OK;
}

void laci_graph_destroy(laci_graph *graph) {
  if (!graph) return;
  for (int at = 0; at < graph->n_values; at++) laci_buf_destroy(graph->values[at].known);
  for (int at = 0; at < graph->n_stored; at++) laci_free(graph->stored[at].owned);
  for (size_t at = 0; at < graph->n_bufs; at++) laci_buf_destroy(graph->bufs[at]);
  laci_name_table_clear(&graph->names->values);
  laci_name_table_clear(&graph->names->nodes);
  laci_free(graph->names);
  laci_free(graph->bufs);
  laci_free(graph->nodes);
  laci_free(graph->values);
  laci_free(graph->stored);
  laci_free(graph->inputs);
  laci_free(graph->outputs);
  laci_arena_clear(&graph->arena);
  laci_free(graph);
}

/* ---- Values
 * ------------------------------------------------------------------------------------------------
 */

int laci_graph_find_value(const laci_graph *graph, const char *name) {
  return laci_name_find(&graph->names->values, name);
}

lac_status laci_graph_fail_input(const laci_graph *graph, const char *name, lac_error *err) {
  enum { MOST = 8 };
  char list[768] = "", shape[128];
  size_t used = 0;
  for (int at = 0; at < graph->n_inputs && at < MOST && used < sizeof list; at++) {
    const laci_value *value = &graph->values[graph->inputs[at]];
    used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s' %s", at ? ", " : "",
                             value->name, laci_shape_text(&value->type.shape, shape, sizeof shape));
  }
  if (graph->n_inputs > MOST && used < sizeof list)
    (void)snprintf(list + used, sizeof list - used, " and %d more", graph->n_inputs - MOST);
  return laci_fail(err, LAC_NOT_FOUND, "the network has no input '%s'; it has %s", name,
                   list[0] ? list : "none");
}

int laci_graph_value(laci_graph *graph, const char *name) {
  int found = laci_graph_find_value(graph, name);
  if (found >= 0) return found;
  void *array = graph->values;
  char *copy = laci_arena_text(&graph->arena, name);
  if (!copy ||
      !laci_grow(&array, (size_t)graph->n_values, &graph->value_capacity, sizeof *graph->values)) {
    return -1;
  }
  graph->values = array;
  if (!laci_name_add(&graph->names->values, copy, graph->n_values)) return -1;
  graph->values[graph->n_values] =
      (laci_value){.name = copy, .type.shape = laci_shape_unknown(), .producer = -1, .stored = -1};
  return graph->n_values++;
}

int64_t laci_graph_symbol(laci_graph *graph) { return -(int64_t)++graph->n_symbols; }

/** Fails where a value has a definition already. */
static lac_status check_undefined(const laci_graph *graph, int value, lac_error *err) {
  const laci_value *v = &graph->values[value];
  const char *what = v->is_input        ? "a graph input"
                     : v->stored >= 0   ? "an initializer"
                     : v->producer >= 0 ? graph->nodes[v->producer].name
                                        : NULL;
  if (!what) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "value '%s' is defined twice, first by %s", v->name, what);
}

static bool append_id(int **list, int *n, size_t *capacity, int id) {
  void *array = *list;
  if (!laci_grow(&array, (size_t)*n, capacity, sizeof **list)) return false;
  *list = array;
  (*list)[(*n)++] = id;
  return true;
}

lac_status laci_graph_add_input(laci_graph *graph, const char *name, const laci_type *type,
                                lac_error *err) {
  int value = laci_graph_value(graph, name);
  if (value < 0) return laci_fail_memory(err, "a graph input");
  lac_status st = check_undefined(graph, value, err);
  if (st) return st;
  if (!append_id(&graph->inputs, &graph->n_inputs, &graph->input_capacity, value)) {
    return laci_fail_memory(err, "a graph input");
  }
  graph->values[value].is_input = true;
  if (!type) return LAC_OK;
  graph->values[value].type = *type;
  for (int axis = 0; axis < type->shape.rank; axis++) { /* symbols that come with it are in use */
    int64_t symbol = -type->shape.dims[axis];
    if (symbol > graph->n_symbols && symbol <= INT32_MAX) graph->n_symbols = (int)symbol;
  }
  return LAC_OK;
}

lac_status laci_graph_add_output(laci_graph *graph, const char *name, lac_error *err) {
  int value = laci_graph_value(graph, name);
  if (value < 0) return laci_fail_memory(err, "a graph output");
  if (graph->values[value].is_output) {
    return laci_fail(err, LAC_BAD_FILE, "graph output '%s' is listed twice", name);
  }
  if (!append_id(&graph->outputs, &graph->n_outputs, &graph->output_capacity, value)) {
    return laci_fail_memory(err, "a graph output");
  }
  graph->values[value].is_output = true;
  return LAC_OK;
}

lac_status laci_graph_add_stored(laci_graph *graph, const laci_stored *stored, int *id,
                                 lac_error *err) {
  int value = laci_graph_value(graph, stored->name);
  if (value < 0) return laci_fail_memory(err, "a stored tensor");
  lac_status st = check_undefined(graph, value, err);
  if (st) return st;
  void *array = graph->stored;
  if (!laci_grow(&array, (size_t)graph->n_stored, &graph->stored_capacity, sizeof *graph->stored)) {
    return laci_fail_memory(err, "a stored tensor");
  }
  graph->stored = array;
  laci_value *v = &graph->values[value];
  laci_stored *added = &graph->stored[graph->n_stored];
  *added = *stored;
  added->name = v->name;
  added->value = value;
  v->stored = graph->n_stored;
  v->type = (laci_type){.dtype = stored->dtype, .shape = stored->shape};
  *id = graph->n_stored++;
  return LAC_OK;
}

uint8_t *laci_stored_mut(laci_stored *stored) {
  if (!stored->owned) {
    uint8_t *copy = laci_alloc(stored->size_bytes, 1);
    if (!copy) return NULL;
    if (stored->size_bytes) memcpy(copy, stored->bytes, stored->size_bytes);
    stored->owned = copy;
    stored->bytes = copy;
  }
  return stored->owned;
}

/* ---- Nodes
 * -------------------------------------------------------------------------------------------------
 */

static const void *copy_array(laci_graph *graph, const void *from, size_t n, size_t size) {
  void *copy = laci_arena_alloc(&graph->arena, n, size);
  if (copy && n) memcpy(copy, from, n * size);
  return copy;
}

static const char *const *copy_texts(laci_graph *graph, const char *const *texts, size_t n) {
  const char **copy = laci_arena_alloc(&graph->arena, n, sizeof *copy);
  for (size_t at = 0; copy && at < n; at++) {
    copy[at] = laci_arena_text(&graph->arena, texts[at]);
    if (!copy[at]) return NULL;
  }
  return copy;
}

static bool copy_attr(laci_graph *graph, laci_attr *to, const laci_attr *from) {
  *to = *from;
  to->name = laci_arena_text(&graph->arena, from->name);
  bool ok = to->name != NULL;
  if (from->text) ok &= (to->text = laci_arena_text(&graph->arena, from->text)) != NULL;
  if (from->ints)
    ok &= (to->ints = copy_array(graph, from->ints, from->n, sizeof *to->ints)) != NULL;
  if (from->floats) {
    ok &= (to->floats = copy_array(graph, from->floats, from->n, sizeof *to->floats)) != NULL;
  }
  if (from->texts) ok &= (to->texts = copy_texts(graph, from->texts, from->n)) != NULL;
  return ok;
}

static const laci_attr *copy_attrs(laci_graph *graph, const laci_node *node) {
  laci_attr *attrs = laci_arena_alloc(&graph->arena, (size_t)node->n_attrs, sizeof *attrs);
  for (int at = 0; attrs && at < node->n_attrs; at++) {
    if (!copy_attr(graph, &attrs[at], &node->attrs[at])) return NULL;
  }
  return attrs;
}

/** A name that no node has: the wanted one, or TYPE_NUMBER, with a suffix where even that is taken.
 */
static const char *unique_name(laci_graph *graph, const char *wanted, const char *type) {
  char text[512];
  bool named = wanted && wanted[0];
  if (named && laci_name_find(&graph->names->nodes, wanted) < 0) {
    return laci_arena_text(&graph->arena, wanted);
  }
  /* The next free number is most likely the count of the nodes, so that this does not try for long.
   */
  for (int number = graph->n_nodes;; number++) {
    (void)snprintf(text, sizeof text, "%.480s_%d", named ? wanted : type, number);
    if (laci_name_find(&graph->names->nodes, text) < 0) return laci_arena_text(&graph->arena, text);
  }
}

static lac_status check_ids(const laci_graph *graph, const laci_node *node, lac_error *err) {
  for (int at = 0; at < node->n_inputs + node->n_outputs + node->n_captures; at++) {
    int in = node->n_inputs, out = in + node->n_outputs;
    int id = at < in    ? node->inputs[at]
             : at < out ? node->outputs[at - in]
                        : node->captures[at - out];
    if (id < (at < out ? -1 : 0) || id >= graph->n_values) {
      return laci_fail(err, LAC_INTERNAL, "%s: value %d of %d", node->type, id, graph->n_values);
    }
  }
  return LAC_OK;
}

/** Attribute tensors become the graph's; room for all of them is made before the first is taken. */
static bool reserve_tensors(laci_graph *graph, const laci_node *node) {
  while (graph->buf_capacity < graph->n_bufs + (size_t)node->n_attrs) {
    void *array = graph->bufs;
    if (!laci_grow(&array, graph->buf_capacity, &graph->buf_capacity, sizeof *graph->bufs))
      return false;
    graph->bufs = array;
  }
  return true;
}

static lac_status define_outputs(laci_graph *graph, const laci_node *node, lac_error *err) {
  lac_status st = LAC_OK;
  int defined = 0;
  for (; defined < node->n_outputs && !st; defined++) {
    if (node->outputs[defined] < 0) continue;
    st = check_undefined(graph, node->outputs[defined], err);
    if (!st) graph->values[node->outputs[defined]].producer = graph->n_nodes;
  }
  for (int at = 0; st && at < defined - 1; at++) {
    if (node->outputs[at] >= 0) graph->values[node->outputs[at]].producer = -1;
  }
  return st;
}

static bool copy_node(laci_graph *graph, laci_node *to, const laci_node *from) {
  *to = *from;
  to->name = unique_name(graph, from->name, from->type);
  to->type = laci_arena_text(&graph->arena, from->type);
  to->domain = laci_arena_text(&graph->arena, from->domain ? from->domain : "");
  to->inputs = copy_array(graph, from->inputs, (size_t)from->n_inputs, sizeof *to->inputs);
  to->outputs = copy_array(graph, from->outputs, (size_t)from->n_outputs, sizeof *to->outputs);
  to->captures = copy_array(graph, from->captures, (size_t)from->n_captures, sizeof *to->captures);
  to->attrs = copy_attrs(graph, from);
  if (from->assume) to->assume = laci_arena_text(&graph->arena, from->assume);
  bool ok = to->name && to->type && to->domain && to->inputs && to->outputs && to->captures;
  return ok && to->attrs && (to->assume || !from->assume);
}

lac_status laci_graph_add_node(laci_graph *graph, const laci_node *node, int *id, lac_error *err) {
  laci_node copy;
  void *array = graph->nodes;
  lac_status st = check_ids(graph, node, err);
  if (st) return st;
  if (!laci_grow(&array, (size_t)graph->n_nodes, &graph->node_capacity, sizeof *graph->nodes)) {
    return laci_fail_memory(err, "a node");
  }
  graph->nodes = array;
  if (!reserve_tensors(graph, node) || !copy_node(graph, &copy, node)) {
    return laci_fail_memory(err, "a node");
  }
  graph->nodes[graph->n_nodes] =
      copy; /* the message about an output listed twice names this node */
  st = define_outputs(graph, &copy, err);
  if (st) return laci_fail_in(err, st, "%s", copy.name);
  if (!laci_name_add(&graph->names->nodes, copy.name, graph->n_nodes)) {
    for (int at = 0; at < copy.n_outputs; at++) {
      if (copy.outputs[at] >= 0) graph->values[copy.outputs[at]].producer = -1;
    }
    return laci_fail_memory(err, "a node");
  }
  for (int at = 0; at < node->n_attrs; at++) {
    if (node->attrs[at].tensor) graph->bufs[graph->n_bufs++] = node->attrs[at].tensor;
  }
  copy.op = laci_op_find(copy.type, copy.domain);
  graph->nodes[graph->n_nodes] = copy;
  *id = graph->n_nodes++;
  return LAC_OK;
}

static lac_status copy_tensor(const laci_buf *from, laci_buf **copy, lac_error *err) {
  lac_status st = laci_buf_create(from->dtype, &from->shape, copy, err);
  size_t n = (size_t)from->count;
  if (!st && from->f && n) memcpy((*copy)->f, from->f, n * sizeof *from->f);
  if (!st && from->i && n) memcpy((*copy)->i, from->i, n * sizeof *from->i);
  return st;
}

lac_status laci_graph_add_copy(laci_graph *graph, const laci_node *node, int *id, lac_error *err) {
  laci_attr *attrs = laci_alloc((size_t)node->n_attrs + 1, sizeof *attrs);
  lac_status st = attrs ? LAC_OK : laci_fail_memory(err, "a node");
  for (int at = 0; at < node->n_attrs && !st; at++) {
    laci_buf *tensor = NULL;
    attrs[at] = node->attrs[at];
    if (attrs[at].tensor) st = copy_tensor(attrs[at].tensor, &tensor, err);
    attrs[at].tensor = tensor;
  }
  laci_node copy = *node;
  copy.attrs = attrs;
  if (!st) st = laci_graph_add_node(graph, &copy, id, err);
  for (int at = 0; st && attrs && at < node->n_attrs; at++)
    if (attrs[at].tensor != node->attrs[at].tensor) laci_buf_destroy(attrs[at].tensor);
  laci_free(attrs);
  return st;
}

/* ---- Attributes
 * -------------------------------------------------------------------------------------------- */

const laci_attr *laci_node_attr(const laci_node *node, const char *name) {
  for (int at = 0; at < node->n_attrs; at++) {
    if (strcmp(node->attrs[at].name, name) == 0) return &node->attrs[at];
  }
  return NULL;
}

int64_t laci_node_int(const laci_node *node, const char *name, int64_t otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_INT ? attr->i : otherwise;
}

float laci_node_float(const laci_node *node, const char *name, float otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_FLOAT ? attr->f : otherwise;
}

const char *laci_node_text(const laci_node *node, const char *name, const char *otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_TEXT && attr->text ? attr->text : otherwise;
}

const int64_t *laci_node_ints(const laci_node *node, const char *name, size_t *n) {
  const laci_attr *attr = laci_node_attr(node, name);
  *n = 0;
  if (!attr || attr->kind != LACI_ATTR_INTS) return NULL;
  *n = attr->n;
  /* A list may be given and empty; its array must not read as "absent". */
  static const int64_t empty;
  return attr->ints ? attr->ints : &empty;
}

/* SPDX-License-Identifier: Apache-2.0
 * A graph as plain structs for plug-ins. Every struct is allocated in the view's arena; names,
 * lists of values and bytes are the graph's. */
#include "base/error.h"
#include "engine/plugin/plugin_in.h"
#include "tensor/buf.h"

/* The structs while they are filled; the view has const pointers to them. */
typedef struct filling {
  laci_plugin_view *view;
  const laci_graph *graph;
  lac_graph_value **values;
  lac_graph_node **nodes;
} filling;

static void *allocate_in_view(filling *f, size_t n, size_t size) {
  return laci_arena_alloc(&f->view->arena, n, size);
}

/* ---- Values ---- */

static bool copy_shape(filling *f, const laci_shape *shape, int *rank, const int64_t **sizes,
                       int64_t *count) {
  *rank = shape->rank < 0 ? -1 : shape->rank;
  *count = laci_shape_count(shape);
  if (shape->rank <= 0) {
    if (shape->rank < 0) *count = -1;
    return true;
  }
  int64_t *to = allocate_in_view(f, (size_t)shape->rank, sizeof *to);
  if (!to) return false;
  for (int axis = 0; axis < shape->rank; axis++) {
    to[axis] = shape->dims[axis] < 0 ? -1 : shape->dims[axis];
  }
  *sizes = to;
  return true;
}

static lac_graph_value *fill_value(filling *f, int value, const laci_type *type) {
  const laci_value *from = &f->graph->values[value];
  lac_graph_value *to = allocate_in_view(f, 1, sizeof *to);
  if (!to) return NULL;
  to->size = sizeof *to;
  to->name = from->name;
  to->dtype = type->dtype;
  to->producer = from->producer;
  to->is_stored = from->stored >= 0;
  return copy_shape(f, &type->shape, &to->rank, &to->shape, &to->count) ? to : NULL;
}

static void set_constant_content(const laci_graph *graph, int value, lac_graph_value *to) {
  if (graph->values[value].stored < 0) return;
  const laci_stored *stored = &graph->stored[graph->values[value].stored];
  to->stored = stored->bytes;
  to->stored_bytes = stored->size_bytes;
}

/* ---- Attributes and nodes ---- */

static lac_attribute_kind plugin_attribute_kind(const laci_attr *attr) {
  switch (attr->kind) {
    case LACI_ATTR_INT: return LAC_ATTRIBUTE_INT;
    case LACI_ATTR_FLOAT: return LAC_ATTRIBUTE_FLOAT;
    case LACI_ATTR_TEXT: return LAC_ATTRIBUTE_TEXT;
    case LACI_ATTR_INTS: return LAC_ATTRIBUTE_INTS;
    case LACI_ATTR_FLOATS: return LAC_ATTRIBUTE_FLOATS;
    case LACI_ATTR_TEXTS: return LAC_ATTRIBUTE_TEXTS;
    case LACI_ATTR_TENSOR: return attr->tensor ? LAC_ATTRIBUTE_TENSOR : LAC_ATTRIBUTE_OTHER;
    case LACI_ATTR_OTHER: break;
  }
  return LAC_ATTRIBUTE_OTHER;
}

static lac_graph_attribute *fill_attribute(filling *f, const laci_attr *from) {
  lac_graph_attribute *to = allocate_in_view(f, 1, sizeof *to);
  if (!to) return NULL;
  *to = (lac_graph_attribute){.size = sizeof *to,
                              .name = from->name,
                              .kind = plugin_attribute_kind(from),
                              .i = from->i,
                              .f = from->f,
                              .text = from->text,
                              .n = (int64_t)from->n,
                              .ints = from->ints,
                              .floats = from->floats,
                              .texts = from->texts};
  if (to->kind != LAC_ATTRIBUTE_TENSOR) return to;
  to->dtype = from->tensor->dtype;
  to->doubles = from->tensor->f;
  to->ints = from->tensor->i;
  return copy_shape(f, &from->tensor->shape, &to->rank, &to->shape, &to->n) ? to : NULL;
}

static lac_graph_node *fill_node(filling *f, const laci_node *from) {
  lac_graph_node *to = allocate_in_view(f, 1, sizeof *to);
  lac_graph_attribute **attributes = allocate_in_view(f, (size_t)from->n_attrs, sizeof *attributes);
  if (!to || !attributes) return NULL;
  for (int at = 0; at < from->n_attrs; at++) {
    attributes[at] = fill_attribute(f, &from->attrs[at]);
    if (!attributes[at]) return NULL;
  }
  *to = (lac_graph_node){.size = sizeof *to,
                         .name = from->name,
                         .type = from->type,
                         .domain = from->domain,
                         .version = from->version,
                         .n_inputs = from->n_inputs,
                         .n_outputs = from->n_outputs,
                         .inputs = from->inputs,
                         .outputs = from->outputs,
                         .n_attributes = from->n_attrs,
                         .attributes = (const lac_graph_attribute *const *)attributes};
  return to;
}

/* ---- Graphs ---- */

static bool allocate_view_lists(filling *f, int n_values, int n_nodes) {
  f->values = allocate_in_view(f, (size_t)n_values, sizeof *f->values);
  f->nodes = allocate_in_view(f, (size_t)n_nodes, sizeof *f->nodes);
  f->view->values = f->values;
  f->view->graph = (lac_graph_view){.size = sizeof f->view->graph,
                                    .n_values = n_values,
                                    .n_nodes = n_nodes,
                                    .values = (const lac_graph_value *const *)f->values,
                                    .nodes = (const lac_graph_node *const *)f->nodes};
  return f->values && f->nodes;
}

lac_status laci_plugin_view_init(laci_plugin_view *view, const laci_graph *graph,
                                 const laci_type *types, lac_error *err) {
  filling f = {.view = view, .graph = graph};
  bool made = allocate_view_lists(&f, graph->n_values, graph->n_nodes);
  for (int v = 0; v < graph->n_values && made; v++) {
    f.values[v] = fill_value(&f, v, &types[v]);
    made = f.values[v] != NULL;
    if (made) set_constant_content(graph, v, f.values[v]);
  }
  for (int n = 0; n < graph->n_nodes && made; n++) {
    f.nodes[n] = fill_node(&f, &graph->nodes[n]);
    made = f.nodes[n] != NULL;
  }
  view->graph.n_inputs = graph->n_inputs;
  view->graph.n_outputs = graph->n_outputs;
  view->graph.inputs = graph->inputs;
  view->graph.outputs = graph->outputs;
  return made ? LAC_OK : laci_fail_memory(err, "the engine's view of the network");
}

/* Writes the numbers that values have in a view of one node: those of its inputs, then those of its
 * outputs. False: no memory. */
static bool number_node_values(filling *f, const int *values, int n, int *n_known, int *known,
                               const int **numbers) {
  int *to = allocate_in_view(f, (size_t)n, sizeof *to);
  if (!to) return false;
  for (int at = 0; at < n; at++) {
    int number = 0;
    while (number < *n_known && known[number] != values[at]) number++;
    if (values[at] >= 0 && number == *n_known) known[(*n_known)++] = values[at];
    to[at] = values[at] < 0 ? -1 : number;
  }
  *numbers = to;
  return true;
}

lac_status laci_plugin_view_init_node(laci_plugin_view *view, const laci_graph *graph,
                                      const laci_node *node, lac_error *err) {
  filling f = {.view = view, .graph = graph};
  int most = node->n_inputs + node->n_outputs, n = 0;
  int *known = allocate_in_view(&f, (size_t)most, sizeof *known);
  bool made = known && allocate_view_lists(&f, most, 1);
  if (made) f.nodes[0] = fill_node(&f, node);
  made = made && f.nodes[0] &&
         number_node_values(&f, node->inputs, node->n_inputs, &n, known, &f.nodes[0]->inputs) &&
         number_node_values(&f, node->outputs, node->n_outputs, &n, known, &f.nodes[0]->outputs);
  for (int at = 0; at < n && made; at++) {
    f.values[at] = fill_value(&f, known[at], &graph->values[known[at]].type);
    made = f.values[at] != NULL;
    if (made && f.values[at]->producer >= 0) {
      f.values[at]->producer =
          graph->values[known[at]].producer == (int)(node - graph->nodes) ? 0 : -1;
    }
  }
  view->graph.n_values = n;
  return made ? LAC_OK : laci_fail_memory(err, "the engine's view of a node");
}

void laci_plugin_view_clear(laci_plugin_view *view) {
  laci_arena_clear(&view->arena);
  *view = (laci_plugin_view){.graph = {0}};
}

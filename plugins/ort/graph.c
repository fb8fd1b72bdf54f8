/* SPDX-License-Identifier: Apache-2.0
 * Reads a graph of ONNX Runtime. A hash table finds values by their names. */
#include "graph.h"

#include <string.h>

#define TRY(call)      \
  do {                 \
    st = (call);       \
    if (st) return st; \
  } while (0)
#define ASK(call, doing) TRY(laci_ort_take_failure(read->ort, (call), doing, err))

static size_t hash_name(const char *name) {
  uint64_t h = 1469598103934665603u;
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
  return (size_t)(h ^ h >> 29);
}

/** Returns the slot of the table that has the name, or the free slot where it would be stored. */
static size_t find_name_slot(const laci_ort_graph *read, const char *name) {
  size_t at = hash_name(name) & (read->n_index - 1);
  while (read->index[at] && strcmp(read->values[read->index[at] - 1].name, name) != 0)
    at = (at + 1) & (read->n_index - 1);
  return at;
}

int laci_ort_find_value(const laci_ort_graph *read, const char *name) {
  return read->n_index ? read->index[find_name_slot(read, name)] - 1 : -1;
}

static lac_status grow_name_table(laci_ort_graph *read, lac_error *err) {
  int most = read->most_values ? 2 * read->most_values : 256;
  laci_ort_value *values = laci_ort_allocate(&read->arena, (size_t)most, sizeof *values);
  size_t n_index = 4 * (size_t)most;
  int *index = laci_ort_allocate(&read->arena, n_index, sizeof *index);
  if (!values || !index) return laci_ort_fail_memory(err);
  if (read->n_values) memcpy(values, read->values, (size_t)read->n_values * sizeof *values);
  read->values = values;
  read->most_values = most;
  read->index = index;
  read->n_index = n_index;
  for (int k = 0; k < read->n_values; k++) index[find_name_slot(read, values[k].name)] = k + 1;
  return LAC_OK;
}

/** Sets *number to the value's, a new one if it was not seen; -1: info is NULL or has no name. */
static lac_status assign_value_number(laci_ort_graph *read, const ort_value_info *info, int *number,
                                      lac_error *err) {
  const char *name = NULL;
  lac_status st = LAC_OK;
  *number = -1;
  if (!info) return LAC_OK;
  ASK(read->ort->value_name(info, &name), "the name of a value");
  if (!name || !*name) return LAC_OK;
  if (read->n_values == read->most_values) TRY(grow_name_table(read, err));
  size_t place = find_name_slot(read, name);
  if (!read->index[place]) {
    laci_ort_value *value = &read->values[read->n_values];
    *value = (laci_ort_value){.name = name, .info = info, .producer = -1};
    ASK(read->ort->is_constant(info, &value->constant), name);
    ASK(read->ort->is_output(info, &value->output), name);
    read->index[place] = ++read->n_values;
  }
  *number = read->index[place] - 1;
  return LAC_OK;
}

static lac_status assign_value_numbers(laci_ort_graph *read, const ort_value_info *const *infos,
                                       size_t n, int *numbers, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t k = 0; k < n; k++) TRY(assign_value_number(read, infos[k], &numbers[k], err));
  return LAC_OK;
}

static lac_status read_operands(laci_ort_graph *read, laci_ort_node *to, lac_error *err) {
  const laci_ort *ort = read->ort;
  const ort_node *node = to->node;
  size_t n_in = 0, n_implicit = 0, n_out = 0;
  lac_status st = LAC_OK;
  ASK(ort->n_node_inputs(node, &n_in), "the inputs of a node");
  ASK(ort->n_node_implicit(node, &n_implicit), "the inputs of a body");
  ASK(ort->n_node_outputs(node, &n_out), "the outputs of a node");
  size_t n = n_in + n_implicit + n_out;
  const ort_value_info **infos = laci_ort_allocate(&read->arena, n, sizeof(void *));
  int *numbers = laci_ort_allocate(&read->arena, n, sizeof *numbers);
  if (!infos || !numbers) return laci_ort_fail_memory(err);
  const ort_value_info **implicit = infos + n_in, **outs = implicit + n_implicit;
  if (n_in) ASK(ort->node_inputs(node, infos, n_in), "the inputs of a node");
  if (n_implicit) ASK(ort->node_implicit(node, implicit, n_implicit), "the inputs of a body");
  if (n_out) ASK(ort->node_outputs(node, outs, n_out), "the outputs of a node");
  TRY(assign_value_numbers(read, infos, n, numbers, err));
  to->n_inputs = (int)n_in;
  to->n_implicit = (int)n_implicit;
  to->n_outputs = (int)n_out;
  to->inputs = numbers;
  to->outputs = numbers + n_in + n_implicit;
  return LAC_OK;
}

static lac_status read_node(laci_ort_graph *read, int at, const ort_node *node, lac_error *err) {
  const laci_ort *ort = read->ort;
  laci_ort_node *to = &read->nodes[at];
  size_t n_bodies = 0;
  lac_status st = LAC_OK;
  to->node = node;
  ASK(ort->node_name(node, &to->name), "the name of a node");
  ASK(ort->node_op(node, &to->op), "the operator of a node");
  ASK(ort->node_domain(node, &to->domain), "the domain of a node");
  ASK(ort->node_provider(node, &to->provider), "the provider of a node");
  if (!to->name) to->name = "";
  if (!to->domain) to->domain = "";
  if (!to->provider) to->provider = "";
  if (!to->op) return laci_ort_fail(err, LAC_BAD_FILE, "a node has no operator: %s", to->name);
  ASK(ort->n_bodies(node, &n_bodies), to->name);
  to->n_bodies = (int)n_bodies;
  TRY(read_operands(read, to, err));
  for (int k = 0; k < to->n_outputs; k++)
    if (to->outputs[k] >= 0) read->values[to->outputs[k]].producer = at;
  return LAC_OK;
}

lac_status laci_ort_read_graph(laci_ort_graph *read, const laci_ort *ort, const ort_graph *graph,
                               lac_error *err) {
  size_t n_nodes = 0;
  lac_status st = LAC_OK;
  *read = (laci_ort_graph){.ort = ort, .graph = graph};
  ASK(ort->n_nodes(graph, &n_nodes), "the nodes of the graph");
  ASK(ort->n_opsets(graph, &read->n_opsets), "the operator sets of the graph");
  const ort_node **nodes = laci_ort_allocate(&read->arena, n_nodes, sizeof(void *));
  read->nodes = laci_ort_allocate(&read->arena, n_nodes, sizeof *read->nodes);
  read->domains = laci_ort_allocate(&read->arena, read->n_opsets, sizeof(char *));
  read->versions = laci_ort_allocate(&read->arena, read->n_opsets, sizeof(int64_t));
  if (!nodes || !read->nodes || !read->domains || !read->versions) return laci_ort_fail_memory(err);
  if (n_nodes) ASK(ort->nodes(graph, nodes, n_nodes), "the nodes of the graph");
  if (read->n_opsets)
    ASK(ort->opsets(graph, read->domains, read->versions, read->n_opsets), "the operator sets");
  ASK(ort->ir_version(graph, &read->ir_version), "the version of the graph");
  ASK(ort->model_path(graph, &read->path), "the path of the model");
  if (!read->path) read->path = "";
  for (size_t k = 0; k < n_nodes; k++) TRY(read_node(read, (int)k, nodes[k], err));
  read->n_nodes = (int)n_nodes;
  return LAC_OK;
}

void laci_ort_graph_clear(laci_ort_graph *read) { laci_ort_arena_clear(&read->arena); }

lac_status laci_ort_read_type(laci_ort_graph *read, const ort_value_info *value,
                              laci_ort_type *type, lac_error *err) {
  const laci_ort *ort = read->ort;
  const ort_type *of = NULL;
  const ort_shape *shape = NULL;
  int kind = 0;
  size_t rank = 0;
  lac_status st = LAC_OK;
  *type = (laci_ort_type){.rank = -1};
  ASK(ort->value_type(value, &of), "the type of a value");
  if (!of) return LAC_OK;
  ASK(ort->kind_of_type(of, &kind), "the type of a value");
  if (kind != LAC_ORT_TENSOR) return LAC_OK;
  ASK(ort->tensor_of_type(of, &shape), "the type of a value");
  if (!shape) return LAC_OK;
  ASK(ort->element_type(shape, &type->dtype), "the type of a value");
  ASK(ort->rank(shape, &rank), "the shape of a value");
  int64_t *sizes = laci_ort_allocate(&read->arena, rank, sizeof *sizes);
  type->symbols = laci_ort_allocate(&read->arena, rank, sizeof(char *));
  if (!sizes || !type->symbols) return laci_ort_fail_memory(err);
  if (rank) ASK(ort->sizes(shape, sizes, rank), "the shape of a value");
  if (rank) ASK(ort->symbols(shape, type->symbols, rank), "the shape of a value");
  /* Before 1.24 an unknown shape and that of a scalar look alike. */
  bool known = rank > 0 || (ort->has_shape && ort->has_shape(shape));
  if (known) type->rank = (int)rank;
  type->sizes = sizes;
  return LAC_OK;
}

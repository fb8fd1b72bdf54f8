/* SPDX-License-Identifier: Apache-2.0
 * Infers shapes for a fixed batch size, on a copy of the graph with its own values. Finds out for
 * every value whether it is constant, and whether it can be computed. */
#include "calibrate/network_in.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/error.h"
#include "engine/engine.h"
#include "graph/branches.h"
#include "graph/infer.h"
#include "tensor/buf.h"

uint64_t laci_network_value_bytes(const laci_network *network, int value) {
  const laci_type *type = &network->graph.values[value].type;
  if (!laci_dtype_is_numeric(type->dtype) || !laci_shape_is_known(&type->shape)) return 0;
  return laci_count_bytes_saturated(laci_shape_count(&type->shape),
                                    laci_dtype_is_float(type->dtype) ? 4 : 8);
}

uint64_t laci_network_largest_value_bytes(const laci_network *network) {
  uint64_t largest = 0;
  for (int v = 0; v < network->graph.n_values; v++) {
    uint64_t bytes = network->constant[v] ? 0 : laci_network_value_bytes(network, v);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

/* ---- Finding constants, and values that cannot be computed ---- */

static bool is_constant(const laci_network *n, int value) {
  const laci_value *v = &n->graph.values[value];
  if (v->stored >= 0) return true;
  if (v->producer < 0) return false;
  /* Integers that inference knows follow from sizes. All sizes are fixed here, so the integers
   * contain no symbols. */
  if (v->known && v->known->i && laci_dtype_is_integer(v->type.dtype)) return true;
  const laci_node *node = &n->graph.nodes[v->producer];
  if (node->n_captures > 0 || node->frames)
    return false; /* a value inside a loop may differ in every iteration */
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] >= 0 && !n->constant[node->inputs[i]]) return false;
  }
  return true;
}

static const char *explain_uncomputable_node(laci_network *n, const laci_node *node) {
  lac_error why = {0};
  char text[sizeof why.text + 128];
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] >= 0 && n->refusal[node->inputs[i]]) return n->refusal[node->inputs[i]];
  }
  if (node->n_captures > 0) {
    (void)snprintf(text, sizeof text, "%.80s (%.40s) has a body that reads values around it",
                   node->name, node->type);
    return laci_arena_text(&n->arena, text);
  }
  if (node->body) {
    (void)snprintf(text, sizeof text, "%.80s (%.40s) is in a body, which need not be run",
                   node->name, node->type);
    return laci_arena_text(&n->arena, text);
  }
  if (!laci_engine_can_run_node(NULL, &n->graph, node, &why))
    return laci_arena_text(&n->arena, why.text);
  for (int i = 0; i < node->n_outputs; i++) {
    int value = node->outputs[i];
    if (value < 0 || n->graph.values[value].n_readers == 0) continue;
    if (laci_shape_is_known(&n->graph.values[value].type.shape)) continue;
    (void)snprintf(text, sizeof text, "the shape of %.100s depends on data",
                   n->graph.values[value].name);
    return laci_arena_text(&n->arena, text);
  }
  return NULL;
}

static void mark_constant_and_refused(laci_network *n) {
  for (int v = 0; v < n->graph.n_values; v++) n->constant[v] = n->graph.values[v].stored >= 0;
  for (int at = 0; at < n->graph.n_nodes; at++) {
    const laci_node *node = &n->graph.nodes[at];
    const char *refusal = explain_uncomputable_node(n, node);
    for (int i = 0; i < node->n_outputs; i++) {
      int value = node->outputs[i];
      if (value < 0) continue;
      n->constant[value] = is_constant(n, value);
      const laci_value *v = &n->graph.values[value];
      bool stands = n->constant[value] && v->known && v->known->i;
      n->refusal[value] = stands ? NULL : refusal;
    }
  }
}

/* ---- Creating the network ---- */

static lac_status infer_types_for_batch(laci_network *n, const laci_calibration_samples *samples,
                                        const laci_shape *shapes, lac_error *err) {
  int n_inputs = n->graph.n_inputs, n_fixed = 0;
  laci_input_shape *fixed = laci_alloc((size_t)n_inputs + 1, sizeof *fixed);
  if (!fixed) return laci_fail_memory(err, "the sizes of values");
  for (int i = 0; i < n_inputs; i++) {
    const int axis = laci_calibration_sample_axis(samples, i);
    const laci_value *v = &n->graph.values[n->graph.inputs[i]];
    if (v->stored >= 0) continue;
    laci_input_shape *to = &fixed[n_fixed++];
    *to = (laci_input_shape){.name = v->name, .shape = shapes[i]};
    if (axis >= 0 && to->shape.rank > axis) to->shape.dims[axis] = n->batch;
  }
  lac_status st = laci_graph_infer(&n->graph, fixed, n_fixed, err);
  for (int i = 0; i < n_inputs && !st; i++) {
    const laci_value *v = &n->graph.values[n->graph.inputs[i]];
    char text[128];
    if (laci_shape_is_known(&v->type.shape)) continue;
    st = laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, of which a size is open", v->name,
                   laci_shape_text(&v->type.shape, text, sizeof text));
  }
  laci_free(fixed);
  return st;
}

/* Makes a stored tensor of an input that all samples share. */
static lac_status store_constant(laci_network *n, int input, const laci_shape *shape,
                                 const void *content, lac_error *err) {
  const int value = n->graph.inputs[input], id = n->graph.n_stored;
  laci_value *v = &n->graph.values[value];
  const lac_dtype dtype = v->type.dtype == LAC_DTYPE_NONE ? LAC_DTYPE_F32 : v->type.dtype;
  const int64_t count = laci_shape_count(shape);
  const size_t size = (size_t)count * lac_dtype_size(dtype);
  uint8_t *bytes = laci_arena_alloc(&n->arena, size + 1, 1);
  if (!bytes) return laci_fail_memory(err, v->name);
  for (int64_t k = 0; k < count; k++) {
    uint8_t *to = bytes + (size_t)k * lac_dtype_size(dtype);
    if (laci_dtype_is_float(dtype)) {
      const double x = (double)((const float *)content)[k];
      laci_write_f64(dtype, &x, 1, to);
    } else {
      laci_write_i64(dtype, &((const int64_t *)content)[k], 1, to);
    }
  }
  n->graph.stored[id] = (laci_stored){.name = v->name,
                                      .dtype = dtype,
                                      .shape = *shape,
                                      .bytes = bytes,
                                      .size_bytes = size,
                                      .value = value};
  n->weights[id] = bytes;
  n->graph.n_stored++;
  v->type = (laci_type){.dtype = dtype, .shape = *shape};
  v->stored = id;
  v->is_input = false;
  n->is_reduced = true;
  return LAC_OK;
}

static lac_status store_constant_inputs(laci_network *n, const laci_calibration_samples *samples,
                                        const laci_shape *shapes, lac_error *err) {
  lac_status st = LAC_OK;
  for (int i = 0; samples->constants && i < n->graph.n_inputs && !st; i++)
    if (samples->constants[i]) st = store_constant(n, i, &shapes[i], samples->constants[i], err);
  return st;
}

static lac_status copy_graph(laci_network *n, const laci_weighted_graph *from, lac_error *err) {
  const laci_graph *graph = from->graph;
  size_t n_values = (size_t)graph->n_values, n_stored = (size_t)graph->n_stored;
  const size_t most_stored = n_stored + (size_t)graph->n_inputs + 1;
  n->graph = *graph;
  n->graph.values = laci_alloc(n_values + 1, sizeof *n->graph.values);
  n->graph.stored = laci_alloc(most_stored, sizeof *n->graph.stored);
  n->weights = laci_alloc(most_stored, sizeof *n->weights);
  n->constant = laci_alloc(n_values + 1, sizeof *n->constant);
  n->refusal = laci_alloc(n_values + 1, sizeof *n->refusal);
  if (!n->graph.values || !n->graph.stored || !n->weights || !n->constant || !n->refusal)
    return laci_fail_memory(err, "the sizes of values");
  for (size_t v = 0; v < n_values; v++) {
    n->graph.values[v] = graph->values[v];
    n->graph.values[v].known = NULL; /* `known` is owned by the original graph */
  }
  for (size_t s = 0; s < n_stored; s++) {
    n->graph.stored[s] = graph->stored[s];
    if (from->weights && from->weights[s]) n->graph.stored[s].bytes = from->weights[s];
    n->weights[s] = n->graph.stored[s].bytes;
  }
  return LAC_OK;
}

lac_status laci_network_create(const laci_weighted_graph *from,
                               const laci_calibration_samples *samples, int shape_set,
                               int64_t batch, laci_network **network, lac_error *err) {
  const laci_shape *shapes =
      samples->n_shape_sets > 1 ? samples->shape_sets[shape_set] : samples->shapes;
  *network = NULL;
  laci_network *n = laci_alloc(1, sizeof *n);
  if (!n) return laci_fail_memory(err, "the sizes of values");
  n->batch = batch;
  lac_status st = copy_graph(n, from, err);
  if (!st) st = store_constant_inputs(n, samples, shapes, err);
  if (!st) st = infer_types_for_batch(n, samples, shapes, err);
  if (!st) st = laci_graph_inline_branches(&n->graph, &n->arena, &n->alias, err);
  n->is_reduced |= n->alias != NULL;
  if (st) {
    laci_network_destroy(n);
    return st;
  }
  mark_constant_and_refused(n);
  *network = n;
  return LAC_OK;
}

void laci_network_destroy(laci_network *network) {
  if (!network) return;
  for (int v = 0; v < network->graph.n_values && network->graph.values && network->constant; v++)
    laci_buf_destroy(network->graph.values[v].known);
  laci_free(network->graph.values);
  laci_free(network->graph.stored);
  laci_free(network->weights);
  laci_free(network->constant);
  laci_free(network->refusal);
  laci_arena_clear(&network->arena);
  laci_free(network);
}

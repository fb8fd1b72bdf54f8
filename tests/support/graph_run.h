/* SPDX-License-Identifier: Apache-2.0
 * Runs a small graph node by node, for tests that read every value. It calls the operators' eval on
 * tensors in double, without an engine. Sizes that the graph does not know are found during the
 * run. Next: graph_build.h. */
#ifndef TESTS_SUPPORT_GRAPH_RUN_H
#define TESTS_SUPPORT_GRAPH_RUN_H

#include "graph/op.h"
#include "support/graph_build.h"

static inline laci_buf *buf_copy(const laci_buf *from) {
  laci_buf *copy;
  if (laci_buf_create(from->dtype, &from->shape, &copy, NULL)) abort();
  size_t n = (size_t)from->count;
  if (from->f) memcpy(copy->f, from->f, n * sizeof *copy->f);
  else memcpy(copy->i, from->i, n * sizeof *copy->i);
  return copy;
}

/** Returns the shape with which a graph input is run: the unknown sizes -12 and -32 both become 2,
 * although the graph may not assume that they are equal. */
static inline laci_shape run_shape(const laci_shape *shape) {
  laci_shape real = *shape;
  for (int a = 0; a < real.rank; a++) {
    if (real.dims[a] < 0) real.dims[a] = -real.dims[a] % 10;
  }
  return real;
}

/** Returns the contents of a graph input (generic numbers) or of a stored tensor. NULL: its type
 * cannot be run. */
static inline laci_buf *run_source(const laci_graph *graph, int value) {
  const laci_value *v = &graph->values[value];
  laci_shape shape = run_shape(&v->type.shape);
  laci_buf *buf = NULL;
  if (v->stored >= 0) {
    const laci_stored *stored = &graph->stored[v->stored];
    if (laci_buf_from_bytes(&v->type, stored->bytes, stored->size_bytes, &buf, NULL)) return NULL;
    return buf;
  }
  if (laci_buf_create(v->type.dtype, &shape, &buf, NULL)) return NULL;
  for (int64_t i = 0; i < buf->count; i++) {
    double x = net_number(v->name, i);
    if (buf->f) buf->f[i] = x;
    else buf->i[i] = v->type.dtype == LAC_DTYPE_BOOL ? x > 0 : (int64_t)(fabs(x) * 2);
  }
  return buf;
}

static inline int64_t run_unknown_size(laci_infer *infer) { return (void)infer, -1; }

/** Infers the types of a node's outputs from its actual operands instead of the graph's types. */
static inline lac_status run_types(const laci_graph *graph, const laci_node *node,
                                   const laci_buf *const *in, laci_type *types, lac_error *err) {
  laci_type in_types[NET_MAX_PORTS];
  const laci_type *in_type[NET_MAX_PORTS] = {0};
  for (int i = 0; i < node->n_inputs; i++) {
    if (!in[i]) continue;
    in_types[i] = (laci_type){.dtype = in[i]->dtype, .shape = in[i]->shape};
    in_type[i] = &in_types[i];
  }
  for (int i = 0; i < node->n_outputs; i++) types[i] = (laci_type){.shape = laci_shape_unknown()};
  laci_infer infer = {.node = node,
                      .n_in = node->n_inputs,
                      .n_out = node->n_outputs,
                      .in = in_type,
                      .known = in,
                      .out = types,
                      .new_symbol = run_unknown_size,
                      .err = err};
  lac_status st = node->op->infer(&infer);
  for (int i = 0; i < node->n_outputs; i++) {
    if (types[i].dtype == LAC_DTYPE_NONE && node->outputs[i] >= 0)
      types[i].dtype = graph->values[node->outputs[i]].type.dtype;
  }
  return st;
}

/** Computes the outputs of a node into values[], which already holds its inputs, but must not hold
 * the outputs yet. */
static inline lac_status run_node(const laci_graph *graph, int node_id, laci_buf **values,
                                  lac_error *err) {
  const laci_node *node = &graph->nodes[node_id];
  const laci_buf *in[NET_MAX_PORTS] = {0};
  laci_buf *out[NET_MAX_PORTS] = {0};
  laci_type types[NET_MAX_PORTS];
  if (!node->op || !node->op->eval) return LAC_UNSUPPORTED;
  for (int i = 0; i < node->n_inputs; i++)
    in[i] = node->inputs[i] >= 0 ? values[node->inputs[i]] : NULL;
  lac_status st = run_types(graph, node, in, types, err);
  for (int i = 0; i < node->n_outputs && !st; i++) {
    if (node->outputs[i] < 0) continue;
    if (types[i].shape.rank < 0 || laci_shape_count(&types[i].shape) < 0) st = LAC_UNSUPPORTED;
    else st = laci_buf_create(types[i].dtype, &types[i].shape, &out[i], err);
  }
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = in,
                    .out = out,
                    .err = err};
  if (!st) st = node->op->eval(&eval);
  for (int i = 0; i < node->n_outputs; i++) {
    if (st) laci_buf_destroy(out[i]);
    else if (node->outputs[i] >= 0) values[node->outputs[i]] = out[i];
  }
  return st;
}

static inline void run_clear(const laci_graph *graph, laci_buf **values) {
  for (int v = 0; values && v < graph->n_values; v++) laci_buf_destroy(values[v]);
  laci_free(values);
}

/** Computes all values of a graph, [n_values]; NULL: some node cannot be run. */
static inline laci_buf **run_graph(const laci_graph *graph) {
  laci_buf **values = laci_alloc((size_t)graph->n_values + 1, sizeof *values);
  bool ok = values != NULL;
  for (int v = 0; ok && v < graph->n_values; v++) {
    if (graph->values[v].producer >= 0) continue;
    values[v] = run_source(graph, v);
    ok = values[v] != NULL;
  }
  for (int n = 0; ok && n < graph->n_nodes; n++) ok = run_node(graph, n, values, NULL) == LAC_OK;
  if (ok) return values;
  run_clear(graph, values);
  return NULL;
}

static inline double buf_scale(const laci_buf *buf) {
  double most = 0;
  for (int64_t i = 0; buf->f && i < buf->count; i++) {
    if (isfinite(buf->f[i]) && fabs(buf->f[i]) > most) most = fabs(buf->f[i]);
  }
  return most;
}

static inline bool number_close(double a, double b, double tolerance) {
  return a == b || fabs(a - b) <= tolerance || (isnan(a) && isnan(b));
}

static inline bool buf_element_close(const laci_buf *a, int64_t i, const laci_buf *b, int64_t j,
                                     double tolerance) {
  return a->f ? number_close(a->f[i], b->f[j], tolerance) : a->i[i] == b->i[j];
}

static inline bool buf_close(const laci_buf *a, const laci_buf *b, double tolerance) {
  bool same = a->count == b->count;
  for (int64_t i = 0; same && i < a->count; i++) same = buf_element_close(a, i, b, i, tolerance);
  return same;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Shapes of values that loops carry; loops_in.h describes the method. After MOST_ROUNDS rounds, the
 * shapes of carried values are made fully unknown, which holds for every iteration. */
#include "graph/loops_in.h"

#include "base/memory.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { MOST_ROUNDS = 4 };

static const uint32_t all_wide = UINT32_MAX; /* a mask of axes: all of them change between
                                                iterations, and even the rank is unknown */

lac_status laci_loops_init(laci_loops *loops, const laci_graph *graph) {
  size_t n = (size_t)graph->n_values;
  *loops = (laci_loops){.declared = laci_alloc(n, sizeof *loops->declared),
                        .wide = laci_alloc(n, sizeof *loops->wide),
                        .rounds = laci_alloc((size_t)graph->n_bodies, sizeof *loops->rounds)};
  if (!loops->declared || !loops->wide || !loops->rounds) {
    laci_loops_clear(loops);
    return LAC_NO_MEMORY;
  }
  for (size_t v = 0; v < n; v++) loops->declared[v] = graph->values[v].type;
  return LAC_OK;
}

void laci_loops_clear(laci_loops *loops) {
  laci_free(loops->declared);
  laci_free(loops->wide);
  laci_free(loops->rounds);
  *loops = (laci_loops){0};
}

void laci_loops_make_changing_sizes_unknown(const laci_loops *loops, laci_graph *graph, int value) {
  laci_shape *shape = &graph->values[value].type.shape;
  if (loops->wide[value] == all_wide) *shape = laci_shape_unknown();
  for (int axis = 0; axis < shape->rank; axis++) {
    if (loops->wide[value] >> axis & 1) shape->dims[axis] = laci_graph_add_symbol(graph);
  }
}

/** Marks the axes of the carried value `in` whose size differs in `out`, the same value after the
 * iteration. Returns false if no more axes were marked. */
static bool mark_changing_axes(laci_loops *loops, const laci_graph *graph, int in, int out,
                               bool last) {
  const laci_shape *a = &graph->values[in].type.shape, *b = NULL;
  uint32_t wide = loops->wide[in];
  if (out >= 0) b = &graph->values[out].type.shape;
  if (a->rank < 0) return false;
  if (!b || b->rank != a->rank) wide = all_wide;
  for (int axis = 0; b && wide != all_wide && axis < a->rank; axis++) {
    if (a->dims[axis] != b->dims[axis]) wide |= (uint32_t)1 << axis;
  }
  if (wide == loops->wide[in]) return false;
  loops->wide[in] = last ? all_wide : wide;
  return true;
}

static void reset_inferred_types(laci_loops *loops, laci_graph *graph, int begin, int end) {
  for (int n = begin; n < end; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs; at++) {
      int value = node->outputs[at];
      if (value < 0) continue;
      graph->values[value].type = loops->declared[value];
      laci_buf_destroy(graph->values[value].known);
      graph->values[value].known = NULL;
    }
  }
}

int laci_loops_find_next_node(laci_loops *loops, laci_graph *graph, int n) {
  const laci_node *end = &graph->nodes[n];
  if (laci_node_control_flow_role(end) != LACI_CONTROL_END || !end->frames) return n + 1;
  int b = end->frames - 1;
  laci_end_ports ports = laci_node_loop_end_ports(end);
  bool again = false, last = loops->rounds[b] >= MOST_ROUNDS;
  for (int at = 0; at < ports.n_carried; at++) {
    int in = end->inputs[ports.in + at], out = end->inputs[ports.out + at];
    if (in >= 0) again |= mark_changing_axes(loops, graph, in, out, last);
  }
  if (!again) return n + 1;
  if (!last) loops->rounds[b]++;
  for (int at = 0; last && at < ports.n_carried; at++) {
    int in = end->inputs[ports.in + at];
    if (in >= 0) loops->wide[in] = all_wide;
  }
  reset_inferred_types(loops, graph, graph->bodies[b].begin, n + 1);
  return graph->bodies[b].begin;
}

/* SPDX-License-Identifier: Apache-2.0
 * A layer norm that a graph spells out, as one fused node:
 *
 *     x -> ReduceMean -> Sub -> Pow 2 -> ReduceMean -> + epsilon -> Sqrt -> Div [-> * scale] [-> +]
 *      \_________________/ \__________________________________________/
 */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "graph/ops.h"

bool laci_plan_reduced_axes(laci_net *net, const laci_node *node, int rank,
                            bool axes[LACI_MAX_RANK]) {
  size_t n = 0;
  const int64_t *given = laci_node_ints(node, "axes", &n);
  laci_buf *buf = NULL;
  if (!given && laci_net_has(node, 1)) {
    if (!laci_net_is_constant(net, node->inputs[1])) return false;
    buf = laci_net_constant_buf(net, node->inputs[1]);
    if (!buf || !buf->i) {
      laci_buf_destroy(buf);
      return false;
    }
    given = buf->i;
    n = (size_t)buf->count;
  }
  bool none = n == 0, fits = !(none && laci_node_int(node, "noop_with_empty_axes", 0) != 0);
  for (int axis = 0; axis < rank; axis++) axes[axis] = none;
  for (size_t at = 0; at < n && fits; at++) {
    int64_t axis = given[at] < 0 ? given[at] + rank : given[at];
    fits = axis >= 0 && axis < rank;
    if (fits) axes[axis] = true;
  }
  laci_buf_destroy(buf);
  return fits;
}

bool laci_plan_along_last(const laci_net *net, int value, int64_t last) {
  const laci_shape *s = laci_net_shape(net, value);
  return laci_net_is_constant(net, value) && laci_net_is_float(net, value) && s->rank > 0 &&
         s->dims[s->rank - 1] == last && laci_shape_count(s) == last;
}

static bool is_mean_of_last(laci_net *net, const laci_node *node) {
  bool axes[LACI_MAX_RANK];
  if (node->op != &laci_op_reduce_mean || !laci_net_is_float(net, node->inputs[0])) return false;
  int rank = laci_net_shape(net, node->inputs[0])->rank;
  if (rank < 2 || rank > 5 || laci_node_int(node, "keepdims", 1) == 0) return false;
  if (!laci_plan_reduced_axes(net, node, rank, axes)) return false;
  for (int axis = 0; axis < rank; axis++) {
    if (axes[axis] != (axis == rank - 1)) return false;
  }
  return true;
}

/** The node is x^2: by Pow with 2, or x times x. */
static bool is_square(laci_net *net, const laci_node *node, int x) {
  double power = 0;
  if (node->op == &laci_op_mul) return node->inputs[0] == x && node->inputs[1] == x;
  return node->op == &laci_op_pow && node->inputs[0] == x &&
         laci_net_scalar(net, node->inputs[1], &power) && power == 2;
}

/** The two nodes that read the value, besides each other: its square, and a division by b. */
static bool square_and_division(laci_net *net, int d, int *square, int *division) {
  const laci_value *v = &net->graph->values[d];
  *square = *division = -1;
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (!net->computed[reader] || net->fused[reader].output < 0) continue;
    if (is_square(net, &net->graph->nodes[reader], d)) *square = reader;
    if (net->graph->nodes[reader].op == &laci_op_div) *division = reader;
  }
  if (*square < 0 || *division < 0) return false;
  int reads = net->graph->nodes[*square].op == &laci_op_mul ? 3 : 2;
  return laci_plan_uses(net, d) == reads && net->graph->nodes[*division].inputs[0] == d;
}

/** From the square to the number that the difference is divided by. */
static bool is_deviation(laci_net *net, int square, int divisor, int nodes[3], float *epsilon) {
  const laci_graph *graph = net->graph;
  laci_function f[2];
  int input, at = square;
  for (int i = 0; i < 3; i++) {
    at = laci_plan_only_reader(net, graph->nodes[at].outputs[0]);
    if (at < 0) return false;
    nodes[i] = at;
  }
  if (!is_mean_of_last(net, &graph->nodes[nodes[0]])) return false;
  if (graph->nodes[nodes[1]].op != &laci_op_add || graph->nodes[nodes[2]].op != &laci_op_sqrt)
    return false;
  if (laci_functions_of(net, &graph->nodes[nodes[1]], &input, f) != 1) return false;
  *epsilon = f[0].beta;
  return *epsilon >= 0 && laci_plan_uses(net, divisor) == 1 &&
         graph->nodes[nodes[2]].outputs[0] == divisor;
}

/** A following product with, or sum with, a vector along the last axis: its other operand. */
static int take_vector(laci_net *net, laci_fused *fused, const laci_op *op) {
  int next = laci_plan_only_reader(net, fused->output);
  if (next < 0) return -1;
  const laci_node *node = &net->graph->nodes[next];
  const laci_shape *y = laci_net_shape(net, fused->output);
  if (node->op != op || node->n_inputs != 2) return -1;
  int other = node->inputs[node->inputs[0] == fused->output];
  if (!laci_plan_along_last(net, other, y->dims[y->rank - 1])) return -1;
  if (!laci_shape_equal(laci_net_shape(net, node->outputs[0]), y)) return -1;
  laci_fused_append(net, fused, next);
  return other;
}

bool laci_find_layer_norm(laci_net *net, int mean, laci_match *match) {
  const laci_graph *graph = net->graph;
  laci_layer_norm_pattern norm = {.scale = -1, .shift = -1}, *kept;
  int square, division, deviation[3];
  norm.x = graph->nodes[mean].n_inputs > 0 ? graph->nodes[mean].inputs[0] : -1;
  if (norm.x < 0 || !is_mean_of_last(net, &graph->nodes[mean])) return false;
  if (laci_shape_count(laci_net_shape(net, norm.x)) == 0) return false;
  int sub = laci_plan_only_reader(net, graph->nodes[mean].outputs[0]);
  if (sub < 0 || graph->nodes[sub].op != &laci_op_sub) return false;
  if (graph->nodes[sub].inputs[0] != norm.x) return false;
  if (!square_and_division(net, graph->nodes[sub].outputs[0], &square, &division)) return false;
  if (!is_deviation(net, square, graph->nodes[division].inputs[1], deviation, &norm.epsilon)) {
    return false;
  }
  kept = laci_net_new(net, 1, sizeof *kept);
  if (!kept) return false;
  *kept = norm;
  match->last = division;
  const int nodes[] = {mean, sub, square, deviation[0], deviation[1], deviation[2]};
  match->n_nodes = sizeof nodes / sizeof *nodes;
  memcpy(match->nodes, nodes, sizeof nodes);
  match->fused = (laci_fused){
      .pattern = LACI_PATTERN_LAYER_NORM, .details = kept, .n_reads = 2, .reads = {norm.x, norm.x}};
  return true;
}

void laci_finish_layer_norm(laci_net *net, laci_fused *fused) {
  laci_layer_norm_pattern *norm = laci_net_new(net, 1, sizeof *norm);
  if (!norm) return;
  *norm = *(const laci_layer_norm_pattern *)fused->details;
  norm->scale = take_vector(net, fused, &laci_op_mul);
  norm->shift = take_vector(net, fused, &laci_op_add);
  fused->details = norm;
}

/* SPDX-License-Identifier: Apache-2.0
 * Fuses a layer norm that a graph writes as single operators:
 *
 *     x -> ReduceMean -> Sub -> Pow 2 -> ReduceMean -> + epsilon -> Sqrt -> Div [-> * scale] [-> +]
 *      \_________________/ \__________________________________________/
 */
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"
#include "tensor/buf.h"

bool laci_plan_read_reduced_axes(laci_cpu_plan *plan, const laci_node *node, int rank,
                                 bool axes[LACI_MAX_RANK]) {
  size_t n = 0;
  const bool input = laci_plan_has_input(node, 1);
  const int64_t *given = input ? NULL : laci_node_ints(node, "axes", &n);
  laci_buf *buf = NULL;
  if (input) {
    if (!laci_plan_is_constant(plan, node->inputs[1])) return false;
    buf = laci_plan_copy_constant(plan, node->inputs[1]);
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

bool laci_plan_is_vector_of_last_axis(const laci_cpu_plan *plan, int value, int64_t last) {
  const laci_shape *s = laci_plan_shape(plan, value);
  return laci_plan_is_constant(plan, value) && laci_plan_is_float(plan, value) && s->rank > 0 &&
         s->dims[s->rank - 1] == last && laci_shape_count(s) == last;
}

static bool is_mean_over_last_axis(laci_cpu_plan *plan, const laci_node *node) {
  bool axes[LACI_MAX_RANK];
  if (node->op != &laci_op_reduce_mean || !laci_plan_is_float(plan, node->inputs[0])) return false;
  int rank = laci_plan_shape(plan, node->inputs[0])->rank;
  if (rank < 2 || rank > 5 || laci_node_int(node, "keepdims", 1) == 0) return false;
  if (!laci_plan_read_reduced_axes(plan, node, rank, axes)) return false;
  for (int axis = 0; axis < rank; axis++) {
    if (axes[axis] != (axis == rank - 1)) return false;
  }
  return true;
}

/** Does the node compute x^2, by Pow with 2 or as x times x? */
static bool is_square(laci_cpu_plan *plan, const laci_node *node, int x) {
  double power = 0;
  if (node->op == &laci_op_mul) return node->inputs[0] == x && node->inputs[1] == x;
  return node->op == &laci_op_pow && node->inputs[0] == x &&
         laci_plan_read_scalar(plan, node->inputs[1], &power) && power == 2;
}

/** Finds the two readers of the difference d: its square, and a division by the deviation. */
static bool find_square_and_division(laci_cpu_plan *plan, int d, int *square, int *division) {
  const laci_value *v = &plan->graph->values[d];
  *square = *division = -1;
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (!plan->computed[reader] || plan->fused[reader].output < 0) continue;
    if (is_square(plan, &plan->graph->nodes[reader], d)) *square = reader;
    if (plan->graph->nodes[reader].op == &laci_op_div) *division = reader;
  }
  if (*square < 0 || *division < 0) return false;
  int reads = plan->graph->nodes[*square].op == &laci_op_mul ? 3 : 2;
  return laci_plan_count_uses(plan, d) == reads && plan->graph->nodes[*division].inputs[0] == d;
}

/** Follows the nodes from the square to the divisor; false: they do not compute the deviation. */
static bool match_deviation(laci_cpu_plan *plan, int square, int divisor, int nodes[3],
                            float *epsilon) {
  const laci_graph *graph = plan->graph;
  laci_function f[2];
  int input, at = square;
  for (int i = 0; i < 3; i++) {
    at = laci_plan_find_only_reader(plan, graph->nodes[at].outputs[0]);
    if (at < 0) return false;
    nodes[i] = at;
  }
  if (!is_mean_over_last_axis(plan, &graph->nodes[nodes[0]])) return false;
  if (graph->nodes[nodes[1]].op != &laci_op_add || graph->nodes[nodes[2]].op != &laci_op_sqrt)
    return false;
  if (laci_find_node_functions(plan, &graph->nodes[nodes[1]], &input, f) != 1) return false;
  *epsilon = f[0].beta;
  return *epsilon >= 0 && laci_plan_count_uses(plan, divisor) == 1 &&
         graph->nodes[nodes[2]].outputs[0] == divisor;
}

/** Fuses a following product or sum with a vector along the last axis; returns the vector; -1:
 * there is none. */
static int fuse_following_vector(laci_cpu_plan *plan, laci_fused *fused, const laci_op *op) {
  int next = laci_plan_find_only_reader(plan, fused->output);
  if (next < 0) return -1;
  const laci_node *node = &plan->graph->nodes[next];
  const laci_shape *y = laci_plan_shape(plan, fused->output);
  if (node->op != op || node->n_inputs != 2) return -1;
  int other = node->inputs[node->inputs[0] == fused->output];
  if (!laci_plan_is_vector_of_last_axis(plan, other, y->dims[y->rank - 1])) return -1;
  if (!laci_shape_equal(laci_plan_shape(plan, node->outputs[0]), y)) return -1;
  laci_fused_append(plan, fused, next);
  return other;
}

bool laci_find_layer_norm(laci_cpu_plan *plan, int mean, laci_match *match) {
  const laci_graph *graph = plan->graph;
  laci_layer_norm_pattern norm = {.scale = -1, .shift = -1}, *kept;
  int square, division, deviation[3];
  norm.x = graph->nodes[mean].n_inputs > 0 ? graph->nodes[mean].inputs[0] : -1;
  if (norm.x < 0 || !is_mean_over_last_axis(plan, &graph->nodes[mean])) return false;
  if (laci_shape_count(laci_plan_shape(plan, norm.x)) == 0) return false;
  int sub = laci_plan_find_only_reader(plan, graph->nodes[mean].outputs[0]);
  if (sub < 0 || graph->nodes[sub].op != &laci_op_sub) return false;
  if (graph->nodes[sub].inputs[0] != norm.x) return false;
  if (!find_square_and_division(plan, graph->nodes[sub].outputs[0], &square, &division))
    return false;
  if (!match_deviation(plan, square, graph->nodes[division].inputs[1], deviation, &norm.epsilon)) {
    return false;
  }
  kept = laci_plan_alloc(plan, 1, sizeof *kept);
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

void laci_finish_layer_norm(laci_cpu_plan *plan, laci_fused *fused) {
  laci_layer_norm_pattern *norm = laci_plan_alloc(plan, 1, sizeof *norm);
  if (!norm) return;
  *norm = *(const laci_layer_norm_pattern *)fused->details;
  norm->scale = fuse_following_vector(plan, fused, &laci_op_mul);
  norm->shift = fuse_following_vector(plan, fused, &laci_op_add);
  fused->details = norm;
}

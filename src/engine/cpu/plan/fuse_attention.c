/* SPDX-License-Identifier: Apache-2.0
 * Attention as one fused node: two products of values around a softmax.
 *
 *     q -> [* number] -> MatMul -> [* number] -> [+ mask] -> Softmax -> [NaN to 0] -> MatMul
 *     k -> [* number] ----^                                                   v ------^
 *
 * The pattern is searched from its Softmax, and needs that the values in between have no other
 * reader. A following Transpose only changes where rows are written. Next: lower/attention.c. */
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

enum { MOST_NODES = LACI_FUSED_MAX_NODES };

typedef struct found_nodes {
  int nodes[MOST_NODES]; /* nodes between the operands and the second product */
  int n;
} found_nodes;

/** If value = number * x and has no other reader, multiplies *scale by the number and returns x.
 * Otherwise returns value. */
static int skip_multiplication_by_number(laci_cpu_plan *plan, int value, float *scale,
                                         found_nodes *between) {
  int producer = laci_plan_find_producer(plan, value), input;
  laci_function f[2];
  if (producer < 0 || laci_plan_count_uses(plan, value) != 1 || between->n == MOST_NODES)
    return value;
  const laci_node *node = &plan->graph->nodes[producer];
  if (laci_find_node_functions(plan, node, &input, f) != 1) return value;
  int x = node->inputs[input];
  bool same = laci_shape_equal(laci_plan_shape(plan, x), laci_plan_shape(plan, value));
  if (!same || f[0].kind != LACI_FUNCTION_LINEAR || f[0].beta != 0) return value;
  *scale *= f[0].alpha;
  between->nodes[between->n++] = producer;
  return x;
}

static int find_producing_matmul(const laci_cpu_plan *plan, int value) {
  int producer = laci_plan_find_producer(plan, value);
  bool is = producer >= 0 && plan->graph->nodes[producer].op == &laci_op_mat_mul;
  return is && laci_plan_count_uses(plan, value) == 1 ? producer : -1;
}

/** Can the mask be broadcast to the shape of the scores? */
static bool can_broadcast_mask(const laci_cpu_plan *plan, int mask, const laci_shape *scores) {
  const laci_shape *m = laci_plan_shape(plan, mask);
  if (!laci_plan_is_float(plan, mask) || m->rank > scores->rank) return false;
  for (int axis = 0; axis < m->rank; axis++) {
    int64_t size = scores->dims[axis + scores->rank - m->rank];
    if (m->dims[axis] != 1 && m->dims[axis] != size) return false;
  }
  return true;
}

/** Finds the nodes from the Softmax's input back to the operands of the first product. */
static bool match_scores(laci_cpu_plan *plan, int scores, laci_attention_pattern *a,
                         found_nodes *between) {
  int producer = laci_plan_find_producer(plan, scores), product = -1, x = scores;
  const laci_shape *shape = laci_plan_shape(plan, scores);
  if (producer >= 0 && plan->graph->nodes[producer].op == &laci_op_add &&
      laci_plan_count_uses(plan, scores) == 1 && plan->graph->nodes[producer].n_inputs == 2) {
    const laci_node *add = &plan->graph->nodes[producer];
    for (int side = 0; side < 2 && product < 0; side++) {
      found_nodes tried = *between;
      float scale = 1;
      x = skip_multiplication_by_number(plan, add->inputs[side], &scale, &tried);
      a->mask = add->inputs[!side];
      product = can_broadcast_mask(plan, a->mask, shape) ? find_producing_matmul(plan, x) : -1;
      if (product < 0) continue;
      a->scale = scale;
      *between = tried;
      between->nodes[between->n++] = producer;
    }
  } else {
    x = skip_multiplication_by_number(plan, scores, &a->scale, between);
    product = find_producing_matmul(plan, x);
  }
  if (product < 0 || between->n + 3 > MOST_NODES) return false;
  if (!laci_shape_equal(laci_plan_shape(plan, x), shape)) return false;
  between->nodes[between->n++] = product;
  a->q = skip_multiplication_by_number(plan, plan->graph->nodes[product].inputs[0], &a->scale,
                                       between);
  a->k = skip_multiplication_by_number(plan, plan->graph->nodes[product].inputs[1], &a->scale,
                                       between);
  return true;
}

/** If p is read by Where(IsNaN(p), 0, p), which guards a Softmax, returns the result of the Where;
 * else p. */
static int skip_nan_guard(laci_cpu_plan *plan, int p, laci_attention_pattern *a,
                          found_nodes *between) {
  const laci_graph *graph = plan->graph;
  const laci_value *v = &graph->values[p];
  int is_nan = -1, where = -1;
  double zero = 1;
  if (laci_plan_count_uses(plan, p) != 2) return p;
  for (int at = 0; at < v->n_readers; at++) {
    if (!plan->computed[v->readers[at]]) continue;
    if (graph->nodes[v->readers[at]].op == &laci_op_is_nan) is_nan = v->readers[at];
    if (graph->nodes[v->readers[at]].op == &laci_op_where) where = v->readers[at];
  }
  if (is_nan < 0 || where < 0 || between->n + 2 > MOST_NODES) return p;
  const laci_node *node = &graph->nodes[where];
  bool guards = laci_plan_find_only_reader(plan, graph->nodes[is_nan].outputs[0]) == where &&
                node->inputs[0] == graph->nodes[is_nan].outputs[0] && node->inputs[2] == p;
  if (!guards || !laci_plan_read_scalar(plan, node->inputs[1], &zero) || zero != 0) return p;
  if (!laci_shape_equal(laci_plan_shape(plan, node->outputs[0]), laci_plan_shape(plan, p)))
    return p;
  between->nodes[between->n++] = is_nan;
  between->nodes[between->n++] = where;
  a->zero_nan = true;
  return node->outputs[0];
}

/** Are all three operands computed values with the same leading axes? */
static bool has_same_leading_axes(const laci_cpu_plan *plan, const laci_attention_pattern *a) {
  const laci_shape *q = laci_plan_shape(plan, a->q), *k = laci_plan_shape(plan, a->k);
  const laci_shape *v = laci_plan_shape(plan, a->v);
  int rank = q->rank;
  bool fits = rank >= 2 && k->rank == rank && v->rank == rank && a->v != a->k;
  for (int axis = 0; axis + 2 < rank && fits; axis++) {
    fits = q->dims[axis] == k->dims[axis] && q->dims[axis] == v->dims[axis];
  }
  const int values[] = {a->q, a->k, a->v};
  for (int at = 0; at < 3 && fits; at++) {
    fits = !laci_plan_is_constant(plan, values[at]) && laci_plan_is_float(plan, values[at]) &&
           laci_shape_count(laci_plan_shape(plan, values[at])) > 0;
  }
  return fits;
}

/** Fuses a following Reshape that changes nothing, and a Transpose that keeps the last axis. */
static void fuse_following_moves(laci_cpu_plan *plan, laci_fused *fused,
                                 int places[LACI_MAX_RANK]) {
  int rank = laci_plan_shape(plan, fused->output)->rank, next;
  for (int axis = 0; axis < rank; axis++) places[axis] = axis;
  while ((next = laci_plan_find_only_reader(plan, fused->output)) >= 0) {
    const laci_node *node = &plan->graph->nodes[next];
    bool same = node->op == &laci_op_reshape || node->op == &laci_op_identity;
    if (node->inputs[0] != fused->output) return;
    if (!same || !laci_shape_equal(laci_plan_shape(plan, node->outputs[0]),
                                   laci_plan_shape(plan, fused->output))) {
      break;
    }
    laci_fused_append(plan, fused, next);
  }
  if (next < 0 || plan->graph->nodes[next].op != &laci_op_transpose) return;
  size_t n = 0;
  const int64_t *order = laci_node_ints(&plan->graph->nodes[next], "perm", &n);
  if (!order || (int)n != rank || order[rank - 1] != rank - 1) return;
  for (int axis = 0; axis < rank; axis++) places[order[axis]] = axis;
  laci_fused_append(plan, fused, next);
}

bool laci_find_attention(laci_cpu_plan *plan, int softmax, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[softmax];
  laci_attention_pattern a = {.mask = -1, .scale = 1}, *kept;
  found_nodes f = {.nodes = {softmax}, .n = 1};
  if (node->op != &laci_op_softmax || !laci_plan_is_float(plan, node->inputs[0])) return false;
  int rank = laci_plan_shape(plan, node->inputs[0])->rank;
  int64_t axis = laci_node_int(node, "axis", node->version < 13 ? 1 : -1);
  if (axis != -1 && axis != rank - 1) return false;
  if (laci_plan_count_uses(plan, node->inputs[0]) != 1) return false;
  if (!match_scores(plan, node->inputs[0], &a, &f)) return false;
  int weights = skip_nan_guard(plan, node->outputs[0], &a, &f);
  a.product = laci_plan_find_only_reader(plan, weights);
  if (a.product < 0 || plan->graph->nodes[a.product].op != &laci_op_mat_mul) return false;
  if (plan->graph->nodes[a.product].inputs[0] != weights) return false;
  a.v = plan->graph->nodes[a.product].inputs[1];
  if (!has_same_leading_axes(plan, &a)) return false;
  kept = laci_plan_alloc(plan, 1, sizeof *kept);
  if (!kept) return false;
  *kept = a;
  match->last = a.product;
  match->n_nodes = f.n;
  memcpy(match->nodes, f.nodes, sizeof f.nodes);
  match->fused.pattern = LACI_PATTERN_ATTENTION;
  match->fused.details = kept;
  const int reads[] = {a.q, a.k, a.v, a.mask};
  for (int at = 0; at < 4; at++) {
    if (reads[at] >= 0) match->fused.reads[match->fused.n_reads++] = reads[at];
  }
  return true;
}

void laci_finish_attention(laci_cpu_plan *plan, laci_fused *fused) {
  laci_attention_pattern *a = laci_plan_alloc(plan, 1, sizeof *a);
  if (!a) return;
  *a = *(const laci_attention_pattern *)fused->details;
  fuse_following_moves(plan, fused, a->places);
  fused->details = a;
}

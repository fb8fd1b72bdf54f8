/* SPDX-License-Identifier: Apache-2.0
 * Can a network still compute the same after two indices of one stored tensor's axis changed
 * places?
 *
 * The search uses no knowledge of couplings. It reorders the other stored tensors by trial: not at
 * all, by an order that another operand of the node shows, or by any exchange of two indices. It
 * then runs the node; a branch ends where an output is not the old output with one axis reordered.
 * It walks the nodes depth-first and gives up after a budget of evaluations. */
#ifndef TESTS_SUPPORT_BRUTE_FORCE_H
#define TESTS_SUPPORT_BRUTE_FORCE_H

#include "support/graph_run.h"

enum { BRUTE_MAX_SIZE = 64, BRUTE_MAX_SEEN = 3, BRUTE_BUDGET = 1500 };

typedef enum brute_answer { BRUTE_NO, BRUTE_YES, BRUTE_GAVE_UP } brute_answer;

typedef struct brute_order {
  int64_t n;
  int64_t from[BRUTE_MAX_SIZE]; /* new[p] = old[from[p]] */
} brute_order;

/** May the stored tensor be reordered? Parameters may; numbers that define what an operator does
 * (sizes, scales, limits: names that begin with k), and values that the caller sees, may not. */
static inline bool brute_may_move(const laci_graph *graph, int value) {
  const laci_value *v = &graph->values[value];
  return v->stored >= 0 && !v->is_output && laci_dtype_is_float(v->type.dtype) && v->name[0] != 'k';
}

typedef struct brute {
  const laci_graph *graph;
  laci_buf *const *old; /* [n_values] the values of the unchanged network */
  laci_buf **now;       /* [n_values] the values of the changed network that are computed or chosen
                           so far; NULL: not yet */
  long budget;          /* node evaluations left */
} brute;

static inline void brute_reorder_axis(const laci_buf *in, int axis, const brute_order *order,
                                      laci_buf *out) {
  int64_t n = in->shape.dims[axis],
          inner = laci_shape_count_range(&in->shape, axis + 1, in->shape.rank);
  for (int64_t i = 0; i < in->count; i++) {
    int64_t p = i / inner % n, from = i + (order->from[p] - p) * inner;
    if (in->f) out->f[i] = in->f[from];
    else out->i[i] = in->i[from];
  }
}

static inline bool brute_slices_close(const laci_buf *now, int64_t p, const laci_buf *old,
                                      int64_t q, int axis, double tolerance) {
  int64_t n = now->shape.dims[axis],
          inner = laci_shape_count_range(&now->shape, axis + 1, now->shape.rank);
  int64_t outer = now->count / (n * inner);
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      if (!buf_element_close(now, (o * n + p) * inner + i, old, (o * n + q) * inner + i, tolerance))
        return false;
    }
  }
  return true;
}

/** Finds the order along the axis that maps `old` to `now`. False: there is none. */
static inline bool brute_order_along(const laci_buf *now, const laci_buf *old, int axis,
                                     double tolerance, brute_order *order) {
  bool used[BRUTE_MAX_SIZE] = {false};
  order->n = now->shape.dims[axis];
  if (order->n > BRUTE_MAX_SIZE) return false;
  for (int64_t p = 0; p < order->n; p++) {
    int64_t found = -1;
    for (int64_t k = 0; k < order->n && found < 0; k++) {
      int64_t q = (p + k) % order->n; /* the same index is tried first, so that equal slices keep
                                         their places */
      if (!used[q] && brute_slices_close(now, p, old, q, axis, tolerance)) found = q;
    }
    if (found < 0) return false;
    used[found] = true;
    order->from[p] = found;
  }
  return true;
}

static inline double brute_tolerance(const laci_buf *old) { return 1e-9 * (1e-3 + buf_scale(old)); }

static inline bool brute_moved_along_one_axis(const laci_buf *now, const laci_buf *old) {
  double tolerance = brute_tolerance(old);
  brute_order order;
  if (buf_close(now, old, tolerance)) return true;
  for (int axis = 0; axis < now->shape.rank; axis++) {
    if (now->count && brute_order_along(now, old, axis, tolerance, &order)) return true;
  }
  return false;
}

/** Lists the orders that the node's other operands have undergone; returns their number. */
static inline int brute_seen_orders(const brute *b, const laci_node *node, brute_order *seen) {
  int n = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    int v = node->inputs[i];
    if (v < 0 || !b->now[v] || !b->now[v]->count) continue;
    double tolerance = brute_tolerance(b->old[v]);
    if (buf_close(b->now[v], b->old[v], tolerance)) continue;
    for (int axis = 0; axis < b->now[v]->shape.rank && n < BRUTE_MAX_SEEN; axis++) {
      if (brute_order_along(b->now[v], b->old[v], axis, tolerance, &seen[n])) n++;
    }
  }
  return n;
}

static inline brute_answer brute_node(brute *b, int node_id);

static inline void brute_release(brute *b, const laci_node *node) {
  for (int i = 0; i < node->n_outputs; i++) {
    int v = node->outputs[i];
    if (v < 0) continue;
    laci_buf_destroy(b->now[v]);
    b->now[v] = NULL;
  }
}

/** Computes the node, whose operands are all chosen, and continues with the next one. */
static inline brute_answer brute_step(brute *b, int node_id) {
  const laci_node *node = &b->graph->nodes[node_id];
  if (b->budget-- <= 0) return BRUTE_GAVE_UP;
  if (run_node(b->graph, node_id, b->now, NULL)) return BRUTE_NO;
  bool sane = true;
  for (int i = 0; i < node->n_outputs && sane; i++) {
    int v = node->outputs[i];
    if (v < 0) continue;
    if (b->graph->values[v].is_output)
      sane = buf_close(b->now[v], b->old[v], brute_tolerance(b->old[v]));
    else sane = brute_moved_along_one_axis(b->now[v], b->old[v]);
  }
  brute_answer answer = sane ? brute_node(b, node_id + 1) : BRUTE_NO;
  brute_release(b, node);
  return answer;
}

/** The orders to try along the axes of a node's stored operands: those that other operands of the
 * node show, and at most one exchange of two indices. */
typedef struct brute_choice {
  int n;
  brute_order order[BRUTE_MAX_SEEN + 1];
  int64_t swap_a, swap_b; /* the exchange that is the last of order[]; -1: none */
} brute_choice;

/** The state of the choice for one operand. */
typedef struct brute_moves {
  int axis, n_moved; /* the next axis to reorder, and the number of axes reordered so far, at most
                        two */
  bool swapped;
} brute_moves;

static inline brute_answer brute_operand(brute *b, int node_id, int port,
                                         const brute_choice *choice, bool swapped);

/** Tries all choices for operand `port`, for its axes from moves.axis on. */
static inline brute_answer brute_axes(brute *b, int node_id, int port, const brute_choice *choice,
                                      brute_moves moves) {
  int axis = moves.axis;
  int v = b->graph->nodes[node_id].inputs[port];
  brute_answer worst = BRUTE_NO;
  if (axis == b->now[v]->shape.rank)
    return brute_operand(b, node_id, port + 1, choice, moves.swapped);
  for (int k = -1; k < choice->n; k++) {
    bool is_swap = choice->swap_a >= 0 && k == choice->n - 1;
    int64_t size = b->now[v]->shape.dims[axis];
    if (k >= 0 && moves.n_moved == 2) continue;
    if (k >= 0 && (is_swap ? choice->swap_b >= size : choice->order[k].n != size)) continue;
    laci_buf *before = NULL;
    if (k >= 0) {
      brute_order order = choice->order[k];
      before = b->now[v];
      b->now[v] = buf_copy(before);
      for (int64_t p = order.n; p < size; p++) order.from[p] = p;
      brute_reorder_axis(before, axis, &order, b->now[v]);
    }
    brute_answer answer =
        brute_axes(b, node_id, port, choice,
                   (brute_moves){axis + 1, moves.n_moved + (k >= 0), moves.swapped || is_swap});
    if (before) {
      laci_buf_destroy(b->now[v]);
      b->now[v] = before;
    }
    if (answer == BRUTE_YES) return answer;
    if (answer == BRUTE_GAVE_UP) worst = answer;
    if (b->budget <= 0) return BRUTE_GAVE_UP;
  }
  return worst;
}

/** Tries all choices for the operands from `port` on that are stored and not chosen yet. */
static inline brute_answer brute_operand(brute *b, int node_id, int port,
                                         const brute_choice *choice, bool swapped) {
  const laci_node *node = &b->graph->nodes[node_id];
  while (port < node->n_inputs && (node->inputs[port] < 0 || b->now[node->inputs[port]])) port++;
  if (port == node->n_inputs) {
    return choice->swap_a >= 0 && !swapped ? BRUTE_NO
                                           : brute_step(b, node_id); /* the case without an exchange
                                                                        is tried elsewhere */
  }
  int v = node->inputs[port];
  b->now[v] = buf_copy(b->old[v]);
  brute_answer answer =
      brute_may_move(b->graph, v)
          ? brute_axes(b, node_id, port, choice, (brute_moves){.swapped = swapped})
          : brute_operand(b, node_id, port + 1, choice, swapped);
  laci_buf_destroy(b->now[v]);
  b->now[v] = NULL;
  return answer;
}

static inline int64_t brute_longest_axis(const brute *b, const laci_node *node) {
  int64_t most = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    int v = node->inputs[i];
    if (v < 0 || b->now[v] || !brute_may_move(b->graph, v)) continue;
    for (int a = 0; a < b->old[v]->shape.rank; a++) {
      if (b->old[v]->shape.dims[a] > most) most = b->old[v]->shape.dims[a];
    }
  }
  return most > BRUTE_MAX_SIZE ? 0 : most;
}

static inline brute_answer brute_node(brute *b, int node_id) {
  if (node_id == b->graph->n_nodes) return BRUTE_YES;
  const laci_node *node = &b->graph->nodes[node_id];
  brute_choice choice = {.swap_a = -1};
  choice.n = brute_seen_orders(b, node, choice.order);
  brute_answer worst = brute_operand(b, node_id, 0, &choice, false);
  int64_t size = brute_longest_axis(b, node);
  int last = choice.n++;
  for (int64_t q = 1; q < size && worst != BRUTE_YES; q++) {
    for (int64_t p = 0; p < q && worst != BRUTE_YES; p++) {
      if (b->budget <= 0) return BRUTE_GAVE_UP;
      brute_order *swap = &choice.order[last];
      swap->n = q + 1;
      for (int64_t k = 0; k <= q; k++) swap->from[k] = k;
      swap->from[p] = q;
      swap->from[q] = p;
      choice.swap_a = p;
      choice.swap_b = q;
      brute_answer answer = brute_operand(b, node_id, 0, &choice, false);
      if (answer != BRUTE_NO) worst = answer;
    }
  }
  return worst;
}

/** Exchanges indices p and q of a stored tensor's axis and searches. `old`: all values of the
 * unchanged graph. */
static inline brute_answer brute_exchange(const laci_graph *graph, laci_buf *const *old, int stored,
                                          int axis, int64_t p, int64_t q) {
  int v = graph->stored[stored].value;
  brute b = {.graph = graph, .old = old, .budget = BRUTE_BUDGET};
  b.now = laci_alloc((size_t)graph->n_values + 1, sizeof *b.now);
  if (!b.now) abort();
  for (int i = 0; i < graph->n_inputs; i++)
    b.now[graph->inputs[i]] = buf_copy(old[graph->inputs[i]]);
  brute_order swap = {.n = old[v]->shape.dims[axis]};
  for (int64_t k = 0; k < swap.n; k++) swap.from[k] = k;
  swap.from[p] = q;
  swap.from[q] = p;
  b.now[v] = buf_copy(old[v]);
  brute_reorder_axis(old[v], axis, &swap, b.now[v]);
  brute_answer answer = brute_node(&b, 0);
  run_clear(graph, b.now);
  return answer;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Divides a tensor into lines and calls an operator's function for each. */
#include "graph/coupling.h"
#include "graph/ops/shared/line_in.h"
#include "tensor/buf.h"

laci_line_axis laci_softmax_axis(const laci_node *node) {
  bool old = node->version < 13;
  return (laci_line_axis){.axis = laci_node_int(node, "axis", old ? 1 : -1), .flattened = old};
}

int laci_softmax_axes(const laci_node *node, int rank, int64_t axes[LACI_MAX_RANK]) {
  laci_line_axis line = laci_softmax_axis(node);
  int n = 0, first = line.flattened && line.axis == rank
                         ? rank
                         : laci_axis_counted_from_first(line.axis, rank);
  for (int axis = first; axis >= 0 && axis < rank; axis++) {
    axes[n++] = axis;
    if (!line.flattened) break;
  }
  return n;
}

lac_status laci_softmax_infer(laci_infer *infer) {
  return laci_line_infer(infer, laci_softmax_axis(infer->node));
}

lac_status laci_softmax_couple_orders(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c) {
  (void)graph;
  return laci_line_couple_orders(c, laci_softmax_axis(node));
}

/** Checks the axis and makes it count from the first one. With flattened, it may be one past the
 * last axis: then lines have one element. */
static lac_status check_line_axis(const laci_node *node, int rank, laci_line_axis *line,
                                  lac_error *err) {
  if (line->flattened && line->axis == rank) return LAC_OK;
  return laci_check_axis(node, rank, &line->axis, err);
}

lac_status laci_line_infer(laci_infer *infer, laci_line_axis line) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  int rank = infer->in[0]->shape.rank;
  return rank < 0 ? LAC_OK : check_line_axis(infer->node, rank, &line, infer->err);
}

typedef struct job {
  const laci_eval *eval;
  laci_line_body *body;
  const void *context;
  int64_t n, inner;
} job;

static void compute_lines(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    int64_t from = at / j->inner * j->n * j->inner + at % j->inner;
    j->body(j->eval->in[0]->f + from, j->eval->out[0]->f + from, j->n, j->inner, j->context);
  }
}

lac_status laci_line_eval(const laci_eval *eval, laci_line_axis line, laci_line_body *body,
                          const void *context) {
  const laci_shape *x = &eval->in[0]->shape;
  lac_status st = laci_check_floats(eval);
  if (!st) st = check_line_axis(eval->node, x->rank, &line, eval->err);
  if (st || eval->in[0]->count == 0) return st;
  int axis = (int)line.axis, after = line.flattened ? x->rank : axis + 1;
  job j = {.eval = eval,
           .body = body,
           .context = context,
           .n = laci_shape_count_range(x, axis, after),
           .inner = laci_shape_count_range(x, after, x->rank)};
  laci_eval_parallel(eval, eval->in[0]->count / j.n, compute_lines, &j);
  return LAC_OK;
}

lac_status laci_line_couple_orders(laci_coupling *c, laci_line_axis line) {
  const laci_shape *x = laci_port_shape(c, 0);
  if (!x || check_line_axis(c->node, x->rank, &line, NULL)) return laci_coupling_status(c);
  laci_couple_equal_axes(c, 0, LACI_OUT(0));
  for (int axis = (int)line.axis; axis < x->rank; axis++) {
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
    if (!line.flattened) break;
  }
  return laci_coupling_status(c);
}

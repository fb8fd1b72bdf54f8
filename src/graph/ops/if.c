/* SPDX-License-Identifier: Apache-2.0
 * If: the results of one of two bodies. The bodies' nodes come before it (graph.h, laci_body); its
 * inputs are the condition, then the results of the then branch, then those of the else branch. An
 * output is coupled with both of its results, so channels have the same order whichever branch
 * runs. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Returns which branch is taken: 0 then, 1 else, -1: it depends on data. */
static int find_taken_branch(const laci_buf *condition) {
  if (!condition || !condition->i || condition->count != 1) return -1;
  if (laci_is_symbol(condition->i[0])) return -1;
  return condition->i[0] ? 0 : 1;
}

/** Infers the type of an output that is one of two results. */
static void infer_type_of_either(laci_infer *infer, const laci_type *a, const laci_type *b,
                                 laci_type *out) {
  if (!a || !b) return;
  if (a->dtype == b->dtype) out->dtype = a->dtype;
  if (a->shape.rank < 0 || a->shape.rank != b->shape.rank) return;
  out->shape = a->shape;
  for (int axis = 0; axis < a->shape.rank; axis++) {
    if (a->shape.dims[axis] != b->shape.dims[axis])
      out->shape.dims[axis] = infer->new_symbol(infer);
  }
}

static lac_status infer(laci_infer *infer) {
  int n = infer->n_out, one;
  lac_status st = laci_check_n_inputs(infer, 1, 1 + 2 * n);
  if (st || infer->n_in != 1 + 2 * n) return st;
  one = find_taken_branch(laci_in_known_content(infer, 0));
  for (int at = 0; at < n; at++) {
    const laci_type *const types[] = {infer->in[1 + at], infer->in[1 + n + at]};
    if (one < 0) infer_type_of_either(infer, types[0], types[1], &infer->out[at]);
    else if (types[one]) infer->out[at] = *types[one];
  }
  return LAC_OK;
}

/* A branch that is never taken is not coupled. But if the caller fixed sizes, the condition may
 * differ in other runs, so both branches are coupled. */
static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  int n = node->n_outputs,
      one = graph->sizes_fixed ? -1 : find_taken_branch(laci_known_content(graph, node, 0));
  c->why = "order matters where the results of two bodies differ in size or stay";
  for (int at = 0; at < n && node->n_inputs == 1 + 2 * n; at++) {
    const int both[] = {1 + at, 1 + n + at, LACI_OUT(at)}, single[] = {both[one > 0], LACI_OUT(at)};
    if (one < 0) laci_couple_equal_ports(c, both, 3);
    else laci_couple_equal_ports(c, single, 2);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_if = {.name = "If",
                            .role = LACI_ROLE_PASS_THROUGH,
                            .control = LACI_CONTROL_CHOICE,
                            .attributes = LACI_ATTRIBUTES({"else_branch", LACI_ATTR_OTHER},
                                                          {"then_branch", LACI_ATTR_OTHER}),
                            .infer = infer,
                            .couple = couple_channel_orders};

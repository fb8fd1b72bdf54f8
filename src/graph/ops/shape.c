/* SPDX-License-Identifier: Apache-2.0
 * Shape: the sizes of x, from axis `start` to before `end` (opset 15), as integers.
 *
 * Only sizes are read, so x may have any channel order. Inference evaluates it on shapes with
 * symbols; the symbols in shape arithmetic come from here. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Finds the range [start, end) of the wanted axes, clamped to the rank. */
static void find_axis_range(const laci_node *node, int rank, int *start, int *end) {
  int64_t from = laci_node_int(node, "start", 0), to = laci_node_int(node, "end", rank);
  if (from < 0) from += rank;
  if (to < 0) to += rank;
  *start = from < 0 ? 0 : from > rank ? rank : (int)from;
  *end = to > rank ? rank : to < *start ? *start : (int)to;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  int start, end;
  infer->out[0].dtype = LAC_DTYPE_I64;
  infer->out[0].shape = (laci_shape){.rank = 1, .dims = {-1}};
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) {
    infer->out[0].shape.dims[0] = infer->new_symbol(infer);
    return LAC_OK;
  }
  find_axis_range(infer->node, x->rank, &start, &end);
  infer->out[0].shape.dims[0] = end - start;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  int start, end;
  const laci_shape *x = &eval->in[0]->shape;
  find_axis_range(eval->node, x->rank, &start, &end);
  for (int axis = start; axis < end; axis++) {
    eval->out[0]->i[axis - start] = laci_element_from_size(x->dims[axis]);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  if (x) laci_coupling_set_fresh_labels(c, 0, 0, x->rank);
  return laci_coupling_status(c);
}

const laci_op laci_op_shape = {
    .name = "Shape",
    .role = LACI_ROLE_SKIP,
    .attributes = LACI_ATTRIBUTES({"end", LACI_ATTR_INT}, {"start", LACI_ATTR_INT}),
    .is_fold = true,
    .shape_only = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

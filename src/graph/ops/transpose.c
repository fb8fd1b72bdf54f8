/* SPDX-License-Identifier: Apache-2.0
 * Transpose: output axis a is input axis perm[a]; without perm the axes are reversed.
 * Channel orders move with their axes. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** Reads perm for a tensor of that rank, and checks that it is a permutation. */
static lac_status read_perm(const laci_node *node, int rank, int perm[LACI_MAX_RANK],
                            lac_error *err) {
  bool seen[LACI_MAX_RANK] = {false};
  size_t n;
  const int64_t *given = laci_node_ints(node, "perm", &n);
  if (given && n != (size_t)rank) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "perm has %zu entries for a tensor of %d axes",
                          n, rank);
  }
  for (int axis = 0; axis < rank; axis++) {
    int64_t from = given ? given[axis] : rank - 1 - axis;
    lac_status st = laci_check_axis(node, rank, &from, err);
    if (st) return st;
    if (seen[from])
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "perm names axis %d twice", (int)from);
    seen[from] = true;
    perm[axis] = (int)from;
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  int perm[LACI_MAX_RANK];
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  st = read_perm(infer->node, x->rank, perm, infer->err);
  if (st) return st;
  infer->out[0].shape.rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) infer->out[0].shape.dims[axis] = x->dims[perm[axis]];
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  int perm[LACI_MAX_RANK];
  int64_t own[LACI_MAX_RANK], strides[LACI_MAX_RANK];
  const laci_buf *x = eval->in[0];
  lac_status st = read_perm(eval->node, x->shape.rank, perm, eval->err);
  if (st) return st;
  laci_shape_strides(&x->shape, own);
  for (int axis = 0; axis < x->shape.rank; axis++) strides[axis] = own[perm[axis]];
  laci_copy_strided_to_rows(eval, x, &eval->out[0]->shape, strides, 0, eval->out[0]);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  int perm[LACI_MAX_RANK];
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  if (!x || !y || x->rank != y->rank || read_perm(node, x->rank, perm, NULL))
    return laci_coupling_status(c);
  for (int axis = 0; axis < x->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, perm[axis], label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  size_t n;
  int64_t back[LACI_MAX_RANK];
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  const int64_t *order = laci_node_ints(node, "perm", &n);
  for (int axis = 0; axis < x.rank; axis++) {
    if (order) back[order[axis]] = axis;
    else back[axis] = x.rank - 1 - axis;
  }
  laci_gradient_contribute(
      b, node, 0, laci_gradient_add_transpose(b, laci_gradient_of(b, node, 0), x.rank, back));
  return laci_gradient_status(b);
}

const laci_op laci_op_transpose = {.name = "Transpose",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .attributes = LACI_ATTRIBUTES({"perm", LACI_ATTR_INTS}),
                                   .moves_data = true,
                                   .is_fold = true,
                                   .infer = infer,
                                   .eval = eval,
                                   .couple = couple_channel_orders,
                                   .gradient = gradient};

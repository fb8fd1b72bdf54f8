/* SPDX-License-Identifier: Apache-2.0
 * EyeLike: ones on the k-th diagonal of a matrix of the input's shape, whose content is not read.
 * The input may have any channel order; the axes of the output are FIXED: their order must stay
 * (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0] = *infer->in[0];
  infer->out[0].dtype = (lac_dtype)laci_node_int(infer->node, "dtype", infer->in[0]->dtype);
  if (!x || x->rank == 2) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "a tensor of %d axes, a matrix is wanted", x->rank);
}

static lac_status eval(laci_eval *eval) {
  laci_buf *out = eval->out[0];
  int64_t k = laci_node_int(eval->node, "k", 0), n_columns = out->shape.dims[1];
  for (int64_t row = 0; row < out->shape.dims[0]; row++) {
    int64_t column;
    if (__builtin_add_overflow(row, k, &column) || column < 0 || column >= n_columns) continue;
    if (out->f) out->f[row * n_columns + column] = 1;
    else out->i[row * n_columns + column] = 1;
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

const laci_op laci_op_eye_like = {
    .name = "EyeLike",
    .role = LACI_ROLE_SKIP,
    .attributes = LACI_ATTRIBUTES({"dtype", LACI_ATTR_INT}, {"k", LACI_ATTR_INT}),
    .shape_inputs = 1u << 0,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

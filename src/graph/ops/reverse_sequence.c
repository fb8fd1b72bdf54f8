/* SPDX-License-Identifier: Apache-2.0
 * ReverseSequence: reverses the first lengths[b] elements of batch entry b along the time axis.
 * Order matters along the time and batch axes; the others pass channel orders through
 * (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status read_axes(const laci_node *node, int rank, int64_t *batch, int64_t *time,
                            lac_error *err) {
  *batch = laci_node_int(node, "batch_axis", 1);
  *time = laci_node_int(node, "time_axis", 0);
  bool apart = (*batch == 0 && *time == 1) || (*batch == 1 && *time == 0);
  if (rank >= 2 && apart) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE,
                        "batch_axis %lld and time_axis %lld of a tensor of %d axes",
                        (long long)*batch, (long long)*time, rank);
}

static lac_status infer(laci_infer *infer) {
  int64_t batch, time;
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0);
  return x ? read_axes(infer->node, x->rank, &batch, &time, infer->err) : LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  int64_t batch, time;
  const laci_buf *x = eval->in[0], *lengths = eval->in[1];
  lac_status st = read_axes(eval->node, x->shape.rank, &batch, &time, eval->err);
  if (st) return st;
  int64_t inner = laci_shape_count_range(&x->shape, 2, x->shape.rank);
  if (lengths->count != x->shape.dims[batch]) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "%lld lengths for a batch of %lld",
                          (long long)lengths->count, (long long)x->shape.dims[batch]);
  }
  int64_t batch_stride = batch == 0 ? x->shape.dims[1] * inner : inner;
  int64_t time_stride = time == 0 ? x->shape.dims[1] * inner : inner;
  for (int64_t b = 0; b < x->shape.dims[batch]; b++) {
    int64_t n = laci_buf_get_i(lengths, b);
    for (int64_t t = 0; t < x->shape.dims[time]; t++) {
      int64_t from = t < n && n <= x->shape.dims[time] ? n - 1 - t : t;
      laci_copy_elements(eval->out[0], b * batch_stride + t * time_stride, x,
                         b * batch_stride + from * time_stride, inner);
    }
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "order matters to ReverseSequence";
  for (int axis = 2; x && axis < x->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_reverse_sequence = {
    .name = "ReverseSequence",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"batch_axis", LACI_ATTR_INT}, {"time_axis", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

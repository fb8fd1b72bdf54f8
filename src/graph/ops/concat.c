/* SPDX-License-Identifier: Apache-2.0
 * Concat: the inputs one after the other along one axis.
 *
 * Along that axis every input is a run of the output's positions (one map each); the other axes
 * share labels (coupling.h). Inference evaluates it, for exporters build shapes with
 * it. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Adds the size of an input along `axis` to that of out, or sets *unknown. Checks that the other
 * sizes agree, and keeps the best known ones. */
static lac_status add_size_of_input(laci_infer *infer, const laci_shape *in, int axis,
                                    laci_shape *out, bool *unknown) {
  char found[128], wanted[128];
  bool fits = in->rank == out->rank;
  for (int at = 0; fits && at < out->rank; at++) {
    if (at == axis) {
      *unknown |= in->dims[at] < 0;
      fits = in->dims[at] < 0 || *unknown ||
             !__builtin_add_overflow(out->dims[at], in->dims[at], &out->dims[at]);
    } else if (out->dims[at] < 0) {
      out->dims[at] = in->dims[at] >= 0 ? in->dims[at] : out->dims[at];
    } else {
      fits = in->dims[at] < 0 || in->dims[at] == out->dims[at];
    }
  }
  if (fits) return LAC_OK;
  return laci_node_fail(
      infer->node, infer->err, LAC_BAD_SHAPE, "%s does not fit after %s along axis %d",
      laci_shape_text(in, found, sizeof found), laci_shape_text(out, wanted, sizeof wanted), axis);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, -1);
  if (st) return st;
  const laci_shape *known = NULL;
  bool unknown = false;
  for (int port = 0; port < infer->n_in; port++) {
    if (!infer->in[port]) return laci_check_n_inputs(infer, infer->n_in, -1);
    lac_dtype dtype = infer->in[port]->dtype, first = infer->out[0].dtype;
    if (first == LAC_DTYPE_NONE) infer->out[0].dtype = dtype;
    else if (dtype != LAC_DTYPE_NONE && dtype != first) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE,
                            "input %d is %s, the ones before are %s", port, lac_dtype_name(dtype),
                            lac_dtype_name(first));
    }
    if (laci_in_shape(infer, port)) known = laci_in_shape(infer, port);
    else unknown = true;
  }
  if (!known) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 1);
  st = laci_check_axis(infer->node, known->rank, &axis, infer->err);
  if (st) return st;
  laci_shape out = *known;
  out.dims[axis] = 0;
  for (int port = 0; port < infer->n_in && !st; port++) {
    if (laci_in_shape(infer, port))
      st = add_size_of_input(infer, laci_in_shape(infer, port), (int)axis, &out, &unknown);
  }
  if (unknown) out.dims[axis] = infer->n_in == 1 ? known->dims[axis] : infer->new_symbol(infer);
  if (!st) infer->out[0].shape = out;
  return st;
}

static lac_status eval(laci_eval *eval) {
  laci_buf *out = eval->out[0];
  int64_t axis = laci_node_int(eval->node, "axis", 1), at = 0;
  lac_status st = laci_check_axis(eval->node, out->shape.rank, &axis, eval->err);
  if (st) return st;
  int64_t n_outer = laci_shape_count_range(&out->shape, 0, (int)axis);
  int64_t out_row = laci_shape_count_range(&out->shape, (int)axis, out->shape.rank);
  for (int port = 0; port < eval->n_in; port++) {
    const laci_buf *in = eval->in[port];
    int64_t row = laci_shape_count_range(&in->shape, (int)axis, in->shape.rank);
    for (int64_t outer = 0; outer < n_outer; outer++)
      laci_copy_elements(out, outer * out_row + at, in, outer * row, row);
    at += row;
  }
  return LAC_OK;
}

/** Adds a map for each input: its run of positions along `axis`. Sizes are known. */
static void couple_inputs_along_axis(laci_coupling *c, const laci_node *node, int axis,
                                     int64_t n_out) {
  int64_t start = 0;
  for (int port = 0; port < node->n_inputs; port++) {
    int64_t n = laci_port_shape(c, port)->dims[axis];
    laci_axis_map *map = laci_coupling_add_map_of_run(c, (laci_axis_map){.out_port = LACI_OUT(0),
                                                                         .out_axis = axis,
                                                                         .in_port = port,
                                                                         .in_axis = axis,
                                                                         .n_out = n_out,
                                                                         .start = start,
                                                                         .n = n});
    for (int64_t at = 0; map && at < n; at++) map->from[at] = (int32_t)at;
    start += n;
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  int axis = y ? laci_axis_counted_from_first(laci_node_int(node, "axis", 1), y->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  int64_t sum = 0;
  bool mappable = laci_is_axis_mappable(c, LACI_OUT(0), axis);
  for (int port = 0; port < node->n_inputs; port++) {
    const laci_shape *in = laci_port_shape(c, port);
    if (!in || in->rank != y->rank) return laci_coupling_status(c);
    mappable = mappable && laci_is_axis_mappable(c, port, axis);
    sum += mappable ? in->dims[axis] : 0;
  }
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int at = 0; at < y->rank; at++) {
    int label = at == axis ? LACI_FIXED : laci_coupling_new_label(c);
    laci_coupling_set_label(c, LACI_OUT(0), at, label);
    for (int port = 0; port < node->n_inputs; port++) laci_coupling_set_label(c, port, at, label);
  }
  if (mappable && sum == y->dims[axis]) couple_inputs_along_axis(c, node, axis, sum);
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape y = laci_gradient_shape_of_value(b, node->outputs[0]);
  int axis = laci_axis_counted_from_first(laci_node_int(node, "axis", 1), y.rank);
  int64_t start = 0;
  for (int port = 0; port < node->n_inputs; port++) {
    int64_t n = laci_gradient_shape_of_input(b, node, port).dims[axis];
    if (laci_gradient_is_needed(b, node, port))
      laci_gradient_contribute(
          b, node, port, laci_gradient_add_slice(b, laci_gradient_of(b, node, 0), axis, start, n));
    start += n;
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_concat = {.name = "Concat",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                .moves_data = true,
                                .is_fold = true,
                                .infer = infer,
                                .eval = eval,
                                .couple = couple_channel_orders,
                                .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * TopK: the k largest (or smallest, opset 11) elements along an axis, in order, and their indices.
 * k is an attribute before opset 10, then an input. Of equal elements the first comes first; NaN
 * counts as larger than all. The axis is FIXED; the other axes pass channel orders through
 * (coupling.h). */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static laci_ints read_k(const laci_node *node, const laci_buf *content) {
  return laci_read_int_list(node, NULL, 1, content);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0].dtype = infer->in[0]->dtype;
  if (infer->n_out > 1) infer->out[1].dtype = LAC_DTYPE_I64;
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  laci_ints given = read_k(infer->node, laci_in_known_content(infer, 1));
  int64_t k = given.present ? -1 : laci_node_int(infer->node, "k", -1), n = x->dims[axis];
  if (given.known && given.n == 1) k = laci_size_from_element(given.v[0]);
  else if (given.present) k = infer->new_symbol(infer);
  bool symbol = k < 0 && given.present && (!given.known || given.has_symbols);
  if ((k < 0 && !symbol) || (n >= 0 && k > n)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "k = %lld of an axis of size %lld", (long long)k, (long long)n);
  }
  for (int out = 0; out < infer->n_out && out < 2; out++) {
    infer->out[out].shape = *x;
    infer->out[out].shape.dims[axis] = k;
  }
  return LAC_OK;
}

typedef struct entry {
  double f;
  laci_wide i;
  int64_t at;
} entry;

/** Compares two values: ascending order, NaN last; returns 0 where equal. */
static int compare_values(const entry *a, const entry *b) {
  if (a->f != a->f || b->f != b->f) return (a->f != a->f) - (b->f != b->f);
  if (a->f != b->f) return a->f < b->f ? -1 : 1;
  return (a->i > b->i) - (a->i < b->i);
}

static int compare_positions(const entry *a, const entry *b) {
  return (a->at > b->at) - (a->at < b->at);
}

static int compare_smallest_first(const void *a, const void *b) {
  int order = compare_values(a, b);
  return order ? order : compare_positions(a, b);
}

static int compare_largest_first(const void *a, const void *b) {
  int order = compare_values(b, a);
  return order ? order : compare_positions(a, b);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *values = laci_result(eval, 0), *indices = laci_result(eval, 1);
  const laci_buf *shaped = values ? values : indices;
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (st || !shaped) return st;
  int64_t n = x->shape.dims[axis], k = shaped->shape.dims[axis];
  int64_t inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  int64_t n_lanes = laci_shape_count_range(&x->shape, 0, (int)axis) * inner;
  bool largest = laci_node_int(eval->node, "largest", 1) != 0;
  entry *lane = laci_alloc((size_t)n, sizeof *lane);
  if (!lane) return laci_fail_memory(eval->err, "TopK");
  for (int64_t at = 0; at < n_lanes; at++) {
    int64_t from = at / inner * n * inner + at % inner, to = at / inner * k * inner + at % inner;
    for (int64_t i = 0; i < n; i++) {
      lane[i] = (entry){.f = x->f ? x->f[from + i * inner] : 0,
                        .i = x->i ? laci_int_to_wide(x->dtype, x->i[from + i * inner]) : 0,
                        .at = i};
    }
    qsort(lane, (size_t)n, sizeof *lane, largest ? compare_largest_first : compare_smallest_first);
    for (int64_t i = 0; i < k; i++) {
      if (values) laci_copy_elements(values, to + i * inner, x, from + lane[i].at * inner, 1);
      if (indices) indices->i[to + i * inner] = lane[i].at;
    }
  }
  laci_free(lane);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "order matters to TopK";
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", -1), x->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  laci_couple_other_axes(c, 0, LACI_OUT(0), axis);
  laci_couple_other_axes(c, 0, LACI_OUT(1), axis);
  return laci_coupling_status(c);
}

const laci_op laci_op_top_k = {
    .name = "TopK",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"k", LACI_ATTR_INT},
                                  {"largest", LACI_ATTR_INT}, {"sorted", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

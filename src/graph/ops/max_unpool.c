/* SPDX-License-Identifier: Apache-2.0
 * MaxUnpool: writes each element of x to the position at which MaxPool found it, a flat index into
 * the whole pooled tensor; all other elements are 0. If a larger output is wanted, the pooled
 * tensor is its first corner. The indices depend on channels and images, so all axes are FIXED:
 * their order must stay (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Finds the shape of the tensor that MaxPool read. */
static lac_status find_shape_before_pooling(const laci_node *node, const laci_shape *x,
                                            laci_shape *pooled, lac_error *err) {
  laci_ints kernel = laci_read_int_list(node, "kernel_shape", -1, NULL);
  laci_ints strides = laci_read_int_list(node, "strides", -1, NULL);
  laci_ints pads = laci_read_int_list(node, "pads", -1, NULL);
  int n = x->rank - 2;
  *pooled = *x;
  bool fits = n >= 1 && kernel.n == n && (!strides.present || strides.n == n) &&
              (!pads.present || pads.n == 2 * n);
  for (int axis = 0; fits && axis < n; axis++) {
    int64_t stride = strides.present ? strides.v[axis] : 1, in = x->dims[axis + 2];
    int64_t cut = pads.present ? pads.v[axis] + pads.v[axis + n] : 0;
    fits = stride > 0 && stride < 1 << 20 && kernel.v[axis] < 1 << 20 && in < 1 << 30;
    if (in >= 0 && fits) pooled->dims[axis + 2] = (in - 1) * stride - cut + kernel.v[axis];
    fits = fits && (in < 0 || pooled->dims[axis + 2] > 0);
  }
  if (fits) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "the window does not fit the data");
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  laci_ints given = laci_read_int_list(infer->node, NULL, 2, laci_in_known_content(infer, 2));
  laci_shape pooled;
  if (!x) return LAC_OK;
  st = find_shape_before_pooling(infer->node, x, &pooled, infer->err);
  if (st) return st;
  infer->out[0].shape = pooled;
  for (int axis = 0; axis < pooled.rank; axis++) {
    int64_t size = pooled.dims[axis];
    bool sure = given.known && given.n == pooled.rank;
    if (given.present) size = sure ? laci_size_from_element(given.v[axis]) : LACI_SIZE_UNKNOWN;
    else if (axis >= 2 && x->dims[axis] < 0) size = LACI_SIZE_UNKNOWN;
    bool known = size >= 0 || (axis < 2 && size == x->dims[axis]);
    infer->out[0].shape.dims[axis] = known ? size : infer->new_symbol(infer);
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1];
  laci_buf *y = eval->out[0];
  laci_shape pooled;
  lac_status st = find_shape_before_pooling(eval->node, &x->shape, &pooled, eval->err);
  if (st) return st;
  int64_t n = laci_shape_count(&pooled);
  if (indices->count != x->count || y->shape.rank != pooled.rank) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "the indices do not fit the data");
  }
  for (int64_t at = 0; at < x->count; at++) {
    int64_t rest = laci_buf_get_i(indices, at), to = 0, stride = 1;
    st = laci_check_index(eval, n, &rest);
    if (st) return st;
    bool inside = true;
    for (int axis = pooled.rank - 1; axis >= 0; axis--) {
      int64_t place = rest % pooled.dims[axis];
      inside = inside && place < y->shape.dims[axis];
      to += place * stride;
      stride *= y->shape.dims[axis];
      rest /= pooled.dims[axis];
    }
    if (inside) laci_copy_elements(y, to, x, at, 1);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "the indices of MaxUnpool count channels and places";
  return laci_coupling_status(c);
}

const laci_op laci_op_max_unpool = {
    .name = "MaxUnpool",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"kernel_shape", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS},
                                  {"strides", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

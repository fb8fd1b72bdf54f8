/* SPDX-License-Identifier: Apache-2.0
 * Windows over images whose channels are the last axis: channels_last_in.h. */
#include "graph/ops/shared/channels_last_in.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

bool laci_has_channels_last(const laci_node *node) {
  return laci_node_int(node, "channels_last", 0) != 0;
}

/** Returns the shape with its channels moved to axis 1 (first), or back to the last axis. */
static laci_shape shape_with_channels_moved(const laci_shape *shape, bool first) {
  laci_shape out = *shape;
  int last = shape->rank - 1;
  for (int axis = 1; axis < shape->rank; axis++) {
    int from = first ? (axis == 1 ? last : axis - 1) : axis == last ? 1 : axis + 1;
    out.dims[axis] = shape->dims[from];
  }
  return out;
}

lac_status laci_channels_last_infer(laci_infer *infer,
                                    lac_status (*infer_first)(laci_infer *infer)) {
  lac_status st = laci_check_n_inputs(infer, 1, -1);
  if (st) return st;
  const laci_type **in = laci_alloc((size_t)infer->n_in, sizeof(laci_type *));
  if (!in) return laci_fail_memory(infer->err, infer->node->name);
  laci_type x = *infer->in[0];
  x.shape = shape_with_channels_moved(&infer->in[0]->shape, true);
  for (int port = 0; port < infer->n_in; port++) in[port] = port ? infer->in[port] : &x;
  laci_infer inner = *infer;
  inner.in = in;
  st = infer_first(&inner);
  laci_shape *y = &infer->out[0].shape;
  if (!st) *y = shape_with_channels_moved(y, false);
  laci_free((void *)in);
  return st;
}

/** Copies `in` to `out` with the channels moved to axis 1 (first), or from there to the last axis.
 */
static void move_channels(const laci_eval *eval, const laci_buf *in, bool first, laci_buf *out) {
  int64_t strides[LACI_MAX_RANK];
  laci_shape marks = {.rank = in->shape.rank}, moved;
  laci_shape_strides(&in->shape, strides);
  for (int axis = 0; axis < marks.rank; axis++) marks.dims[axis] = strides[axis];
  moved = shape_with_channels_moved(&marks, first);
  laci_copy_strided_to_rows(eval, in, &out->shape, moved.dims, 0, out);
}

lac_status laci_channels_last_eval(laci_eval *eval, lac_status (*eval_first)(laci_eval *eval)) {
  laci_buf *x = NULL, *y = NULL;
  const laci_shape in_shape = shape_with_channels_moved(&eval->in[0]->shape, true);
  const laci_shape out_shape = shape_with_channels_moved(&eval->out[0]->shape, true);
  const laci_buf **in = laci_alloc((size_t)eval->n_in, sizeof(laci_buf *));
  lac_status st = in ? LAC_OK : laci_fail_memory(eval->err, eval->node->name);
  if (!st) st = laci_buf_create(eval->in[0]->dtype, &in_shape, &x, eval->err);
  if (!st) st = laci_buf_create(eval->out[0]->dtype, &out_shape, &y, eval->err);
  if (!st) {
    move_channels(eval, eval->in[0], true, x);
    for (int port = 0; port < eval->n_in; port++) in[port] = port ? eval->in[port] : x;
    laci_eval inner = *eval;
    inner.in = in;
    inner.out = &y;
    inner.n_out = 1;
    st = eval_first(&inner);
  }
  if (!st) move_channels(eval, y, false, eval->out[0]);
  laci_buf_destroy(x);
  laci_buf_destroy(y);
  laci_free((void *)in);
  return st;
}

lac_status laci_quantized_pool_infer(laci_infer *infer) {
  return laci_has_channels_last(infer->node) ? laci_channels_last_infer(infer, laci_quantized_infer)
                                             : laci_quantized_infer(infer);
}

lac_status laci_quantized_pool_eval(laci_eval *eval) {
  return laci_has_channels_last(eval->node) ? laci_channels_last_eval(eval, laci_quantized_eval)
                                            : laci_quantized_eval(eval);
}

lac_status laci_quantized_pool_couple(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c) {
  c->why = "channels are the last axis";
  return laci_has_channels_last(node) ? laci_coupling_status(c)
                                      : laci_quantized_couple_orders(graph, node, c);
}

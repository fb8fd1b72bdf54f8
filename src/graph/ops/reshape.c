/* SPDX-License-Identifier: Apache-2.0
 * Reshape: the same elements in row-major order under other axes. In the wanted shape, 0 copies a
 * size (unless allowzero, opset 14), and one -1 stands for the remaining size.
 *
 * The size for -1 is found by cancelling sizes and symbols of the input against those of the wanted
 * shape, so that [N, 512, 1, 1] under [N, -1] is [N, 512]. */
#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Removes one occurrence of `symbol` from the list. Returns false if there is none. */
static bool remove_symbol(int64_t *symbols, int *n, int64_t symbol) {
  for (int at = 0; at < *n; at++) {
    if (symbols[at] != symbol) continue;
    symbols[at] = symbols[--*n];
    return true;
  }
  return false;
}

/** Computes the size at axis `open` of out: the number of elements of x, divided by the sizes of
 * all other axes. */
static lac_status infer_remaining_size(laci_infer *infer, const laci_shape *x, int open,
                                       laci_shape *out) {
  int64_t symbols[LACI_MAX_RANK], have = 1, want = 1;
  int n_symbols = 0;
  bool sure = true;
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[axis] < 0) symbols[n_symbols++] = x->dims[axis];
    else sure &= !__builtin_mul_overflow(have, x->dims[axis], &have);
  }
  for (int axis = 0; axis < out->rank; axis++) {
    if (axis == open) continue;
    if (out->dims[axis] < 0) sure &= remove_symbol(symbols, &n_symbols, out->dims[axis]);
    else sure &= !__builtin_mul_overflow(want, out->dims[axis], &want);
  }
  if (sure && n_symbols == 0) {
    if (want == 0 || have % want != 0) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                            "%lld elements cannot be cut into rows of %lld", (long long)have,
                            (long long)want);
    }
    out->dims[open] = have / want;
  } else if (sure && n_symbols == 1 && have == want) {
    out->dims[open] = symbols[0];
  } else {
    out->dims[open] = infer->new_symbol(infer);
  }
  return LAC_OK;
}

static lac_status read_requested_sizes(laci_infer *infer, const laci_buf *sizes, int *open) {
  const laci_shape *x = laci_in_shape(infer, 0);
  laci_shape *out = &infer->out[0].shape;
  bool allow_zero = laci_node_int(infer->node, "allowzero", 0) != 0;
  *open = -1;
  out->rank = (int)sizes->count;
  for (int axis = 0; axis < out->rank; axis++) {
    int64_t size = laci_size_from_element(sizes->i[axis]);
    out->dims[axis] = size;
    if (laci_is_symbol(sizes->i[axis])) continue;
    if (size < -1 || (size == -1 && *open >= 0)) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "size %lld of axis %d",
                            (long long)size, axis);
    }
    if (size == -1) *open = axis;
    if (size != 0 || allow_zero) continue;
    if (x && axis >= x->rank) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                            "axis %d copies from an input of %d axes", axis, x->rank);
    }
    out->dims[axis] = x ? x->dims[axis] : infer->new_symbol(infer);
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0), *wanted = laci_in_shape(infer, 1);
  const laci_buf *sizes = laci_in_known_content(infer, 1);
  laci_shape *out = &infer->out[0].shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (!wanted || wanted->rank != 1 || wanted->dims[0] < 0) return LAC_OK;
  if (wanted->dims[0] > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a shape of %lld axes",
                          (long long)wanted->dims[0]);
  }
  if (!sizes || !sizes->i) {
    out->rank = (int)wanted->dims[0];
    for (int axis = 0; axis < out->rank; axis++) out->dims[axis] = infer->new_symbol(infer);
    return LAC_OK;
  }
  int open;
  st = read_requested_sizes(infer, sizes, &open);
  if (st) return st;
  if (open >= 0 && x) return infer_remaining_size(infer, x, open, out);
  if (open >= 0) out->dims[open] = infer->new_symbol(infer);
  char from[128], to[128];
  if (x && laci_shape_is_known(x) && laci_shape_is_known(out) &&
      laci_shape_count(x) != laci_shape_count(out)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%s cannot become %s",
                          laci_shape_text(x, from, sizeof from),
                          laci_shape_text(out, to, sizeof to));
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  if (eval->in[0]->count != eval->out[0]->count) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "%lld elements become %lld",
                          (long long)eval->in[0]->count, (long long)eval->out[0]->count);
  }
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  c->reshape = true;
  return laci_coupling_status(c);
}

const laci_op laci_op_reshape = {.name = "Reshape",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"allowzero", LACI_ATTR_INT}),
                                 .moves_data = true,
                                 .is_fold = true,
                                 .inputs_without_channels = 1u << 1,
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = couple_channel_orders,
                                 .gradient = laci_gradient_of_reshape};

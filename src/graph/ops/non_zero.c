/* SPDX-License-Identifier: Apache-2.0
 * NonZero: the indices of all elements that are not zero, [axes, count], in row-major order. The
 * output holds indices, so all axes are FIXED: their order must stay (coupling.h). The count is
 * known only where the content is. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static bool is_element_nonzero(const laci_buf *x, int64_t at) {
  return x->f ? x->f[at] != 0 : x->i[at] != 0;
}

static int64_t count_nonzero(const laci_buf *x) {
  int64_t n = 0;
  for (int64_t at = 0; at < x->count; at++) {
    if (x->i && laci_is_symbol(x->i[at])) return -1;
    n += is_element_nonzero(x, at);
  }
  return n;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  const laci_buf *content = laci_in_known_content(infer, 0);
  int64_t n = content ? count_nonzero(content) : -1;
  infer->out[0].dtype = LAC_DTYPE_I64;
  infer->out[0].shape.rank = 2;
  infer->out[0].shape.dims[0] = x ? x->rank : infer->new_symbol(infer);
  infer->out[0].shape.dims[1] = n >= 0 ? n : infer->new_symbol(infer);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *out = eval->out[0];
  int64_t n = out->shape.dims[1];
  for (int64_t at = 0, found = 0; at < x->count && found < n; at++) {
    if (!is_element_nonzero(x, at)) continue;
    int64_t rest = at;
    for (int axis = x->shape.rank - 1; axis >= 0; axis--) {
      out->i[axis * n + found] = rest % x->shape.dims[axis];
      rest /= x->shape.dims[axis];
    }
    found++;
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  c->why = "order matters to NonZero";
  return laci_coupling_status(c);
}

const laci_op laci_op_non_zero = {.name = "NonZero",
                                  .role = LACI_ROLE_SKIP,
                                  .discontinuous = true,
                                  .is_fold = true,
                                  .sizes_from_data = true,
                                  .infer = infer,
                                  .eval = eval,
                                  .couple = couple_channel_orders};

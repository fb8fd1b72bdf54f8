/* SPDX-License-Identifier: Apache-2.0
 * CumSum: running sums along an axis, from the first element or (reverse) the last, with or
 * (exclusive) without the element itself. Order matters along the axis; the others pass through.
 * CumProd (cum_prod.c) is the same with products. */
#include "graph/coupling.h"
#include "graph/ops/shared/cumulative_in.h"
#include "tensor/buf.h"

lac_status laci_cumulative_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

static lac_status read_axis(const laci_eval *eval, int64_t *axis) {
  const laci_buf *given = eval->in[1];
  if (given->count != 1)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "axis is no scalar");
  *axis = laci_buf_get_i(given, 0);
  return laci_check_axis(eval->node, eval->in[0]->shape.rank, axis, eval->err);
}

lac_status laci_cumulative_eval(laci_eval *eval, bool product) {
  const laci_buf *x = eval->in[0];
  laci_buf *out = eval->out[0];
  bool exclusive = laci_node_int(eval->node, "exclusive", 0) != 0;
  bool reverse = laci_node_int(eval->node, "reverse", 0) != 0;
  int64_t axis;
  lac_status st = read_axis(eval, &axis);
  if (st || x->count == 0) return st;
  int64_t n = x->shape.dims[axis];
  int64_t inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  for (int64_t lane = 0; lane < x->count / n; lane++) {
    int64_t first = lane / inner * n * inner + lane % inner;
    double all = product;
    uint64_t all_i = product;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = first + (reverse ? n - 1 - i : i) * inner;
      if (x->f) {
        double with = product ? all * x->f[at] : all + x->f[at];
        out->f[at] = exclusive ? all : with;
        all = with;
      } else {
        uint64_t more = (uint64_t)x->i[at], with = product ? all_i * more : all_i + more;
        out->i[at] = laci_int_wrap(out->dtype, (int64_t)(exclusive ? all_i : with));
        all_i = with;
      }
    }
  }
  return LAC_OK;
}

lac_status laci_cumulative_couple_orders(const laci_graph *graph, const laci_node *node,
                                         laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0);
  const laci_buf *given = laci_known_content(graph, node, 1);
  c->why = "order matters to a running sum or product";
  int axis = x && given && given->count == 1
                 ? laci_axis_counted_from_first(laci_buf_get_i(given, 0), x->rank)
                 : -1;
  if (axis >= 0) laci_couple_other_axes(c, 0, LACI_OUT(0), axis);
  return laci_coupling_status(c);
}

static lac_status eval(laci_eval *eval) { return laci_cumulative_eval(eval, false); }

const laci_op laci_op_cum_sum = {
    .name = "CumSum",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"exclusive", LACI_ATTR_INT}, {"reverse", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_cumulative_infer,
    .eval = eval,
    .couple = laci_cumulative_couple_orders};

/* SPDX-License-Identifier: Apache-2.0
 * SimplifiedLayerNormalization, which ONNX Runtime writes into ai.onnx though ONNX does not have
 * it: y = x / sqrt(mean x^2 + epsilon) * scale over all axes from `axis` on; the second output is 1
 * / sqrt(mean x^2 + epsilon). The scale has the shape of the normalized axes. */
#include "graph/coupling.h"
#include "graph/ops/shared/microsoft_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (!st) st = laci_check_input_sizes(infer, 1, x->rank - (int)axis, x->dims + axis);
  if (st || infer->n_out < 2) return st;
  infer->out[1] = (laci_type){.dtype = LAC_DTYPE_F32, .shape = *x};
  for (int at = (int)axis; at < x->rank; at++) infer->out[1].shape.dims[at] = 1;
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  int64_t n; /* elements of a row */
} job;

static void normalize_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  laci_buf *inverse = laci_result(j->eval, 1);
  const double *scale = j->eval->in[1]->f;
  double epsilon = laci_epsilon(j->eval->node);
  for (int64_t row = begin; row < end; row++) {
    const double *x = j->eval->in[0]->f + row * j->n;
    double *y = j->eval->out[0]->f + row * j->n;
    double factor = laci_inverse_root_mean_square(x, j->n, epsilon);
    for (int64_t i = 0; i < j->n; i++) y[i] = x[i] * factor * scale[i];
    if (inverse) inverse->f[row] = factor;
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[0]->shape;
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st || eval->in[0]->count == 0) return st;
  job j = {.eval = eval, .n = laci_shape_count_range(x, (int)axis, x->rank)};
  laci_eval_parallel(eval, eval->in[0]->count / j.n, normalize_rows, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0);
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", -1), x->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  laci_couple_broadcast_ports(c, (const int[]){0, 1}, 2);
  for (int at = 0; at < x->rank; at++) {
    if (at >= axis) laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, at));
    laci_coupling_set_label(
        c, LACI_OUT(1), at,
        at < axis ? laci_coupling_get_label(c, 0, at) : laci_coupling_new_label(c));
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_simplified_layer_normalization = {
    .name = "SimplifiedLayerNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"epsilon", LACI_ATTR_FLOAT},
                                  {"stash_type", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

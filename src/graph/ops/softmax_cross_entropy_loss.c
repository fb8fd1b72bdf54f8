/* SPDX-License-Identifier: Apache-2.0
 * SoftmaxCrossEntropyLoss: the loss of shared/loss_in.h, applied to log(softmax(scores)) over the
 * classes, which is an optional output. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/loss_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_loss_infer(infer);
  if (!st && infer->n_out > 1) infer->out[1] = *infer->in[0];
  return st;
}

/** y[i] = x[i] - log sum e^x, n elements `stride` apart. */
static void log_softmax(const double *x, double *y, int64_t n, int64_t stride) {
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, x[i * stride]);
  for (int64_t i = 0; i < n; i++) sum += exp(x[i * stride] - largest);
  for (int64_t i = 0; i < n; i++) y[i * stride] = x[i * stride] - largest - log(sum);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *out = laci_result(eval, 1);
  if (!x->f || !eval->out[0]->f) return laci_check_floats(eval);
  double *log_prob = out ? out->f : laci_alloc((size_t)x->count, sizeof *log_prob);
  if (!log_prob) return laci_fail_memory(eval->err, eval->node->name);
  int64_t classes = x->shape.dims[1], places = laci_shape_count_range(&x->shape, 2, x->shape.rank);
  for (int64_t line = 0; line < x->shape.dims[0] * places; line++) {
    int64_t first = line / places * classes * places + line % places;
    log_softmax(x->f + first, log_prob + first, classes, places);
  }
  lac_status st = laci_loss_eval(eval, log_prob);
  if (!out) laci_free(log_prob);
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  lac_status st = laci_loss_couple_orders(graph, node, c);
  const laci_shape *x = laci_port_shape(c, 0);
  if (st || !x || !laci_port_shape(c, 1) || !laci_port_shape(c, LACI_OUT(1))) return st;
  for (int axis = 0; axis < x->rank; axis++) {
    laci_coupling_set_label(c, LACI_OUT(1), axis, laci_coupling_get_label(c, 0, axis));
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_softmax_cross_entropy_loss = {
    .name = "SoftmaxCrossEntropyLoss",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"ignore_index", LACI_ATTR_INT}, {"reduction", LACI_ATTR_TEXT}),
    .inputs_without_channels = 1u << 2,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

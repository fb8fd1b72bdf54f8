/* SPDX-License-Identifier: Apache-2.0
 * NegativeLogLikelihoodLoss: shared/loss_in.h defines it; softmax_cross_entropy_loss.c shares this
 * code. */
#include "graph/coupling.h"
#include "graph/ops/shared/loss_in.h"
#include "tensor/buf.h"

static bool is_loss_per_element(const laci_node *node) {
  return strcmp(laci_node_text(node, "reduction", "mean"), "none") == 0;
}

lac_status laci_loss_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0), *labels = laci_in_shape(infer, 1);
  infer->out[0].dtype = infer->in[0]->dtype;
  bool fits = (!x || x->rank >= 2) && (!labels || labels->rank >= 1) &&
              (!x || !labels || labels->rank == x->rank - 1);
  for (int axis = 0; fits && x && labels && axis < labels->rank; axis++) {
    int64_t size = x->dims[axis ? axis + 1 : 0];
    fits = size < 0 || labels->dims[axis] < 0 || size == labels->dims[axis];
  }
  if (!fits) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "the labels do not fit the scores");
  }
  if (!is_loss_per_element(infer->node)) infer->out[0].shape.rank = 0;
  else if (labels) infer->out[0].shape = *labels;
  return LAC_OK;
}

lac_status laci_loss_eval(const laci_eval *eval, const double *x) {
  const laci_node *node = eval->node;
  const laci_shape *shape = &eval->in[0]->shape;
  const laci_buf *labels = eval->in[1], *weights = laci_operand(eval, 2);
  bool kept = is_loss_per_element(node), ignores = laci_node_attr(node, "ignore_index") != NULL;
  bool mean = strcmp(laci_node_text(node, "reduction", "mean"), "mean") == 0;
  int64_t ignored = laci_node_int(node, "ignore_index", 0), classes = shape->dims[1];
  int64_t places = laci_shape_count_range(shape, 2, shape->rank);
  double sum = 0, sum_weights = 0;
  for (int64_t at = 0; at < labels->count; at++) {
    int64_t label = laci_buf_get_i(labels, at);
    if (ignores && label == ignored) continue;
    if (label < 0 || label >= classes || (weights && label >= weights->count)) {
      return laci_node_fail(node, eval->err, LAC_BAD_VALUE, "label %lld of %lld classes",
                            (long long)label, (long long)classes);
    }
    double weight = weights ? laci_buf_get_f(weights, label) : 1;
    double loss = -x[(at / places * classes + label) * places + at % places] * weight;
    if (kept) eval->out[0]->f[at] = loss;
    sum += loss;
    sum_weights += weight;
  }
  if (!kept) eval->out[0]->f[0] = mean ? sum / sum_weights : sum;
  return LAC_OK;
}

lac_status laci_loss_couple_orders(const laci_graph *graph, const laci_node *node,
                                   laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0), *labels = laci_port_shape(c, 1);
  c->why = "a label is a class's number";
  if (!x || !labels || labels->rank != x->rank - 1) return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, 1);
  for (int axis = 0; axis < labels->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis ? axis + 1 : 0, label);
    laci_coupling_set_label(c, 1, axis, label);
    if (is_loss_per_element(node)) laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

static lac_status eval(laci_eval *eval) {
  if (!eval->in[0]->f || !eval->out[0]->f) return laci_check_floats(eval);
  return laci_loss_eval(eval, eval->in[0]->f);
}

const laci_op laci_op_negative_log_likelihood_loss = {
    .name = "NegativeLogLikelihoodLoss",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"ignore_index", LACI_ATTR_INT}, {"reduction", LACI_ATTR_TEXT}),
    .inputs_without_channels = 1u << 2,
    .infer = laci_loss_infer,
    .eval = eval,
    .couple = laci_loss_couple_orders};

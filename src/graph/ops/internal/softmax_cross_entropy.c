/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SoftmaxCrossEntropy: loss = -1/N sum over n, c of labels[n c] * log softmax(logits)[n c].
 *
 * Labels are class probabilities: one-hot, smoothed or mixed. The largest logit is subtracted
 * first, against overflow. Its gradient is softmax_cross_entropy_grad.c; labels get none. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_infer_equal_shapes(infer, 0, 1);
  if (st) return st;
  infer->out[0].shape = (laci_shape){.rank = 0};
  if (infer->in[0]->shape.rank == 2 || infer->in[0]->shape.rank < 0) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "logits of %d axes, wanted 2",
                        infer->in[0]->shape.rank);
}

static double compute_row_loss(const double *logits, const double *labels, int64_t n) {
  double largest = -INFINITY, sum = 0, loss = 0;
  for (int64_t c = 0; c < n; c++) largest = fmax(largest, logits[c]);
  for (int64_t c = 0; c < n; c++) sum += exp(logits[c] - largest);
  double log_sum = largest + log(sum);
  for (int64_t c = 0; c < n; c++) {
    if (labels[c] != 0) loss += labels[c] * (log_sum - logits[c]); /* 0 * inf is 0 here */
  }
  return loss;
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  int64_t rows = eval->in[0]->shape.dims[0], n = eval->in[0]->shape.dims[1];
  double loss = 0;
  for (int64_t row = 0; row < rows; row++)
    loss += compute_row_loss(eval->in[0]->f + row * n, eval->in[1]->f + row * n, n);
  eval->out[0]->f[0] = rows ? loss / (double)rows : 0;
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  if (laci_gradient_is_needed(b, node, 1))
    return laci_gradient_fail_unsupported(b, node, "labels have no gradient");
  const int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[0], node->inputs[1]};
  laci_gradient_contribute(
      b, node, 0, laci_gradient_add_internal(b, "SoftmaxCrossEntropyGrad", 3, inputs, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_softmax_cross_entropy = {.name = "SoftmaxCrossEntropy",
                                               .domain = "lacuna",
                                               .role = LACI_ROLE_PASS_THROUGH,
                                               .infer = infer,
                                               .eval = eval,
                                               .couple = laci_couple_nothing,
                                               .gradient = gradient};

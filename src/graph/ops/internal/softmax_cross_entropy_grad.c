/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SoftmaxCrossEntropyGrad: inputs dloss [], logits, labels;
 *   dlogits[n c] = dloss / N * (softmax(logits)[n c] * sum over k of labels[n k] - labels[n c]). */
#include <math.h>

#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (!st) st = laci_check_input_shape(infer, 0, &(laci_shape){.rank = 0});
  if (!st) st = laci_infer_equal_shapes(infer, 1, 2);
  if (st || infer->in[1]->shape.rank == 2 || infer->in[1]->shape.rank < 0) return st;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "logits of %d axes, wanted 2",
                        infer->in[1]->shape.rank);
}

static void compute_row_gradient(const double *logits, const double *labels, int64_t n,
                                 double factor, double *out) {
  double largest = -INFINITY, sum = 0, weight = 0;
  for (int64_t c = 0; c < n; c++) largest = fmax(largest, logits[c]);
  for (int64_t c = 0; c < n; c++) {
    sum += out[c] = exp(logits[c] - largest);
    weight += labels[c];
  }
  for (int64_t c = 0; c < n; c++) out[c] = factor * (out[c] / sum * weight - labels[c]);
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  int64_t rows = eval->in[1]->shape.dims[0], n = eval->in[1]->shape.dims[1];
  for (int64_t row = 0; row < rows; row++)
    compute_row_gradient(eval->in[1]->f + row * n, eval->in[2]->f + row * n, n,
                         eval->in[0]->f[0] / (double)rows, eval->out[0]->f + row * n);
  return LAC_OK;
}

const laci_op laci_op_softmax_cross_entropy_grad = {.name = "SoftmaxCrossEntropyGrad",
                                                    .domain = "lacuna",
                                                    .role = LACI_ROLE_PASS_THROUGH,
                                                    .infer = infer,
                                                    .eval = eval,
                                                    .couple = laci_couple_nothing};

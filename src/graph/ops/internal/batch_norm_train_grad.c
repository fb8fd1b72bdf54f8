/* SPDX-License-Identifier: Apache-2.0
 * lacuna.BatchNormTrainGrad: inputs dY, X, scale, mean, var; with h = (X - mean) / sqrt(var + eps),
 *   dbias = sum dY,  dscale = sum dY * h       over the n images and positions of a channel
 *   dX = scale / sqrt(var + eps) * (dY - dbias / n - h * dscale / n)
 * where mean and var are those of the batch; dX = scale / sqrt(var + eps) * dY where they are
 * fixed. */
#include <math.h>

#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

enum { N_INPUTS = 5 };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, N_INPUTS, N_INPUTS);
  if (!st) st = laci_infer_equal_shapes(infer, 0, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 1);
  if (x && x->rank < 2)
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the input has no channel axis");
  for (int port = 2; port < N_INPUTS && !st; port++)
    st = laci_check_input_vector(infer, port, x ? x->dims[1] : -1);
  for (int out = 1; out < infer->n_out && out < 3; out++) infer->out[out] = *infer->in[2];
  return st;
}

typedef struct job {
  const laci_eval *eval;
  double epsilon;
  bool fixed;
  int64_t channels, spatial, n_images;
} job;

static void differentiate_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const double *dy = j->eval->in[0]->f, *x = j->eval->in[1]->f;
  const laci_buf *const *in = j->eval->in;
  laci_buf *dx = laci_result(j->eval, 0), *dscale = laci_result(j->eval, 1),
           *dbias = laci_result(j->eval, 2);
  double n = (double)(j->n_images * j->spatial);
  for (int64_t channel = begin; channel < end; channel++) {
    double inverse = 1 / sqrt(in[4]->f[channel] + j->epsilon), mean = in[3]->f[channel];
    double sum = 0, product = 0, factor = in[2]->f[channel] * inverse;
    for (int64_t at = 0; at < j->n_images * j->spatial; at++) {
      int64_t i = (at / j->spatial * j->channels + channel) * j->spatial + at % j->spatial;
      sum += dy[i];
      product += dy[i] * (x[i] - mean) * inverse;
    }
    if (dscale) dscale->f[channel] = product;
    if (dbias) dbias->f[channel] = sum;
    for (int64_t at = 0; dx && at < j->n_images * j->spatial; at++) {
      int64_t i = (at / j->spatial * j->channels + channel) * j->spatial + at % j->spatial;
      double off = j->fixed ? 0 : (sum + (x[i] - mean) * inverse * product) / n;
      dx->f[i] = factor * (dy[i] - off);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  const laci_shape *x = &eval->in[1]->shape;
  if (st || eval->in[1]->count == 0) return st;
  job j = {.eval = eval,
           .epsilon = laci_epsilon(eval->node),
           .fixed = laci_node_int(eval->node, "fixed", 0) != 0,
           .channels = x->dims[1],
           .spatial = laci_shape_count_range(x, 2, x->rank),
           .n_images = x->dims[0]};
  laci_eval_parallel(eval, j.channels, differentiate_channels, &j);
  return LAC_OK;
}

const laci_op laci_op_batch_norm_train_grad = {.name = "BatchNormTrainGrad",
                                               .domain = "lacuna",
                                               .role = LACI_ROLE_PASS_THROUGH,
                                               .infer = infer,
                                               .eval = eval,
                                               .couple = laci_couple_nothing};

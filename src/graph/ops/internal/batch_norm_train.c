/* SPDX-License-Identifier: Apache-2.0
 * lacuna.BatchNormTrain: batch normalization by the statistics of the batch, or by given ones
 * (fixed; gradient.h lists the ports). Values are normalized by the biased variance; the running
 * variance is updated by the unbiased one, as in PyTorch and other frameworks. Its gradient is
 * batch_norm_train_grad.c. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

enum { N_INPUTS = 5, N_OUTPUTS = 5 };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, N_INPUTS, N_INPUTS);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (x && x->rank < 2)
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the input has no channel axis");
  for (int port = 1; port < N_INPUTS && !st; port++)
    st = laci_check_input_vector(infer, port, x ? x->dims[1] : -1);
  infer->out[0] = *infer->in[0];
  for (int out = 1; out < infer->n_out && out < N_OUTPUTS; out++) infer->out[out] = *infer->in[1];
  return st;
}

typedef struct job {
  const laci_eval *eval;
  double epsilon, keep;
  bool fixed;
  int64_t channels, spatial, n_images;
} job;

static laci_moments find_batch_or_fixed_moments(const job *j, int64_t channel) {
  const double *x = j->eval->in[0]->f;
  if (j->fixed)
    return (laci_moments){.mean = j->eval->in[3]->f[channel],
                          .variance = j->eval->in[4]->f[channel]};
  double sum = 0, squares = 0, n = (double)(j->n_images * j->spatial);
  for (int64_t image = 0; image < j->n_images; image++) {
    const double *from = x + (image * j->channels + channel) * j->spatial;
    for (int64_t i = 0; i < j->spatial; i++) sum += from[i];
  }
  double mean = sum / n;
  for (int64_t image = 0; image < j->n_images; image++) {
    const double *from = x + (image * j->channels + channel) * j->spatial;
    for (int64_t i = 0; i < j->spatial; i++) squares += (from[i] - mean) * (from[i] - mean);
  }
  return (laci_moments){.mean = mean, .variance = squares / n};
}

static void write_statistic(const job *j, int port, int64_t channel, double x) {
  laci_buf *out = laci_result(j->eval, port);
  if (out) out->f[channel] = x;
}

static void normalize_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *const *in = j->eval->in;
  double n = (double)(j->n_images * j->spatial), unbiased = n > 1 ? n / (n - 1) : 1;
  for (int64_t channel = begin; channel < end; channel++) {
    laci_moments m = find_batch_or_fixed_moments(j, channel);
    double factor = in[1]->f[channel] / sqrt(m.variance + j->epsilon);
    double bias = in[2]->f[channel];
    for (int64_t image = 0; image < j->n_images; image++) {
      int64_t from = (image * j->channels + channel) * j->spatial;
      for (int64_t i = from; i < from + j->spatial; i++)
        j->eval->out[0]->f[i] = (in[0]->f[i] - m.mean) * factor + bias;
    }
    write_statistic(j, 1, channel, m.mean);
    write_statistic(j, 2, channel, m.variance);
    if (j->eval->n_out <= 3) continue;
    write_statistic(j, 3, channel, j->keep * in[3]->f[channel] + (1 - j->keep) * m.mean);
    write_statistic(j, 4, channel,
                    j->keep * in[4]->f[channel] + (1 - j->keep) * m.variance * unbiased);
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  const laci_shape *x = &eval->in[0]->shape;
  if (st || eval->in[0]->count == 0) return st;
  job j = {.eval = eval,
           .epsilon = laci_epsilon(eval->node),
           .keep = laci_node_float(eval->node, "momentum", 0.9f),
           .fixed = laci_node_int(eval->node, "fixed", 0) != 0,
           .channels = x->dims[1],
           .spatial = laci_shape_count_range(x, 2, x->rank),
           .n_images = x->dims[0]};
  laci_eval_parallel(eval, j.channels, normalize_channels, &j);
  return LAC_OK;
}

/** Gradients pass through Y only: no loss depends on the new statistics. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), out[3];
  if (!laci_has_output(node, 1) || !laci_has_output(node, 2))
    return laci_gradient_fail_unsupported(b, node,
                                          "without its batch's statistics it has no gradient");
  for (int port = 1; port < node->n_outputs; port++) {
    if (laci_gradient_of(b, node, port) >= 0)
      return laci_gradient_fail_unsupported(b, node, "the statistics of a batch have no gradient");
  }
  const laci_attr attrs[] = {laci_attr_float("epsilon", laci_node_float(node, "epsilon", 1e-5f)),
                             laci_attr_int("fixed", laci_node_int(node, "fixed", 0))};
  const int inputs[] = {dy, node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2]};
  laci_gradient_node made = {.type = "BatchNormTrainGrad",
                             .domain = "lacuna",
                             .n_inputs = 5,
                             .n_outputs = 3,
                             .inputs = inputs,
                             .n_attrs = 2,
                             .attrs = attrs};
  (void)laci_gradient_add_node(b, &made, out);
  for (int port = 0; port < 3; port++) laci_gradient_contribute(b, node, port, out[port]);
  return laci_gradient_status(b);
}

const laci_op laci_op_batch_norm_train = {.name = "BatchNormTrain",
                                          .domain = "lacuna",
                                          .role = LACI_ROLE_INFER,
                                          .infer = infer,
                                          .eval = eval,
                                          .couple = laci_couple_nothing,
                                          .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization: y = (x - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + bias[c].
 *
 * In training (training_mode from opset 14 on, more than one output before it), mean and variance
 * are computed from the batch, and new running ones are outputs: running * momentum + batch * (1 -
 * momentum). The four parameters share the order of the channels. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

enum { SCALE = 1, BIAS, MEAN, VARIANCE, N_INPUTS };

static bool is_training(const laci_node *node) {
  if (node->version >= 14) return laci_node_int(node, "training_mode", 0) != 0;
  return laci_has_output(node, 1);
}

static bool is_normalized_per_position(
    const laci_node *node) { /* in opset 7, every spatial position could be normalized separately */
  return node->version < 9 && laci_node_int(node, "spatial", 1) == 0;
}

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *scale = laci_expect_known_shape_of_input(infer, 1);
  return scale && scale->rank == 1 && laci_expect_size(infer, -1, 1, scale->dims[0], shape);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, N_INPUTS, N_INPUTS);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0] = *infer->in[0];
  if (x && x->rank < 1) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the input has no channel axis");
  }
  for (int port = SCALE; port < N_INPUTS; port++) {
    lac_dtype dtype = infer->in[port] ? infer->in[port]->dtype : LAC_DTYPE_NONE;
    if (dtype == LAC_DTYPE_NONE || laci_dtype_is_float(dtype)) continue;
    return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE,
                          "input %d has elements of type %s, a float type is wanted", port,
                          lac_dtype_name(dtype));
  }
  int64_t channels = !x ? -1 : x->rank == 1 ? 1 : x->dims[1];
  for (int port = SCALE; port < N_INPUTS && !is_normalized_per_position(infer->node); port++) {
    st = laci_check_input_vector(infer, port, channels);
    if (st) return st;
  }
  for (int out = 1; out < infer->n_out; out++) infer->out[out] = *infer->in[MEAN];
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  const double *mean, *variance;
  double epsilon;
  int64_t channels, spatial, n_images;
} job;

static void normalize_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_eval *eval = j->eval;
  for (int64_t at = begin; at < end; at++) {
    int64_t channel = at % j->channels;
    double factor = eval->in[SCALE]->f[channel] / sqrt(j->variance[channel] + j->epsilon);
    double mean = j->mean[channel], bias = eval->in[BIAS]->f[channel];
    const double *x = eval->in[0]->f + at * j->spatial;
    double *y = eval->out[0]->f + at * j->spatial;
    for (int64_t i = 0; i < j->spatial; i++) y[i] = (x[i] - mean) * factor + bias;
  }
}

/** Returns mean and variance of one channel, over all images and positions of the batch. */
static laci_moments compute_batch_moments(const job *j, int64_t channel) {
  const double *x = j->eval->in[0]->f + channel * j->spatial;
  int64_t image = j->channels * j->spatial, n = j->n_images * j->spatial;
  double sum = 0, squares = 0;
  for (int64_t at = 0; at < n; at++) sum += x[at / j->spatial * image + at % j->spatial];
  double mean = sum / (double)n;
  for (int64_t at = 0; at < n; at++) {
    double off = x[at / j->spatial * image + at % j->spatial] - mean;
    squares += off * off;
  }
  return (laci_moments){.mean = mean, .variance = squares / (double)n};
}

static lac_status eval_training(laci_eval *eval, job *j) {
  double keep = laci_node_float(eval->node, "momentum", 0.9f);
  laci_shape shape = laci_shape_of(1, &j->channels);
  laci_buf *mean = NULL, *variance = NULL;
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &shape, &mean, eval->err);
  if (!st) st = laci_buf_create(LAC_DTYPE_F64, &shape, &variance, eval->err);
  if (st) goto out;
  for (int64_t channel = 0; channel < j->channels; channel++) {
    laci_moments own = compute_batch_moments(j, channel);
    mean->f[channel] = own.mean;
    variance->f[channel] = own.variance;
    const double now[] = {own.mean, own.variance};
    for (int out = 1; out < eval->n_out; out++) {
      if (!eval->out[out]) continue;
      /* outputs 1 and 2 are running statistics; outputs 3 and 4, before opset 14, those of the
       * batch */
      bool running = out <= 2;
      double old = eval->in[MEAN + (out - 1) % 2]->f[channel], fresh = now[(out - 1) % 2];
      eval->out[out]->f[channel] = running ? old * keep + fresh * (1 - keep) : fresh;
    }
  }
  j->mean = mean->f;
  j->variance = variance->f;
  laci_eval_parallel(eval, j->n_images * j->channels, normalize_channels, j);
out:
  laci_buf_destroy(mean);
  laci_buf_destroy(variance);
  return st;
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  if (is_normalized_per_position(eval->node)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "spatial = 0 cannot be run");
  }
  const laci_shape *x = &eval->in[0]->shape;
  job j = {.eval = eval,
           .mean = eval->in[MEAN]->f,
           .variance = eval->in[VARIANCE]->f,
           .epsilon = laci_epsilon(eval->node),
           .channels = x->rank > 1 ? x->dims[1] : 1,
           .spatial = laci_shape_count_range(x, x->rank > 1 ? 2 : 1, x->rank),
           .n_images = x->dims[0]};
  if (is_training(eval->node)) return eval_training(eval, &j);
  laci_eval_parallel(eval, j.n_images * j.channels, normalize_channels, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  if (is_normalized_per_position(node) || !laci_couple_channels(c, SCALE, VARIANCE))
    return laci_coupling_status(c);
  const laci_shape *x = laci_port_shape(c, 0);
  for (int out = 1; out < node->n_outputs; out++) {
    laci_coupling_set_label(c, LACI_OUT(out), 0, laci_coupling_get_label(c, 0, 1));
  }
  for (int axis = 0; axis < x->rank && is_training(node); axis++) {
    if (axis != 1) laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  }
  return laci_coupling_status(c);
}

/** Adds a node with the same normalization and statistics, but other operands. scale -1: a vector
 * of ones; mean -1: a vector of zeros. */
static int add_normalization_of(laci_gradient_builder *b, const laci_node *node, int x, int scale,
                                int mean) {
  laci_shape side = laci_gradient_shape_of_input(b, node, SCALE);
  int one = laci_gradient_store_filled(b, x, &side, 1),
      zero = laci_gradient_store_filled(b, x, &side, 0);
  laci_attr epsilon = laci_attr_float("epsilon", laci_node_float(node, "epsilon", 1e-5f));
  const int inputs[] = {x, scale < 0 ? one : scale, zero, mean < 0 ? zero : mean,
                        node->inputs[VARIANCE]};
  return laci_gradient_add_node(b,
                                &(laci_gradient_node){.type = "BatchNormalization",
                                                      .n_inputs = N_INPUTS,
                                                      .inputs = inputs,
                                                      .n_attrs = 1,
                                                      .attrs = &epsilon},
                                NULL);
}

/** The rule for the inference form, which is linear in x. Training graphs have BatchNormTrain
 * instead. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  if (laci_gradient_shape_of_input(b, node, 0).rank < 2 || is_training(node) ||
      is_normalized_per_position(node) || laci_gradient_is_needed(b, node, MEAN) ||
      laci_gradient_is_needed(b, node, VARIANCE))
    return laci_gradient_fail_unsupported(
        b, node, "only scale, bias and input have a gradient, in inference");
  int dy = laci_gradient_of(b, node, 0);
  if (laci_gradient_is_needed(b, node, 0))
    laci_gradient_contribute(b, node, 0,
                             add_normalization_of(b, node, dy, node->inputs[SCALE], -1));
  if (laci_gradient_is_needed(b, node, SCALE)) {
    int h = add_normalization_of(b, node, node->inputs[0], -1, node->inputs[MEAN]);
    laci_gradient_contribute_channel_sums(b, node, SCALE,
                                          laci_gradient_add_binary(b, "Mul", dy, h));
  }
  laci_gradient_contribute_channel_sums(b, node, BIAS, dy);
  return laci_gradient_status(b);
}

const laci_op laci_op_batch_normalization = {
    .name = "BatchNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}, {"momentum", LACI_ATTR_FLOAT},
                                  {"spatial", LACI_ATTR_INT}, {"training_mode", LACI_ATTR_INT}),
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

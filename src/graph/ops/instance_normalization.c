/* SPDX-License-Identifier: Apache-2.0
 * InstanceNormalization: every channel of every image is normalized to mean 0 and variance 1 over
 * its positions, then scaled and shifted: y = (x - mean) / sqrt(var + epsilon) * scale[c] +
 * bias[c]. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *scale = laci_expect_known_shape_of_input(infer, 1);
  return scale && scale->rank == 1 && laci_expect_size(infer, -1, 1, scale->dims[0], shape);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0] = *infer->in[0];
  if (x && x->rank < 2) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the input has no channel axis");
  }
  st = laci_check_input_vector(infer, 1, x ? x->dims[1] : -1);
  return st ? st : laci_check_input_vector(infer, 2, x ? x->dims[1] : -1);
}

static void normalize_channels(int64_t begin, int64_t end, void *context) {
  const laci_eval *eval = context;
  const laci_shape *shape = &eval->in[0]->shape;
  int64_t spatial = laci_shape_count_range(shape, 2, shape->rank);
  double epsilon = laci_epsilon(eval->node);
  for (int64_t at = begin; at < end; at++) {
    const double *x = eval->in[0]->f + at * spatial;
    double *y = eval->out[0]->f + at * spatial;
    double scale = eval->in[1]->f[at % shape->dims[1]], bias = eval->in[2]->f[at % shape->dims[1]];
    laci_normalize_run(x, spatial, laci_moments_of(x, spatial), epsilon, y);
    for (int64_t i = 0; i < spatial; i++) y[i] = y[i] * scale + bias;
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_shape *x = &eval->in[0]->shape;
  laci_eval_parallel(eval, x->dims[0] * x->dims[1], normalize_channels, eval);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  if (!laci_couple_channels(c, 1, 2)) return laci_coupling_status(c);
  for (int axis = 2; axis < laci_port_shape(c, 0)->rank; axis++) {
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  }
  return laci_coupling_status(c);
}

/** Uses LayerNormalizationGrad: a row is one channel of one image; scale and bias are along the
 * channel axis. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int out[3];
  laci_shape x = laci_gradient_shape_of_input(b, node, 0), side = {.rank = x.rank - 1};
  for (int axis = 0; axis < side.rank; axis++) side.dims[axis] = axis ? 1 : x.dims[1];
  laci_gradient_norm norm = {.dy = laci_gradient_of(b, node, 0),
                             .x = node->inputs[0],
                             .scale = laci_gradient_add_reshape(b, node->inputs[1], &side),
                             .axis = 2,
                             .epsilon = laci_node_float(node, "epsilon", 1e-5f)};
  if (x.rank < 3)
    return laci_gradient_fail_unsupported(b, node, "channels of one element have no gradient");
  laci_gradient_add_normalization(b, &norm, out);
  laci_gradient_contribute(b, node, 0, out[0]);
  for (int port = 1; port <= 2; port++)
    laci_gradient_contribute(
        b, node, port,
        laci_gradient_add_reshape(b, out[port], &(laci_shape){.rank = 1, .dims = {x.dims[1]}}));
  return laci_gradient_status(b);
}

const laci_op laci_op_instance_normalization = {
    .name = "InstanceNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}),
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

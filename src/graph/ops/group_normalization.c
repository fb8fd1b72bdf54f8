/* SPDX-License-Identifier: Apache-2.0
 * GroupNormalization: the channels are divided into num_groups equal runs; every run of every image
 * is normalized to mean 0 and variance 1, then scaled and shifted. Scale and bias have one element
 * for each group in opset 18, one for each channel from 21 on.
 *
 * Channels may be reordered within their run; the parameters of opset 18 do not move. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

static bool has_parameters_per_channel(const laci_node *node) { return node->version >= 21; }

static int64_t read_group_count(const laci_node *node) {
  return laci_node_int(node, "num_groups", 0);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0] = *infer->in[0];
  int64_t n_groups = read_group_count(infer->node), channels = x && x->rank >= 2 ? x->dims[1] : -1;
  if (n_groups < 1 || (x && x->rank < 2) || (channels >= 0 && channels % n_groups != 0)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%lld channels in %lld groups",
                          (long long)channels, (long long)n_groups);
  }
  int64_t size = has_parameters_per_channel(infer->node) ? channels : n_groups;
  st = laci_check_input_vector(infer, 1, size);
  return st ? st : laci_check_input_vector(infer, 2, size);
}

typedef struct job {
  const laci_eval *eval;
  int64_t n_groups, group_channels, spatial;
} job;

static void normalize_groups(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_eval *eval = j->eval;
  int64_t run = j->group_channels * j->spatial;
  bool per_channel = has_parameters_per_channel(eval->node);
  double epsilon = laci_epsilon(eval->node);
  for (int64_t at = begin; at < end; at++) {
    int64_t group = at % j->n_groups;
    const double *x = eval->in[0]->f + at * run;
    double *y = eval->out[0]->f + at * run;
    laci_normalize_run(x, run, laci_moments_of(x, run), epsilon, y);
    for (int64_t i = 0; i < run; i++) {
      int64_t parameter = per_channel ? group * j->group_channels + i / j->spatial : group;
      y[i] = y[i] * eval->in[1]->f[parameter] + eval->in[2]->f[parameter];
    }
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_shape *x = &eval->in[0]->shape;
  job j = {.eval = eval,
           .n_groups = read_group_count(eval->node),
           .spatial = laci_shape_count_range(x, 2, x->rank)};
  j.group_channels = x->dims[1] / j.n_groups;
  laci_eval_parallel(eval, x->dims[0] * j.n_groups, normalize_groups, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  bool per_channel = has_parameters_per_channel(node);
  c->why = "GroupNormalization has one parameter a group";
  if (read_group_count(node) < 1 || !laci_couple_channels(c, 1, per_channel ? 2 : 0)) {
    return laci_coupling_status(c);
  }
  for (int port = 1; port <= 2 && !per_channel; port++) laci_coupling_mark_described(c, port);
  laci_coupling_add_axis_parts(c, 0, 1, read_group_count(node));
  for (int axis = 1; axis < laci_port_shape(c, 0)->rank; axis++) {
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  }
  return laci_coupling_status(c);
}

/** Uses LayerNormalizationGrad with x as [N, groups, channels of a group, positions]: a row is one
 * group. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int out[3];
  laci_shape x = laci_gradient_shape_of_input(b, node, 0),
             vector = laci_gradient_shape_of_input(b, node, 1);
  int64_t n_groups = read_group_count(node), own = x.dims[1] / n_groups;
  laci_shape cut = {.rank = 4,
                    .dims = {x.dims[0], n_groups, own, laci_shape_count_range(&x, 2, x.rank)}};
  laci_shape side = {.rank = 3, .dims = {n_groups, has_parameters_per_channel(node) ? own : 1, 1}};
  laci_gradient_norm norm = {.dy = laci_gradient_add_reshape(b, laci_gradient_of(b, node, 0), &cut),
                             .x = laci_gradient_add_reshape(b, node->inputs[0], &cut),
                             .scale = laci_gradient_add_reshape(b, node->inputs[1], &side),
                             .axis = 2,
                             .epsilon = laci_node_float(node, "epsilon", 1e-5f)};
  laci_gradient_add_normalization(b, &norm, out);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_reshape(b, out[0], &x));
  for (int port = 1; port <= 2; port++)
    laci_gradient_contribute(b, node, port, laci_gradient_add_reshape(b, out[port], &vector));
  return laci_gradient_status(b);
}

const laci_op laci_op_group_normalization = {
    .name = "GroupNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}, {"num_groups", LACI_ATTR_INT},
                                  {"stash_type", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * PRelu and InstanceNormalization: one channel of one image after the other.
 *
 *     PRelu                 y = x < 0 ? slope[c] * x : x
 *     InstanceNormalization y = (x - mean) / sqrt(variance + epsilon) * scale[c] + bias[c]
 *
 * Means and variances of a channel are double, summed in lanes in a fixed order, so that neither
 * threads nor the instruction set change any bit. */
#include <math.h>

#include "cpu/pool.h"
#include "engine/cpu/net_in.h"

enum { LANES = 8 };

typedef struct channelwise {
  int64_t channels, inner, n_runs; /* n_runs: number of channels of all images, each of which has
                                      `inner` adjacent numbers (a run) */
  int64_t n_numbers;               /* number of slopes or scales: one for each channel; 1: one for
                                      all */
  bool normalizes;
  double epsilon;
} channelwise;

typedef struct channelwise_work {
  const channelwise *c;
  const float *x, *first, *second; /* x: input; first: slopes or scales; second: biases */
  float *y;
} channelwise_work;

static void apply_prelu_to_channels(int64_t begin, int64_t end, void *context) {
  const channelwise_work *w = context;
  const int64_t n = w->c->inner;
  for (int64_t run = begin; run < end; run++) {
    const float *x = w->x + run * n;
    float *y = w->y + run * n;
    const float slope = w->first[w->c->n_numbers > 1 ? run % w->c->channels : 0];
    for (int64_t at = 0; at < n; at++) y[at] = x[at] < 0 ? slope * x[at] : x[at];
  }
}

/** Returns the sum over x of (x - minus), or of its squares if `squared`. */
static double sum_deviations(const float *x, int64_t n, double minus, bool squared) {
  double lanes[LANES] = {0}, sum = 0;
  for (int64_t at = 0; at < n; at += LANES) {
    const int some = n - at < LANES ? (int)(n - at) : LANES;
    for (int lane = 0; lane < some; lane++) {
      const double off = (double)x[at + lane] - minus;
      lanes[lane] += squared ? off * off : off;
    }
  }
  for (int lane = 0; lane < LANES; lane++) sum += lanes[lane];
  return sum;
}

static void normalize_channels(int64_t begin, int64_t end, void *context) {
  const channelwise_work *w = context;
  const int64_t n = w->c->inner;
  for (int64_t run = begin; run < end; run++) {
    const float *x = w->x + run * n;
    float *y = w->y + run * n;
    const int64_t channel = run % w->c->channels;
    const double mean = sum_deviations(x, n, 0, false) / (double)n;
    const double variance = sum_deviations(x, n, mean, true) / (double)n;
    const double scale = (double)w->first[channel] / sqrt(variance + w->c->epsilon);
    const double bias = (double)w->second[channel];
    for (int64_t at = 0; at < n; at++) y[at] = (float)(((double)x[at] - mean) * scale + bias);
  }
}

static lac_status compute_all_channels(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 1 << 14 }; /* number of floats that a thread computes at a time */
  const channelwise *c = step->context;
  channelwise_work w = {.c = c,
                        .x = laci_net_tensor_data(net, step->tensors[0]),
                        .y = laci_net_tensor_data(net, step->tensors[1]),
                        .first = laci_net_tensor_data(net, step->tensors[2])};
  if (c->normalizes) w.second = laci_net_tensor_data(net, step->tensors[3]);
  (void)err;
  laci_pool_for(net->pool, c->n_runs, c->inner < GRAIN ? GRAIN / c->inner : 1,
                c->normalizes ? normalize_channels : apply_prelu_to_channels, &w);
  return LAC_OK;
}

/** Returns a row-major tensor of floats with the value's content. */
static int read_floats(laci_net *net, int value) {
  return laci_net_convert_to_dense(net, laci_net_read_value(net, value), LACI_ELEMENT_F32);
}

static void add_channelwise_step(laci_net *net, const laci_fused *fused, const channelwise *how) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const int from = read_floats(net, node->inputs[0]);
  const int first = read_floats(net, node->inputs[1]);
  const int second = how->normalizes ? read_floats(net, node->inputs[2]) : -1;
  const int to = laci_net_new_result_like(net, from, true);
  channelwise *c = laci_plan_alloc(&net->plan, 1, sizeof *c);
  if (net->plan.status) return;
  *c = *how;
  laci_net_step *step = laci_net_step_add_code(
      net, node, compute_all_channels, how->normalizes ? 4 : 3, (int[]){from, to, first, second});
  if (!step) return;
  step->context = c;
  step->kernel = "own";
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

/* ---- PRelu ---- */

/** Describes PRelu's slopes in *c: one for each channel of an axis, or one for all. False: the
 * slopes have another shape. */
static bool describe_prelu(const laci_net *net, const laci_node *node, channelwise *c) {
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *slope = laci_plan_shape(&net->plan, node->inputs[1]);
  int wide = -1;
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) ||
      !laci_plan_is_float(&net->plan, node->inputs[1]) || slope->rank > x->rank) {
    return false;
  }
  for (int axis = 0; axis < slope->rank; axis++) {
    if (slope->dims[axis] == 1) continue;
    if (wide >= 0) return false;
    wide = axis + x->rank - slope->rank;
  }
  *c = (channelwise){
      .channels = wide < 0 ? 1 : x->dims[wide],
      .inner = wide < 0 ? laci_shape_count(x) : laci_shape_count_range(x, wide + 1, x->rank),
      .n_numbers = laci_shape_count(slope)};
  c->n_runs = laci_shape_count(x) / c->inner;
  return true;
}

static bool can_lower_prelu(laci_net *net, const laci_fused *fused, const char **why) {
  channelwise c;
  *why = "slopes along several axes";
  return describe_prelu(net, &net->plan.graph->nodes[fused->node], &c);
}

static void lower_prelu(laci_net *net, const laci_fused *fused) {
  channelwise c;
  if (!describe_prelu(net, &net->plan.graph->nodes[fused->node], &c)) return;
  add_channelwise_step(net, fused, &c);
}

/* ---- InstanceNormalization ---- */

static bool can_lower_instance_norm(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "no floats";
  for (int at = 0; at < 3; at++) {
    if (!laci_plan_is_float(&net->plan, node->inputs[at])) return false;
  }
  return true;
}

static void lower_instance_norm(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const int64_t inner = laci_shape_count_range(x, 2, x->rank);
  const channelwise c = {.channels = x->dims[1],
                         .inner = inner,
                         .n_runs = laci_shape_count(x) / inner,
                         .n_numbers = x->dims[1],
                         .normalizes = true,
                         .epsilon = (double)laci_node_float(node, "epsilon", 1e-5f)};
  add_channelwise_step(net, fused, &c);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_prelu[] = {
    {"channel by channel", LACI_FUSIBLE_NOTHING, can_lower_prelu, lower_prelu},
    {.name = NULL},
};
const laci_implementation laci_implementations_instance_norm[] = {
    {"channel by channel", LACI_FUSIBLE_NOTHING, can_lower_instance_norm, lower_instance_norm},
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0
 * Reductions over axes. The mean over height and width is a pool. Sums over all axes but the
 * channels, as for a bias gradient, have a kernel here, since oneDNN's reduction is slow for them.
 * Threads divide the channels among them, so that their number does not change any bit. Sums over
 * an image are f32 in SIMD lanes, and sums over images are double. */
#include "engine/cpu/lower/reduce.h"
#include "engine/cpu/onednn/pool.h"
#include "graph/ops.h"
#include "tensor/bf16.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

bool laci_reduce_read_node(laci_net *net, const laci_node *node, laci_reduction *r) {
  r->x = r->y = *laci_plan_shape(&net->plan, node->inputs[0]);
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) || r->x.rank < 1 || r->x.rank > 5)
    return false;
  if (!laci_plan_read_reduced_axes(&net->plan, node, r->x.rank, r->axes)) return false;
  for (int axis = 0; axis < r->x.rank; axis++) {
    if (r->axes[axis]) r->y.dims[axis] = 1;
  }
  return true;
}

bool laci_reduce_merge_axes(const laci_reduction *r, int64_t *outer, int64_t *n, int64_t *inner) {
  int runs = 0;
  bool after = false;
  *outer = *n = *inner = 1;
  for (int axis = 0; axis < r->x.rank; axis++) {
    runs += r->axes[axis] && !(axis > 0 && r->axes[axis - 1]);
    *(r->axes[axis] ? n : after ? inner : outer) *= r->x.dims[axis];
    after = after || r->axes[axis];
  }
  return runs == 1;
}

/* ---- Means over height and width ---- */

static bool can_lower_channel_means(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  *why = "no mean over height and width";
  if (node->op != &laci_op_reduce_mean || !laci_reduce_read_node(net, node, &r)) return false;
  for (int axis = 0; axis < r.x.rank; axis++) {
    if (r.axes[axis] != (axis >= 2)) return false;
  }
  return laci_can_lower_pool_channels(net, fused, why);
}

/* ---- Sums over all axes but the channels ---- */

typedef struct sums {
  int64_t n, channels, pixels; /* number of images, of channels, and of pixels of an image */
  int64_t block;               /* number of channels in a block: 16, or 1 if row-major */
  bool bf16;
} sums;

typedef struct sums_work {
  const sums *s;
  const void *x;
  float *y;
} sums_work;

enum { LANES = LACI_NET_BLOCK };

/** Adds n floats to 16 sums: lanes[k] = sum of x[k], x[k + 16] ... */
static void add_floats_to_lanes(const float *x, int64_t n, float lanes[LANES]) {
  int64_t whole = n - n % LANES;
  for (int64_t at = 0; at < whole; at += LANES) {
    for (int k = 0; k < LANES; k++) lanes[k] += x[at + k];
  }
  for (int64_t at = whole; at < n; at++) lanes[at - whole] += x[at];
}

static void add_bf16_to_lanes(const uint16_t *x, int64_t n, float lanes[LANES]) {
  int64_t whole = n - n % LANES;
  for (int64_t at = 0; at < whole; at += LANES) {
    for (int k = 0; k < LANES; k++) lanes[k] += laci_bf16_value(x[at + k]);
  }
  for (int64_t at = whole; at < n; at++) lanes[at - whole] += laci_bf16_value(x[at]);
}

/** Sums each of the blocks of channels (or single channels) [begin, end) over all images. */
static void sum_channel_range(int64_t begin, int64_t end, void *context) {
  const sums_work *w = context;
  const sums *s = w->s;
  int64_t run = s->pixels * s->block;
  for (int64_t part = begin; part < end; part++) {
    double total[LANES] = {0};
    for (int64_t n = 0; n < s->n; n++) {
      int64_t at = (n * (s->channels / s->block) + part) * run;
      float lanes[LANES] = {0};
      if (s->bf16) add_bf16_to_lanes((const uint16_t *)w->x + at, run, lanes);
      else add_floats_to_lanes((const float *)w->x + at, run, lanes);
      for (int k = 0; k < LANES; k++) total[k] += (double)lanes[k];
    }
    for (int k = 1; k < LANES && s->block == 1; k++) total[0] += total[k];
    for (int64_t k = 0; k < s->block; k++) w->y[part * s->block + k] = (float)total[k];
  }
}

static lac_status run_channel_sums(laci_net *net, laci_net_step *step, lac_error *err) {
  const sums *s = step->context;
  sums_work w = {.s = s,
                 .x = laci_net_tensor_data(net, step->tensors[0]),
                 .y = laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->channels / s->block, 1, sum_channel_range, &w);
  return LAC_OK;
}

static bool can_lower_channel_sums(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  *why = "no sum over all but the channels";
  if (node->op != &laci_op_reduce_sum || !laci_reduce_read_node(net, node, &r)) return false;
  for (int axis = 0; axis < r.x.rank; axis++) {
    if (r.axes[axis] != (axis != 1)) return false;
  }
  return r.x.rank >= 3;
}

static void lower_channel_sums(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  int from = laci_net_read_value(net, node->inputs[0]);
  if (from < 0) return;
  laci_element dt = net->tensors[from].dt;
  bool blocks = laci_net_is_in_blocks(net, from);
  if (!blocks) from = laci_net_convert_to_dense(net, from, dt);
  laci_shape y = laci_shape_of(1, &x->dims[1]);
  laci_layout *md = laci_net_dense_layout(net, &y, LACI_ELEMENT_F32);
  int to = md ? laci_net_new_result(net, &y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  sums *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, node, run_channel_sums, 2, (int[]){from, to});
  if (!s || !step) return;
  *s = (sums){.n = x->dims[0],
              .channels = x->dims[1],
              .pixels = laci_shape_count_range(x, 2, x->rank),
              .block = blocks ? LACI_NET_BLOCK : 1,
              .bf16 = dt == LACI_ELEMENT_BF16};
  step->context = s;
  step->kernel = "channel sums";
  step->shown = to;
  laci_net_bind_reshaped(net, fused->output, to);
}

/* ---- Any axes ---- */

static laci_reduction_kind find_reduction_kind(const laci_node *node) {
  return node->op == &laci_op_reduce_mean ? LACI_REDUCTION_MEAN : LACI_REDUCTION_SUM;
}

static bool can_lower_reduction_by_onednn(laci_net *net, const laci_fused *fused,
                                          const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  *why = "axes or elements that oneDNN lacks, or nothing to reduce";
  if (node->op == &laci_op_reduce_max || node->op == &laci_op_reduce_min) return false;
  return laci_reduce_read_node(net, node, &r) && !laci_shape_equal(&r.x, &r.y);
}

static void lower_reduction_by_onednn(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_primitive *pd = NULL;
  laci_reduction r;
  if (!laci_reduce_read_node(net, node, &r)) return;
  laci_element dt = laci_net_result_element(net, fused->output);
  int from = laci_net_read_value(net, node->inputs[0]);
  from = laci_net_convert_to_dense(net, from, from < 0 ? dt : net->tensors[from].dt);
  laci_layout *md = laci_net_dense_layout(net, &r.y, dt);
  if (net->plan.status) {
    laci_layout_destroy(md);
    return;
  }
  int to = laci_net_tensor_new(net, &r.y, dt, md,
                               laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md)));
  if (to < 0) return;
  lac_status st = laci_primitive_describe_reduction(
      &pd, net->onednn, find_reduction_kind(node),
      (const laci_layout *const[]){net->tensors[from].md, net->tensors[to].md});
  if (!laci_net_check_status(net, st, "reduction")) return;
  laci_net_step_add(net, fused, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
  laci_net_bind_reshaped(net, fused->output, to);
}

const laci_implementation laci_implementations_reduce[] = {
    {"a pool", LACI_FUSIBLE_NOTHING, can_lower_channel_means, laci_lower_pool_channels},
    {"channel sums", LACI_FUSIBLE_NOTHING, can_lower_channel_sums, lower_channel_sums},
    {"largest", LACI_FUSIBLE_NOTHING, laci_can_lower_extremes, laci_lower_extremes},
    {"sums", LACI_FUSIBLE_NOTHING, laci_can_lower_reduce_sums, laci_lower_reduce_sums},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_reduction_by_onednn, lower_reduction_by_onednn},
    {.name = NULL},
};

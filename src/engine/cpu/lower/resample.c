/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample in all modes, one axis after the other, by kernel/image/resample.h.
 *
 * Positions and weights are computed while planning, by the operator's own rules. The value stays
 * in its layout: row-major, channels last or in blocks, each of which is [outer, axis, inner] for
 * every axis. Axes that get shorter come first. Of two that get longer the inner one does, so that
 * the last pass, with most numbers, has long lines. */
#include "cpu/pool.h"
#include "engine/cpu/lower/resize.h"
#include "engine/cpu/onednn/onednn.h"
#include "graph/resample.h"
#include "kernel/image/resample.h"
#include "tensor/buf.h"

/* ---- What is resampled ---- */

typedef laci_buf *operand_list[LACI_MAX_RANK];

static void clear_operands(operand_list operands) {
  for (int at = 0; at < LACI_MAX_RANK; at++) laci_buf_destroy(operands[at]);
}

/** Copies the node's inputs but the first one; false: one is not constant. */
static bool read_operands(laci_net *net, const laci_node *node, operand_list operands) {
  bool constant = node->n_inputs <= LACI_MAX_RANK;
  for (int at = 0; at < LACI_MAX_RANK; at++) operands[at] = NULL;
  for (int at = 1; at < node->n_inputs && constant; at++) {
    if (node->inputs[at] < 0) continue;
    constant = laci_plan_is_constant(&net->plan, node->inputs[at]);
    if (constant) operands[at] = laci_plan_copy_constant(&net->plan, node->inputs[at]);
    constant = constant && operands[at];
  }
  return constant;
}

/** Are all outputs computed from the input, and all positions 32-bit numbers? */
static bool has_plain_taps(const laci_resample_taps *taps, int64_t in) {
  bool plain = in <= INT32_MAX / 2 && taps->width >= 0;
  for (int64_t at = 0; at < taps->n_out; at++) plain = plain && taps->first[at] != INT64_MIN;
  return plain;
}

static bool resample_fits(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  operand_list operands;
  lac_error err = {0};
  *why = "integers";
  if (!laci_plan_is_float(&net->plan, fused->output)) return false;
  *why = "sizes that are not constant, or a mode in which numbers are given";
  bool fits = read_operands(net, node, operands);
  const laci_resampled of = {node, x, y, (const laci_buf *const *)operands};
  for (int axis = 0; axis < x->rank && fits; axis++) {
    laci_resample_taps taps;
    fits = laci_resample_find_taps(&of, axis, &taps, &err) == LAC_OK &&
           has_plain_taps(&taps, x->dims[axis]);
    laci_resample_clear_taps(&taps);
  }
  clear_operands(operands);
  return fits;
}

/* ---- Layouts ---- */

/** How the elements of a tensor are stored: axes from the outermost to the innermost. Axis 1 is
 * cut into blocks of `block` channels, which come last, if that is more than 1. */
typedef struct order {
  int n, axis[LACI_MAX_RANK];
  int64_t block;
} order;

static bool is_in_layout(const laci_net *net, int tensor, laci_layout *layout) {
  const bool equal = layout && laci_layout_equal(layout, net->tensors[tensor].md);
  laci_layout_destroy(layout);
  return equal;
}

/** Finds the order of a tensor's elements; false: it has none of these layouts. */
static bool find_order(laci_net *net, int tensor, order *o) {
  const laci_net_tensor t = net->tensors[tensor];
  const int64_t block = laci_layout_block_channels(t.md);
  laci_layout *blocks = NULL;
  *o = (order){.n = t.shape.rank, .block = 1};
  for (int at = 0; at < o->n; at++) o->axis[at] = at;
  if (block > 1) {
    o->block = block;
    return t.shape.rank == 4 && (block == 8 || block == 16) && !t.partial &&
           laci_layout_create_blocks(&blocks, t.shape.dims, (int)block, t.dt) &&
           is_in_layout(net, tensor, blocks);
  }
  if (t.partial) return false;
  if (is_in_layout(net, tensor, laci_net_dense_layout(net, &t.shape, t.dt))) return true;
  for (int at = 1; at < o->n; at++) o->axis[at] = at + 1 < o->n ? at + 1 : 1;
  return o->n > 2 && is_in_layout(net, tensor, laci_net_channels_last_layout(net, &t.shape, t.dt));
}

/** Returns the layout of a tensor of another shape in the same order. */
static laci_layout *layout_in_order(laci_net *net, const laci_shape *shape, const order *o) {
  laci_layout *md = NULL;
  if (o->block > 1) {
    if (!laci_layout_create_blocks(&md, shape->dims, (int)o->block, LACI_ELEMENT_F32)) {
      laci_plan_fail_no_memory(&net->plan);
    }
    return md;
  }
  const bool last = o->n > 2 && o->axis[1] != 1;
  return last ? laci_net_channels_last_layout(net, shape, LACI_ELEMENT_F32)
              : laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
}

/* ---- Passes ---- */

typedef struct resample_step {
  laci_resample_lines *lines;
  laci_resample_pass pass;
  int64_t n_lines, grain;
} resample_step;

typedef struct resample_work {
  const resample_step *s;
  const float *x;
  float *y;
} resample_work;

static void resample_range(int64_t begin, int64_t end, void *context) {
  const resample_work *w = context;
  w->s->lines(&w->s->pass, w->x, w->y, begin, end);
}

static lac_status run_resample(laci_net *net, laci_net_step *step, lac_error *err) {
  const resample_step *s = step->context;
  resample_work w = {.s = s,
                     .x = laci_net_tensor_data(net, step->tensors[0]),
                     .y = laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n_lines, s->grain, resample_range, &w);
  return LAC_OK;
}

/** Writes positions inside the input, and weights where they are not all 1. */
static void fill_pass(laci_net *net, const laci_resample_taps *taps, laci_resample_pass *pass) {
  const int64_t n = taps->n_out * taps->width;
  int32_t *index = laci_plan_alloc(&net->plan, (size_t)n, sizeof *index);
  float *weight = laci_plan_alloc(&net->plan, (size_t)n, sizeof *weight);
  bool copies = taps->width == 1;
  if (!index || !weight) return;
  for (int64_t at = 0; at < n; at++) {
    const int64_t from = taps->first[at / taps->width] + at % taps->width;
    index[at] = (int32_t)(from < 0 ? 0 : from >= pass->in ? pass->in - 1 : from);
    weight[at] = (float)taps->weight[at];
    copies = copies && taps->weight[at] == 1;
  }
  pass->index = index;
  pass->weight = copies ? NULL : weight;
}

/** Adds the step that resamples one axis of the tensor; returns the result's tensor. */
static int add_pass(laci_net *net, const laci_fused *fused, int from, const order *o, int axis,
                    const laci_resample_taps *taps) {
  enum { GRAIN = 4096 }; /* numbers */
  resample_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (net->plan.status || from < 0) return -1;
  laci_shape shape = net->tensors[from].shape;
  int64_t outer = 1, inner = o->block;
  bool after = false;
  for (int at = 0; at < o->n; at++) {
    const int64_t all = shape.dims[o->axis[at]];
    const int64_t size = o->axis[at] == 1 ? (all + o->block - 1) / o->block : all;
    if (o->axis[at] == axis) after = true;
    else if (after) inner *= size;
    else outer *= size;
  }
  s->lines = laci_resample_variant();
  s->pass = (laci_resample_pass){
      .in = shape.dims[axis], .out = taps->n_out, .inner = inner, .width = taps->width};
  s->n_lines = outer * taps->n_out;
  s->grain = inner < GRAIN ? GRAIN / inner : 1;
  fill_pass(net, taps, &s->pass);
  shape.dims[axis] = taps->n_out;
  laci_layout *md = layout_in_order(net, &shape, o);
  const int to = md ? laci_net_result_new(net, &shape, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node],
                                               run_resample, 2, (int[]){from, to});
  if (!step) return -1;
  step->context = s;
  step->kernel = "taps";
  step->shown = to;
  return to;
}

/** Returns the axis that is resampled next, the one with the least growth; -1: none is left. */
static int next_axis(const laci_resample_taps *taps, const laci_shape *x) {
  int next = -1;
  double least = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    const double growth = (double)taps[axis].n_out / (double)x->dims[axis];
    if (taps[axis].n_out == 0 || (next >= 0 && growth > least)) continue;
    next = axis;
    least = growth;
  }
  return next;
}

static void lower_resample(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape x = *laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  laci_resample_taps taps[LACI_MAX_RANK] = {{0}};
  operand_list operands;
  order o;
  lac_error err = {0};
  lac_status st = read_operands(net, node, operands) ? LAC_OK : LAC_NO_MEMORY;
  const laci_resampled of = {node, &x, &y, (const laci_buf *const *)operands};
  for (int axis = 0; axis < x.rank && !st; axis++) {
    st = laci_resample_find_taps(&of, axis, &taps[axis], &err);
  }
  if (st) laci_plan_fail(&net->plan, st, "%s", err.text);
  int at = laci_net_read_value(net, node->inputs[0]);
  const bool cut = taps[1].n_out > 0; /* blocks of channels must stay whole */
  if (at >= 0 && (net->tensors[at].dt != LACI_ELEMENT_F32 || !find_order(net, at, &o) ||
                  (cut && o.block > 1))) {
    at = laci_net_convert_to_dense(net, at, LACI_ELEMENT_F32);
    if (at >= 0 && !find_order(net, at, &o)) laci_net_decline_node(net, "a layout of another kind");
  }
  for (int axis = next_axis(taps, &x); axis >= 0 && at >= 0; axis = next_axis(taps, &x)) {
    at = add_pass(net, fused, at, &o, axis, &taps[axis]);
    laci_resample_clear_taps(&taps[axis]);
  }
  for (int axis = 0; axis < x.rank; axis++) laci_resample_clear_taps(&taps[axis]);
  clear_operands(operands);
  laci_net_bind_value(net, fused->output, at);
}

/* oneDNN first where it has the mode: its results have been in calibrated weights for long. */
const laci_implementation laci_implementations_resize[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, laci_resize_fits, laci_lower_resize},
    {"sums of few numbers", LACI_FUSIBLE_NOTHING, resample_fits, lower_resample},
    {.name = NULL},
};

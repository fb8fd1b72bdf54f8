/* SPDX-License-Identifier: Apache-2.0
 * Adds passes along one axis of a tensor (along.h), in the layout that the tensor has: row-major,
 * channels last or in blocks, each of which is [outer, axis, inner] for every axis. */
#include "base/memory.h"
#include "engine/cpu/lower/along.h"

#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/image/resample.h"

/* ---- Layouts ---- */

/** Does the tensor have this layout? Destroys the layout, which may be NULL. */
static bool compare_and_destroy_layout(const laci_net *net, int tensor, laci_layout *layout) {
  const bool equal = layout && laci_layout_equal(layout, net->tensors[tensor].md);
  laci_layout_destroy(layout);
  return equal;
}

/** Finds the order in which a tensor's elements are stored; false: it is not row-major, channels
 * last or in blocks. */
static bool find_axis_order(laci_net *net, int tensor, laci_order *o) {
  const laci_net_tensor t = net->tensors[tensor];
  const int64_t block = laci_layout_block_channels(t.md);
  laci_layout *blocks = NULL;
  *o = (laci_order){.n = t.shape.rank, .block = 1};
  for (int at = 0; at < o->n; at++) o->axis[at] = at;
  if (block > 1) {
    o->block = block;
    if (t.shape.rank != 4 || (block != 8 && block != 16) || t.partial) return false;
    if (!laci_layout_create_blocks(&blocks, t.shape.dims, (int)block, t.dt)) {
      laci_plan_fail_no_memory(&net->plan);
    }
    return compare_and_destroy_layout(net, tensor, blocks);
  }
  if (t.partial) return false;
  if (laci_net_is_row_major(net, tensor)) return true;
  for (int at = 1; at < o->n; at++) o->axis[at] = at + 1 < o->n ? at + 1 : 1;
  return o->n > 2 && compare_and_destroy_layout(net, tensor,
                                                laci_net_channels_last_layout(net, &t.shape, t.dt));
}

/** Returns the layout with the order *o for a tensor of the given shape. */
static laci_layout *create_layout_in_order(laci_net *net, const laci_shape *shape,
                                           const laci_order *o) {
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

int laci_axis_pass_read_tensor(laci_net *net, int tensor, bool channels, laci_order *o) {
  if (net->plan.status || tensor < 0) return -1;
  if (net->tensors[tensor].dt == LACI_ELEMENT_F32 && find_axis_order(net, tensor, o) &&
      !(channels && o->block > 1)) {
    return tensor;
  }
  tensor = laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32);
  if (tensor >= 0 && !find_axis_order(net, tensor, o) && !net->plan.status) {
    laci_net_decline_node(net, "a layout of another kind");
  }
  return tensor;
}

/* ---- Passes along an axis ---- */

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

/** Sets the pass's positions, moved inside the input where they are outside, and its weights,
 * unless each result is a copy of one number. */
static void fill_pass_taps(laci_net *net, const laci_resample_taps *taps,
                           laci_resample_pass *pass) {
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

int laci_axis_pass_add(laci_net *net, const laci_node *node, int from, const laci_order *o,
                       int axis, const laci_resample_taps *taps) {
  enum { GRAIN = 4096 }; /* number of floats that a thread computes at a time */
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
  fill_pass_taps(net, taps, &s->pass);
  shape.dims[axis] = taps->n_out;
  laci_layout *md = create_layout_in_order(net, &shape, o);
  const int to = md ? laci_net_new_result(net, &shape, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step = laci_net_step_add_code(net, node, run_resample, 2, (int[]){from, to});
  if (!step) return -1;
  step->context = s;
  step->kernel = "taps";
  step->shown = to;
  return to;
}

int laci_axis_pass_add_repeat(laci_net *net, const laci_node *node, int from, const laci_order *o,
                              int axis, int64_t size) {
  if (net->plan.status || from < 0) return -1;
  const int64_t own = net->tensors[from].shape.dims[axis];
  laci_resample_taps taps = {.n_out = size, .width = 1};
  taps.first = laci_alloc((size_t)size, sizeof *taps.first);
  taps.weight = laci_alloc((size_t)size, sizeof *taps.weight);
  if (!taps.first || !taps.weight) laci_plan_fail_no_memory(&net->plan);
  for (int64_t at = 0; at < size && !net->plan.status; at++) {
    taps.first[at] = at % own;
    taps.weight[at] = 1;
  }
  const int to = laci_axis_pass_add(net, node, from, o, axis, &taps);
  laci_resample_clear_taps(&taps);
  return to;
}

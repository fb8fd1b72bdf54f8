/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization in training of values in HWC16N, the layout of native layers, and its
 * gradient.
 *
 * A first pass over x finds the statistics of tiles. These are combined in double, in order. A
 * second pass normalizes. The gradient also takes two passes: the first computes sums, the second
 * the gradient, which needs them. Tiles, and so results, do not depend on the number of threads.
 * For the gradient, x is kept in HWC16N, and which values passed a Relu is recomputed from it.
 * Read next: kernel/sparse/image_norm.h. */
#include "kernel/sparse/image_norm.h"

#include <math.h>

#include "base/divide.h"
#include "engine/cpu/lower/batch_norm.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"

enum {
  /* approximate number of pixels in a tile, so that it fits, with all channels, in the second-level
   * cache */
  TILE_PIXELS = 64,
  LANES = LACI_SPARSE_LANES,
  TOTALS_GRAIN = 64, /* number of channels whose statistics of tiles a thread combines at a time */
};

static int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }

/** One step of a batch normalization, forward or backward. */
typedef struct norm_step {
  const laci_image_norm *kernel;
  /* size.channels counts channels of the layout; each of them holds `each` channels of the value */
  laci_sparse_size size;
  int each;
  /* layouts of the tensors x, y and `to`; for the gradient, y is the layout of dy */
  laci_sparse_layout x, y, to;
  int64_t tile_rows, n_tiles; /* number of rows in a tile, and of tiles in an image block */
  double epsilon;
  bool relu, given; /* given: mean and variance are inputs */
  bool fixed;       /* backward: mean and variance are constants, so that no sums are needed */
  int tensors[10];  /* index of each tensor, in the order of the enum below; -1: none */
} norm_step;

enum { X, SCALE, SHIFT, MEAN, VAR, TO, SCRATCH, DY, DSCALE, DSHIFT, N_TENSORS };

/** The operands and the scratch memory of one run. `tiles` and `vectors` point into tensor SCRATCH:
 * two statistics of each tile, [tiles of all image blocks][channels], and three vectors
 * [channels]. */
typedef struct norm_work {
  laci_net *net;
  const norm_step *s;
  float *tiles[2], *vectors[3];
} norm_work;

static int64_t count_tiles(const norm_step *s) { return s->size.n_images / LANES * s->n_tiles; }

static int64_t count_channels(const norm_step *s) { return s->size.channels * s->each; }

static size_t scratch_bytes(const norm_step *s) {
  return (size_t)((2 * count_tiles(s) + 3) * count_channels(s)) * sizeof(float);
}

static norm_work bind_norm_work(laci_net *net, const norm_step *s) {
  norm_work w = {.net = net, .s = s};
  float *at = laci_net_tensor_data(net, s->tensors[SCRATCH]);
  for (int k = 0; k < 2; k++) w.tiles[k] = at + k * count_tiles(s) * count_channels(s);
  for (int k = 0; k < 3; k++) { w.vectors[k] = at + (2 * count_tiles(s) + k) * count_channels(s); }
  return w;
}

static float *tensor_data(const norm_work *w, int which) {
  return laci_net_tensor_data(w->net, w->s->tensors[which]);
}

/** A work item: some channels of some rows of an image block. For sums it has as many channels as
 * fit in the first-level cache; otherwise all channels, in the order of memory. */
typedef struct norm_item {
  laci_norm_tile tile;
  int64_t tile_at, place, row, image_block;
  int64_t channel; /* the value's first channel in channel `place` of the layout */
} norm_item;

static int64_t layout_channels_per_item(const norm_step *s) {
  return LACI_IMAGE_NORM_CHANNELS / s->each;
}

static int64_t count_items_per_tile(const norm_step *s) {
  return laci_ceil_div(s->size.channels, layout_channels_per_item(s));
}

/** Returns work item i; each tile has n_chunks items. */
static norm_item norm_item_of_index(const norm_step *s, int64_t i, int64_t n_chunks) {
  const int64_t places = s->size.channels, tile_at = i / n_chunks;
  const int64_t most = n_chunks > 1 ? layout_channels_per_item(s) : places;
  const int64_t place = i % n_chunks * most;
  const int64_t row = tile_at % s->n_tiles * s->tile_rows;
  return (norm_item){.tile = {.n_rows = smaller_of(s->tile_rows, s->size.h - row),
                              .n_pixels = s->size.w,
                              .n_places = smaller_of(most, places - place),
                              .pixel_stride = s->x.pixel_stride},
                     .tile_at = tile_at,
                     .place = place,
                     .channel = place * s->each,
                     .row = row,
                     .image_block = tile_at / s->n_tiles};
}

static int64_t offset_of_item(const laci_sparse_layout *l, const norm_item *item) {
  return item->image_block * l->n_floats + laci_sparse_offset(l, item->place, item->row, 0);
}

static laci_norm_source norm_source_of_item(const norm_work *w, int which,
                                            const laci_sparse_layout *l, const norm_item *item) {
  return (laci_norm_source){tensor_data(w, which) + offset_of_item(l, item), l->row_stride};
}

static laci_norm_target norm_target_of_item(const norm_work *w, const norm_item *item) {
  const laci_sparse_layout *l = &w->s->to;
  return (laci_norm_target){tensor_data(w, TO) + offset_of_item(l, item), l->row_stride};
}

/* ---- Forward ---- */

static void find_tile_moments(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  for (int64_t i = begin; i < end; i++) {
    const norm_item item = norm_item_of_index(w->s, i, count_items_per_tile(w->s));
    const int64_t at = item.tile_at * count_channels(w->s) + item.channel;
    w->s->kernel->moments(&item.tile, norm_source_of_item(w, X, &w->s->x, &item), w->tiles[0] + at,
                          w->tiles[1] + at);
  }
}

static double values_per_tile(const norm_step *s, int64_t tile) {
  const int64_t row = tile % s->n_tiles * s->tile_rows;
  return (double)(smaller_of(s->tile_rows, s->size.h - row) * s->size.w * LANES);
}

static double values_per_channel(const norm_step *s) {
  return (double)(s->size.n_images * s->size.h * s->size.w);
}

/** Combines the tiles' means and variances into those of the channels. */
static void combine_moments_of_tiles(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  const norm_step *s = w->s;
  const int64_t channels = count_channels(s);
  const double n = values_per_channel(s);
  for (int64_t c = begin; c < end; c++) {
    double sum = 0, squares = 0;
    for (int64_t t = 0; t < count_tiles(s); t++) {
      sum += values_per_tile(s, t) * (double)w->tiles[0][t * channels + c];
    }
    for (int64_t t = 0; t < count_tiles(s); t++) {
      const double off = (double)w->tiles[0][t * channels + c] - sum / n;
      squares += (double)w->tiles[1][t * channels + c] + values_per_tile(s, t) * off * off;
    }
    tensor_data(w, MEAN)[c] = (float)(sum / n);
    tensor_data(w, VAR)[c] = (float)(squares / n);
  }
}

/** Computes vectors[0]: scale / sqrt(variance + epsilon). */
static void compute_scales(norm_work *w) {
  for (int64_t c = 0; c < count_channels(w->s); c++) {
    const double deviation = sqrt((double)tensor_data(w, VAR)[c] + w->s->epsilon);
    w->vectors[0][c] = (float)((double)tensor_data(w, SCALE)[c] / deviation);
  }
}

static laci_norm_scales scales_of_item(const norm_work *w, const norm_item *item) {
  return (laci_norm_scales){.mean = tensor_data(w, MEAN) + item->channel,
                            .scale = w->vectors[0] + item->channel,
                            .shift = tensor_data(w, SHIFT) + item->channel,
                            .relu = w->s->relu};
}

static void normalize_items(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  for (int64_t i = begin; i < end; i++) {
    const norm_item item = norm_item_of_index(w->s, i, 1);
    const laci_norm_scales scales = scales_of_item(w, &item);
    w->s->kernel->apply(&item.tile, &scales, norm_source_of_item(w, X, &w->s->x, &item),
                        norm_target_of_item(w, &item));
  }
}

static lac_status run_norm(laci_net *net, laci_net_step *step, lac_error *err) {
  const norm_step *s = step->context;
  norm_work w = bind_norm_work(net, s);
  (void)err;
  if (!s->given) {
    laci_pool_for(net->pool, count_tiles(s) * count_items_per_tile(s), 1, find_tile_moments, &w);
    laci_pool_for(net->pool, count_channels(s), TOTALS_GRAIN, combine_moments_of_tiles, &w);
  }
  compute_scales(&w);
  laci_native_fill_border(net, &s->to, &s->size, 0, tensor_data(&w, TO));
  laci_pool_for(net->pool, count_tiles(s), 1, normalize_items, &w);
  return LAC_OK;
}

/* ---- Backward ---- */

static void find_tile_sums(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  for (int64_t i = begin; i < end; i++) {
    const norm_item item = norm_item_of_index(w->s, i, count_items_per_tile(w->s));
    const int64_t at = item.tile_at * count_channels(w->s) + item.channel;
    const laci_norm_scales scales = scales_of_item(w, &item);
    w->s->kernel->sums(&item.tile, &scales, norm_source_of_item(w, X, &w->s->x, &item),
                       norm_source_of_item(w, DY, &w->s->y, &item),
                       (float *const[]){w->tiles[0] + at, w->tiles[1] + at});
  }
}

/** Computes the gradients of scale and shift. vectors[1] and vectors[2] get the two terms that are
 * subtracted in the gradient of x. */
static void combine_gradient_sums(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  const norm_step *s = w->s;
  const double n = values_per_channel(s);
  for (int64_t c = begin; c < end; c++) {
    double level = 0, slope = 0;
    for (int64_t t = 0; t < count_tiles(s); t++) {
      level += (double)w->tiles[0][t * count_channels(s) + c];
      slope += (double)w->tiles[1][t * count_channels(s) + c];
    }
    const double variance = (double)tensor_data(w, VAR)[c] + s->epsilon;
    tensor_data(w, DSCALE)[c] = (float)(slope / sqrt(variance));
    tensor_data(w, DSHIFT)[c] = (float)level;
    w->vectors[1][c] = s->fixed ? 0 : (float)(level / n);
    w->vectors[2][c] = s->fixed ? 0 : (float)(slope / n / variance);
  }
}

static void compute_gradient_of_items(int64_t begin, int64_t end, void *context) {
  const norm_work *w = context;
  for (int64_t i = begin; i < end; i++) {
    const norm_item item = norm_item_of_index(w->s, i, 1);
    const laci_norm_scales scales = scales_of_item(w, &item);
    const laci_norm_slopes off = {w->vectors[1] + item.channel, w->vectors[2] + item.channel};
    w->s->kernel->gradient(&item.tile, &scales, &off, norm_source_of_item(w, X, &w->s->x, &item),
                           norm_source_of_item(w, DY, &w->s->y, &item),
                           norm_target_of_item(w, &item));
  }
}

static lac_status run_norm_gradient(laci_net *net, laci_net_step *step, lac_error *err) {
  const norm_step *s = step->context;
  norm_work w = bind_norm_work(net, s);
  (void)err;
  compute_scales(&w);
  laci_pool_for(net->pool, count_tiles(s) * count_items_per_tile(s), 1, find_tile_sums, &w);
  laci_pool_for(net->pool, count_channels(s), TOTALS_GRAIN, combine_gradient_sums, &w);
  laci_native_fill_border(net, &s->to, &s->size, 0, tensor_data(&w, TO));
  laci_pool_for(net->pool, count_tiles(s), 1, compute_gradient_of_items, &w);
  return LAC_OK;
}

/* ---- Lowering ---- */

static int output_or_none(const laci_node *node, int port) {
  return port < node->n_outputs ? node->outputs[port] : -1;
}

/** Creates a step that reads x and writes `to`; its other tensors are set later. */
static norm_step *new_norm_step(laci_net *net, const laci_node *node, int x, int to) {
  norm_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || x < 0 || to < 0) return NULL;
  const laci_shape shape = net->tensors[x].shape;
  *s = (norm_step){.kernel = laci_native_hwc16n_kernels(net),
                   .each = laci_sparse_values_per_word(laci_native_value_type(net)),
                   .size = laci_native_value_size(net, &shape, false),
                   .x = net->tensors[x].native->layout,
                   .to = net->tensors[to].native->layout,
                   .epsilon = (double)laci_node_float(node, "epsilon", 1e-5f)};
  for (int at = 0; at < N_TENSORS; at++) s->tensors[at] = -1;
  s->tensors[X] = x;
  s->tensors[TO] = to;
  s->tile_rows = smaller_of(s->size.h, laci_ceil_div(TILE_PIXELS, s->size.w));
  s->n_tiles = laci_ceil_div(s->size.h, s->tile_rows);
  s->tensors[SCRATCH] = laci_net_scratch_new(net, scratch_bytes(s));
  return s;
}

static void add_norm_step(laci_net *net, const laci_fused *fused, norm_step *s,
                          laci_net_code *code) {
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], code,
                                               N_TENSORS, s->tensors);
  if (!step) return;
  laci_net_step_mark_scratch(step, SCRATCH);
  step->what = laci_net_describe_fused(net, fused);
  step->kernel = "over images";
  step->context = s;
  step->shown = s->tensors[TO];
}

bool laci_can_lower_image_norm(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "no sparse layer next to it";
  return laci_native_may_be_hwc16n(net, node->inputs[0]) &&
         (laci_native_is_hwc16n(net, node->inputs[0]) ||
          laci_native_has_assigned_layout(net, fused->output));
}

void laci_lower_image_norm(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const int known[] = {output_or_none(node, 1), output_or_none(node, 2)};
  const int64_t channels = laci_plan_shape(&net->plan, node->inputs[0])->dims[1];
  const laci_native_layout out = laci_native_hwc16n_layout(net, fused->output);
  int from[2];
  const bool given = laci_norm_find_statistics(net, node, from);
  const int x = laci_native_read_as_hwc16n(net, node->inputs[0]);
  const int y = laci_native_tensor_new(net, laci_plan_shape(&net->plan, fused->output), &out, -1);
  norm_step *s = new_norm_step(net, node, x, y);
  if (!s) return;
  s->relu = fused->n_posts > 0;
  s->given = given;
  s->tensors[SCALE] = laci_norm_read_vector(net, node->inputs[1]);
  s->tensors[SHIFT] = laci_norm_read_vector(net, node->inputs[2]);
  s->tensors[MEAN] =
      given ? laci_norm_read_vector(net, from[0]) : laci_norm_new_vector(net, channels);
  s->tensors[VAR] =
      given ? laci_norm_read_vector(net, from[1]) : laci_norm_new_vector(net, channels);
  add_norm_step(net, fused, s, run_norm);
  if (net->plan.status) return;
  net->workspaces[fused->node] = x;
  laci_net_bind_value(net, fused->output, y);
  if (net->recomputing) return;
  for (int at = 0; at < 2; at++) {
    if (known[at] >= 0) laci_net_bind_value(net, known[at], s->tensors[at ? VAR : MEAN]);
  }
  laci_norm_update_running_statistics(net, node, s->tensors[MEAN], s->tensors[VAR]);
}

/** Did the forward node's step keep x in HWC16N? */
bool laci_can_lower_image_norm_gradient(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const int forward = net->plan.graph->values[node->inputs[3]].producer;
  *why = "no sparse layer next to it";
  if (!net->workspaces || forward < 0 || net->workspaces[forward] < 0) return false;
  return net->tensors[net->workspaces[forward]].native != NULL;
}

void laci_lower_image_norm_gradient(laci_net *net, const laci_fused *fused) {
  const laci_graph *graph = net->plan.graph;
  const laci_node *node = &graph->nodes[fused->node];
  const int forward = graph->values[node->inputs[3]].producer;
  const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[1]);
  const int to = output_or_none(node, 0);
  const laci_native_layout out = laci_native_hwc16n_layout(net, to >= 0 ? to : node->inputs[1]);
  const int dy = laci_native_read_as_hwc16n(net, node->inputs[0]);
  if (dy < 0) return;
  const bool alike = laci_sparse_layout_equal(&net->tensors[dy].native->layout, &out.layout);
  const int dx = laci_native_tensor_new(net, shape, &out, alike ? dy : -1);
  norm_step *s = new_norm_step(net, node, net->workspaces[forward], dx);
  if (!s) return;
  s->y = net->tensors[dy].native->layout;
  s->relu = net->plan.fused[forward].n_posts > 0;
  s->fixed = laci_norm_has_fixed_statistics(node);
  s->tensors[DY] = dy;
  s->tensors[SCALE] = laci_norm_read_vector(net, node->inputs[2]);
  s->tensors[SHIFT] = laci_norm_read_vector(net, graph->nodes[forward].inputs[2]);
  s->tensors[MEAN] = laci_norm_read_vector(net, node->inputs[3]);
  s->tensors[VAR] = laci_norm_read_vector(net, node->inputs[4]);
  s->tensors[DSCALE] = laci_norm_new_vector(net, shape->dims[1]);
  s->tensors[DSHIFT] = laci_norm_new_vector(net, shape->dims[1]);
  add_norm_step(net, fused, s, run_norm_gradient);
  if (to >= 0) laci_net_bind_value(net, to, dx);
  if (output_or_none(node, 1) >= 0) laci_net_bind_value(net, node->outputs[1], s->tensors[DSCALE]);
  if (output_or_none(node, 2) >= 0) laci_net_bind_value(net, node->outputs[2], s->tensors[DSHIFT]);
}

/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a convolution's weights by kernel/convolution/weight_gradient.h, where all values
 * are bf16 in blocks of channels (nChw16c).
 *
 * The work is divided into items: a tile of the gradient for a part of the batch. A tile is some
 * blocks of output and input channels, whose sums fit into a core's cache. There are only as many
 * parts as all threads need to get about the same share, since each part has sums of its own. These
 * are added in order and transposed to row-major at the end. So the results depend on the number of
 * threads, but on nothing else. Read next: kernel/convolution/weight_gradient.h. */
#include "engine/cpu/onednn/convolution.h"
#include "base/min.h"
#include "kernel/convolution/weight_gradient.h"
#include "engine/cpu/native/native.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  BLOCK = LACI_GRADIENT_BLOCK,
  TILE = LACI_GRADIENT_TILE,
  MOST_MATRICES = 256, /* maximum number of sum matrices in a tile; each has TILE floats, 1 KiB */
  MOST_OUT = 16,
  LEAST_BLOCKS = 2, /* for Winograd's algorithm: with fewer channels its transforms cost more than
                       they save */
  IMBALANCE_PERCENT = 15,
};

typedef struct weight_step {
  laci_weight_gradient g;
  laci_weight_sums *sums_of;
  int64_t n;              /* number of images in the batch */
  int64_t k_tile, c_tile; /* number of blocks of output channels (k) and of input channels (c) in a
                             tile */
  int64_t k_tiles, c_tiles, parts;
  int64_t shares; /* number of threads that work, each with its own scratch */
  int x, dy, dw, sums, scratch;
  size_t scratch_bytes;
} weight_step;

typedef struct weight_work {
  const weight_step *s;
  const uint16_t *x, *dy;
  float *sums, *dw;
  char *scratch;
} weight_work;

static int64_t count_tile_floats(const laci_weight_gradient *g) {
  return g->k_blocks * g->c_blocks * laci_weight_gradient_n_sums(g) * TILE;
}

/** Computes item i: a tile for a part of the batch. */
static void sum_gradient_of_tile(const weight_work *w, int64_t i, void *scratch) {
  const weight_step *s = w->s;
  int64_t tile = i % (s->k_tiles * s->c_tiles), part = i / (s->k_tiles * s->c_tiles);
  int64_t k = tile / s->c_tiles * s->k_tile, c = tile % s->c_tiles * s->c_tile;
  const laci_weight_gradient_part some = {.x = w->x,
                                          .dy = w->dy,
                                          .n_first = part * s->n / s->parts,
                                          .n_last = (part + 1) * s->n / s->parts,
                                          .k_first = k,
                                          .k_last = laci_min(k + s->k_tile, s->g.k_blocks),
                                          .c_first = c,
                                          .c_last = laci_min(c + s->c_tile, s->g.c_blocks),
                                          .sums = w->sums + part * count_tile_floats(&s->g),
                                          .scratch = scratch};
  s->sums_of(&s->g, &some);
}

static void sum_gradient_of_thread_tiles(int64_t begin, int64_t end, void *context) {
  const weight_work *w = context;
  const weight_step *s = w->s;
  int64_t items = s->k_tiles * s->c_tiles * s->parts;
  for (int64_t share = begin; share < end; share++) {
    void *scratch = w->scratch + (size_t)share * s->scratch_bytes;
    int64_t last = (share + 1) * items / s->shares;
    for (int64_t i = share * items / s->shares; i < last; i++) sum_gradient_of_tile(w, i, scratch);
  }
}

/** Adds the sums of all parts and writes them as row-major weights, block after block. */
static void add_and_transpose_blocks(int64_t begin, int64_t end, void *context) {
  const weight_work *w = context;
  const laci_weight_gradient *g = &w->s->g;
  int64_t window = g->kernel_h * g->kernel_w, n = laci_weight_gradient_n_sums(g) * TILE;
  int64_t whole = count_tile_floats(g);
  for (int64_t at = begin; at < end; at++) {
    int64_t k = at / g->c_blocks, c = at % g->c_blocks;
    float *from = w->sums + at * n;
    for (int64_t part = 1; part < w->s->parts; part++) {
      for (int64_t i = 0; i < n; i++) from[i] += from[part * whole + i];
    }
    for (int64_t out = 0; out < BLOCK; out++) {
      float *to = w->dw + ((k * BLOCK + out) * g->c_blocks + c) * BLOCK * window;
      for (int64_t in = 0; in < BLOCK; in++, to += window) {
        laci_weight_gradient_from_sums(g, from + in * BLOCK + out, to);
      }
    }
  }
}

static lac_status run_weight_sums(laci_net *net, laci_net_step *step, lac_error *err) {
  const weight_step *s = step->context;
  weight_work w = {.s = s,
                   .x = laci_net_tensor_data(net, s->x),
                   .dy = laci_net_tensor_data(net, s->dy),
                   .sums = laci_net_tensor_data(net, s->sums),
                   .dw = laci_net_tensor_data(net, s->dw),
                   .scratch = laci_net_tensor_data(net, s->scratch)};
  (void)err;
  laci_pool_for(net->pool, s->shares, 1, sum_gradient_of_thread_tiles, &w);
  laci_pool_for(net->pool, s->g.k_blocks * s->g.c_blocks, 8, add_and_transpose_blocks, &w);
  return LAC_OK;
}

/* ---- Building ---- */

static bool describe_gradient(const laci_net *net, const laci_shape *x, const laci_shape *y,
                              const laci_shape *weight, const laci_window *window,
                              laci_weight_gradient *g) {
  bool fits = net->plan.bf16 && net->blocks && x->rank == 4 && weight->rank == 4;
  if (!fits || x->dims[1] % BLOCK || y->dims[1] % BLOCK) return false;
  if (window->dilates[0] || window->dilates[1]) return false;
  if (weight->dims[2] * weight->dims[3] == 1) return false; /* oneDNN is fast at plain products */
  *g = (laci_weight_gradient){
      .c_blocks = x->dims[1] / BLOCK,
      .k_blocks = y->dims[1] / BLOCK,
      .h = x->dims[2],
      .w = x->dims[3],
      .out_h = y->dims[2],
      .out_w = y->dims[3],
      .kernel_h = weight->dims[2],
      .kernel_w = weight->dims[3],
      .stride_h = window->strides[0],
      .stride_w = window->strides[1],
      .pad_top = window->pads_begin[0],
      .pad_left = window->pads_begin[1],
  };
  bool many = g->c_blocks >= LEAST_BLOCKS && g->k_blocks >= LEAST_BLOCKS;
  g->winograd = many && g->kernel_w == LACI_WINOGRAD_WINDOW && g->stride_w == 1;
  return laci_weight_gradient_scratch_bytes(g, MOST_OUT) > 0;
}

/** Does the busiest thread have at most IMBALANCE_PERCENT percent more than an equal share of the
 * items? */
static bool is_work_balanced(int64_t items, int64_t n_threads) {
  int64_t most = (items + n_threads - 1) / n_threads;
  return most * n_threads * 100 <= items * (100 + IMBALANCE_PERCENT);
}

static void divide_gradient_into_tiles(weight_step *s, int n_threads) {
  const laci_weight_gradient *g = &s->g;
  int64_t n_sums = laci_weight_gradient_n_sums(g),
          most_blocks = MOST_MATRICES / n_sums > 1 ? MOST_MATRICES / n_sums : 1;
  s->k_tile = laci_min(laci_min(g->k_blocks, MOST_OUT), most_blocks);
  s->c_tile = laci_min(g->c_blocks, most_blocks / s->k_tile);
  s->k_tiles = (g->k_blocks + s->k_tile - 1) / s->k_tile;
  s->c_tiles = (g->c_blocks + s->c_tile - 1) / s->c_tile;
  int64_t tiles = s->k_tiles * s->c_tiles;
  s->parts = 1;
  while (s->parts < s->n && s->parts < n_threads &&
         !is_work_balanced(tiles * s->parts, n_threads)) {
    s->parts++;
  }
  s->shares = laci_min(n_threads, tiles * s->parts);
  s->scratch_bytes = (laci_weight_gradient_scratch_bytes(g, s->k_tile) + 63) / 64 * 64;
}

static bool plan_gradient_step(const laci_net *net, const laci_fused *fused, weight_step *s) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *dy = laci_plan_shape(&net->plan, node->inputs[1]);
  const laci_shape *weight = laci_plan_shape(&net->plan, fused->output);
  laci_window window;
  *s = (weight_step){.sums_of = laci_weight_sums_variant(), .n = x->dims[0]};
  bool fits = s->sums_of && laci_node_int(node, "group", 1) == 1 && weight->rank == x->rank &&
              x->rank >= 3 && laci_conv_read_window(node, x, dy, weight->dims + 2, &window) &&
              describe_gradient(net, x, dy, weight, &window, &s->g);
  if (fits) divide_gradient_into_tiles(s, net->n_threads);
  return fits;
}

bool laci_can_lower_conv_bf16_gradient(laci_net *net, const laci_fused *fused, const char **why) {
  weight_step s;
  *why = "no window of bf16 in blocks";
  return plan_gradient_step(net, fused, &s);
}

void laci_lower_conv_bf16_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *weight = laci_plan_shape(&net->plan, fused->output);
  weight_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || !plan_gradient_step(net, fused, s)) return;
  s->x = laci_net_read_in_blocks(net, node->inputs[0]);
  s->dy = laci_net_read_in_blocks(net, node->inputs[1]);
  laci_layout *md = laci_net_dense_layout(net, weight, LACI_ELEMENT_F32);
  s->dw = md ? laci_net_new_result(net, weight, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  s->sums =
      laci_net_scratch_new(net, (size_t)(s->parts * count_tile_floats(&s->g)) * sizeof(float));
  s->scratch = laci_net_scratch_new(net, s->scratch_bytes * (size_t)s->shares);
  laci_net_step *step = laci_net_step_add_code(net, node, run_weight_sums, 5,
                                               (int[]){s->x, s->dy, s->dw, s->sums, s->scratch});
  if (!step) return;
  step->kernel = s->g.winograd ? "winograd along rows, bf16" : "bf16 pairs";
  step->context = s;
  step->shown = s->dw;
  laci_net_step_mark_scratch(step, 3);
  laci_net_step_mark_scratch(step, 4);
  step->flops = 2 * s->n * laci_shape_count(weight) * s->g.out_h * s->g.out_w;
  laci_net_bind_value(net, fused->output, s->dw);
}

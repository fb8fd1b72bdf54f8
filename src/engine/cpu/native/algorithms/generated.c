/* SPDX-License-Identifier: Apache-2.0
 * A layer by its kernel, as a step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/divide.h"
#include "engine/cpu/native/layout/tensors.h"
#include "jit/sparse_code.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"
#include "kernel/sparse/reorder.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct sparse_step {
  const laci_native_kernel *kernel;
  const laci_native_layer *layer;
  laci_sparse_size size; /* of the result */
  laci_native_tensors tensors;
  int scratch;            /* a tensor; -1: none */
  laci_sparse_layout out; /* of y */
  uint32_t around;        /* its pixels */
  int64_t n_floats;       /* that it has */
} sparse_step;

enum { ZERO_GRAIN = 1 << 16 };
enum { TILES = 32, ROWS = 32 }; /* that a thread does at a time, by the compiled kernel */

typedef struct work {
  const sparse_step *s;
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  int64_t row_parts;
} work;

static void multiply_some(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_sparse_form *form = &w->kernel->form;
  for (int64_t at = begin; at < end; at++) {
    const int64_t tile = at / w->row_parts * TILES, row = at % w->row_parts * ROWS;
    const laci_sparse_part part = {
        .tiles = form->tiles,
        .tile_first = tile,
        .tile_last = tile + TILES < form->n_tiles ? tile + TILES : form->n_tiles,
        .row_first = row,
        .row_last = row + ROWS < form->product.n_rows ? row + ROWS : form->product.n_rows};
    laci_sparse_multiply_now()(&form->product, &w->o, &part);
  }
}

static void zero_all(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  memset(w->o.y + begin, 0, (size_t)(end - begin) * sizeof *w->o.y);
}

/** All that no kernel writes. */
static void zero(laci_net *net, work *w) {
  const sparse_step *s = w->s;
  if (s->layer->scatter > 1 && s->layer->n_phases == 1) {
    laci_pool_for(net->pool, s->n_floats, ZERO_GRAIN, zero_all, w);
  } else {
    laci_native_fill_border(net, &s->out, &s->size, s->around, w->o.y);
  }
}

static void run_kernel(laci_net *net, work *w) {
  const laci_sparse_form *form = &w->kernel->form;
  w->o.weight = form->kept.weight;
  w->row_parts = laci_ceil_div(form->product.n_rows, ROWS);
  if (w->kernel->code) {
    laci_sparse_code_run(w->kernel->code, &w->o, form->tiles, form->n_tiles, net->pool,
                         laci_net_data(net, w->s->scratch));
  } else if (w->kernel->lists) {
    laci_native_run_lists(net, w->kernel, &w->o);
  } else {
    laci_pool_for(net->pool, laci_ceil_div(form->n_tiles, TILES) * w->row_parts, 1, multiply_some,
                  w);
  }
}

static lac_status run_sparse(laci_net *net, laci_net_step *step, lac_error *err) {
  const sparse_step *s = step->context;
  work w = {.s = s, .o = laci_native_operands_of(net, s->layer, &s->tensors)};
  (void)err;
  zero(net, &w);
  for (w.kernel = s->kernel; w.kernel; w.kernel = w.kernel->next) run_kernel(net, &w);
  return LAC_OK;
}

static const char *kernel_name(laci_net *net, const laci_native_layer *layer,
                               const laci_native_kernel *kernel) {
  const laci_sparse_window *g = &layer->window;
  char text[96];
  const laci_jit_isa isa = laci_native_isa_of(net, layer);
  const char *code = kernel->lists          ? laci_native_lists_name(kernel)
                     : isa != LACI_JIT_NONE ? laci_jit_isa_name(isa)
                     : layer->bytes         ? "compiled int8"
                                            : "compiled";
  const int64_t taps = layer->n_phases > 1 ? 2 : 1; /* a phase reads every second one */
  (void)snprintf(text, sizeof text, "sparse-%lldx%lld %s",
                 (long long)(g->kernel_h * taps - taps + 1),
                 (long long)(g->kernel_w * taps - taps + 1), code);
  return laci_arena_text(&net->plan.memory, text);
}

static size_t scratch_of(const laci_net *net, const laci_native_kernel *kernel) {
  size_t most = 0;
  for (; kernel; kernel = kernel->next) {
    const size_t bytes = laci_sparse_code_scratch(kernel->code, net->n_threads);
    if (bytes > most) most = bytes;
  }
  return most;
}

void laci_native_make_product(laci_net *net, const laci_native_layer *layer) {
  const laci_fused *fused = layer->fused;
  const laci_native_layout out =
      laci_native_layout_at(net, layer->output, layer->bytes ? layer->bytes->y : NULL);
  const laci_shape *y = laci_plan_shape(&net->plan, layer->output);
  sparse_step *s = laci_plan_new(&net->plan, 1, sizeof *s);
  const laci_native_kernel *kernel = s ? laci_native_make_kernel(net, layer) : NULL;
  if (!kernel) return;
  if (layer->mask) laci_native_fill(net, layer, kernel);
  *s = (sparse_step){
      .kernel = kernel,
      .layer = layer,
      .size = laci_native_size_of(net, y, &out),
      .out = out.layout,
      .around = laci_native_around(&out),
      .n_floats = laci_native_image_blocks(&out.layout, layer->n_images) * out.layout.n_floats,
      .tensors = laci_native_take_tensors(net, layer),
      .scratch = kernel->code ? laci_net_scratch(net, scratch_of(net, kernel)) : -1};
  const laci_native_tensors *t = &s->tensors;
  laci_net_step *step = laci_net_step_code(net, &net->plan.graph->nodes[fused->node], run_sparse, 5,
                                           (int[]){t->x, t->bias, t->residual, s->scratch, t->y});
  if (!step) return;
  laci_net_step_scratch(step, 3);
  step->what = laci_net_describe(net, fused);
  step->kernel = kernel_name(net, layer, kernel);
  step->sparse = true;
  step->context = s;
  step->shown = t->y;
  step->flops = laci_native_flops(net, layer);
  laci_net_bind(net, fused->output, t->y);
}

/* ---- The record ---- */

/** What is read of larger windows than one pixel is read again soon. */
static double generated_share(const laci_net *net, const laci_native_layer *layer) {
  enum { MANY = 128 };
  const laci_cost_figures *c = laci_costs_of(net, layer);
  const bool far = laci_native_by_images(layer->n_images) && laci_native_is_pixel(&layer->window) &&
                   laci_cost_terms(&layer->window) > MANY;
  if (laci_native_isa_of(net, layer) == LACI_JIT_NONE) return c->compiled_share;
  return far && c->generated_far > 0 ? c->generated_far : c->generated_share;
}

/** A chunk of tiles goes through all code before the next one; code that comes from memory does so
 * while the piece before it is at work. */
static double sparse_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { CHUNK = 64 };
  const double half = 0.5;
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_costs_of(net, layer);
  const double share_kept = layer->bytes ? (layer->kept > half ? 1 : half) : layer->kept;
  const double kept = (double)g->channels_out * laci_cost_terms(g) * share_kept;
  const bool together = !laci_native_is_pixel(g) && laci_native_code_is_unpadded(net, layer);
  const int64_t tiles = laci_cost_tiles(layer, together ? 0 : 1);
  const double worked = (double)(tiles * LACI_SPARSE_LANES) / generated_share(net, layer);
  const double chunks = (double)laci_ceil_div(tiles, CHUNK);
  const double waited = chunks * c->first, streamed = chunks * c->stream;
  const double around = (double)(tiles * LACI_SPARSE_LANES * g->channels_out) * c->result;
  return kept * (worked + waited > streamed ? worked + waited : streamed) + around;
}

/* Of a kept weight. docs/sparse-kernels.md */
static double code_bytes(const laci_net *net, const laci_native_layer *layer) {
  const laci_jit_isa isa = laci_native_isa_of(net, layer);
  const double avx2 = 27, others = 12.3;
  return isa == LACI_JIT_AVX2 ? avx2 : others;
}

static double bytes(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const double n = (double)(g->channels_out * laci_sparse_row_weights(g));
  return n * layer->kept * code_bytes(net, layer);
}

static bool can(const laci_net *net, const laci_native_layer *layer, const char **why) {
  (void)net;
  *why = "it is no product, or has few zeros";
  return layer->kind == LACI_NATIVE_PRODUCT && !layer->full;
}

const laci_algorithm laci_algorithm_generated = {.name = "generated",
                                                 .timed_as = "sparse",
                                                 .can = can,
                                                 .is_unpadded = laci_native_code_is_unpadded,
                                                 .cost = sparse_cost,
                                                 .bytes = bytes,
                                                 .make = laci_native_make_product};

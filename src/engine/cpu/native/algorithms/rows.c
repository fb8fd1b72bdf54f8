/* SPDX-License-Identifier: Apache-2.0
 * Layers without generated code: lists of what rows keep, or of rows that keep alike, where those
 * gain (kernel/sparse/csr.h, grouped_rows.h). */
#include "base/divide.h"
#include "kernel/sparse/grouped_rows.h"
#include "kernel/sparse/csr.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct laci_native_lists {
  bool is_grouped; /* one of these: */
  laci_grouped_rows grouped;
  laci_csr csr;
} laci_native_lists;

int64_t laci_native_grouped_strips(const laci_native_layer *layer, int64_t n_units) {
  const int64_t rows = layer->window.channels_out / layer->window.groups;
  return laci_grouped_rows_may_gain(rows, layer->kept) ? laci_grouped_rows_strips(n_units) : 0;
}

/** Rows are cut so that all threads have lists, where a few tiles are all there is. */
static int64_t chunk_rows(const laci_net *net, int64_t n_rows, int64_t strips) {
  enum { LEAST = 16, EACH = 2 }; /* rows of a chunk, and items of a thread */
  const int64_t cuts = laci_ceil_div((int64_t)net->n_threads * EACH, strips);
  const int64_t rows = laci_ceil_div(n_rows, cuts);
  return rows < LEAST ? LEAST : rows;
}

lac_status laci_native_make_lists(laci_net *net, laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_form *form = &kernel->form;
  const laci_sparse_product *p = &form->product;
  laci_native_lists *lists = laci_plan_new(&net->plan, 1, sizeof *lists);
  lac_status st = LAC_OK;
  if (!lists) return LAC_NO_MEMORY;
  lists->is_grouped = laci_grouped_rows_gain(p);
  if (lists->is_grouped) {
    const int64_t units = laci_grouped_rows_units(form->tiles, form->n_tiles);
    const int64_t rows = chunk_rows(net, p->n_rows, laci_grouped_rows_strips(units));
    st = laci_grouped_rows_init(p, form->kept.weight, rows, &lists->grouped, err);
  } else {
    const int64_t rows = chunk_rows(net, p->n_rows, laci_csr_strips(form->n_tiles));
    const laci_csr_cut cut = {form->tiles, form->n_tiles, rows};
    st = laci_csr_init(p, form->kept.weight, &cut, &lists->csr, err);
  }
  if (st) return st;
  kernel->lists = lists;
  laci_sparse_form_keep_tiles(form);
  net->plan.weight_bytes += lists->is_grouped ? lists->grouped.bytes : lists->csr.bytes;
  return LAC_OK;
}

void laci_native_drop_lists(laci_native_kernel *kernel) {
  if (!kernel->lists) return;
  laci_grouped_rows_clear(&kernel->lists->grouped);
  laci_csr_clear(&kernel->lists->csr);
}

const char *laci_native_lists_name(const laci_native_kernel *kernel) {
  return kernel->lists->is_grouped ? "grouped rows" : "csr";
}

/* ---- Running ---- */

typedef struct work {
  const laci_native_kernel *kernel;
  const laci_sparse_operands *o;
  int64_t n_units, n_strips; /* units or tiles, and strips of them */
} work;

/** Strips of a chunk of rows after each other. */
static void run_strips(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_native_lists *lists = w->kernel->lists;
  const laci_sparse_tile *tiles = w->kernel->form.tiles;
  for (int64_t at = begin; at < end; at++) {
    const int64_t chunk = at / w->n_strips, strip = at % w->n_strips;
    const int64_t first = laci_sparse_strip_begin(w->n_units, w->n_strips, strip);
    const int64_t last = laci_sparse_strip_begin(w->n_units, w->n_strips, strip + 1);
    if (lists->is_grouped)
      laci_grouped_rows_now()(&lists->grouped, w->o, chunk, tiles, first, last);
    else laci_csr_now()(&lists->csr, w->o, chunk, tiles + first, last - first);
  }
}

void laci_native_run_lists(laci_net *net, const laci_native_kernel *kernel,
                           const laci_sparse_operands *o) {
  const laci_native_lists *lists = kernel->lists;
  const laci_sparse_form *form = &kernel->form;
  const bool grouped = lists->is_grouped;
  work w = {.kernel = kernel, .o = o, .n_units = form->n_tiles};
  if (grouped) w.n_units = laci_grouped_rows_units(form->tiles, form->n_tiles);
  w.n_strips = grouped ? laci_grouped_rows_strips(w.n_units) : laci_csr_strips(w.n_units);
  const int64_t n_chunks = grouped ? lists->grouped.n_chunks : lists->csr.n_chunks;
  laci_pool_for(net->pool, n_chunks * w.n_strips, 1, run_strips, &w);
}

/* ---- The record ---- */

/* Halves of tiles that have results. */
static int64_t units_of(const laci_native_layer *layer) {
  enum { UNIT = LACI_SPARSE_LANES / 2 };
  const laci_sparse_window *g = &layer->window;
  const int64_t between = laci_native_is_pixel(g) ? 0 : 1; /* pixels, from row to row */
  const int64_t pixels = (g->out_h - 1) * (g->out_w + between) + g->out_w;
  if (laci_native_by_images(layer->n_images)) return 2 * laci_cost_tiles(layer, 1);
  return layer->n_images * laci_ceil_div(pixels, UNIT);
}

/** What is lost with each strip is the same for fewer units. */
static double grouped_rows_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { UNIT = LACI_SPARSE_LANES / 2, FEW = 128 };
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_costs_of(net, layer);
  const bool images = laci_native_by_images(layer->n_images);
  const double units = (double)units_of(layer);
  const double lost = (double)laci_native_grouped_strips(layer, units_of(layer)) * c->strip;
  const double share = (laci_native_is_pixel(g) || images ? c->grouped : c->grouped_window) *
                       (g->channels_out / g->groups < FEW ? c->grouped_few : 1);
  const double kept = laci_cost_terms(g) * layer->kept; /* of a row */
  const double result = images ? c->grouped_of_images : c->grouped_result;
  const double each = kept * (units + lost) / share + units * result;
  return (double)g->channels_out * (UNIT * each + kept * c->grouped_weight);
}

/** Lists are read for each strip of tiles, so that none waits for what it runs. */
static double csr_cost(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_costs_of(net, layer);
  const bool aligned = laci_native_is_pixel(g) || laci_native_by_images(layer->n_images);
  const double kept = laci_cost_terms(g) * layer->kept; /* of a row */
  const double lanes = (double)(laci_cost_tiles(layer, 1) * LACI_SPARSE_LANES * g->channels_out);
  return lanes * (kept / (aligned ? c->csr : c->csr_window) + c->result);
}

static double lists_cost(const laci_net *net, const laci_native_layer *layer) {
  const bool grouped = laci_native_grouped_strips(layer, 1) > 0;
  return grouped ? grouped_rows_cost(net, layer) : csr_cost(net, layer);
}

static double bytes(const laci_net *net, const laci_native_layer *layer) {
  const double of_groups = 5.4, of_lists = 8;
  const laci_sparse_window *g = &layer->window;
  const double n = (double)(g->channels_out * laci_sparse_row_weights(g));
  (void)net;
  return n * layer->kept * (laci_native_grouped_strips(layer, 1) > 0 ? of_groups : of_lists);
}

static bool can(const laci_net *net, const laci_native_layer *layer, const char **why) {
  *why = "its weights change, are no floats, or have few zeros";
  return !layer->full && laci_native_is_of_constant_floats(net, layer);
}

const laci_algorithm laci_algorithm_rows = {.name = "rows",
                                            .timed_as = "lists",
                                            .can = can,
                                            .cost = lists_cost,
                                            .bytes = bytes,
                                            .make = laci_native_make_product};

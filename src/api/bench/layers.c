/* SPDX-License-Identifier: Apache-2.0
 * Makes the rows of lac_bench's report: one for each step of the plan, with the time that the dense
 * plan takes for the same node.
 *
 * The two plans may fuse differently and reorder elsewhere, so steps are matched by the name of
 * their node, and a reorder by that of the next node: the first step of a name in one plan with the
 * first of that name in the other, and so on. Surplus steps of the dense plan are added to the last
 * row of their name; if there is no row of that name, to the rest (dense_rest_seconds). */
#include <string.h>

#include "api/bench/bench_in.h"
#include "base/error.h"
#include "engine/engine.h"
#include "lacuna/prune.h"

static bool is_layer_with_pattern(const lac_report *check, const char *node) {
  for (int at = 0; check && node && at < check->n_layers; at++) {
    const lac_layer *layer = &check->layers[at];
    if (strcmp(layer->name, node) == 0) return layer->pruned;
  }
  return false;
}

/* ---- The steps of a plan ---- */

/* Returns the name of the step; for a step that only changes a layout, the name of the next step
 * with "(reorder)". */
static char *make_step_name(laci_arena *arena, const char *name, const char *next) {
  if (name) return laci_arena_text(arena, name);
  if (!next) return laci_arena_text(arena, "(output)");
  static const char mark[] = " (reorder)";
  size_t n = strlen(next);
  char *made = laci_arena_alloc(arena, n + sizeof mark, 1);
  if (!made) return NULL;
  memcpy(made, next, n);
  memcpy(made + n, mark, sizeof mark);
  return made;
}

/* Fills the row of step `at`. *next: in: the name of the next step that has a name; out: this
 * step's name, if it has one. */
static lac_status fill_step_row(laci_arena *arena, const laci_bench_plan *plan, size_t at,
                                const char **next, lac_bench_layer *layer, lac_error *err) {
  laci_engine_step info = laci_engine_step_info(plan->engine, at);
  double seconds = laci_bench_plan_fastest_step(plan, at);
  const char *kernel = laci_arena_text(arena, info.kernel);
  *layer = (lac_bench_layer){.name = make_step_name(arena, info.name, *next),
                             .op = laci_arena_text(arena, info.op),
                             .what = laci_arena_text(arena, info.what),
                             .kernel = kernel,
                             .plain = info.plain,
                             .exact = info.exact,
                             .dense_seconds = seconds,
                             .seconds = seconds,
                             .flops = info.flops,
                             .bytes_read = info.bytes_read,
                             .bytes_written = info.bytes_written,
                             .sparse = info.sparse,
                             .micro_batches = info.micro_batches > 1 ? info.micro_batches : 1,
                             .dense_kernel = kernel};
  if (info.name) *next = info.name;
  bool whole = layer->name && layer->op && layer->what && kernel;
  return whole ? LAC_OK : laci_fail_memory(err, "the result");
}

static lac_status make_plan_rows(laci_arena *arena, const laci_bench_plan *plan,
                                 const lac_report *check, lac_bench_layer **layers,
                                 lac_error *err) {
  const char *next = NULL;
  *layers = laci_arena_alloc(arena, plan->n_steps, sizeof **layers);
  lac_status st = *layers ? LAC_OK : laci_fail_memory(err, "the result");
  for (size_t at = plan->n_steps; at > 0 && !st; at--) {
    lac_bench_layer *layer = &(*layers)[at - 1];
    st = fill_step_row(arena, plan, at - 1, &next, layer, err);
    if (!st) layer->holds_pattern = layer->flops > 0 && is_layer_with_pattern(check, layer->name);
  }
  return st;
}

/* ---- Comparing the sparse and the dense plan ---- */

/* Returns the first row of this name from `from` on; n: there is none. */
static int find_row(const lac_bench_layer *rows, int n, int from, const char *name) {
  int at = from;
  while (at < n && strcmp(rows[at].name, name) != 0) at++;
  return at;
}

void laci_bench_add_dense_times(lac_bench_result *r, lac_bench_layer *rows) {
  for (int at = 0; at < r->n_layers; at++) {
    rows[at].dense_seconds = 0;
    rows[at].dense_kernel = NULL;
  }
  for (int at = 0; at < r->n_dense_layers; at++) {
    const lac_bench_layer *dense = &r->dense_layers[at];
    int row = find_row(rows, r->n_layers, 0, dense->name), last = row;
    while (row < r->n_layers && rows[row].dense_kernel) {
      last = row;
      row = find_row(rows, r->n_layers, row + 1, dense->name);
    }
    if (row == r->n_layers) row = last;
    if (row == r->n_layers) {
      r->dense_rest_seconds += dense->seconds;
      continue;
    }
    rows[row].dense_seconds += dense->seconds;
    if (!rows[row].dense_kernel) rows[row].dense_kernel = dense->kernel;
  }
}

lac_status laci_bench_make_layer_rows(laci_bench_result *result, const laci_bench_plan *own,
                                      const laci_bench_plan *dense, const lac_report *check,
                                      lac_error *err) {
  lac_bench_result *r = &result->pub;
  lac_bench_layer *dense_layers = NULL;
  lac_status st = make_plan_rows(&result->arena, own, check, &result->layers, err);
  if (!st && dense) st = make_plan_rows(&result->arena, dense, check, &dense_layers, err);
  if (st) return st;
  r->layers = result->layers;
  r->n_layers = (int)own->n_steps;
  for (int at = 0; at < r->n_layers; at++) r->n_sparse += r->layers[at].sparse;
  if (!dense) return LAC_OK;
  r->dense_layers = dense_layers;
  r->n_dense_layers = (int)dense->n_steps;
  laci_bench_add_dense_times(r, result->layers);
  return LAC_OK;
}

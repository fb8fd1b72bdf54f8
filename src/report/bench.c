/* SPDX-License-Identifier: Apache-2.0
 * Writes the speed of a network: as JSON, and as a chart of its slowest layers (chart.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lacuna/bench.h"
#include "lacuna/version.h"
#include "report/chart.h"
#include "report/json.h"
#include "report/json_in.h"

enum { DIGITS = 9, MOST_BARS = 40, PERCENT = 100 };

static double safe_ratio(double over, double under) { return under > 0 ? over / under : 0; }

/* ---- JSON ---- */

static json_t *milliseconds_json(double seconds) { return laci_json_number(1e3 * seconds); }

static json_t *bench_time_json(laci_json_writer *w, const lac_bench_time *time) {
  json_t *object = json_object();
  laci_json_add(w, object, "min", milliseconds_json(time->min));
  laci_json_add(w, object, "median", milliseconds_json(time->median));
  return object;
}

static void add_rates_json(laci_json_writer *w, json_t *object, const lac_bench_result *r,
                           double seconds, int64_t flops) {
  laci_json_add(w, object, "ms", milliseconds_json(seconds));
  laci_json_add(w, object, "share", laci_json_number(safe_ratio(seconds, r->step_seconds)));
  laci_json_add(w, object, "gflops", laci_json_number(safe_ratio(1e-9 * (double)flops, seconds)));
  laci_json_add(w, object, "peak_share",
                laci_json_number(safe_ratio(safe_ratio((double)flops, seconds), r->peak_flops)));
  laci_json_add(w, object, "flops", json_integer((json_int_t)flops));
}

static json_t *layer_json(laci_json_writer *w, const lac_bench_result *r,
                          const lac_bench_layer *layer) {
  json_t *object = json_object();
  int64_t bytes = layer->bytes_read + layer->bytes_written;
  laci_json_add(w, object, "name", laci_json_text(w, layer->name));
  laci_json_add(w, object, "op", laci_json_text(w, layer->op));
  laci_json_add(w, object, "what", laci_json_text(w, layer->what));
  laci_json_add(w, object, "kernel", laci_json_text(w, layer->kernel));
  laci_json_add(w, object, "plain", json_boolean(layer->plain));
  laci_json_add(w, object, "exact", json_boolean(layer->exact));
  laci_json_add(w, object, "holds_pattern", json_boolean(layer->holds_pattern));
  laci_json_add(w, object, "sparse", json_boolean(layer->sparse));
  laci_json_add(w, object, "turns", json_integer((json_int_t)layer->micro_batches));
  laci_json_add(w, object, "dense_ms", milliseconds_json(layer->dense_seconds));
  laci_json_add(w, object, "dense_kernel", laci_json_text(w, layer->dense_kernel));
  add_rates_json(w, object, r, layer->seconds, layer->flops);
  laci_json_add(w, object, "bytes_read", json_integer((json_int_t)layer->bytes_read));
  laci_json_add(w, object, "bytes_written", json_integer((json_int_t)layer->bytes_written));
  laci_json_add(w, object, "gbytes_per_second",
                laci_json_number(safe_ratio(1e-9 * (double)bytes, layer->seconds)));
  return object;
}

static json_t *operator_json(laci_json_writer *w, const lac_bench_result *r,
                             const lac_bench_kind *kind) {
  json_t *object = json_object();
  laci_json_add(w, object, "op", laci_json_text(w, kind->op));
  laci_json_add(w, object, "steps", json_integer(kind->n_steps));
  laci_json_add(w, object, "plain", json_integer(kind->n_plain));
  laci_json_add(w, object, "dense_ms", milliseconds_json(kind->dense_seconds));
  add_rates_json(w, object, r, kind->seconds, kind->flops);
  laci_json_add(w, object, "bytes", json_integer((json_int_t)kind->bytes));
  return object;
}

/* Adds the fields about the plan that has dense kernels only, if there are two plans. */
static void add_dense_plan_json(laci_json_writer *w, json_t *root, const lac_bench_result *r) {
  json_t *plan = json_object();
  laci_json_add(w, plan, "plan_ms", milliseconds_json(r->dense_plan_seconds));
  laci_json_add(w, plan, "weight_bytes", json_integer((json_int_t)r->dense_weight_bytes));
  laci_json_add(w, plan, "arena_bytes", json_integer((json_int_t)r->dense_arena_bytes));
  laci_json_add(w, plan, "rest_ms", milliseconds_json(r->dense_rest_seconds));
  laci_json_add(w, root, "dense_plan", plan);
}

static void add_summary_json(laci_json_writer *w, json_t *root, const lac_bench_result *r) {
  laci_json_add(w, root, "lacuna", json_string(lac_version()));
  laci_json_add(w, root, "verb", json_string("bench"));
  laci_json_add(w, root, "model", laci_json_text(w, r->model));
  laci_json_add(w, root, "batch", json_integer((json_int_t)r->batch));
  laci_json_add(w, root, "fixed_batch",
                r->fixed_batch ? json_integer((json_int_t)r->fixed_batch) : json_null());
  laci_json_add(w, root, "dtype", json_string(lac_dtype_name(r->dtype)));
  laci_json_add(w, root, "engine", json_string(r->engine));
  laci_json_add(w, root, "nodes", json_integer(r->n_nodes));
  laci_json_add(w, root, "costs_known", json_boolean(r->costs_known));
  laci_json_add(w, root, "exact_nodes", json_integer(r->n_exact));
  laci_json_add(w, root, "exact_reason", laci_json_text(w, r->exact_reason));
  laci_json_add(w, root, "exact_ms", milliseconds_json(r->exact_seconds));
  laci_json_add(w, root, "threads", json_integer(r->threads));
  laci_json_add(w, root, "runs", json_integer(r->runs));
  laci_json_add(w, root, "dense_ms", bench_time_json(w, &r->dense));
  laci_json_add(w, root, "sparse_ms", r->has_sparse ? bench_time_json(w, &r->sparse) : json_null());
  laci_json_add(w, root, "images_per_second", laci_json_number(r->items_per_second));
  laci_json_add(w, root, "pattern", laci_pattern_json(r->pattern_n, r->pattern_m));
  laci_json_add(w, root, "layers_holding_pattern", json_integer(r->n_holding));
  laci_json_add(w, root, "layers_sparse", json_integer(r->n_sparse));
  laci_json_add(w, root, "load_ms", milliseconds_json(r->load_seconds));
  laci_json_add(w, root, "plan_ms", milliseconds_json(r->plan_seconds));
  laci_json_add(w, root, "first_run_ms", milliseconds_json(r->first_seconds));
  laci_json_add(w, root, "weight_bytes", json_integer((json_int_t)r->weight_bytes));
  laci_json_add(w, root, "arena_bytes", json_integer((json_int_t)r->arena_bytes));
  laci_json_add(w, root, "planned_bytes", json_integer((json_int_t)r->planned_bytes));
  if (r->has_sparse) add_dense_plan_json(w, root, r);
  else laci_json_add(w, root, "dense_plan", json_null());
  laci_json_add(w, root, "peak_kernel", json_string(r->peak_kernel));
  laci_json_add(w, root, "peak_gflops", laci_json_number(1e-9 * r->peak_flops));
  laci_json_add(w, root, "read_gbytes_per_second", laci_json_number(1e-9 * r->read_bytes));
}

lac_status laci_bench_json(const lac_bench_result *result, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object(), *layers = json_array(), *kinds = json_array();
  add_summary_json(&w, root, result);
  for (int at = 0; at < result->n_kinds; at++) {
    laci_json_append(&w, kinds, operator_json(&w, result, &result->kinds[at]));
  }
  for (int at = 0; at < result->n_layers; at++) {
    laci_json_append(&w, layers, layer_json(&w, result, &result->layers[at]));
  }
  laci_json_add(&w, root, "kinds", kinds);
  laci_json_add(&w, root, "layers", layers);
  return laci_json_finish(&w, root, LACI_JSON_REPORT(DIGITS), "the JSON result", text, err);
}

/* ---- The chart ---- */

/* Compares indices of layers by time, the slowest first. */
static int compare_layers_by_seconds(const void *a, const void *b, void *context) {
  const lac_bench_layer *layers = *(const lac_bench_layer *const *)context;
  int x = *(const int *)a, y = *(const int *)b;
  if (layers[x].seconds != layers[y].seconds) {
    return layers[x].seconds > layers[y].seconds ? -1 : 1;
  }
  return x - y;
}

static const char *format_text(laci_arena *arena, const char *format, ...) LAC_PRINTF(2, 3);
static const char *format_text(laci_arena *arena, const char *format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  (void)vsnprintf(text, sizeof text, format, values);
  va_end(values);
  const char *copy = laci_arena_text(arena, text);
  return copy ? copy : "";
}

static int find_kind_index(const lac_bench_result *r, const char *op) {
  int at = 0;
  while (at < r->n_kinds && strcmp(r->kinds[at].op, op) != 0) at++;
  return at;
}

static const char *format_time_and_share(laci_arena *arena, const lac_bench_result *r,
                                         double seconds) {
  return format_text(arena, "%.3g ms, %.1f%%", 1e3 * seconds,
                     PERCENT * safe_ratio(seconds, r->step_seconds));
}

/* Returns the note of a layer: its kernel, its share of the peak rate, and its time in the dense
 * plan if there are two plans. */
static const char *format_layer_note(laci_arena *arena, const lac_bench_result *r,
                                     const lac_bench_layer *layer) {
  char peak[32] = "", dense[64] = "";
  double rate = safe_ratio((double)layer->flops, layer->seconds);
  if (layer->flops > 0)
    (void)snprintf(peak, sizeof peak, ", %.0f%% of peak",
                   PERCENT * safe_ratio(rate, r->peak_flops));
  if (r->has_sparse && layer->dense_seconds > 0)
    (void)snprintf(dense, sizeof dense, "; dense %.3g ms", 1e3 * layer->dense_seconds);
  return format_text(arena, "%s%s%s", layer->kernel, peak, dense);
}

static laci_chart_bar make_layer_bar(laci_arena *arena, const lac_bench_result *r,
                                     const lac_bench_layer *layer) {
  return (laci_chart_bar){.label = layer->name,
                          .value = layer->seconds,
                          .pale_value = r->has_sparse ? layer->dense_seconds : 0,
                          .kind = find_kind_index(r, layer->op),
                          .text = format_time_and_share(arena, r, layer->seconds),
                          .note = format_layer_note(arena, r, layer)};
}

/* Makes bars for the slowest layers, and one bar for all other layers. */
static int fill_bars(laci_arena *arena, const lac_bench_result *r, const int *order,
                     laci_chart_bar *bars) {
  int n = r->n_layers > MOST_BARS ? MOST_BARS : r->n_layers;
  double rest = 0;
  for (int at = 0; at < n; at++) bars[at] = make_layer_bar(arena, r, &r->layers[order[at]]);
  for (int at = n; at < r->n_layers; at++) rest += r->layers[order[at]].seconds;
  if (n == r->n_layers) return n;
  bars[n] = (laci_chart_bar){.label = format_text(arena, "%d faster steps", r->n_layers - n),
                             .value = rest,
                             .kind = -1,
                             .text = format_time_and_share(arena, r, rest),
                             .note = ""};
  return n + 1;
}

static void fill_legend(laci_arena *arena, const lac_bench_result *r, laci_chart_kind *kinds) {
  for (int at = 0; at < r->n_kinds; at++) {
    const lac_bench_kind *kind = &r->kinds[at];
    kinds[at] = (laci_chart_kind){
        .name = kind->op,
        .share = safe_ratio(kind->seconds, r->step_seconds),
        .text = format_time_and_share(arena, r, kind->seconds),
        .note = format_text(arena, "%d step%s", kind->n_steps, kind->n_steps == 1 ? "" : "s")};
  }
}

static const char *file_name_of_path(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const char *format_title(laci_arena *arena, const lac_bench_result *r) {
  const lac_bench_time *time = r->has_sparse ? &r->sparse : &r->dense;
  const char *fastest =
      format_text(arena, "%.200s: fastest %.4g ms, median %.4g ms", file_name_of_path(r->model),
                  1e3 * time->min, 1e3 * time->median);
  if (!r->has_sparse) return fastest;
  return format_text(arena, "%s (dense %.4g ms, %.4g ms)", fastest, 1e3 * r->dense.min,
                     1e3 * r->dense.median);
}

/* Fills the headings of the two charts. They say what value the longest bar has. */
static void fill_chart_headings(laci_arena *arena, const lac_bench_result *r, laci_chart *chart) {
  double most = 0;
  for (int at = 0; at < r->n_layers; at++) {
    most = fmax(most, r->layers[at].seconds);
    if (r->has_sparse) most = fmax(most, r->layers[at].dense_seconds);
  }
  chart->kinds_head = "by operator: a full bar is 100 %";
  chart->bars_head = format_text(
      arena, "by step, slowest first: a full bar is %.3g ms, %.3g %%, another scale%s", 1e3 * most,
      PERCENT * safe_ratio(most, r->step_seconds), r->has_sparse ? "; pale: the dense plan" : "");
}

lac_status laci_bench_chart(const lac_bench_result *result, const char *path, bool force,
                            lac_error *err) {
  laci_arena arena = {0};
  size_t n = (size_t)result->n_layers;
  const lac_bench_layer *layers = result->layers;
  int *order = laci_alloc(n, sizeof *order);
  laci_chart_bar *bars = laci_alloc(n + 1, sizeof *bars);
  laci_chart_kind *kinds = laci_alloc((size_t)result->n_kinds, sizeof *kinds);
  lac_status st = order && bars && kinds ? LAC_OK : laci_fail_memory(err, "a chart");
  if (!st) {
    for (int at = 0; at < result->n_layers; at++) order[at] = at;
    if (n > 1) qsort_r(order, n, sizeof *order, compare_layers_by_seconds, &layers);
    fill_legend(&arena, result, kinds);
    laci_chart chart = {
        .title = format_title(&arena, result),
        .summary =
            format_text(&arena,
                        "batch %lld, %s, %d thread%s: %.*f images a second. Peak %.4g "
                        "GFLOP/s (%s), memory %.3g GB/s",
                        (long long)result->batch, lac_dtype_name(result->dtype), result->threads,
                        result->threads == 1 ? "" : "s", result->items_per_second < PERCENT ? 2 : 0,
                        result->items_per_second, 1e-9 * result->peak_flops, result->peak_kernel,
                        1e-9 * result->read_bytes),
        .bars = bars,
        .n_bars = fill_bars(&arena, result, order, bars),
        .kinds = kinds,
        .n_kinds = result->n_kinds};
    fill_chart_headings(&arena, result, &chart);
    st = laci_chart_write(&chart, path, force, err);
  }
  laci_free(order);
  laci_free(bars);
  laci_free(kinds);
  laci_arena_clear(&arena);
  return st;
}

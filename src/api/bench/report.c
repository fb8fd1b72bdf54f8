/* SPDX-License-Identifier: Apache-2.0
 * Sums up the results of lac_bench by operator; report/bench.c writes them. */
#include <stdlib.h>
#include <string.h>

#include "api/bench/bench_in.h"
#include "api/model/structs.h"
#include "base/error.h"
#include "base/writer.h"
#include "report/chart.h"
#include "report/roofline.h"

static lac_bench_kind *find_or_add_kind(laci_bench_result *result, const char *op) {
  for (int at = 0; at < result->pub.n_kinds; at++) {
    if (strcmp(result->kinds[at].op, op) == 0) return &result->kinds[at];
  }
  lac_bench_kind *kind = &result->kinds[result->pub.n_kinds++];
  kind->op = op;
  return kind;
}

static int compare_longest_first(const void *a, const void *b) {
  const lac_bench_kind *x = a, *y = b;
  if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
  return strcmp(x->op, y->op);
}

lac_status laci_bench_sum_layers(laci_bench_result *result, lac_error *err) {
  lac_bench_result *r = &result->pub;
  size_t most = (size_t)r->n_layers + (size_t)r->n_dense_layers;
  result->kinds = laci_arena_alloc(&result->arena, most, sizeof *result->kinds);
  if (!result->kinds) return laci_fail_memory(err, "the result");
  for (int at = 0; at < r->n_layers; at++) {
    const lac_bench_layer *layer = &r->layers[at];
    lac_bench_kind *kind = find_or_add_kind(result, layer->op);
    kind->n_steps++;
    kind->n_plain += layer->plain;
    kind->seconds += layer->seconds;
    kind->flops += layer->flops;
    kind->bytes += layer->bytes_read + layer->bytes_written;
    r->step_seconds += layer->seconds;
    if (layer->exact) r->exact_seconds += layer->seconds;
    if (!r->has_sparse) kind->dense_seconds += layer->seconds;
  }
  for (int at = 0; at < r->n_dense_layers; at++) {
    const lac_bench_layer *layer = &r->dense_layers[at];
    find_or_add_kind(result, layer->op)->dense_seconds += layer->seconds;
    r->dense_step_seconds += layer->seconds;
  }
  if (r->n_kinds > 1)
    qsort(result->kinds, (size_t)r->n_kinds, sizeof *result->kinds, compare_longest_first);
  r->kinds = result->kinds;
  return LAC_OK;
}

lac_status lac_bench_plot(const lac_bench_result *result, const char *path, bool force,
                          lac_context *context, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"result", result}, {"path", path});
  if (st) return st;
  lac_context *before = laci_call_enter_context(context);
  st = laci_bench_chart(result, path, force, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_bench_roofline(const lac_bench_result *result, const char *path, bool force,
                              lac_error *err) {
  char *svg = NULL;
  size_t size_bytes = 0;
  lac_status st = LACI_CHECK_GIVEN(err, {"result", result}, {"path", path});
  if (!st) st = laci_roofline_svg(result, &svg, &size_bytes, err);
  if (!st) st = laci_file_write(path, svg, size_bytes, force, err);
  laci_free(svg);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * lac_bench and lac_bench_measure_costs: defaults and checks of options. Next: bench.c, which does
 * the work. */
#include "api/bench/bench_in.h"
#include "api/model/structs.h"
#include "base/error.h"
#include "engine/engine.h"
#include "sparse/score.h"

enum { MOST_BATCH = 65536, MOST_RUNS = 10000 };
static const double most_seconds = 1e9;

void lac_bench_options_init(lac_bench_options *options, size_t size) {
  const lac_bench_options usual = {.size = sizeof usual,
                                   .run = {.dtype = LAC_DTYPE_F32},
                                   .runs = 1000,
                                   .seconds = 5,
                                   .n = 2,
                                   .m = 4};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

static lac_status check_options(const lac_bench_options *options, lac_error *err) {
  lac_status st = laci_check_run_options(&options->run, err);
  if (st) return st;
  if (options->batch < 0 || options->batch > MOST_BATCH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a batch of %d, wanted 1 to %d", options->batch,
                     MOST_BATCH);
  }
  if (options->runs < 1 || options->runs > MOST_RUNS) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d runs, wanted 1 to %d", options->runs, MOST_RUNS);
  }
  if (!(options->seconds >= 0 && options->seconds <= most_seconds)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a time of %g s, wanted 0 to %g", options->seconds,
                     most_seconds);
  }
  st = laci_pattern_check((laci_pattern){options->n, options->m}, err);
  if (st) return st;
  return laci_check_engine_shapes(options->shapes, options->n_shapes, err);
}

lac_status lac_bench(lac_model *model, const lac_bench_options *options, lac_bench_result **result,
                     lac_error *err) {
  lac_bench_options own;
  if (result) *result = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", result});
  if (!st) st = laci_take_bench_options(options, &own, err);
  if (!st) st = check_options(&own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.run.context);
  st = laci_bench_run(model, &own, result, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_bench_measure_costs(lac_context *context, char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"text", text});
  if (st) return st;
  lac_context *before = laci_call_enter_context(context);
  st = laci_engine_measure_costs(NULL, text, err);
  laci_call_leave_context(before);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * `lacuna bench`: how fast a network runs, layer by layer; lacuna/bench.h does the work. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "input.h"
#include "lacuna/bench.h"
#include "outputs.h"
#include "log.h"
#include "page.h"
#include "table.h"
#include "terminal.h"
#include "run_options.h"
#include "verbs.h"

enum { MOST_BATCH = 65536, MOST_RUNS = 10000, PERCENT = 100 };

/* ---- The command line ---- */

static lac_status parse_batch(const char *text, int *batch, lac_error *err) {
  char *end = NULL;
  long n = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : 0;
  if (!end || *end || n < 1 || n > MOST_BATCH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--batch %s: wanted an integer from 1 to %d", text,
                     MOST_BATCH);
  }
  *batch = (int)n;
  return LAC_OK;
}

static lac_status read_options(const arguments *args, laci_arena *arena, lac_bench_options *options,
                               lac_error *err) {
  const text_list *shapes = &args->input_shape;
  lac_engine_shape *made = laci_arena_alloc(arena, (size_t)shapes->n, sizeof *made);
  *options = lac_bench_options_default();
  if (!made) return laci_fail_memory(err, "the command line");
  if (args->runs < 1 || args->runs > MOST_RUNS) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--runs %" PRIu64 ": wanted an integer from 1 to %d",
                     args->runs, MOST_RUNS);
  }
  lac_status st = args->batch ? parse_batch(args->batch, &options->batch, err) : LAC_OK;
  if (!st) st = input_parse_pattern(args->pattern, &options->n, &options->m, err);
  for (int at = 0; at < shapes->n && !st; at++) {
    st = input_parse_shape(shapes->items[at], arena, &made[at], err);
  }
  options->shapes = made;
  options->n_shapes = shapes->n;
  options->run = run_options_from_arguments(args);
  options->runs = (int)args->runs;
  options->seconds = args->time;
  options->seed = args->seed;
  return st;
}

/* ---- Printing ---- */

static double divide_or_zero(double over, double under) { return under > 0 ? over / under : 0; }

/* Fills the columns that exist only with two plans: the time in the dense plan, and its ratio to
 * the time in the plan with sparse kernels. */
static void add_dense_time_cells(text_table *table, const lac_bench_result *r, double seconds,
                                 double dense) {
  if (!r->has_sparse) return;
  if (dense > 0) table_add_cell(table, "%.4f", 1e3 * dense);
  else table_add_cell(table, "-");
  if (dense > 0 && seconds > 0) table_add_cell(table, "%.2f", divide_or_zero(dense, seconds));
  else table_add_cell(table, "-");
}

/* Fills the columns: time; share of the total time; for matrix products the rate, and the rate as a
 * share of the peak; memory traffic. */
static void add_rate_cells(text_table *table, const lac_bench_result *r,
                           const lac_bench_layer *sum) {
  double seconds = sum->seconds, rate = divide_or_zero((double)sum->flops, seconds);
  int64_t flops = sum->flops, bytes = sum->bytes_read + sum->bytes_written;
  table_add_cell(table, "%.4f", 1e3 * seconds);
  add_dense_time_cells(table, r, seconds, sum->dense_seconds);
  table_add_cell(table, "%.1f%%", PERCENT * divide_or_zero(seconds, r->step_seconds));
  if (flops > 0) {
    table_add_cell(table, "%.1f", 1e-9 * rate);
    table_add_cell(table, "%.0f%%", PERCENT * divide_or_zero(rate, r->peak_flops));
  } else {
    table_add_cell(table, "-");
    table_add_cell(table, "-");
  }
  table_add_cell(table, "%.2f", 1e-6 * (double)bytes);
  table_add_cell(table, "%.1f", 1e-9 * divide_or_zero((double)bytes, seconds));
}

static void add_dense_plan_row(text_table *table, const lac_bench_result *r) {
  enum { BEFORE = 3 }; /* number of columns before the time */
  table_add_cell(table, "(in the dense plan only)");
  for (int column = 0; column < BEFORE; column++) table_add_cell(table, "-");
  add_dense_time_cells(table, r, 0, r->dense_rest_seconds);
  for (int column = BEFORE + 3; column < table->n_columns; column++) table_add_cell(table, "-");
}

static lac_status print_layers(const lac_bench_result *r, lac_error *err) {
  text_table table = {0};
  table_begin(&table, r->has_sparse
                          ? "~layer|~step|~kernel|>ms|>dense ms|>ratio|>time|>GFLOP/s|>of peak"
                            "|>MB|>GB/s"
                          : "~layer|~step|~kernel|>ms|>time|>GFLOP/s|>of peak|>MB|>GB/s");
  for (int at = 0; at < r->n_layers; at++) {
    const lac_bench_layer *layer = &r->layers[at];
    table_add_cell(&table, "%s", layer->name);
    table_add_cell(&table, "%s", layer->what);
    table_add_cell(&table, "%s", layer->kernel);
    add_rate_cells(&table, r, layer);
  }
  if (r->dense_rest_seconds > 0) add_dense_plan_row(&table, r);
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

static lac_status print_operators(const lac_bench_result *r, lac_error *err) {
  text_table table = {0};
  table_begin(&table, r->has_sparse
                          ? "~operator|>steps|>plain|>ms|>dense ms|>ratio|>time|>GFLOP/s|>of peak"
                            "|>MB|>GB/s"
                          : "~operator|>steps|>plain|>ms|>time|>GFLOP/s|>of peak|>MB|>GB/s");
  for (int at = 0; at < r->n_kinds; at++) {
    const lac_bench_kind *kind = &r->kinds[at];
    table_add_cell(&table, "%s", kind->op);
    table_add_cell(&table, "%d", kind->n_steps);
    table_add_cell(&table, "%d", kind->n_plain);
    const lac_bench_layer sum = {.seconds = kind->seconds,
                                 .dense_seconds = kind->dense_seconds,
                                 .flops = kind->flops,
                                 .bytes_read = kind->bytes};
    add_rate_cells(&table, r, &sum);
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

static void print_plan_time(const lac_bench_result *r, const char *plan, const lac_bench_time *time,
                            const char *more) {
  double images = divide_or_zero((double)r->batch, time->median);
  terminal_print_sentence(stdout, "%s: fastest %.3f ms, median %.3f ms, %.*f images a second%s",
                          plan, 1e3 * time->min, 1e3 * time->median, images < 100 ? 2 : 0, images,
                          more);
}

static void print_sparse_time(const lac_bench_result *r) {
  if (r->has_sparse) {
    char more[128];
    snprintf(more, sizeof more, ", %.2f times as many; %d layer%s by sparse kernels",
             divide_or_zero(r->dense.median, r->sparse.median), r->n_sparse,
             laci_plural(r->n_sparse));
    print_plan_time(r, "sparse", &r->sparse, more);
  } else if (r->n_holding > 0) {
    terminal_print_sentence(stdout, "sparse: %d layer%s %d:%d, and dense kernels run them all",
                            r->n_holding, r->n_holding == 1 ? " holds" : "s hold", r->pattern_n,
                            r->pattern_m);
  } else {
    terminal_print_sentence(stdout, "sparse: no layer holds %d:%d", r->pattern_n, r->pattern_m);
  }
}

static void print_steps_by_plain_engine(const lac_bench_result *r) {
  int n_plain = 0;
  double seconds = 0;
  for (int at = 0; at < r->n_layers; at++) {
    n_plain += r->layers[at].plain;
    if (r->layers[at].plain) seconds += r->layers[at].seconds;
  }
  terminal_print_sentence(stdout, "plain: %d of %d step%s no fast form, %.1f%% of the time",
                          n_plain, r->n_layers, r->n_layers == 1 ? " has" : "s have",
                          PERCENT * divide_or_zero(seconds, r->step_seconds));
}

static void print_nodes_run_exactly(const lac_bench_result *r) {
  if (r->n_exact == 0) return;
  terminal_print_sentence(stdout, "exact: %d of %d node%s, %.1f%% of the time; %s", r->n_exact,
                          r->n_nodes, laci_plural(r->n_nodes),
                          PERCENT * divide_or_zero(r->exact_seconds, r->step_seconds),
                          r->exact_reason);
}

/* Prints which layers run in micro-batches: on a part of the batch at a time, so that its values
 * stay in the caches. Steps with the same number of micro-batches form one group. */
static void print_micro_batches(const lac_bench_result *r) {
  for (int at = 0, end; at < r->n_layers; at = end) {
    const int64_t micro_batches = r->layers[at].micro_batches,
                  images = micro_batches > 0 ? r->batch / micro_batches : 0;
    const char *last = "";
    for (end = at; end < r->n_layers && r->layers[end].micro_batches == micro_batches; end++) {
      if (strcmp(r->layers[end].op, "reorder") != 0) last = r->layers[end].name;
    }
    if (micro_batches < 2) continue;
    terminal_print_sentence(
        stdout, "micro-batches: all up to %s run %" PRId64 " times, for %" PRId64 " image%s each",
        last, micro_batches, images, laci_plural(images));
  }
}

/* Prints time and memory of planning; for the dense plan, too, if there are two. */
static void print_planning_cost(const lac_bench_result *r) {
  char seconds[64] = "", memory[128] = "";
  if (r->has_sparse) {
    snprintf(seconds, sizeof seconds, " (the dense plan: %.1f)", 1e3 * r->dense_plan_seconds);
    snprintf(memory, sizeof memory, " (the dense plan: %.1f and %.1f)",
             1e-6 * (double)r->dense_weight_bytes, 1e-6 * (double)r->dense_arena_bytes);
  }
  terminal_print_sentence(
      stdout, "first answer: %.1f ms, of which %.1f to load, %.1f to plan%s, %.1f to run",
      1e3 * (r->load_seconds + r->plan_seconds + r->first_seconds), 1e3 * r->load_seconds,
      1e3 * r->plan_seconds, seconds, 1e3 * r->first_seconds);
  terminal_print_sentence(stdout, "memory: %.1f MB weights, %.1f MB arena%s",
                          1e-6 * (double)r->weight_bytes, 1e-6 * (double)r->arena_bytes, memory);
}

static void print_summary(const lac_bench_result *r) {
  char batch[64], fixed[64] = "";
  snprintf(batch, sizeof batch, "batch %" PRId64, r->batch);
  if (r->fixed_batch > 0)
    snprintf(fixed, sizeof fixed, " (the file's is %" PRId64 ")", r->fixed_batch);
  terminal_print_sentence(stdout, "%s%s, %s, %d thread%s, %d run%s", batch, fixed,
                          lac_dtype_name(r->dtype), r->threads, laci_plural(r->threads), r->runs,
                          laci_plural(r->runs));
  print_plan_time(r, "dense", &r->dense, "");
  print_sparse_time(r);
  print_steps_by_plain_engine(r);
  print_nodes_run_exactly(r);
  print_micro_batches(r);
  terminal_print_sentence(
      stdout, "peak: %.4g GFLOP/s by %d thread%s, %s multiply-adds in registers; memory: %.3g GB/s",
      1e-9 * r->peak_flops, r->threads, laci_plural(r->threads), r->peak_kernel,
      1e-9 * r->read_bytes);
  print_planning_cost(r);
}

static lac_status print_result(const lac_bench_result *r, lac_error *err) {
  lac_status st = print_layers(r, err);
  if (st) return st;
  putchar('\n');
  st = print_operators(r, err);
  if (st) return st;
  putchar('\n');
  print_summary(r);
  return LAC_OK;
}

/* ---- Files ---- */

static lac_status write_page(outputs *plan, const lac_bench_result *result, lac_model *model,
                             lac_error *err) {
  lac_report *layers = NULL;
  char *text = NULL;
  if (!plan->files[OUTPUT_PAGE].path) return LAC_OK;
  lac_status st = lac_bench_json(result, &text, err);
  if (!st) st = page_inspect_model(model, result->pattern_n, result->pattern_m, &layers, err);
  if (!st) st = outputs_write_page(plan, text, model, layers, err);
  lac_report_destroy(layers);
  lac_text_free(text);
  return st;
}

static lac_status write_and_print(outputs *plan, const lac_bench_result *result, lac_error *err) {
  const char *plot = plan->files[OUTPUT_PLOT].path;
  const char *roofline = plan->files[OUTPUT_ROOFLINE].path;
  char *text = NULL;
  outputs_begin_file_set(plan);
  lac_status st = plot ? lac_bench_plot(result, plot, plan->force, NULL, err) : LAC_OK;
  if (!st && roofline) st = lac_bench_roofline(result, roofline, plan->force, err);
  if (!st && plan->files[OUTPUT_JSON].path) st = lac_bench_json(result, &text, err);
  if (!st && text) st = outputs_write_json(plan, text, err);
  lac_text_free(text);
  if (!st && !plan->uses_stdout) st = print_result(result, err);
  return st;
}

/* Warns if sparse kernels were slower than dense ones, that is, if the rule that chose them is
 * wrong for this processor. */
static void warn_if_sparse_is_slower(const arguments *args, const lac_bench_result *r) {
  const double chance = 1.03;
  if (!r->has_sparse || !(r->sparse.median > chance * r->dense.median)) return;
  const bool timed = strcmp(args->tune, "off") != 0;
  laci_log(
      LAC_LOG_WARNING, "the plan with sparse kernels takes %.2f times as long as the dense one%s",
      divide_or_zero(r->sparse.median, r->dense.median),
      timed ? "" : "; --tune quick times both for each layer, and eval and infer take it, too");
}

/* Warns if kernels were chosen by the costs of the most similar known processor, without timing. */
static void warn_if_costs_unknown(const arguments *args, const lac_bench_result *r) {
  if (r->costs_known || strcmp(args->tune, "off") != 0 || !args->sparse_kernels) return;
  if (!r->has_sparse && r->n_holding == 0) return;
  laci_log(LAC_LOG_WARNING,
           "there is no table of what layers cost on this processor, and the nearest one chose "
           "kernels; --tune quick times this network, --measure-costs FILE measures a table");
}

/* ---- --measure-costs: a table of costs, without a network ---- */

static lac_status check_no_other_options(const arguments *args, lac_error *err) {
  const char *path = args->measure_costs;
  if (args->operand) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: --measure-costs %s runs networks of its own; wanted no MODEL",
                     args->operand, path);
  }
  if (!args->json && !args->plot && !args->roofline && !args->html) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "--%s: --measure-costs %s reports no run; wanted that alone",
                   args->json   ? "json"
                   : args->html ? "html"
                   : args->plot ? "plot"
                                : "roofline",
                   path);
}

static exit_code measure_costs(const arguments *args, lac_error *err) {
  outputs plan = {0};
  char *text = NULL;
  lac_status st = check_no_other_options(args, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  if (!st) {
    log_line(
        "measuring what layers cost on one thread; it takes some minutes in which nothing else "
        "should run");
    st = lac_bench_measure_costs(NULL, &text, err);
  }
  if (!st) {
    outputs_begin_file_set(&plan);
    st = outputs_write_costs(&plan, text, err);
  }
  lac_text_free(text);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  return exit_code_of_status(st);
}

exit_code verb_bench(const arguments *args, lac_error *err) {
  if (args->measure_costs) return measure_costs(args, err);
  if (!args->operand) {
    (void)laci_fail(
        err, LAC_BAD_ARGUMENT,
        "MODEL is missing; wanted lacuna bench [options] MODEL, or --measure-costs FILE");
    return exit_code_of_status(LAC_BAD_ARGUMENT);
  }
  lac_bench_options options;
  lac_bench_result *result = NULL;
  lac_model *model = NULL;
  laci_arena arena = {0};
  outputs plan = {0};
  lac_status st = read_options(args, &arena, &options, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  double begin = laci_clock_seconds();
  if (!st) st = input_load_model(args, args->operand, &model, err);
  options.load_seconds = laci_clock_seconds() - begin;
  if (!st) st = outputs_check_against_model(&plan, model, args->operand, err);
  if (!st) st = lac_bench(model, &options, &result, err);
  if (!st) st = write_and_print(&plan, result, err);
  if (!st) warn_if_sparse_is_slower(args, result);
  if (!st) warn_if_costs_unknown(args, result);
  if (!st) st = write_page(&plan, result, model, err); /* the page shows the warnings, too */
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_bench_result_destroy(result);
  lac_model_destroy(model);
  laci_arena_clear(&arena);
  return exit_code_of_status(st);
}

/* SPDX-License-Identifier: Apache-2.0
 * `lacuna compare`: two networks value by value on the same inputs. */
#include "lacuna/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/plural.h"
#include "input.h"
#include "outputs.h"
#include "page.h"
#include "table.h"
#include "terminal.h"
#include "verbs.h"

enum { PERCENT = 100 };

static lac_status parse_inputs(const arguments *args, laci_arena *arena,
                               lac_compare_options *options, lac_error *err) {
  lac_infer_input *inputs = laci_arena_alloc(arena, (size_t)args->input.n, sizeof *inputs);
  if (!inputs) return laci_fail_memory(err, "the command line");
  for (int at = 0; at < args->input.n; at++) {
    const char *text = args->input.items[at], *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
      return laci_fail(err, LAC_BAD_ARGUMENT, "--input %s: wanted NAME=FILE.npy", text);
    inputs[at].name = laci_arena_text_n(arena, text, (size_t)(equals - text));
    inputs[at].path = equals + 1;
    if (!inputs[at].name) return laci_fail_memory(err, "the command line");
  }
  options->inputs = inputs;
  options->n_inputs = args->input.n;
  return LAC_OK;
}

static lac_status read_options(const arguments *args, laci_arena *arena,
                               lac_compare_options *options, lac_error *err) {
  *options = lac_compare_options_default();
  options->tolerance = args->tolerance;
  options->seed = args->seed;
  options->threads = args->threads;
  options->max_memory = args->max_memory;
  options->runtime = args->against_ort;
  if (!args->second && !args->against_ort)
    return laci_fail(
        err, LAC_BAD_ARGUMENT,
        "OTHER is missing; wanted lacuna compare [options] MODEL OTHER, or --against-ort "
        "LIBRARY");
  if (args->plot && !laci_ends_with(args->plot, ".svg"))
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: wanted a name ending in .svg", args->plot);
  return parse_inputs(args, arena, options, err);
}

/* ---- Printing ---- */

static void add_error_cell(text_table *table, const lac_compare_value *value, double error) {
  if (!value->same_shape) table_add_cell(table, "other shape");
  else table_add_cell(table, "%.3g%%", PERCENT * error);
}

static lac_status print_values(const lac_compare_result *r, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~node|~op|~shape|>error|>largest|~");
  for (int at = 0; at < r->n_values; at++) {
    const lac_compare_value *value = &r->values[at];
    table_add_cell(&table, "%s", value->name);
    table_add_cell(&table, "%s", value->op);
    if (value->rank > 0) table_add_shape_cell(&table, value->rank, value->shape);
    else table_add_cell(&table, "scalar");
    add_error_cell(&table, value, value->error);
    add_error_cell(&table, value, value->largest);
    table_add_cell(&table, "%s%s%s%s", value->is_output ? "output" : "",
                   value->is_output && value->reordered ? ", " : "",
                   value->reordered ? "reordered" : "",
                   value->error <= r->tolerance           ? ""
                   : value->is_output || value->reordered ? ", apart"
                                                          : "apart");
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

static void print_summary(const lac_compare_result *r) {
  const lac_compare_value *first = NULL, *worst = NULL;
  int n_apart = 0;
  for (int at = 0; at < r->n_values; at++) {
    const lac_compare_value *value = &r->values[at];
    bool is_apart = !(value->error <= r->tolerance);
    if (is_apart && n_apart++ == 0) first = value;
    if (!worst || value->error > worst->error) worst = value;
  }
  terminal_print_sentence(stdout, "%d value%s compared on %s inputs, of %d and %d nodes",
                          r->n_values, laci_plural(r->n_values), r->given ? "given" : "random",
                          r->n_nodes, r->n_other);
  if (r->runtime) terminal_print_sentence(stdout, "the second network was run by %s", r->runtime);
  if (!first) {
    terminal_print_sentence(stdout, "no value is apart by more than %g%%", PERCENT * r->tolerance);
    return;
  }
  terminal_print_sentence(stdout, "they part at %s; %d value%s apart by more than %g%%",
                          first->name, n_apart, n_apart == 1 ? " is" : "s are",
                          PERCENT * r->tolerance);
  terminal_print_sentence(stdout, "the largest error is %.3g%%, at %s", PERCENT * worst->error,
                          worst->name);
}

static lac_status print_result(const lac_compare_result *r, lac_error *err) {
  lac_status st = print_values(r, err);
  if (!st) print_summary(r);
  return st;
}

/* ---- Files ---- */

static lac_status write_page(outputs *plan, const char *json, lac_model *model, lac_error *err) {
  lac_report *layers = NULL;
  lac_status st = page_inspect_model(model, 2, 4, &layers, err);
  if (!st) st = outputs_write_page(plan, json, model, layers, err);
  lac_report_destroy(layers);
  return st;
}

static lac_status write_files(outputs *plan, const lac_compare_result *result, lac_model *model,
                              lac_error *err) {
  const char *plot = plan->files[OUTPUT_PLOT].path;
  char *text = NULL;
  outputs_begin_file_set(plan);
  lac_status st = plot ? lac_compare_plot(result, plot, plan->force, err) : LAC_OK;
  if (!st && (plan->files[OUTPUT_JSON].path || plan->files[OUTPUT_PAGE].path))
    st = lac_compare_json(result, &text, err);
  if (!st && plan->files[OUTPUT_PAGE].path) st = write_page(plan, text, model, err);
  if (!st && text) st = outputs_write_json(plan, text, err);
  lac_text_free(text);
  return st;
}

exit_code verb_compare(const arguments *args, lac_error *err) {
  lac_compare_options options;
  lac_compare_result *result = NULL;
  lac_model *model = NULL, *other = NULL;
  laci_arena arena = {0};
  outputs plan = {0};
  lac_status st = read_options(args, &arena, &options, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  if (!st) st = input_load_model(args, args->operand, &model, err);
  if (!st) st = outputs_check_against_model(&plan, model, args->operand, err);
  if (!st && args->second) st = input_load_model(args, args->second, &other, err);
  if (!st && other) st = outputs_check_against_model(&plan, other, args->second, err);
  if (!st) st = lac_compare(model, other, &options, &result, err);
  if (!st) st = write_files(&plan, result, model, err);
  if (!st && !plan.uses_stdout) st = print_result(result, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_compare_result_destroy(result);
  lac_model_destroy(other);
  lac_model_destroy(model);
  laci_arena_clear(&arena);
  return exit_code_of_status(st);
}

/* SPDX-License-Identifier: Apache-2.0
 * `lacuna inspect` of a file of tensors: a row per tensor, read by lacuna/tensor_file.h. */
#include "tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "lacuna/report.h"
#include "lacuna/tensor_file.h"
#include "outputs.h"
#include "table.h"
#include "terminal.h"

bool tensors_are_given(const arguments *args) {
  return strcmp(args->operand, "-") != 0 && lac_tensor_file_is(args->operand);
}

/* ---- Options ---- */

static bool is_option_of_tensor_files(const char *name) {
  static const char *const taken[] = {"pattern", "json", "force",  "quiet",
                                      "verbose", "wide", "config", "print_config"};
  for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
    if (strcmp(taken[k], name) == 0) return true;
  return false;
}

/* Refuses options that apply to layers of a network. */
static lac_status check_options(const arguments *args, const lac_options *options, lac_error *err) {
  for (int k = 0; k < n_options; k++) {
    const option_row *option = &option_table[k];
    if (option->kind == OPTION_HEAD || !(option->verbs & ON(inspect))) continue;
    if (!*(const bool *)((const char *)args + option->given) ||
        is_option_of_tensor_files(option->name))
      continue;
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--%s: %s has tensors without their network, wanted "
                     "an ONNX file",
                     option_name_with_dashes(option->name), args->operand);
  }
  if (options->v > 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--pattern %d:%d:%d: wanted N:M for tensors without their network", options->v,
                     options->n, options->m);
  }
  return LAC_OK;
}

/* ---- The table ---- */

static const char *pattern_axis_text(const lac_file_tensor *tensor) {
  if (tensor->pattern_axis == 1) return "yes, along axis 1";
  return tensor->pattern_axis == 0 ? "yes, along axis 0" : tensor->rank < 2 ? "" : "no";
}

static void add_tensor_row(text_table *table, const lac_file_tensor *tensor) {
  table_add_cell(table, "%s", tensor->name);
  table_add_cell(table, "%s", tensor->type);
  table_add_shape_cell(table, tensor->rank, tensor->shape);
  if (tensor->n_zeros < 0 || tensor->n_elements == 0) table_add_cell(table, "%s", "");
  else table_add_cell(table, "%.2f%%", 100 * (double)tensor->n_zeros / (double)tensor->n_elements);
  const bool odd = tensor->is_float && tensor->n_elements > 0 && tensor->n_zeros < 0;
  table_add_cell(table, "%s", odd ? "has NaN or infinity" : pattern_axis_text(tensor));
}

/* Measures and prints all tensors. */
static lac_status print_tensors(const lac_tensor_file *file, const lac_options *options,
                                lac_error *err) {
  text_table table = {0};
  char heads[64];
  int n_held = 0, n_weights = 0;
  long long elements = 0;
  (void)snprintf(heads, sizeof heads, "~tensor|type|>shape|>zeros|+%d:%d", options->n, options->m);
  table_begin(&table, heads);
  const int n = lac_tensor_file_count(file);
  lac_status st = LAC_OK;
  for (int at = 0; at < n && !st; at++) {
    lac_file_tensor tensor = LAC_SIZED(lac_file_tensor);
    st = lac_tensor_file_measure(file, at, options->n, options->m, &tensor, err);
    if (st) break;
    add_tensor_row(&table, &tensor);
    elements += tensor.n_elements;
    n_weights += tensor.is_float && tensor.rank >= 2;
    n_held += tensor.pattern_axis >= 0;
  }
  if (!st) st = table_print(&table, stdout, err);
  table_clear(&table);
  if (st) return st;
  fputc('\n', stdout);
  terminal_print_sentence(stdout,
                          "%d tensor%s of %lld elements; %d of %d with two axes or more hold%s "
                          "%d:%d",
                          n, laci_plural(n), elements, n_held, n_weights, n_held == 1 ? "s" : "",
                          options->n, options->m);
  return LAC_OK;
}

static lac_status write_json(outputs *plan, const lac_tensor_file *file, const lac_options *options,
                             lac_error *err) {
  char *text = NULL;
  outputs_begin_file_set(plan);
  if (!plan->files[OUTPUT_JSON].path) return LAC_OK;
  lac_status st = lac_tensor_file_json(file, options->n, options->m, &text, err);
  if (!st) st = outputs_write_json(plan, text, err);
  lac_text_free(text);
  return st;
}

exit_code tensors_inspect(const arguments *args, lac_error *err) {
  lac_tensor_file *file = NULL;
  lac_options options;
  outputs plan = {0};
  lac_status st = input_read_prune_options(args, &options, err);
  if (!st) st = check_options(args, &options, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  if (!st) st = lac_tensor_file_open(args->operand, NULL, &file, err);
  if (!st) st = write_json(&plan, file, &options, err);
  if (!st && !plan.uses_stdout) st = print_tensors(file, &options, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_tensor_file_close(file);
  return exit_code_of_status(st);
}

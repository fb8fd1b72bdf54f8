/* SPDX-License-Identifier: Apache-2.0
 * `lacuna inspect`: layers and groups of channels, and what freezes them. */
#include <string.h>

#include "base/plural.h"

#include "lacuna/engine.h"
#include "lacuna/plan.h"
#include "layers.h"
#include "outputs.h"
#include "run_options.h"
#include "table.h"
#include "tensors.h"
#include "terminal.h"
#include "verbs.h"

/* Fills a cell with the names: "conv1, conv2 and 5 more". */
static void add_names_cell(text_table *table, const char *const *names, int n) {
  enum { SHOWN = 2 };
  if (n == 0) table_add_cell(table, "%s", "");
  else if (n == 1) table_add_cell(table, "%s", names[0]);
  else if (n == SHOWN) table_add_cell(table, "%s, %s", names[0], names[1]);
  else table_add_cell(table, "%s, %s and %d more", names[0], names[1], n - SHOWN);
}

static bool has_same_names(const char *const *a, int n_a, const char *const *b, int n_b) {
  bool same = n_a == n_b;
  for (int i = 0; i < n_a && same; i++) same = strcmp(a[i], b[i]) == 0;
  return same;
}

/* Are the two groups of channels equal except for their index? A grouped convolution has one group
 * of channels per convolution group. */
static bool has_same_channels(const lac_group *a, const lac_group *b) {
  return a->channels == b->channels && a->frozen == b->frozen &&
         strcmp(a->cause ? a->cause : "", b->cause ? b->cause : "") == 0 &&
         has_same_names(a->producers, a->n_producers, b->producers, b->n_producers) &&
         has_same_names(a->consumers, a->n_consumers, b->consumers, b->n_consumers);
}

static lac_status print_groups(const lac_report *report, lac_error *err) {
  text_table table = {0};
  table_begin(&table, ">group|>channels|~producers|~consumers|+");
  for (int i = 0, next; i < report->n_groups; i = next) {
    const lac_group *group = &report->groups[i];
    for (next = i + 1; next < report->n_groups && has_same_channels(group, &report->groups[next]);)
      next++;
    if (next - i > 1) table_add_cell(&table, "%d-%d", group->id, report->groups[next - 1].id);
    else table_add_cell(&table, "%d", group->id);
    if (next - i > 1) table_add_cell(&table, "%d each", group->channels);
    else table_add_cell(&table, "%d", group->channels);
    add_names_cell(&table, group->producers, group->n_producers);
    add_names_cell(&table, group->consumers, group->n_consumers);
    table_add_cell(&table, "%s%s", group->frozen ? "frozen: " : "free",
                   group->cause ? group->cause : "");
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

static lac_status print_result(const arguments *args, const lac_report *report, lac_error *err) {
  lac_status st = layers_print_movable(report, stdout, err);
  if (st) return st;
  fputc('\n', stdout);
  st = print_groups(report, err);
  const lac_summary *summary = &report->summary;
  fputc('\n', stdout);
  layers_print_folded(args, report, stdout);
  terminal_print_sentence(
      stdout,
      "%d layer%s (Conv or Dense), %d eligible for %s, %d of these in %d group%s that "
      "can be searched",
      summary->layers, laci_plural(summary->layers), summary->eligible, report->pattern,
      summary->permuted, summary->groups, laci_plural(summary->groups));
  return st;
}

/* Prints the nodes that no fast kernel would run. */
static lac_status print_slow_nodes(const lac_report *report, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~node|operator|run by|+");
  for (int at = 0; at < report->plan->n_nodes; at++) {
    const lac_plan_node *node = report->plan_nodes[at];
    if (node->runner == LAC_RUNNER_FAST || node->runner == LAC_RUNNER_NO_STEP) continue;
    const char *name = node->name[0] || !node->output ? node->name : node->output;
    table_add_cell(&table, "%s", name);
    table_add_cell(&table, "%s", node->op);
    table_add_cell(&table, "%s", lac_node_runner_name(node->runner));
    table_add_cell(&table, "%s", node->reason ? node->reason : "");
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  fputc('\n', stdout);
  return st;
}

/* Prints how an engine would run the network: slow nodes, and whether it can run it. */
static lac_status print_execution_plan(const lac_report *report, lac_error *err) {
  const lac_plan_facts *plan = report->plan;
  const bool slow = plan->n_fast + plan->n_no_step < plan->n_nodes;
  lac_status st = slow ? print_slow_nodes(report, err) : LAC_OK;
  if (st) return st;
  terminal_print_sentence(stdout, "engine %s, %s: %s%s", plan->engine, lac_dtype_name(plan->dtype),
                          plan->reason ? "it cannot run the network: " : "it can run the network",
                          plan->reason ? plan->reason : "");
  if (plan->open) {
    terminal_print_sentence(stdout,
                            "sizes of inputs are open (--input-shape fixes them); other "
                            "sizes than those assumed may be run otherwise");
  }
  terminal_print_sentence(
      stdout,
      "%d of %d node%s run by fast kernels, %d of these without the zeros of their "
      "weights; %d need%s no step in a run",
      plan->n_fast, plan->n_nodes, laci_plural(plan->n_nodes), plan->n_sparse, plan->n_no_step,
      plan->n_no_step == 1 ? "s" : "");
  return LAC_OK;
}

static lac_status print_cause_of_node(const arguments *args, const lac_options *options,
                                      const lac_model *model, lac_error *err) {
  char *text = NULL;
  lac_status st = lac_inspect_why(model, options, args->why, &text, err);
  if (!st && terminal_columns(stdout) == TERMINAL_NO_LIMIT) fputs(text, stdout);
  else if (!st) text_print_wrapped(stdout, text, terminal_columns(stdout), 0, 0);
  lac_text_free(text);
  return st;
}

exit_code verb_inspect(const arguments *args, lac_error *err) {
  if (tensors_are_given(args)) return tensors_inspect(args, err);
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options options;
  lac_engine_options engine = lac_engine_options_default();
  outputs plan = {0};
  lac_status st = outputs_plan_and_load(args, &options, &plan, &model, err);
  if (args->plan) {
    engine.run = run_options_from_arguments(args);
    options.plan = &engine;
  }
  if (!st && (args->json || !args->why)) {
    st = lac_inspect(model, &options, &report, err);
    if (!st) st = outputs_write(&plan, model, report, err);
  }
  if (!st && !plan.uses_stdout) {
    st = args->why    ? print_cause_of_node(args, &options, model, err)
         : args->plan ? print_execution_plan(report, err)
                      : print_result(args, report, err);
  }
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return exit_code_of_status(st);
}

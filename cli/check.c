/* SPDX-License-Identifier: Apache-2.0
 * `lacuna check`: what is sparse, and whether every layer that should hold the pattern does. */
#include <inttypes.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "layers.h"
#include "masks.h"
#include "outputs.h"
#include "predicted.h"
#include "targets.h"
#include "verbs.h"

static lac_status print_result(const arguments *args, const lac_model *model,
                               const lac_report *report, lac_error *err) {
  lac_status st = layers_print_sparsity(report, stdout, err);
  for (int i = 0; !st && args->show && i < report->n_layers; i++) {
    st = mask_print_groups(model, report, &report->layers[i], args->show, stdout, err);
  }
  if (st) return st;
  layers_print_folded(args, report, stdout);
  if (args->against) layers_print_verification(&report->summary, stdout);
  layers_print_pruned(report, stdout);
  if (args->against) layers_print_permuted(report, stdout);
  else layers_print_permutable(report, stdout);
  st = targets_print(report, stdout, err);
  if (!st) prediction_print(report, stdout);
  return st;
}

/* Returns EXIT_DONE if the weights of every eligible layer are N:M sparse with the pattern. */
static exit_code check_pattern_of_layers(const arguments *args, const lac_report *report,
                                         lac_error *err) {
  int n_missing = 0, n_eligible = 0;
  const char *first = NULL;
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    n_eligible += layer->eligible;
    if (!layer->eligible || layer->holds_pattern) continue;
    if (n_missing++ == 0) first = layer->name;
  }
  if (!n_missing) return EXIT_DONE;
  (void)laci_fail(err, LAC_BAD_VALUE,
                  "%s: %d of %d layer%s that should hold %s %s not, the first is %s", args->operand,
                  n_missing, n_eligible, laci_plural(n_eligible), args->pattern,
                  n_missing == 1 ? "does" : "do", first);
  return EXIT_FAILED;
}

static bool has_storable_layer_without_pattern(const lac_report *report) {
  for (int i = 0; i < report->n_layers; i++)
    if (report->layers[i].storable && !report->layers[i].holds_pattern) return true;
  return false;
}

/* Does check_pattern_of_layers for the network as prune would see it: computed weights are folded
 * into stored tensors first, since such a weight should hold the pattern, too. */
static exit_code check_pattern_after_folding(const arguments *args, lac_model *model,
                                             const lac_options *options, lac_error *err) {
  lac_report *report = NULL;
  exit_code code = EXIT_DONE;
  lac_status st = lac_model_fold(model, LAC_FOLD_ALONE, args->max_memory, NULL, NULL, err);
  if (!st) st = lac_check(model, NULL, options, &report, err);
  if (!st) code = check_pattern_of_layers(args, report, err);
  lac_report_destroy(report);
  return st ? exit_code_of_status(st) : code;
}

/* Returns the result of the check: EXIT_DONE if every eligible layer holds the pattern, and every
 * target runs every pruned layer as sparse. Changes the model by folding weights. */
static exit_code check_pattern_and_targets(const arguments *args, lac_model *model,
                                           const lac_options *options, const lac_report *report,
                                           lac_error *err) {
  if (!targets_are_all_accepted(args->operand, report, err)) return EXIT_FAILED;
  if (args->fold && has_storable_layer_without_pattern(report))
    return check_pattern_after_folding(args, model, options, err);
  return check_pattern_of_layers(args, report, err);
}

exit_code verb_check(const arguments *args, lac_error *err) {
  lac_model *model = NULL, *original = NULL;
  lac_report *report = NULL;
  lac_options options;
  outputs plan = {0};
  exit_code code = EXIT_DONE;
  lac_status st = input_read_prune_options(args, &options, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  if (!st) st = input_load_model(args, args->operand, &model, err);
  if (!st) st = outputs_check_against_model(&plan, model, args->operand, err);
  if (!st && args->against) {
    st = input_load_model(args, args->against, &original, err);
    if (!st) st = outputs_check_against_model(&plan, original, args->against, err);
    if (!st && args->fold) st = lac_model_fold_like(original, model, args->max_memory, NULL, err);
  }
  if (!st) {
    st = lac_check(model, original, &options, &report, err);
    if (st == LAC_PROOF_FAILED) st = laci_fail_with_prefix(err, st, "%s", args->operand);
  }
  /* the report is written whether or not the check passes */
  if (!st) st = outputs_write(&plan, model, report, err);
  if (!st && !plan.uses_stdout) st = print_result(args, model, report, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  if (!st) code = check_pattern_and_targets(args, model, &options, report, err);
  lac_report_destroy(report);
  lac_model_destroy(original);
  lac_model_destroy(model);
  return st ? exit_code_of_status(st) : code;
}

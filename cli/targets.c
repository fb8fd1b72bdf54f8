/* SPDX-License-Identifier: Apache-2.0
 * Prints which layers of a network the targets run as sparse, as tables and summary lines. */
#include "targets.h"

#include "base/error.h"
#include "base/plural.h"
#include "table.h"
#include "terminal.h"

static const char *text_of_answer(const lac_target_layer *layer) {
  switch (layer->answer) {
    case LAC_TARGET_TAKEN: return layer->pays == LAC_TARGET_PAYS_NOT ? "yes, small" : "yes";
    case LAC_TARGET_REFUSED: return "no";
    case LAC_TARGET_NOT_STATED: return "not stated";
    default: return "dense";
  }
}

static void add_gain_cell(text_table *table, const lac_target_layer *layer) {
  if (layer->answer != LAC_TARGET_TAKEN) table_add_cell(table, "%s", "");
  else if (layer->gain > 0) table_add_cell(table, "%.2f", layer->gain);
  else table_add_cell(table, "%s", "not stated");
}

/* Fills the remark: the reason, and the source of the gain. */
static void add_remark_cell(text_table *table, const lac_target_layer *layer) {
  const char *reason = layer->reason ? layer->reason : "";
  const char *gain = layer->gain_of ? layer->gain_of : "";
  table_add_cell(table, "%s%s%s", reason, reason[0] && gain[0] ? "; " : "", gain);
}

static void print_layer_counts(const lac_target_report *target, FILE *out) {
  const int n = target->n_taken + target->n_refused + target->n_not_stated;
  char more[96] = "";
  size_t used = 0;
  if (target->n_not_stated)
    used += (size_t)snprintf(more, sizeof more, ", of %d that is not stated", target->n_not_stated);
  if (target->n_dense)
    (void)snprintf(more + used, sizeof more - used, ", %d %s dense", target->n_dense,
                   target->n_dense == 1 ? "is" : "are");
  terminal_print_sentence(out, "%s takes %d of %d pruned layer%s%s", target->name, target->n_taken,
                          n, laci_plural(n), more);
}

static lac_status print_target(const lac_report *report, const lac_target_report *target, FILE *out,
                               lac_error *err) {
  text_table table = {0};
  terminal_print_sentence(out, "%s", "");
  terminal_print_sentence(out, "%s: %s%s%s", target->name, target->title,
                          target->needs ? "; needs " : "", target->needs ? target->needs : "");
  table_begin(&table, "~layer|type|shape|sparse|>gain|+");
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    table_add_cell(&table, "%s", layer->name);
    table_add_cell(&table, "%s", lac_dtype_name(layer->dtype));
    table_add_shape_cell(&table, layer->rank, layer->shape);
    table_add_cell(&table, "%s", text_of_answer(&target->layers[i]));
    add_gain_cell(&table, &target->layers[i]);
    add_remark_cell(&table, &target->layers[i]);
  }
  lac_status st = table_print(&table, out, err);
  table_clear(&table);
  if (!st) print_layer_counts(target, out);
  return st;
}

lac_status targets_print(const lac_report *report, FILE *out, lac_error *err) {
  lac_status st = LAC_OK;
  for (int t = 0; !st && t < report->n_targets; t++)
    st = print_target(report, &report->targets[t], out, err);
  return st;
}

void targets_print_summaries(const lac_report *report, FILE *out) {
  for (int t = 0; t < report->n_targets; t++) print_layer_counts(&report->targets[t], out);
}

static int find_first_refused_layer(const lac_report *report, const lac_target_report *target) {
  for (int l = 0; l < report->n_layers; l++) {
    if (target->layers[l].answer == LAC_TARGET_REFUSED) return l;
  }
  return -1;
}

bool targets_are_all_accepted(const char *model, const lac_report *report, lac_error *err) {
  for (int t = 0; t < report->n_targets; t++) {
    const lac_target_report *target = &report->targets[t];
    const int first = find_first_refused_layer(report, target), n = target->n_refused;
    if (first < 0) continue;
    (void)laci_fail(err, LAC_BAD_VALUE,
                    "%s: %s does not take %d layer%s that %s pruned, the first is %s: %s", model,
                    target->name, n, laci_plural(n), n == 1 ? "is" : "are",
                    report->layers[first].name, target->layers[first].reason);
    return false;
  }
  return true;
}

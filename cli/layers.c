/* SPDX-License-Identifier: Apache-2.0
 * The tables of layers and the closing lines. */
#include "layers.h"

#include <inttypes.h>

#include "table.h"
#include "terminal.h"

/* "[K,C]": the axes whose channels were reordered. */
static const char *layer_axes(const lac_layer *layer) {
  if (layer->permuted_k) return layer->permuted_c ? "[K,C]" : "[K]";
  return layer->permuted_c ? "[C]" : "";
}

static const char *text_or_empty(const char *text) { return text ? text : ""; }

lac_status layers_print(const lac_report *report, FILE *out, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~layer|order|shape|>kept|+");
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    table_cell(&table, "%s", layer->name);
    table_cell(&table, "%s", layer_axes(layer));
    table_shape_cell(&table, layer->rank, layer->shape);
    if (layer->eligible && layer->total > 0)
      table_cell(&table, "%.2f%%", 100 * layer->kept / layer->total);
    else table_cell(&table, "%s", "");
    table_cell(&table, "%s", text_or_empty(layer->reason));
  }
  lac_status st = table_print(&table, out, err);
  table_clear(&table);
  return st;
}

lac_status layers_print_sparsity(const lac_report *report, FILE *out, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~layer|op|shape|structure|>zeros|>non-zero/total|+");
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    table_cell(&table, "%s", layer->name);
    table_cell(&table, "%s", layer->op);
    table_shape_cell(&table, layer->rank, layer->shape);
    if (layer->pruned) table_cell(&table, "%d:%d", report->pattern_n, report->pattern_m);
    else table_cell(&table, "%s", layer->n_zeros ? "unstructured" : "dense");
    table_cell(&table, "%.4f", layer->zero_ratio);
    table_cell(&table, "%" PRId64 "/%" PRId64, layer->n_elements - layer->n_zeros,
               layer->n_elements);
    table_cell(&table, "%s", text_or_empty(layer->reason));
  }
  lac_status st = table_print(&table, out, err);
  table_clear(&table);
  return st;
}

void layers_print_pruned(const lac_report *report, FILE *out) {
  terminal_say(out, "%d/%d layer%s (Conv or Dense) %s pruned", report->summary.pruned,
               report->summary.layers, report->summary.layers == 1 ? "" : "s",
               report->summary.layers == 1 ? "is" : "are");
}

void layers_print_permuted(const lac_report *report, FILE *out) {
  terminal_say(out, "%d/%d layer%s permuted", report->summary.permuted, report->summary.eligible,
               report->summary.eligible == 1 ? " is" : "s are");
}

void layers_print_permutable(const lac_report *report, FILE *out) {
  terminal_say(out, "%d/%d layer%s permuted, or could be (--against ORIGINAL tells)",
               report->summary.permuted, report->summary.eligible,
               report->summary.eligible == 1 ? " is" : "s are");
}

void layers_print_figures(const lac_report *report, FILE *out) {
  const lac_summary *summary = &report->summary;
  double total = 0;
  for (int i = 0; i < report->n_layers; i++) {
    if (report->layers[i].eligible) total += report->layers[i].total;
  }
  if (total > 0) {
    terminal_say(out,
                 "%d:%d keeps %.3f%% of the weight magnitude (%.3f%% in the order of the file), %d "
                 "group%s searched",
                 report->pattern_n, report->pattern_m, 100 * summary->kept_after / total,
                 100 * summary->kept_before / total, summary->groups,
                 summary->groups == 1 ? "" : "s");
  }
  if (summary->verified) {
    terminal_say(out, "proven: %d value%s compared, outputs differ by at most %.3g of %.3g",
                 summary->values_compared, summary->values_compared == 1 ? "" : "s",
                 summary->max_abs_error, summary->max_abs_output);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * The tables of layers and the summary lines below them. */
#include "layers.h"

#include <inttypes.h>
#include <string.h>

#include "base/plural.h"
#include "lacuna/calibration.h"
#include "lacuna/quantization.h"

#include "table.h"
#include "terminal.h"

static const char *name_of_axes(bool k, bool c) {
  if (k) return c ? "[K,C]" : "[K]";
  return c ? "[C]" : "";
}

static const char *text_or_empty(const char *text) { return text ? text : ""; }

/* Fills two cells with the errors of a layer's outputs: with the mask alone, and with the weights
 * that were written. */
static void add_error_cells(text_table *table, const lac_layer *layer) {
  const double errors[] = {layer->error_before, layer->error_after};
  for (int k = 0; k < 2; k++) {
    if (layer->calibrated) table_add_cell(table, "%.3f%%", 100 * errors[k]);
    else table_add_cell(table, "%s", "");
  }
}

/* Prints the table of layers. is_free: a column shows what may be permuted, instead of what was
 * reordered. */
static lac_status print_layers(const lac_report *report, bool is_free, FILE *out, lac_error *err) {
  text_table table = {0};
  const bool calibrated = report->calibration != NULL;
  table_begin(&table, is_free      ? "~layer|may move|shape|>kept|+"
                      : calibrated ? "~layer|order|shape|>kept|>masked|>written|+"
                                   : "~layer|order|shape|>kept|+");
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    table_add_cell(&table, "%s", layer->name);
    table_add_cell(&table, "%s",
                   is_free ? name_of_axes(layer->permutable_k, layer->permutable_c)
                           : name_of_axes(layer->permuted_k, layer->permuted_c));
    table_add_shape_cell(&table, layer->rank, layer->shape);
    if (layer->eligible && layer->total > 0)
      table_add_cell(&table, "%.2f%%", 100 * layer->kept / layer->total);
    else table_add_cell(&table, "%s", "");
    if (calibrated) add_error_cells(&table, layer);
    table_add_cell(&table, "%s", text_or_empty(layer->reason));
  }
  lac_status st = table_print(&table, out, err);
  table_clear(&table);
  return st;
}

lac_status layers_print(const lac_report *report, FILE *out, lac_error *err) {
  return print_layers(report, false, out, err);
}

lac_status layers_print_movable(const lac_report *report, FILE *out, lac_error *err) {
  return print_layers(report, true, out, err);
}

/* Returns the text of the column "structure" for a layer that is not pruned to the pattern. */
static const char *name_of_structure(const lac_layer *layer) {
  if (layer->computed) return "computed";
  if (!layer->measured) return "not known";
  if (layer->n_zeros == 0) return "dense";
  return layer->n_zeros == layer->n_elements ? "all zero" : "unstructured";
}

static void add_sparsity_cells(text_table *table, const lac_layer *layer) {
  if (!layer->measured) {
    table_add_cell(table, "%s", "");
    table_add_cell(table, "%s", "");
    return;
  }
  table_add_cell(table, "%.4f", layer->zero_ratio);
  table_add_cell(table, "%" PRId64 "/%" PRId64, layer->n_elements - layer->n_zeros,
                 layer->n_elements);
}

lac_status layers_print_sparsity(const lac_report *report, FILE *out, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~layer|op|shape|structure|>zeros|>non-zero/total|+");
  for (int i = 0; i < report->n_layers; i++) {
    const lac_layer *layer = &report->layers[i];
    table_add_cell(&table, "%s", layer->name);
    table_add_cell(&table, "%s", layer->op);
    table_add_shape_cell(&table, layer->rank, layer->shape);
    if (layer->pruned)
      table_add_cell(&table, "%s%s", report->pattern,
                     layer->holds_pattern_both ? " both ways" : "");
    else table_add_cell(&table, "%s", name_of_structure(layer));
    add_sparsity_cells(&table, layer);
    table_add_cell(&table, "%s", text_or_empty(layer->reason));
  }
  lac_status st = table_print(&table, out, err);
  table_clear(&table);
  return st;
}

void layers_print_pruned(const lac_report *report, FILE *out) {
  terminal_print_sentence(out, "%d/%d layer%s (Conv or Dense) %s pruned", report->summary.pruned,
                          report->summary.layers, laci_plural(report->summary.layers),
                          report->summary.layers == 1 ? "is" : "are");
}

void layers_print_permuted(const lac_report *report, FILE *out) {
  const lac_summary *summary = &report->summary;
  char rest[48] = "";
  if (summary->permuted > summary->reordered)
    (void)snprintf(rest, sizeof rest, ", %d may be", summary->permuted);
  terminal_print_sentence(out, "%d/%d layer%s permuted%s", summary->reordered, summary->eligible,
                          summary->eligible == 1 ? " is" : "s are", rest);
}

void layers_print_permutable(const lac_report *report, FILE *out) {
  terminal_print_sentence(
      out, "%d/%d layer%s may be permuted (--against ORIGINAL shows which were)",
      report->summary.permuted, report->summary.eligible, report->summary.eligible == 1 ? "" : "s");
}

void layers_print_verification(const lac_summary *summary, FILE *out) {
  if (summary->verification_text) terminal_print_sentence(out, "%s", summary->verification_text);
}

static const char *format_score(const lac_calibration_result *c, char text[40]) {
  (void)snprintf(text, 40, "%s%s", c->score, c->solved ? ", solved" : "");
  return text;
}

/* Prints the results of recalibration and refinement, which follow the fits of layers. */
static void print_refinement(const lac_calibration_result *c, FILE *out) {
  if (c->error_recalibrated > 0)
    terminal_print_sentence(out,
                            "statistics of batch normalization again: outputs differ by %.3f%%, %s",
                            100 * c->error_recalibrated,
                            c->recalibrated ? "kept" : "more than before: left as they were");
  if (c->refine_steps > 0)
    terminal_print_sentence(out, "refined by %" PRId64 " step%s: outputs differ by %.3f%%, %s",
                            c->refine_steps, laci_plural(c->refine_steps), 100 * c->error_refined,
                            c->refined ? "kept" : "more than before: left as they were");
  if (c->refine_reason) terminal_print_sentence(out, "%s", c->refine_reason);
}

/* Prints the limit of the loss (max_drop), and the loss that was measured. */
static void print_loss_limit(const lac_calibration_result *c, FILE *out) {
  if (!c->drop_measure) return;
  const bool is_top1 = strcmp(c->drop_measure, "top1") == 0;
  const char *what = is_top1                                     ? "top-1 falls by"
                     : strcmp(c->drop_measure, "answers") == 0   ? "answers that change:"
                     : strcmp(c->drop_measure, "positions") == 0 ? "positions that change:"
                                                                 : "outputs differ by";
  terminal_print_sentence(out,
                          "%s %.3g%s on %" PRId64
                          " further sample%s: at most %.3g with %g %% confidence, of "
                          "%g allowed",
                          what, c->drop, is_top1 ? " points" : "%", c->drop_samples,
                          laci_plural(c->drop_samples), c->drop_most, 100 * c->drop_confidence,
                          c->drop_limit);
}

typedef struct agreement {
  int64_t answers, held_back;
  double percent, least; /* share of equal answers in percent, and its lower bound; 0: no bound is
                            known */
} agreement;

/* Writes the share of equal predictions with its lower bound for other samples. Few samples give a
 * weak bound, and samples used for the fit give none. */
static void format_agreement(const agreement *a, char text[128]) {
  const int64_t n = (int64_t)(a->percent / 100 * (double)a->answers + 0.5);
  text[0] = 0;
  if (a->answers < 1) return;
  if (a->held_back < 1)
    (void)snprintf(text, 128,
                   ", %" PRId64 " of %" PRId64 " answer%s agree%s, which tells nothing of others",
                   n, a->answers, laci_plural(a->answers), a->answers == 1 ? "s" : "");
  else if (a->least > 0)
    (void)snprintf(text, 128, ", %.2f%% of the answers agree (%.2f%% at least, 95 %% sure)",
                   a->percent, a->least);
  else
    (void)snprintf(text, 128, ", %.2f%% of the answers agree%s", a->percent,
                   a->percent > 0 ? " (no bound: not one a sample)" : "");
}

void layers_print_calibration(const lac_report *report, FILE *out) {
  const lac_calibration_result *c = report->calibration;
  char text[64], agree[128];
  if (!c && report->mask && report->summary.pruned > 0)
    terminal_print_sentence(out,
                            "what the outputs lose was not looked at (--calibration DATA does)");
  if (!c) return;
  if (c->kept_dense > 0)
    terminal_print_sentence(out, "%d layer%s left dense", c->kept_dense,
                            c->kept_dense == 1 ? " is" : "s are");
  if (c->outputs_reason) {
    terminal_print_sentence(out, "calibrated (%s); outputs were not compared: %s",
                            format_score(c, text), c->outputs_reason);
    return;
  }
  format_agreement(&(agreement){c->answers, c->held_back, c->agreement, c->agreement_least}, agree);
  if (c->error_fitted > 0) {
    terminal_print_sentence(out, "calibrated (%s): outputs differ by %.3f%%", format_score(c, text),
                            100 * c->error_fitted);
    print_refinement(c, out);
    (void)snprintf(text, sizeof text, "as written");
  } else {
    char score[40];
    (void)snprintf(text, sizeof text, "calibrated (%s)", format_score(c, score));
  }
  const int64_t n = c->held_back > 0 ? c->held_back : c->samples;
  terminal_print_sentence(out, "%s: outputs differ by %.3f%%%s, on %" PRId64 " sample%s %s", text,
                          100 * c->outputs_error, agree, n, laci_plural(n),
                          c->held_back > 0 ? "held back" : "(those of the fit)");
  if (c->worst_of)
    terminal_print_sentence(out, "the worst of them: %.3g%%, %s", 100 * c->worst_error,
                            c->worst_of);
  if (c->labelled > 0)
    terminal_print_sentence(out, "top-1 of these: %.2f%%, dense %.2f%%", c->top1_pruned,
                            c->top1_dense);
  print_loss_limit(c, out);
}

/* Prints how many layers were corrected on samples. */
static void print_corrections(const lac_quantization_result *q, FILE *out) {
  int n_weights = 0, n_biases = 0;
  for (int l = 0; l < q->n_layers && q->n_corrected > 0; l++) {
    n_weights += q->corrections[l].weight;
    n_biases += q->corrections[l].bias;
  }
  if (n_weights + n_biases > 0)
    terminal_print_sentence(out,
                            "corrected on samples: the weights of %d layer%s, the biases of %d",
                            n_weights, laci_plural(n_weights), n_biases);
}

void layers_print_quantized(const lac_report *report, FILE *out) {
  const lac_quantization_result *q = report->quantization;
  char agree[128];
  if (!q) return;
  int64_t n = q->held_back > 0 ? q->held_back : q->samples;
  format_agreement(&(agreement){q->answers, q->held_back, q->agreement, q->agreement_least}, agree);
  if (q->range)
    terminal_print_sentence(out, "quantized (%s, %s, %s): %d of %d layer%s, %d activation%s",
                            q->format, q->activations, q->range, q->n_quantized, q->n_layers,
                            laci_plural(q->n_layers), q->n_values, laci_plural(q->n_values));
  else
    terminal_print_sentence(out, "quantized (%s, %s, ranges found at run time): %d of %d layer%s",
                            q->format, q->activations, q->n_quantized, q->n_layers,
                            laci_plural(q->n_layers));
  print_corrections(q, out);
  if (q->outputs_reason)
    terminal_print_sentence(out, "outputs in integers were not compared: %s", q->outputs_reason);
  else
    terminal_print_sentence(
        out,
        "outputs in integers differ from those in floats by %.3f%%%s, on %" PRId64 " sample%s %s",
        100 * q->outputs_error, agree, n, laci_plural(n),
        q->held_back > 0 ? "held back"
        : q->range       ? "(those of the ranges)"
                         : "(those of the fit)");
  if (q->labelled > 0)
    terminal_print_sentence(out, "top-1 of these: %.2f%%, in floats %.2f%%", q->top1_integers,
                            q->top1_floats);
  for (int l = 0; l < q->n_layers; l++) {
    if (q->layers[l].reason)
      terminal_print_sentence(out, "%s stays in floats: %s", q->layers[l].name,
                              q->layers[l].reason);
  }
}

/* Would prune fold this weight into a stored tensor, and prune it? False if it is pruned already,
 * or has values that prune refuses. */
static bool is_prunable_if_folded(const lac_layer *layer) {
  return layer->measured && !layer->pruned;
}

/* Prints which option would fold the weights that are still computed. If none would, the layers'
 * reasons explain why. */
static void print_fold_option(const arguments *args, const lac_report *report, FILE *out) {
  const bool left = args->given.fold && !args->fold, checks = args->verb == VERB_check;
  int n = 0;
  for (int i = 0; i < report->n_layers; i++)
    n += report->layers[i].storable && (!checks || is_prunable_if_folded(&report->layers[i]));
  if (n == 0 || (args->given.fold && args->fold)) return;
  terminal_print_sentence(out, "%d layer%s a computed weight, which %s", n,
                          n == 1 ? " has" : "s have",
                          checks ? "prune --fold stores as one tensor, and prunes"
                          : left ? "--no-fold leaves as it is"
                                 : "--fold stores as one tensor");
}

void layers_print_folded(const arguments *args, const lac_report *report, FILE *out) {
  const int n = report->summary.folded;
  if (n > 0)
    terminal_print_sentence(
        out, "folded: %d weight%s computed from constants, %s (--no-fold leaves %s)", n,
        n == 1 ? " is" : "s are",
        n == 1 ? "and becomes one stored tensor" : "and each becomes one stored tensor",
        n == 1 ? "it" : "them");
  print_fold_option(args, report, out);
}

/* Writes "5 groups searched", or "an order applied to 5 groups" if the order was read from a file.
 */
static void format_group_count(const lac_report *report, char text[64]) {
  const int n = report->summary.groups;
  bool searched = n == 0;
  for (int g = 0; g < report->n_groups && !searched; g++)
    searched = report->groups[g].strategy != NULL;
  if (searched) (void)snprintf(text, 64, "%d group%s searched", n, laci_plural(n));
  else (void)snprintf(text, 64, "an order applied to %d group%s", n, laci_plural(n));
}

void layers_print_kept_magnitude(const lac_report *report, FILE *out) {
  const lac_summary *summary = &report->summary;
  const bool is_2d = report->mask && strcmp(report->mask, "1d") != 0;
  double total = 0;
  char groups[64];
  format_group_count(report, groups);
  for (int i = 0; i < report->n_layers; i++) {
    if (report->layers[i].eligible) total += report->layers[i].total;
  }
  if (total > 0 && report->calibration) { /* with calibration masks are not chosen by magnitude */
    terminal_print_sentence(
        out, "%s%s%s keeps %.3f%% of the weight magnitude, which masks by %s do not go by; %s",
        report->pattern, is_2d ? " " : "", is_2d ? report->mask : "",
        100 * summary->kept_after / total, report->calibration->score, groups);
  } else if (total > 0) {
    terminal_print_sentence(
        out, "%s%s%s keeps %.3f%% of the weight magnitude (%.3f%% in the order of the file), %s",
        report->pattern, is_2d ? " " : "", is_2d ? report->mask : "",
        100 * summary->kept_after / total, 100 * summary->kept_before / total, groups);
  }
  layers_print_verification(summary, out);
}

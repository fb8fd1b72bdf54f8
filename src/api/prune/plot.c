/* SPDX-License-Identifier: Apache-2.0
 * Makes the texts and colours of the drawing's nodes from the graph and a report. */
#include "api/prune/plot_in.h"

#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "base/error.h"
#include "base/plural.h"
#include "graph/op.h"
#include "lacuna/prune.h"

/* Does the node have stored parameters that are reordered with its channels? Such nodes are orange.
 */
static bool has_permuted_parameters(const laci_graph *graph, const laci_node *node) {
  for (int i = 0; i < node->n_inputs; i++) {
    int value = node->inputs[i];
    if (value >= 0 && graph->values[value].stored >= 0 &&
        laci_shape_count(&graph->stored[graph->values[value].stored].shape) > 1) {
      return true;
    }
  }
  return false;
}

/* Is the node independent of the network's input, such as shape arithmetic? */
static bool is_constant(const laci_graph *graph, const laci_node *node) {
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] >= 0 && !graph->values[node->outputs[i]].known) return false;
  }
  return true;
}

static laci_plot_colour colour_of_node(const laci_analysis *a, int node_id,
                                       const lac_layer *layer) {
  const laci_node *node = &a->graph->nodes[node_id];
  if (layer)
    return layer->pruned || layer->permutable_c || layer->permutable_k ? LACI_PLOT_GREEN
                                                                       : LACI_PLOT_RED;
  if (!node->op && !node->assume) return LACI_PLOT_RED;
  if (node->op->role == LACI_ROLE_SKIP || is_constant(a->graph, node)) return LACI_PLOT_GREY;
  laci_node_mobility channels;
  laci_analysis_find_node_mobility(a, node_id, &channels);
  if (channels.blocks) return LACI_PLOT_RED;
  if (node->op->role == LACI_ROLE_INFER ||
      (channels.free && has_permuted_parameters(a->graph, node)))
    return LACI_PLOT_ORANGE;
  return LACI_PLOT_YELLOW;
}

static const char *permuted_axes_text(bool k, bool c) {
  if (k) return c ? "[K,C]" : "[K]";
  return c ? "[C]" : "";
}

/* Returns details of a layer as text. with_groups: also the numbers of its channel groups. */
static const char *layer_detail_text(laci_arena *arena, const lac_layer *layer, bool with_groups) {
  char text[256], group[64] = "";
  if (with_groups && (layer->group_c > 0 || layer->group_k > 0)) {
    char c[16] = "-", k[16] = "-";
    if (layer->group_c > 0) (void)snprintf(c, sizeof c, "%d", layer->group_c);
    if (layer->group_k > 0) (void)snprintf(k, sizeof k, "%d", layer->group_k);
    (void)snprintf(group, sizeof group, "group %s -> %s", c, k);
  }
  const char *moved = permuted_axes_text(layer->permuted_k, layer->permuted_c);
  const char *axes =
      moved[0] ? moved : permuted_axes_text(layer->permutable_k, layer->permutable_c);
  const char *word = moved[0] ? "reordered " : axes[0] ? "may be permuted " : "";
  (void)snprintf(text, sizeof text, "%s%s%s%s%s%s", group, group[0] && axes[0] ? "  " : "", word,
                 axes, layer->pruned ? "  " : "", layer->pruned ? "S" : "");
  return laci_arena_text(arena, text);
}

static const lac_layer *layer_of_node(const laci_analysis *a, const lac_report *report, int node) {
  for (int l = 0; l < a->n_rows && l < report->n_layers; l++) {
    if (a->layers[l].node == node) return &report->layers[l];
  }
  return NULL;
}

static const char *first_blocking_cause(const laci_analysis *a, int node) {
  const char *name = a->graph->nodes[node].name;
  size_t n = strlen(name);
  for (int g = 0; g < a->n_groups; g++) {
    const char *cause = a->groups[g].cause;
    if (cause && strncmp(cause, name, n) == 0 && cause[n] == ':') return cause + n + 2;
  }
  const laci_node *of = &a->graph->nodes[node];
  return of->fault ? of->fault : of->op ? NULL : "operator is not known";
}

/* Writes what was pruned and reordered, or for a report of lac_inspect what could be. */
static void write_summary(const lac_report *report, char *text, size_t size) {
  const lac_summary *sum = &report->summary;
  bool done = strcmp(report->verb, "prune") == 0 || strcmp(report->verb, "permute") == 0;
  done = done || sum->reordered > 0;
  (void)snprintf(text, size, "%d/%d layer%s pruned, %d/%d %s, %d group%s", sum->pruned, sum->layers,
                 laci_plural(sum->layers), done ? sum->reordered : sum->permuted, sum->eligible,
                 done ? "reordered" : "may be permuted", sum->groups, laci_plural(sum->groups));
}

lac_status laci_report_plot_make(const lac_model *model, const lac_report *report,
                                 laci_report_plot *made, lac_error *err) {
  *made = (laci_report_plot){.analysis = NULL};
  if (!laci_model_has_inferred_shapes(model))
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the report is not of this model", model->path);
  laci_rules rules = {.pattern = {report->pattern_n, report->pattern_m}};
  lac_status st = laci_analyze(model->graph, &rules, &made->analysis, err);
  if (st) return st;
  const laci_analysis *a = made->analysis;
  int n_nodes = model->graph->n_nodes;
  laci_plot_node *nodes = laci_arena_alloc(&made->arena, (size_t)n_nodes, sizeof *nodes);
  if (!nodes) return laci_fail_memory(err, "the drawing");
  for (int n = 0; n < n_nodes; n++) {
    const lac_layer *layer = layer_of_node(a, report, n);
    nodes[n] = (laci_plot_node){.colour = colour_of_node(a, n, layer)};
    if (layer) nodes[n].detail = layer_detail_text(&made->arena, layer, true);
    if (layer) nodes[n].kind = layer_detail_text(&made->arena, layer, false);
    if (nodes[n].colour == LACI_PLOT_RED || (layer && !layer->pruned)) {
      nodes[n].reason = layer ? layer->reason : first_blocking_cause(a, n);
    }
  }
  const char *base = strrchr(report->model, '/');
  (void)snprintf(made->title, sizeof made->title, "%s, %s", base ? base + 1 : report->model,
                 report->pattern);
  write_summary(report, made->summary, sizeof made->summary);
  made->plot = (laci_plot){.title = made->title, .summary = made->summary, .nodes = nodes};
  return LAC_OK;
}

void laci_report_plot_clear(laci_report_plot *made) {
  laci_arena_clear(&made->arena);
  laci_analysis_destroy(made->analysis);
}

static lac_status plot_model(const lac_model *model, const lac_report *report, const char *path,
                             const lac_plot_options *options, lac_error *err) {
  laci_report_plot made;
  lac_context *before = laci_call_enter_context(options->context);
  lac_status st = laci_report_plot_make(model, report, &made, err);
  made.plot.fold = options->all_nodes ? LACI_PLOT_FOLD_NEVER : LACI_PLOT_FOLD_LARGE;
  made.plot.details = options->details;
  if (!st) st = laci_plot_write(model->graph, &made.plot, path, options->force, err);
  laci_report_plot_clear(&made);
  laci_call_leave_context(before);
  return st;
}

void lac_plot_options_init(lac_plot_options *options, size_t size) {
  const lac_plot_options usual = {.size = sizeof usual};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

lac_status lac_plot_with(const lac_model *model, const lac_report *report, const char *path,
                         const lac_plot_options *options, lac_error *err) {
  lac_plot_options own;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"report", report}, {"path", path});
  if (!st) st = laci_take_plot_options(options, &own, err);
  return st ? st : plot_model(model, report, path, &own, err);
}

lac_status lac_plot(const lac_model *model, const lac_report *report, const char *path, bool force,
                    lac_context *context, lac_error *err) {
  lac_plot_options options = lac_plot_options_default();
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"report", report}, {"path", path});
  options.force = force;
  options.context = context;
  return st ? st : plot_model(model, report, path, &options, err);
}

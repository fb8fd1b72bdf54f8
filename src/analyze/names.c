/* SPDX-License-Identifier: Apache-2.0
 * Leaves out layers by name: those that `include` does not match and those that `exclude` matches.
 * An expression that matches no layer, or leaves no layer, is an error, reported before any other
 * work. */
#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "base/error.h"
#include "base/expression.h"
#include "base/plural.h"
#include "graph/graph.h"

/** Does the expression match the name of the node or of its weight? */
static lac_status match_layer_name(const laci_expression *expression, const laci_analysis *analysis,
                                   const laci_layer *layer, bool *found, lac_error *err) {
  const laci_graph *graph = analysis->graph;
  lac_status st = laci_expression_match(expression, graph->nodes[layer->node].name, found, err);
  if (st || *found) return st;
  return laci_expression_match(expression, laci_layer_weight_name(analysis, layer), found, err);
}

static lac_status fail_unmatched_pattern(laci_analysis *analysis, const char *what,
                                         const char *text, lac_error *err) {
  if (analysis->n_rows == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: \"%s\" matches no layer: the network has no layer with a stored weight",
                     what, text);
  }
  const char *nearest = laci_format_nearest_layers_hint(analysis, text);
  if (!nearest) return laci_fail_memory(err, "the layers");
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: \"%s\" matches no layer%s", what, text, nearest);
}

/** Sets `reason` for layers whose match with the expression equals `leaves_out`. A pattern that
 * matches no layer is an error, for it would silently have the wrong effect. */
static lac_status exclude_layers_by_pattern(laci_analysis *analysis, const char *what,
                                            const char *text, bool leaves_out, const char *reason,
                                            lac_error *err) {
  laci_expression *expression;
  bool any = false;
  if (!text) return LAC_OK;
  lac_status st = laci_expression_open(what, text, &expression, err);
  for (int l = 0; !st && l < analysis->n_rows; l++) {
    laci_layer *layer = &analysis->layers[l];
    bool found;
    st = match_layer_name(expression, analysis, layer, &found, err);
    if (st) break;
    any |= found;
    /* rows from n_layers on have computed weights and already have a reason */
    if (found != leaves_out || l >= analysis->n_layers) continue;
    layer->odd_size = false;
    if (!layer->reason) layer->reason = reason;
  }
  if (!st && !any) st = fail_unmatched_pattern(analysis, what, text, err);
  laci_expression_close(expression);
  return st;
}

static bool has_odd_size_layer(const laci_analysis *analysis) {
  for (int l = 0; l < analysis->n_layers; l++) {
    if (analysis->layers[l].odd_size) return true;
  }
  return false;
}

static int count_layers_without_reason(const laci_analysis *analysis) {
  int n = 0;
  for (int l = 0; l < analysis->n_layers; l++) n += !analysis->layers[l].reason;
  return n;
}

lac_status laci_exclude_layers_by_names(laci_analysis *analysis, const laci_rules *rules,
                                        lac_error *err) {
  const int before = count_layers_without_reason(analysis);
  lac_status st = exclude_layers_by_pattern(analysis, "include", rules->include, false,
                                            "left out by include", err);
  if (!st)
    st = exclude_layers_by_pattern(analysis, "exclude", rules->exclude, true, "left out by exclude",
                                   err);
  if (st || before == 0 || count_layers_without_reason(analysis) > 0) return st;
  const char *who = !rules->exclude   ? "include leaves"
                    : !rules->include ? "exclude leaves"
                                      : "include and exclude leave";
  st = laci_fail(err, LAC_BAD_ARGUMENT, "%s none of %d layer%s that could take %d:%d", who, before,
                 laci_plural(before), rules->pattern.n, rules->pattern.m);
  return has_odd_size_layer(analysis) ? laci_hint(err, LAC_HINT_ALL_SIZES, st) : st;
}

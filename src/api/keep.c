/* SPDX-License-Identifier: Apache-2.0
 * Pruning what is left of a network of which a part is pruned already. A mask lies along the input
 * channels: in another order its weight would not hold the pattern any more, so the groups of these
 * channels stay as they are. Output channels may move: the mask moves with the rows. */
#include <stdio.h>

#include "api/report_in.h"
#include "base/error.h"

/** The first layer that consumes the group and keeps its mask; NULL: none. */
static const lac_layer *keeper_of(const laci_report *report, const laci_group *group) {
  for (int i = 0; i < group->n_layers; i++) {
    const lac_layer *layer = &report->layers[group->layers[i]];
    if (layer->was_pruned) return layer;
  }
  return NULL;
}

static const char *keeps_text(laci_report *report, const lac_layer *keeper) {
  char text[512];
  (void)snprintf(text, sizeof text, "%s holds %d:%d already and keeps its mask", keeper->name,
                 report->pub.pattern_n, report->pub.pattern_m);
  return laci_arena_text(&report->arena, text);
}

static bool hold_group(laci_report *report, const laci_analysis *a, laci_plan *plan, int g) {
  const lac_layer *keeper = keeper_of(report, &a->groups[g]);
  if (!keeper) return true;
  plan->held[g] = true;
  report->groups[g].frozen = true;
  report->groups[g].cause = keeps_text(report, keeper);
  report->pub.summary.groups--;
  return report->groups[g].cause != NULL;
}

/** Whether a group that may still be searched lies among the input channels of a layer. */
static bool is_searchable(const laci_report *report, const laci_analysis *a, const laci_plan *plan,
                          int l) {
  const lac_layer *layer = &report->layers[l];
  if (!layer->eligible) {
    return layer->searchable && !(layer->group_c > 0 && report->groups[layer->group_c - 1].frozen);
  }
  for (int g = 0; g < a->n_searchable; g++) {
    for (int i = 0; !plan->held[g] && i < a->groups[g].n_layers; i++) {
      if (a->groups[g].layers[i] == l) return true;
    }
  }
  return false;
}

static bool explain(laci_report *report, lac_layer *layer) {
  char text[600];
  const char *cause = layer->group_c > 0 ? report->groups[layer->group_c - 1].cause : NULL;
  if (!layer->eligible || laci_layer_is_zero(layer)) return true;
  if (layer->was_pruned || !cause) cause = "it is pruned already and keeps its mask";
  (void)snprintf(text, sizeof text, "its input channels stay in place: %s", cause);
  layer->reason = laci_arena_text(&report->arena, text);
  return layer->reason != NULL;
}

lac_status laci_keep_pruned(laci_report *report, const laci_analysis *a, laci_plan *plan,
                            lac_error *err) {
  bool whole = true;
  for (int g = 0; g < a->n_searchable; g++) whole = hold_group(report, a, plan, g) && whole;
  for (int l = 0; whole && l < a->n_layers; l++) {
    lac_layer *layer = &report->layers[l];
    bool was_searchable = layer->searchable;
    layer->searchable = layer->permutable_c = is_searchable(report, a, plan, l);
    layer->permutable_k = layer->group_k > 0 && !report->groups[layer->group_k - 1].frozen;
    if (was_searchable && !layer->searchable) whole = explain(report, layer);
  }
  return whole ? LAC_OK : laci_fail_memory(err, "the report");
}

/* SPDX-License-Identifier: Apache-2.0
 * Pruning what is left of a network of which a part is pruned already. A mask lies along the input
 * channels: in another order its weight would not hold the pattern any more, so the groups of these
 * channels stay as they are. Output channels may move: the mask moves with the rows. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "prune/prune_in.h"

static const char *layer_name(const laci_analysis *a, int l) {
  return a->graph->nodes[a->layers[l].node].name;
}

/** The first layer that consumes the group and keeps its mask; -1: none. */
static int find_keeper(const laci_pruning *p, const laci_group *group) {
  for (int i = 0; i < group->n_layers; i++) {
    if (p->layers[group->layers[i]].was_pruned) return group->layers[i];
  }
  return -1;
}

static bool hold_group(laci_pruning *p, int g) {
  char text[512];
  int keeper = find_keeper(p, &p->analysis->groups[g]);
  if (keeper < 0) return true;
  (void)snprintf(text, sizeof text, "%s holds %d:%d already and keeps its mask",
                 layer_name(p->analysis, keeper), p->pattern.n, p->pattern.m);
  p->plan->held[g] = true;
  p->held_cause[g] = laci_arena_text(&p->arena, text);
  return p->held_cause[g] != NULL;
}

/** Why the group does not move; NULL: it may. */
static const char *cause_of(const laci_pruning *p, int g) {
  if (g < 0) return NULL;
  return p->plan->held[g] ? p->held_cause[g] : p->analysis->groups[g].cause;
}

/** Whether a group that may still be searched lies among the input channels of a layer. */
static bool is_searchable(const laci_pruning *p, int l) {
  const laci_analysis *a = p->analysis;
  const laci_layer *layer = &a->layers[l];
  if (!layer->eligible) {
    int g = layer->group_c;
    return layer->searchable && !(g >= 0 && (a->groups[g].frozen || p->plan->held[g]));
  }
  for (int g = 0; g < a->n_searchable; g++) {
    for (int i = 0; !p->plan->held[g] && i < a->groups[g].n_layers; i++) {
      if (a->groups[g].layers[i] == l) return true;
    }
  }
  return false;
}

static bool explain(laci_pruning *p, int l) {
  char text[600];
  laci_pruned_layer *layer = &p->layers[l];
  const char *cause = cause_of(p, p->analysis->layers[l].group_c);
  if (!p->analysis->layers[l].eligible || laci_pruned_layer_is_zero(layer)) return true;
  if (layer->was_pruned || !cause) cause = "it is pruned already and keeps its mask";
  (void)snprintf(text, sizeof text, "its input channels stay in place: %s", cause);
  layer->reason = laci_arena_text(&p->arena, text);
  return layer->reason != NULL;
}

lac_status laci_pruning_hold(laci_pruning *p, lac_error *err) {
  bool whole = true;
  for (int g = 0; g < p->analysis->n_searchable; g++) whole = hold_group(p, g) && whole;
  for (int l = 0; whole && l < p->analysis->n_layers; l++) {
    bool was_searchable = p->layers[l].searchable;
    p->layers[l].searchable = is_searchable(p, l);
    if (was_searchable && !p->layers[l].searchable) whole = explain(p, l);
  }
  return whole ? LAC_OK : laci_fail_memory(err, "the layers that keep their masks");
}

/* SPDX-License-Identifier: Apache-2.0
 * Keeps groups of channels in the file's order if reordering would break a mask. A layer that holds
 * the pattern already and gets no new mask has its mask along the input channels. In another order
 * its weight would not hold the pattern any more. Output channels may be reordered, since the mask
 * moves with the rows.
 *
 * A layer that is pruned already keeps its mask if the user asks for it. It also does so if it is
 * not pruned in this run: an excluded or computed weight would lose its pattern for good. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "prune/prune_in.h"

static const char *name_of_layer(const laci_analysis *a, int l) {
  return a->graph->nodes[a->layers[l].node].name;
}

/** Returns the first layer that reads the group and keeps the mask that it has already; -1: there
 * is none. */
static int find_layer_keeping_mask(const laci_pruning *p, const laci_group *group) {
  for (int i = 0; i < group->n_layers; i++) {
    if (p->layers[group->layers[i]].was_pruned) return group->layers[i];
  }
  return -1;
}

static bool exclude_group_because_of(laci_pruning *p, int g, int keeper) {
  char text[512];
  (void)snprintf(text, sizeof text, "%s holds %d:%d already and keeps its mask",
                 name_of_layer(p->analysis, keeper), p->pattern.n, p->pattern.m);
  p->plan->fixed[g] = true;
  p->held_cause[g] = laci_arena_text(&p->arena, text);
  return p->held_cause[g] != NULL;
}

static bool exclude_group_if_mask_kept(laci_pruning *p, int g) {
  int keeper = find_layer_keeping_mask(p, &p->analysis->groups[g]);
  return keeper < 0 || exclude_group_because_of(p, g, keeper);
}

/* ---- Layers that get no mask in this run ---- */

/* Returns the track of a weight's axis (axes that are reordered alike share a track); -1: the axis
 * is never reordered. */
static int find_track_of_axis(const laci_analysis *a, int value, int axis) {
  laci_value_axes axes[LACI_MAX_RANK];
  int n = laci_value_find_track_axes(a, value, axes);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < axes[i].n_axes; k++) {
      if (axes[i].axes[k] == axis) return axes[i].track;
    }
  }
  return -1;
}

static bool has_group_on_track(const laci_analysis *a, int g, int track) {
  for (int s = 0; s < laci_group_count_slots(a, g); s++) {
    if (laci_group_slot(a, g, s).track == track) return true;
  }
  return false;
}

/* Excludes from reordering the groups that would move channels along the track (a set of axes that
 * must have the same order). keeper: the layer that is the reason, named in the cause. With keeper
 * -1, only returns whether there are such groups. */
static bool exclude_groups_on_track(laci_pruning *p, int track, int keeper, bool *whole) {
  bool any = false;
  for (int g = 0; g < p->analysis->n_searchable && track >= 0; g++) {
    if (p->plan->fixed[g] || !has_group_on_track(p->analysis, g, track)) continue;
    any = true;
    if (keeper >= 0) *whole = exclude_group_because_of(p, g, keeper) && *whole;
  }
  return any;
}

/* If layer l gets no mask in this run but is pruned already, excludes the groups of its input
 * channels from reordering. If mask blocks span several rows, also excludes the groups of its
 * output channels. */
static lac_status exclude_groups_of_pruned_layer(laci_pruning *p, int l,
                                                 const laci_prune_options *options, laci_pool *pool,
                                                 lac_error *err) {
  const laci_analysis *a = p->analysis;
  const laci_layer *layer = &a->layers[l];
  const int value = layer->stored < 0 ? layer->weight : a->graph->stored[layer->stored].value;
  const int tracks[2] = {
      find_track_of_axis(a, value, layer->c_axis),
      p->rule.form == LACI_MASK_1D ? -1 : find_track_of_axis(a, value, layer->k_axis)};
  bool whole = true, pruned = l < a->n_layers && p->layers[l].was_pruned;
  if (!exclude_groups_on_track(p, tracks[0], -1, &whole) &&
      !exclude_groups_on_track(p, tracks[1], -1, &whole))
    return LAC_OK;
  lac_status st = LAC_OK;
  const laci_computed_options how = {&p->rule, options->budget, pool};
  if (layer->stored < 0) st = laci_computed_is_pruned(a, l, &how, &pruned, err);
  for (int i = 0; i < 2 && !st && pruned; i++)
    (void)exclude_groups_on_track(p, tracks[i], l, &whole);
  return st || whole ? st : laci_fail_memory(err, "the layers that keep their masks");
}

/* ---- All groups ---- */

/** Returns why group g is not reordered; NULL: it may be reordered. */
static const char *explain_kept_order(const laci_pruning *p, int g) {
  if (g < 0) return NULL;
  return p->plan->fixed[g] ? p->held_cause[g] : p->analysis->groups[g].cause;
}

/** Does any input channel of the layer belong to a group whose order may be searched? */
static bool has_searchable_group(const laci_pruning *p, int l) {
  const laci_analysis *a = p->analysis;
  const laci_layer *layer = &a->layers[l];
  if (!layer->eligible) {
    int g = layer->group_c;
    return layer->searchable && !(g >= 0 && (a->groups[g].frozen || p->plan->fixed[g]));
  }
  for (int g = 0; g < a->n_searchable; g++) {
    for (int i = 0; !p->plan->fixed[g] && i < a->groups[g].n_layers; i++) {
      if (a->groups[g].layers[i] == l) return true;
    }
  }
  return false;
}

static bool set_reason_not_reordered(laci_pruning *p, int l, bool keep_pruned) {
  char text[600];
  laci_pruned_layer *layer = &p->layers[l];
  const char *cause = explain_kept_order(p, p->analysis->layers[l].group_c);
  if (!p->analysis->layers[l].eligible || laci_pruned_layer_is_zero(layer)) return true;
  if (keep_pruned && layer->was_pruned) cause = "it is pruned already and keeps its mask";
  if (!cause) cause = "another layer is pruned already and keeps its mask";
  (void)snprintf(text, sizeof text, "its input channels stay in place: %s", cause);
  layer->reason = laci_arena_text(&p->arena, text);
  return layer->reason != NULL;
}

lac_status laci_pruning_exclude_held_groups(laci_pruning *p, const laci_prune_options *options,
                                            laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  bool whole = true;
  lac_status st = LAC_OK;
  for (int g = 0; g < a->n_searchable && options->keep_pruned; g++)
    whole = exclude_group_if_mask_kept(p, g) && whole;
  for (int l = 0; l < a->n_rows && options->permute && !st; l++) {
    if (!a->layers[l].eligible) st = exclude_groups_of_pruned_layer(p, l, options, pool, err);
  }
  for (int l = 0; whole && l < a->n_layers && !st; l++) {
    bool was_searchable = p->layers[l].searchable;
    p->layers[l].searchable = has_searchable_group(p, l);
    if (was_searchable && !p->layers[l].searchable)
      whole = set_reason_not_reordered(p, l, options->keep_pruned);
  }
  return st || whole ? st : laci_fail_memory(err, "the layers that keep their masks");
}

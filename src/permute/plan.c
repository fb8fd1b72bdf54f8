/* SPDX-License-Identifier: Apache-2.0
 * Derives the orders of all tensors from the orders of groups of channels. Then it checks by the
 * analysis's certificate (analyze.h) that these orders do not change the network's results. */
#include "permute/plan.h"

#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/graph.h"
#include "permute/search.h"

lac_status laci_plan_create(const laci_analysis *analysis, laci_plan **out, lac_error *err) {
  *out = NULL;
  laci_plan *plan = laci_alloc(1, sizeof *plan);
  if (!plan) return laci_fail_memory(err, "the plan");
  plan->analysis = analysis;
  plan->found = laci_alloc((size_t)analysis->n_groups, sizeof *plan->found);
  plan->track_order =
      laci_alloc((size_t)laci_analysis_count_tracks(analysis), sizeof *plan->track_order);
  plan->fixed = laci_alloc((size_t)analysis->n_groups, sizeof *plan->fixed);
  bool ok = plan->found && plan->track_order && plan->fixed;
  for (int g = 0; ok && g < analysis->n_groups; g++) {
    int n = analysis->groups[g].n_channels;
    int32_t *order = laci_arena_alloc(&plan->arena, (size_t)n, sizeof *order);
    ok = order != NULL;
    for (int c = 0; ok && c < n; c++) order[c] = c;
    plan->found[g] = (laci_search_result){.order = order};
  }
  if (ok && laci_plan_make_value_orders(plan, err) == LAC_OK) {
    *out = plan;
    return LAC_OK;
  }
  laci_plan_destroy(plan);
  return laci_fail_memory(err, "the plan");
}

static void clear_track_orders(laci_plan *plan) {
  for (int t = 0; plan->track_order && t < laci_analysis_count_tracks(plan->analysis); t++) {
    laci_free(plan->track_order[t]);
    plan->track_order[t] = NULL;
  }
}

void laci_plan_destroy(laci_plan *plan) {
  if (!plan) return;
  clear_track_orders(plan);
  laci_free(plan->track_order);
  laci_free(plan->found);
  laci_free(plan->fixed);
  laci_orders_clear(&plan->orders);
  laci_arena_clear(&plan->arena);
  laci_free(plan);
}

bool laci_plan_moves_channels(const laci_plan *plan, int group) {
  const int32_t *order = plan->found[group].order;
  for (int c = 0; c < plan->analysis->groups[group].n_channels; c++) {
    if (order[c] != c) return true;
  }
  return false;
}

static bool make_track_orders_of_group(laci_plan *plan, int g) {
  int n = plan->analysis->groups[g].n_channels;
  for (int s = 0; s < laci_group_count_slots(plan->analysis, g); s++) {
    laci_slot slot = laci_group_slot(plan->analysis, g, s);
    int32_t **order = &plan->track_order[slot.track];
    if (!*order) {
      int64_t size = laci_track_count_positions(plan->analysis, slot.track);
      *order = laci_alloc((size_t)size, sizeof **order);
      if (!*order) return false;
      for (int64_t p = 0; p < size; p++) (*order)[p] = (int32_t)p;
    }
    for (int c = 0; c < n; c++) (*order)[slot.position[c]] = slot.position[plan->found[g].order[c]];
  }
  return true;
}

lac_status laci_plan_fix_group_order(laci_plan *plan, int group, lac_error *err) {
  bool ok = !laci_plan_moves_channels(plan, group) || make_track_orders_of_group(plan, group);
  return ok ? LAC_OK : laci_fail_memory(err, "the orders");
}

static bool set_value_orders(laci_plan *plan, int value) {
  laci_value_axes axes[LACI_MAX_RANK];
  int n = laci_value_find_track_axes(plan->analysis, value, axes), n_moved = 0;
  laci_value_orders *out = &plan->orders.values[value];
  for (int i = 0; i < n; i++) n_moved += plan->track_order[axes[i].track] != NULL;
  if (!n_moved) return true;
  out->items = laci_arena_alloc(&plan->orders.arena, (size_t)n_moved, sizeof *out->items);
  if (!out->items) return false;
  for (int i = 0; i < n; i++) {
    if (!plan->track_order[axes[i].track]) continue;
    laci_axis_order *item = &out->items[out->n++];
    *item = (laci_axis_order){.n_axes = axes[i].n_axes,
                              .count = laci_track_count_positions(plan->analysis, axes[i].track),
                              .order = plan->track_order[axes[i].track],
                              .n_groups = axes[i].n_groups,
                              .row_axis = axes[i].row_axis};
    memcpy(item->axes, axes[i].axes, sizeof item->axes);
  }
  return true;
}

/* Derives the orders of all tracks (sets of axes that must have the same order) from the orders of
 * all groups. If a group fails the certificate, its order is reset to the identity and all are
 * derived again. */
static lac_status make_all_track_orders(laci_plan *plan, lac_error *err) {
  const laci_analysis *a = plan->analysis;
  for (;;) {
    clear_track_orders(plan);
    for (int g = 0; g < a->n_groups; g++) {
      if (!a->groups[g].frozen && laci_plan_moves_channels(plan, g) &&
          !make_track_orders_of_group(plan, g)) {
        return laci_fail_memory(err, "the orders");
      }
    }
    int bad;
    if (!laci_analysis_check_orders(a, plan->track_order, &bad))
      return laci_fail_memory(err, "the certificate");
    if (bad == -1) return LAC_OK;
    if (bad < 0 || !laci_plan_moves_channels(plan, bad)) {
      return laci_fail(err, LAC_INTERNAL,
                       "the certificate does not hold, and no group of channels is to blame");
    }
    laci_log(LAC_LOG_ERROR,
             "group %d: its order does not hold at every node and is dropped; please report this",
             bad + 1);
    for (int c = 0; c < a->groups[bad].n_channels; c++) plan->found[bad].order[c] = c;
    plan->found[bad].kept = plan->found[bad].kept_identity;
  }
}

lac_status laci_plan_make_value_orders(laci_plan *plan, lac_error *err) {
  lac_status st = make_all_track_orders(plan, err);
  if (st) return st;
  laci_orders_clear(&plan->orders);
  plan->orders.n_values = plan->analysis->graph->n_values;
  plan->orders.values = laci_arena_alloc(&plan->orders.arena, (size_t)plan->orders.n_values,
                                         sizeof *plan->orders.values);
  if (!plan->orders.values) return laci_fail_memory(err, "the orders");
  for (int v = 0; v < plan->orders.n_values; v++) {
    if (!set_value_orders(plan, v)) return laci_fail_memory(err, "the orders");
  }
  return LAC_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * A plan: one chosen order for each group of channels, and the resulting orders of every tensor of
 * the network. */
#ifndef LACI_PERMUTE_PLAN_H
#define LACI_PERMUTE_PLAN_H

#include "permute/orders.h"
#include "sparse/weight_view.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_search_result laci_search_result;
typedef struct laci_pool laci_pool;
typedef struct laci_search_options laci_search_options;

typedef struct laci_plan {
  const laci_analysis *analysis;
  laci_arena arena;
  laci_search_result *found; /* [n_groups] what the search found for each group. found[g].order maps
                                each new position to the old channel that moves there; the identity
                                for groups that were not searched */
  bool *fixed; /* [n_groups] true: the group is not searched and keeps its order; all false at the
                  start */
  int32_t **track_order; /* [n_tracks] a track is a set of axes that must have the same order. For
                            each track, the old position that moves to each new position; NULL: no
                            position moves */
  laci_orders orders;    /* the orders of all values of the graph */
} laci_plan;

/** Creates a plan in which all orders are the identity. */
LAC_MUST_CHECK lac_status laci_plan_create(const laci_analysis *analysis, laci_plan **plan,
                                           lac_error *err);
void laci_plan_destroy(laci_plan *plan);

/** Searches for the orders of all searchable groups whose `fixed` is false, several at a time, and
 * completes the plan. With the result, pruning keeps at least as much magnitude (or score, if
 * options->views is set) as with the present order. With options->comm, all processes call it for
 * the same network. Each searches a part of the groups, and all end with the same plan or the same
 * failure. */
LAC_MUST_CHECK lac_status laci_plan_search_orders(laci_plan *plan, laci_pattern pattern,
                                                  const laci_search_options *options,
                                                  laci_pool *pool, lac_error *err);

/** Copies found[group].order to the orders of tracks (sets of axes that must have the same order),
 * so that later searches treat the group as fixed. Call laci_plan_make_value_orders before the plan
 * is used. */
LAC_MUST_CHECK lac_status laci_plan_fix_group_order(laci_plan *plan, int group, lac_error *err);

/** Makes the orders of all tracks and values from found[g].order of all groups, and checks them
 * (laci_analysis_check_orders). A group that fails the check is reset to the identity, with an
 * error in the log. */
LAC_MUST_CHECK lac_status laci_plan_make_value_orders(laci_plan *plan, lac_error *err);

/** Does the order of this group move any channel? False: the order is the identity. */
bool laci_plan_moves_channels(const laci_plan *plan, int group);

#endif

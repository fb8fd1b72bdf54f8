/* SPDX-License-Identifier: Apache-2.0
 * Chooses between the new orders of channels and the file's, on samples held back from fitting. The
 * layers are fitted in both orders. A group keeps its new order if that lowers the errors of the
 * outputs of the layers that read the group. If the network's outputs do not gain enough, all
 * orders are reverted. The search could only estimate these errors, by the kept weights. */
#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "prune/prune_in.h"

typedef struct judge_work {
  laci_pruning *p;
  const laci_prune_options *options;
  const bool *wanted;
  laci_pool *pool;
} judge_work;

/* Returns the sum of the errors after a fit, over all layers that read the group. */
static double sum_errors_of_group(const laci_group *group, const laci_calibrated *fitted) {
  double sum = 0;
  for (int i = 0; i < group->n_layers; i++) sum += fitted->layers[group->layers[i]].error_after;
  return sum;
}

static bool revert_order(laci_pruning *p, int g) {
  laci_search_result *found = &p->plan->found[g];
  if (!laci_plan_moves_channels(p->plan, g)) return false;
  for (int c = 0; c < p->analysis->groups[g].n_channels; c++) found->order[c] = c;
  found->kept = found->kept_identity;
  return true;
}

/* Fits the network: in the file's orders if file_order is true, else in the plan's. */
static lac_status fit_in_order(const judge_work *w, bool file_order, laci_calibrated **fitted,
                               lac_error *err) {
  laci_pruning *p = w->p;
  const laci_graph *graph = p->analysis->graph;
  lac_status st = LAC_OK;
  p->weights = laci_alloc((size_t)graph->n_stored, sizeof *p->weights);
  if (!p->weights) return laci_fail_memory(err, "the weights in their order");
  for (int s = 0; s < graph->n_stored && !st && !file_order; s++)
    st = laci_copy_reordered_bytes(p->plan, s, &p->weights[s], err);
  if (!st) st = laci_pruning_fit_layers(p, w->options, w->wanted, w->pool, fitted, err);
  for (int s = 0; s < graph->n_stored; s++) laci_free(p->weights[s]);
  laci_free(p->weights);
  p->weights = NULL;
  return st;
}

/* Reverts the orders of groups whose layers have larger errors in the new order. file, moved: the
 * fits in the file's and in the new orders. Returns the number of reverted groups. *n_moved: number
 * of groups that had a new order. */
static int revert_worse_orders(laci_pruning *p, const laci_calibrated *file,
                               const laci_calibrated *moved, int *n_moved) {
  const laci_analysis *a = p->analysis;
  int n = 0;
  *n_moved = 0;
  for (int g = 0; g < a->n_groups; g++) {
    if (!laci_plan_moves_channels(p->plan, g)) continue;
    laci_pruned_order *order = &p->orders[g];
    order->judged = true;
    order->error_before = sum_errors_of_group(&a->groups[g], file);
    order->error_after = sum_errors_of_group(&a->groups[g], moved);
    ++*n_moved;
    if (order->error_after >= order->error_before) n += revert_order(p, g);
  }
  return n;
}

static void log_order_outcome(laci_pruning *p, const laci_calibrated *file,
                              const laci_calibrated *chosen, int n_moved) {
  int n_kept = 0;
  for (int g = 0; g < p->analysis->n_groups; g++) n_kept += laci_plan_moves_channels(p->plan, g);
  laci_log(LAC_LOG_INFO,
           "orders judged by errors of outputs: %d of %d group%s keep%s a new one; the network's "
           "outputs differ by %.3g %%, in the file's order by %.3g %%",
           n_kept, n_moved, laci_plural(n_moved), n_moved == 1 ? "s" : "",
           100 * chosen->outputs.relative, 100 * file->outputs.relative);
}

/* Are the new orders worth keeping? */
static bool is_gain_of_orders_enough(const laci_calibrated *file, const laci_calibrated *chosen) {
  return chosen->outputs_reason || chosen->outputs.relative < file->outputs.relative;
}

static lac_status fit_and_compare_orders(const judge_work *w, lac_error *err) {
  laci_pruning *p = w->p;
  laci_calibrated *file = NULL, *moved = NULL, *mixed = NULL;
  laci_calibrated **chosen = &moved;
  int n_moved = 0, n_reverted = 0;
  lac_status st = fit_in_order(w, true, &file, err);
  if (!st) st = fit_in_order(w, false, &moved, err);
  if (!st) n_reverted = revert_worse_orders(p, file, moved, &n_moved);
  if (!st && n_reverted > 0) st = laci_plan_make_value_orders(p->plan, err);
  if (n_reverted == n_moved) chosen = &file;
  else if (!st && n_reverted > 0) {
    st = fit_in_order(w, false, &mixed, err);
    chosen = &mixed;
  }
  if (!st && (chosen == &file || !is_gain_of_orders_enough(file, *chosen))) {
    for (int g = 0; g < p->analysis->n_groups; g++) (void)revert_order(p, g);
    st = laci_plan_make_value_orders(p->plan, err);
    chosen = &file;
  }
  if (!st) {
    log_order_outcome(p, file, *chosen, n_moved);
    p->fitted = *chosen;
    *chosen = NULL;
  }
  laci_calibrated_destroy(file);
  laci_calibrated_destroy(moved);
  laci_calibrated_destroy(mixed);
  return st;
}

lac_status laci_pruning_choose_orders(laci_pruning *p, const laci_prune_options *options,
                                      laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  bool moves = false;
  for (int g = 0; g < a->n_groups; g++) moves = moves || laci_plan_moves_channels(p->plan, g);
  if (!moves) return LAC_OK;
  bool *wanted = laci_alloc((size_t)a->n_layers, sizeof *wanted);
  p->orders = laci_alloc((size_t)a->n_groups, sizeof *p->orders);
  lac_status st = wanted && p->orders ? LAC_OK : laci_fail_memory(err, "the orders' errors");
  if (!st && laci_pruning_select_layers_to_fit(p, options, wanted) > 0)
    st = fit_and_compare_orders(&(judge_work){p, options, wanted, pool}, err);
  if (!st) st = laci_pruning_measure_kept(p, pool, err);
  laci_free(wanted);
  return st;
}

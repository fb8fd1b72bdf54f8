/* SPDX-License-Identifier: Apache-2.0
 * The pipeline of pruning: measure the weights, search for orders, verify, mask, and log what was
 * done. */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/spill.h"
#include "calibrate/walk.h"
#include "comm/comm.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "permute/file.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "tensor/shape.h"

lac_status laci_pruning_create(const laci_analysis *a, laci_pattern pattern, laci_pruning **out,
                               lac_error *err) {
  *out = NULL;
  laci_pruning *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "the pruning");
  p->analysis = a;
  p->pattern = pattern;
  p->rule = (laci_mask_rule){.pattern = pattern};
  p->layers = laci_alloc((size_t)a->n_layers, sizeof *p->layers);
  p->masks = laci_alloc((size_t)a->n_layers, sizeof *p->masks);
  p->held_cause = laci_alloc((size_t)a->n_groups, sizeof *p->held_cause);
  lac_status st =
      p->layers && p->masks && p->held_cause ? LAC_OK : laci_fail_memory(err, "the pruning");
  for (int l = 0; l < a->n_layers && !st; l++) {
    const laci_layer *layer = &a->layers[l];
    p->layers[l] =
        (laci_pruned_layer){.n_elements = laci_shape_count(&a->graph->stored[layer->stored].shape),
                            .searchable = layer->searchable,
                            .reason = layer->reason};
  }
  if (!st) st = laci_plan_create(a, &p->plan, err);
  if (st) laci_pruning_destroy(p);
  else *out = p;
  return st;
}

void laci_pruning_destroy(laci_pruning *p) {
  if (!p) return;
  for (int k = 0; k < p->n_masks; k++) {
    if (!p->masks[k].spilled) laci_free(p->masks[k].bits);
  }
  for (int s = 0; p->weights && !p->weights_spill && s < p->analysis->graph->n_stored; s++) {
    laci_free(p->weights[s]);
  }
  laci_spill_destroy(p->weights_spill);
  laci_spill_destroy(p->masks_spill);
  laci_free(p->weights);
  laci_free(p->layers);
  laci_free(p->masks);
  laci_free(p->held_cause);
  laci_free(p->calibration.points);
  laci_free(p->orders);
  laci_calibrated_destroy(p->fitted);
  laci_free(p->wanted);
  laci_free(p->left_dense);
  laci_plan_destroy(p->plan);
  laci_arena_clear(&p->arena);
  laci_free(p);
}

double laci_search_result_efficacy(const laci_search_result *found) {
  double most = found->upper - found->kept_identity;
  return found->upper > found->kept_identity ? 100 * (found->kept - found->kept_identity) / most
                                             : 0;
}

/* ---- The search ---- */

/* Returns the weight of layer l as the search scores it: by squares of elements, since one large
 * weight matters more to a layer's outputs than two of half its size. Scores that the caller gave
 * are used as they are. */
static laci_weight_view make_search_view(const laci_pruning *p, int l) {
  const laci_layer *layer = &p->analysis->layers[l];
  laci_weight_view view = layer->view;
  const float *score = p->scores ? p->scores[layer->stored] : NULL;
  view.squared = !score;
  if (!score) return view;
  view.dtype = LAC_DTYPE_F32;
  view.bytes = (const uint8_t *)score;
  view.bytes_from = NULL;
  view.n_scales = 0;
  view.scale = view.zero = NULL;
  view.grid = NULL;
  return view;
}

static lac_status search_orders(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                                lac_error *err) {
  const laci_analysis *a = p->analysis;
  laci_search_options how = options->search;
  how.comm = options->comm;
  if (options->permute_for == LACI_FOR_MAGNITUDE) {
    return laci_plan_search_orders(p->plan, p->pattern, &how, pool, err);
  }
  laci_weight_view *views = laci_alloc((size_t)a->n_layers, sizeof *views);
  lac_status st = laci_comm_agree_on_status(
      how.comm, views ? LAC_OK : laci_fail_memory(err, "the search"), err);
  for (int l = 0; l < a->n_layers && !st; l++) { views[l] = make_search_view(p, l); }
  how.views = views;
  if (!st) st = laci_plan_search_orders(p->plan, p->pattern, &how, pool, err);
  laci_free(views);
  return st;
}

static lac_status search_orders_until_interrupted(laci_pruning *p,
                                                  const laci_prune_options *options,
                                                  laci_pool *pool, lac_error *err) {
  double start = laci_clock_seconds();
  uint32_t interrupted;
  lac_status st = search_orders(p, options, pool, err);
  p->search_seconds = laci_clock_seconds() - start;
  if (st) return st;
  interrupted = laci_clear_interrupt(); /* the signal ended the search, not the rest of the run */
  st = laci_comm_vote_begin(options->comm, interrupted, err);
  if (!st) st = laci_comm_vote_end(options->comm, &interrupted, err);
  if (!st && interrupted) {
    laci_log(LAC_LOG_WARNING, "search interrupted: going on with the best orders found so far");
    p->interrupted = true;
  }
  return st;
}

static void revert_group(laci_plan *plan, int g) {
  for (int c = 0; c < plan->analysis->groups[g].n_channels; c++) plan->found[g].order[c] = c;
  plan->found[g].kept = plan->found[g].kept_identity;
}

/* Reverts the orders of groups whose layers keep less score in the new order. Returns whether there
 * were any. */
static bool revert_losing_orders(laci_pruning *p) {
  const laci_analysis *a = p->analysis;
  bool changed = false;
  for (int g = 0; g < a->n_searchable; g++) {
    double before = 0, after = 0;
    for (int i = 0; i < a->groups[g].n_layers; i++) {
      before += p->layers[a->groups[g].layers[i]].score_kept_identity;
      after += p->layers[a->groups[g].layers[i]].score_kept;
    }
    if (!(after < before) || !laci_plan_moves_channels(p->plan, g)) continue;
    revert_group(p->plan, g);
    changed = true;
  }
  return changed;
}

/* Reverts the orders of all groups if all layers together keep less score in the new orders.
 * Returns whether it did so. */
static bool revert_all_if_worse(laci_pruning *p) {
  double before = 0, after = 0;
  for (int l = 0; l < p->analysis->n_layers; l++) {
    if (!p->analysis->layers[l].eligible) continue;
    before += p->layers[l].score_kept_identity;
    after += p->layers[l].score_kept;
  }
  for (int g = 0; g < p->analysis->n_searchable && after < before; g++) revert_group(p->plan, g);
  return after < before;
}

/* Reverts orders in which layers keep less score than in the file's order: the search may not have
 * scored everything. If mask blocks span several rows, what a layer keeps also depends on the order
 * of its output channels, which are input channels of other layers. So this is repeated until no
 * group loses. At last all groups are compared together. */
static lac_status revert_orders_that_lose(laci_pruning *p, laci_pool *pool, lac_error *err) {
  const bool rows_count = p->rule.form != LACI_MASK_1D;
  lac_status st = laci_pruning_measure_kept(p, pool, err);
  for (bool again = true; again && !st;) {
    again = revert_losing_orders(p) || (rows_count && revert_all_if_worse(p));
    if (!again) break;
    st = laci_plan_make_value_orders(p->plan, err);
    if (!st) st = laci_pruning_measure_kept(p, pool, err);
    again = rows_count;
  }
  return st;
}

/* Reverts the new orders that do not help: by the score that is kept, then, if there are samples,
 * by the errors of fits. */
static lac_status revert_and_judge_orders(laci_pruning *p, const laci_prune_options *options,
                                          laci_pool *pool, lac_error *err) {
  lac_status st = revert_orders_that_lose(p, pool, err);
  bool judges = options->permute && options->mask && options->calibration;
  return !st && judges ? laci_pruning_choose_orders(p, options, pool, err) : st;
}

/* ---- Logging ---- */

static void log_groups(const laci_pruning *p) {
  for (int g = 0; g < p->analysis->n_groups; g++) {
    const laci_group *group = &p->analysis->groups[g];
    const laci_search_result *found = &p->plan->found[g];
    if (group->frozen || p->plan->fixed[g] || !found->strategy) continue;
    laci_log(LAC_LOG_DEBUG,
             "group %d: %d channels, %d layer%s, kept %.6g -> %.6g, efficacy %.2f %% (%s)", g + 1,
             group->n_channels, group->n_layers, laci_plural(group->n_layers), found->kept_identity,
             found->kept, laci_search_result_efficacy(found), found->strategy);
  }
}

/* Returns how many layers are not pruned for the same reason as layer l. */
static int count_same_reason(const laci_pruning *p, int l) {
  const char *wanted = p->layers[l].reason;
  int n = 0;
  for (int k = 0; wanted && k < p->analysis->n_layers; k++) {
    const char *reason = p->layers[k].reason;
    n += reason && strcmp(reason, wanted) == 0;
  }
  return n;
}

static bool has_pruned_layer(const laci_pruning *p) {
  for (int l = 0; l < p->analysis->n_layers; l++) {
    if (p->layers[l].pruned) return true;
  }
  return false;
}

/* Sets *any: a computed weight holds the pattern already. */
static lac_status has_pruned_computed_weight(const laci_pruning *p,
                                             const laci_prune_options *options, laci_pool *pool,
                                             bool *any, lac_error *err) {
  const laci_analysis *a = p->analysis;
  const laci_computed_options how = {&p->rule, options->budget, pool};
  lac_status st = LAC_OK;
  *any = false;
  for (int l = a->n_layers; l < a->n_rows && !st && !*any; l++)
    st = laci_computed_is_pruned(a, l, &how, any, err);
  return st;
}

/* Warns that no layer was pruned. The text has the most frequent reason. */
static void warn_no_layer_pruned(const laci_pruning *p) {
  const laci_analysis *a = p->analysis;
  int n_odd = 0, odd = 0, most = 0;
  for (int l = 0; l < a->n_layers; l++) {
    if (a->layers[l].odd_size && n_odd++ == 0) odd = l;
    if (count_same_reason(p, l) > count_same_reason(p, most)) most = l;
  }
  char why[512];
  if (a->n_layers == 0 && a->n_rows > 0) {
    (void)snprintf(why, sizeof why, "no weight is stored as one tensor: %s: %s",
                   a->graph->nodes[a->layers[0].node].name, a->layers[0].reason);
  } else if (a->n_layers == 0) {
    (void)snprintf(why, sizeof why,
                   "the network has no Conv, Gemm, MatMul or ConvTranspose with a stored weight");
  } else if (n_odd > 0) {
    (void)snprintf(why, sizeof why, "%d %s a size that Tensor Cores do not take: %s", n_odd,
                   n_odd == 1 ? "has" : "have", p->layers[odd].reason);
  } else {
    (void)snprintf(why, sizeof why, "%d of %d: %s", count_same_reason(p, most), a->n_layers,
                   p->layers[most].reason);
  }
  laci_log(LAC_LOG_WARNING, "no layer takes %d:%d; %s", p->pattern.n, p->pattern.m, why);
}

/* ---- The pipeline ---- */

/* Does the quick steps that may fail before the long ones begin: checks memory, and measures the
 * weights. */
static lac_status prepare_pruning(const laci_analysis *a, const laci_prune_options *options,
                                  laci_pool *pool, laci_pruning **out, lac_error *err) {
  lac_status st = laci_prune_check_memory(a, options, laci_pool_threads(pool), err);
  if (!st) st = laci_pruning_create(a, options->pattern, out, err);
  if (!st) st = laci_pruning_set_rule(*out, options, err);
  if (!st) st = laci_pruning_measure_layers(*out, pool, err); /* fails if a weight has a NaN */
  if (!st) st = laci_pruning_exclude_held_groups(*out, options, pool, err);
  if (!st && options->permute && laci_interrupted())
    st = laci_fail(err, LAC_INTERRUPTED, "interrupted before the search");
  st = laci_comm_agree_on_status(options->comm, st, err);
  return st ? st : laci_pruning_compare_processes(*out, options, err);
}

/* Process 0 verifies; the others wait for its findings. */
static lac_status verify_and_share(laci_pruning *p, const laci_prune_options *options,
                                   laci_pool *pool, lac_status st, lac_error *err) {
  bool first = laci_comm_rank(options->comm) == 0;
  if (!st && first) st = laci_pruning_verify(p, options, pool, err);
  st = laci_comm_agree_without_timeout(options->comm, st, err);
  return st ? st : laci_pruning_share_verification(p, options->comm, err);
}

lac_status laci_prune_begin(const laci_analysis *a, const laci_prune_options *options,
                            laci_pool *pool, laci_pruning **out, lac_error *err) {
  laci_pruning *p = NULL;
  *out = NULL;
  lac_status st = prepare_pruning(a, options, pool, &p, err);
  if (!st && options->permute) st = search_orders_until_interrupted(p, options, pool, err);
  if (!st)
    st = verify_and_share(p, options, pool, revert_and_judge_orders(p, options, pool, err), err);
  if (!st) st = laci_pruning_exclude_for_speed(p, options, err);
  if (!st) {
    st = laci_pruning_make_weights(p, options, pool, err);
    if (!st && options->mask && options->calibration)
      st = laci_pruning_calibrate(p, options, pool, err);
    else if (!st && options->mask && options->correct)
      st = laci_pruning_correct_statistics(p, options, err);
    st = laci_comm_agree_without_timeout(options->comm, st, err);
  }
  if (st) laci_pruning_destroy(p);
  else *out = p;
  return st;
}

lac_status laci_prune_end(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                          lac_error *err) {
  lac_status st = p->fitted ? laci_pruning_use_fitted_weights(p, options, pool, err) : LAC_OK;
  if (!st) st = laci_pruning_measure_unmasked(p, pool, err);
  if (st) return st;
  bool any = !options->mask || has_pruned_layer(p);
  if (!any) st = has_pruned_computed_weight(p, options, pool, &any, err);
  if (st) return st;
  if (!any) warn_no_layer_pruned(p);
  log_groups(p);
  return LAC_OK;
}

lac_status laci_prune(const laci_analysis *a, const laci_prune_options *options, laci_pool *pool,
                      laci_pruning **out, lac_error *err) {
  lac_status st = laci_prune_begin(a, options, pool, out, err);
  if (!st) st = laci_prune_end(*out, options, pool, err);
  if (st) {
    laci_pruning_destroy(*out);
    *out = NULL;
  }
  return st;
}

lac_status laci_prune_with_saved_orders(const laci_analysis *a, const laci_saved_orders *orders,
                                        const laci_prune_options *options, laci_pool *pool,
                                        laci_pruning **out, lac_error *err) {
  laci_pruning *p = NULL;
  *out = NULL;
  lac_status st = laci_pruning_create(a, options->pattern, &p, err);
  if (!st) st = laci_pruning_set_rule(p, options, err);
  if (!st) st = laci_permutation_read(p->plan, orders->name, orders->text, orders->invert, err);
  if (!st) st = laci_pruning_measure_layers(p, pool, err);
  if (!st) st = laci_pruning_measure_kept(p, pool, err);
  if (!st) st = laci_pruning_verify(p, options, pool, err);
  if (!st) st = laci_pruning_make_weights(p, options, pool, err);
  if (!st) st = laci_pruning_measure_unmasked(p, pool, err);
  if (st) laci_pruning_destroy(p);
  else *out = p;
  return st;
}

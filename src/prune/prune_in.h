/* SPDX-License-Identifier: Apache-2.0
 * The steps of pruning, as its files share them; prune.c calls them from top to bottom. */
#ifndef LACI_PRUNE_PRUNE_IN_H
#define LACI_PRUNE_PRUNE_IN_H

#include "prune/prune.h"

typedef struct laci_calibrated laci_calibrated;
typedef struct laci_layer laci_layer;
typedef struct laci_stored laci_stored;

/** memory.c: plans all phases before the first begins: the search takes long, and a verification
 * that does not fit must fail before it. Fails LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_prune_plan_memory(const laci_analysis *analysis,
                                                 const laci_prune_options *options, int n_threads,
                                                 lac_error *err);

/** measure.c: how masks are chosen, and by what. Fails as laci_mask_rule_check. */
LAC_MUST_CHECK lac_status laci_pruning_set_rule(laci_pruning *pruning,
                                                const laci_prune_options *options, lac_error *err);

/** measure.c: `kept` of every eligible layer in the plan's order; all must be measured already. */
LAC_MUST_CHECK lac_status laci_pruning_measure_kept(laci_pruning *pruning, laci_pool *pool,
                                                    lac_error *err);

/** hold.c: after the layers are measured, holds the groups of the input channels of what is pruned
 * already: with options->keep_pruned of every layer, else of those that get no mask here. */
LAC_MUST_CHECK lac_status laci_pruning_hold(laci_pruning *pruning,
                                            const laci_prune_options *options, laci_pool *pool,
                                            lac_error *err);

/** weights.c: the bytes of a stored tensor in the plan's order; *bytes is the caller's, NULL where
 * they stay as they are. */
LAC_MUST_CHECK lac_status laci_reordered_bytes(const laci_plan *plan, int stored, uint8_t **bytes,
                                               lac_error *err);

/** weights.c: scales and zero points along a reordered axis move with the weight, for a view of it
 * in the plan's order: laci_alloc in *memory, or NULL where nothing moves. False: no memory. */
bool laci_reordered_scales(const laci_plan *plan, const laci_layer *layer, laci_weight_view *view,
                           double **memory);

/** weights.c: scores in the plan's order, for a view of the weight in that order: laci_alloc in
 * *memory, or NULL where nothing moves. */
LAC_MUST_CHECK lac_status laci_reordered_scores(const laci_pruning *pruning, int stored,
                                                laci_weight_view *view, float **memory,
                                                lac_error *err);

/** weights.c: reorders every stored tensor as the plan says and, with options->mask, masks the
 * eligible layers' weights, but for those that are all zero. */
LAC_MUST_CHECK lac_status laci_pruning_make_weights(laci_pruning *pruning,
                                                    const laci_prune_options *options,
                                                    laci_pool *pool, lac_error *err);

/** weights.c: `take` (laci_alloc, of the stored tensor's type and size) becomes the layer's new
 * weight, and `mask` its mask; of the weight as it would be without, reordered, is counted what is
 * kept. On failure take is still the caller's. */
LAC_MUST_CHECK lac_status laci_pruning_set_weight(laci_pruning *pruning, int layer,
                                                  const uint8_t *mask, uint8_t *take,
                                                  laci_pool *pool, lac_error *err);

/** calibrated.c: masks and weights of the layers that are not pruned yet, from samples, to
 * pruning->fitted. After laci_pruning_make_weights. Fails as laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_calibrate(laci_pruning *pruning,
                                                 const laci_prune_options *options, laci_pool *pool,
                                                 lac_error *err);

/** calibrated.c: pruning->fitted, which is there, becomes the network's masks and weights. */
LAC_MUST_CHECK lac_status laci_pruning_take_fitted(laci_pruning *pruning,
                                                   const laci_prune_options *options,
                                                   laci_pool *pool, lac_error *err);

/** Which layers are to be pruned by samples, [n_layers]; returns how many. */
int laci_pruning_want(const laci_pruning *pruning, const laci_prune_options *options, bool *wanted);

/** choose_orders.c: the plan's orders against the file's, by the errors that fits of both leave;
 * those that do not help go back. Leaves the fit of what stays in pruning->fitted. Fails as
 * laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_judge(laci_pruning *pruning,
                                             const laci_prune_options *options, laci_pool *pool,
                                             lac_error *err);

/** fit.c: fits the layers that are wanted, [n_layers], in the new order, and adds up the time;
 * laci_calibrated_destroy. */
LAC_MUST_CHECK lac_status laci_pruning_fit(laci_pruning *pruning, const laci_prune_options *options,
                                           const bool *wanted, laci_pool *pool,
                                           laci_calibrated **fitted, lac_error *err);

/** dense.c: which layers stay dense, as options->calibration says, and the loss over the number of
 * those that do not. *fitted has all that are wanted; in its place comes one without those, whose
 * `wanted` are then false. */
LAC_MUST_CHECK lac_status laci_pruning_keep_dense(laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  laci_pool *pool, bool *wanted,
                                                  laci_calibrated **fitted, lac_error *err);

/** drop.c: what a comparison says of the loss; `most` is wrong with a probability of at most
 * (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES. */
void laci_drop_bound(const laci_output_difference *d, laci_judged_drop *to);

/** share.c: do all processes work on the same network with the same options? After the layers are
 * measured. Fails LAC_BAD_ARGUMENT naming a process that does not, LAC_PEER. */
LAC_MUST_CHECK lac_status laci_pruning_compare(const laci_pruning *pruning,
                                               const laci_prune_options *options, lac_error *err);

/** share.c: what process 0's verification found, at all; names of values stay its own. */
LAC_MUST_CHECK lac_status laci_pruning_share_verification(laci_pruning *pruning, laci_comm *comm,
                                                          lac_error *err);

/** Says of a layer that holds the pattern, but of which hardly anything is left (less than one in
 * 16 of the weights that the pattern leaves), how much that is. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_pruning_note_scarce(laci_pruning *p, int l, lac_error *err);

/** Looks at the layers that got no mask as they are in the result: what they hold and whether they
 * are pruned weights is then what a look at the file says. After all new weights are made. Fails
 * LAC_NO_MEMORY. (weights.c) */
LAC_MUST_CHECK lac_status laci_pruning_note_others(laci_pruning *p, laci_pool *pool,
                                                   lac_error *err);

/** Nothing but zeros, as heads begin: no magnitude tells which of them to keep. */
static inline bool laci_pruned_layer_is_zero(const laci_pruned_layer *layer) {
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements;
}

/** gain[k] *= |after| / |before| at index k of v's axis: what g of a weight g * v / |v| becomes
 * when v has changed and the weight is not to. */
LAC_MUST_CHECK lac_status laci_follow_norm(const laci_stored *v, int axis, const uint8_t *before,
                                           const uint8_t *after, double *gain, lac_error *err);

#endif

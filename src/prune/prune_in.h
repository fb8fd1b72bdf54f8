/* SPDX-License-Identifier: Apache-2.0
 * The steps of pruning, shared by the files of this folder; prune.c calls them from top to bottom.
  */
#ifndef LACI_PRUNE_PRUNE_IN_H
#define LACI_PRUNE_PRUNE_IN_H

#include "prune/prune.h"

typedef struct laci_calibrated laci_calibrated;
typedef struct laci_layer laci_layer;
typedef struct laci_stored laci_stored;

/** memory.c: checks the memory of all phases before the first begins: the search takes long, so a
 * verification that does not fit must fail before it. Fails LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_prune_check_memory(const laci_analysis *analysis,
                                                  const laci_prune_options *options, int n_threads,
                                                  lac_error *err);

/** measure.c: sets pruning->rule and pruning->scores from the options. Fails as
 * laci_mask_rule_check. */
LAC_MUST_CHECK lac_status laci_pruning_set_rule(laci_pruning *pruning,
                                                const laci_prune_options *options, lac_error *err);

/** measure.c: computes `kept` of every eligible layer in the plan's order; the layers must be
 * measured already. */
LAC_MUST_CHECK lac_status laci_pruning_measure_kept(laci_pruning *pruning, laci_pool *pool,
                                                    lac_error *err);

/** hold.c: excludes from reordering the groups of the input channels of layers that are pruned
 * already: with options->keep_pruned of all such layers, else of those that get no mask in this
 * run. To be called after the layers are measured. */
LAC_MUST_CHECK lac_status laci_pruning_exclude_held_groups(laci_pruning *pruning,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, lac_error *err);

/** weights.c: copies a stored tensor in the plan's order. The caller frees *bytes, which is NULL
 * where the order does not change the tensor. */
LAC_MUST_CHECK lac_status laci_copy_reordered_bytes(const laci_plan *plan, int stored,
                                                    uint8_t **bytes, lac_error *err);

/** weights.c: reorders the scales and zero points of *view, a view of the weight in the plan's
 * order, where their axis is reordered. *memory holds them (the caller frees it); NULL where
 * nothing moves. False: no memory. */
bool laci_reorder_scales(const laci_plan *plan, const laci_layer *layer, laci_weight_view *view,
                         double **memory);

/** weights.c: sets the scores of *view, a view of the weight in the plan's order. *memory holds
 * them where they had to be reordered (the caller frees it); else NULL. */
LAC_MUST_CHECK lac_status laci_reorder_scores(const laci_pruning *pruning, int stored,
                                              laci_weight_view *view, float **memory,
                                              lac_error *err);

/** weights.c: reorders every stored tensor as the plan says and, with options->mask, masks the
 * eligible layers' weights, but for those that are all zero. */
LAC_MUST_CHECK lac_status laci_pruning_make_weights(laci_pruning *pruning,
                                                    const laci_prune_options *options,
                                                    laci_pool *pool, lac_error *err);

/** weights.c: makes `take` (laci_alloc, of the stored tensor's type and size) the layer's new
 * weight, and `mask` its mask. `kept` is measured on the reordered unmasked weight. On failure take
 * is still the caller's. */
LAC_MUST_CHECK lac_status laci_pruning_set_masked_weight(laci_pruning *pruning, int layer,
                                                         const uint8_t *mask, uint8_t *take,
                                                         laci_pool *pool, lac_error *err);

/** calibrated.c: computes masks and weights of the layers that are not pruned yet, by samples, into
 * pruning->fitted. To be called after laci_pruning_make_weights. Fails as laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_calibrate(laci_pruning *pruning,
                                                 const laci_prune_options *options, laci_pool *pool,
                                                 lac_error *err);

/** Measures the outputs' error of masks by magnitude, on the samples that judge pruning->fitted.
 * Fails LAC_UNSUPPORTED if that error is below the error of pruning->fitted, and as
 * laci_compare_outputs. Does nothing if outputs cannot be compared. (magnitude.c) */
LAC_MUST_CHECK lac_status laci_pruning_compare_with_magnitude(laci_pruning *pruning,
                                                              const laci_prune_options *options,
                                                              laci_pool *pool, lac_error *err);

/** weights.c: copies a layer's weight in the plan's order, masked by its scores or magnitudes. The
 * caller frees *bytes, which is NULL on failure. */
LAC_MUST_CHECK lac_status laci_pruning_copy_masked(const laci_pruning *pruning, int layer,
                                                   laci_pool *pool, uint8_t **bytes,
                                                   lac_error *err);

/** calibrated.c: makes the masks and weights of pruning->fitted, which must not be NULL, those of
 * the result. */
LAC_MUST_CHECK lac_status laci_pruning_use_fitted_weights(laci_pruning *pruning,
                                                          const laci_prune_options *options,
                                                          laci_pool *pool, lac_error *err);

/** Does the layer hold the pattern already, so that its zeros are used as its mask? True for pruned
 * layers with options->keep_pruned, and if calibration is optional. (weights.c) */
bool laci_pruning_keeps_mask_of_layer(const laci_pruning *pruning,
                                      const laci_prune_options *options, int layer);

/** Sets wanted, [n_layers], to which layers are to be pruned by samples; returns how many. */
int laci_pruning_select_layers_to_fit(const laci_pruning *pruning,
                                      const laci_prune_options *options, bool *wanted);

/** choose_orders.c: fits the network in the plan's orders and in the file's, and reverts the orders
 * that do not lower the errors. Leaves the fit of the remaining orders in pruning->fitted. Fails as
 * laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_choose_orders(laci_pruning *pruning,
                                                     const laci_prune_options *options,
                                                     laci_pool *pool, lac_error *err);

/** fit.c: fits the wanted layers, [n_layers], in the new order, and adds the time to the
 * calibration's. The caller frees *fitted by laci_calibrated_destroy. */
LAC_MUST_CHECK lac_status laci_pruning_fit_layers(laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  const bool *wanted, laci_pool *pool,
                                                  laci_calibrated **fitted, lac_error *err);

/** dense.c: chooses the layers that stay dense, as options->calibration says, and measures the loss
 * over the number of pruned layers. *fitted, a fit of all wanted layers, is replaced by a fit
 * without the chosen ones, and their entries of `wanted` become false. */
LAC_MUST_CHECK lac_status laci_pruning_choose_dense_layers(laci_pruning *pruning,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, bool *wanted,
                                                           laci_calibrated **fitted,
                                                           lac_error *err);

/** Chooses, by magnitude, the layers that need not be pruned to reach a wanted speed. If there are
 * samples, dense.c makes the choice, and this only finds out early whether the speed can be
 * reached. Fails as laci_speed_choose_for_target. (for_speed.c) */
LAC_MUST_CHECK lac_status laci_pruning_exclude_for_speed(laci_pruning *pruning,
                                                         const laci_prune_options *options,
                                                         lac_error *err);

/** Computes the loss and its upper bound from a comparison of outputs. to->most is wrong with a
 * probability of at most (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES. (drop.c) */
void laci_drop_compute_bound(const laci_output_difference *d, laci_judged_drop *to);

/** share.c: checks that all processes work on the same network with the same options. Call it after
 * the layers are measured. Fails LAC_BAD_ARGUMENT naming a process that differs, LAC_PEER. */
LAC_MUST_CHECK lac_status laci_pruning_compare_processes(const laci_pruning *pruning,
                                                         const laci_prune_options *options,
                                                         lac_error *err);

/** share.c: sends the findings of process 0's verification to all processes, except the names of
 * values. */
LAC_MUST_CHECK lac_status laci_pruning_share_verification(laci_pruning *pruning, laci_comm *comm,
                                                          lac_error *err);

/** If a layer holds the pattern but has hardly any non-zeros, sets its reason to how many it has.
 * Hardly any: less than one in 16 of the weights that the pattern allows. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_pruning_set_reason_few_nonzeros(laci_pruning *p, int l,
                                                               lac_error *err);

/** Measures the new weights of layers that got no mask, so that their zeros, patterns and
 * `is_pruned` are the same as when the file is read later. Call it after all new weights are made.
 * Fails LAC_NO_MEMORY. (weights.c) */
LAC_MUST_CHECK lac_status laci_pruning_measure_unmasked(laci_pruning *p, laci_pool *pool,
                                                        lac_error *err);

/** Are all elements zero, as in a newly initialized classifier? Then a mask cannot be chosen by
 * magnitudes. */
static inline bool laci_pruned_layer_is_zero(const laci_pruned_layer *layer) {
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements;
}

/** Multiplies gain[k] by |after| / |before|, the norms of v's new and old bytes at index k of the
 * axis. In a weight g * v / |v| whose v was masked, g must change so that the kept weights stay the
 * same. */
LAC_MUST_CHECK lac_status laci_rescale_gain(const laci_stored *v, int axis, const uint8_t *before,
                                            const uint8_t *after, double *gain, lac_error *err);

#endif

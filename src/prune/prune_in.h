/* SPDX-License-Identifier: Apache-2.0
 * Functions for the steps of pruning, which the files of this folder share. prune.c calls them from
 * top to bottom. */
#ifndef LACI_PRUNE_PRUNE_IN_H
#define LACI_PRUNE_PRUNE_IN_H

#include "prune/prune.h"

typedef struct laci_calibrated laci_calibrated;
typedef struct laci_graph laci_graph;
typedef struct laci_layer laci_layer;
typedef struct laci_stored laci_stored;

/** memory.c: checks before the first phase that all phases fit into memory: the search takes long,
 * so a verification that does not fit must fail before it. Fails with LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_prune_check_memory(const laci_analysis *analysis,
                                                  const laci_prune_options *options, int n_threads,
                                                  lac_error *err);

/** measure.c: sets pruning->rule and pruning->scores from the options. Fails as
 * laci_mask_rule_check. */
LAC_MUST_CHECK lac_status laci_pruning_set_rule(laci_pruning *pruning,
                                                const laci_prune_options *options, lac_error *err);

/** measure.c: computes laci_pruned_layer.kept of every eligible layer in the plan's order. The
 * layers must be measured already. */
LAC_MUST_CHECK lac_status laci_pruning_measure_kept(laci_pruning *pruning, laci_pool *pool,
                                                    lac_error *err);

/** hold.c: a layer that is pruned already may have to keep its mask. Excludes the groups of its
 * input channels from reordering. With options->keep_pruned this applies to all such layers, else
 * to those that get no mask in this run. Call it after the layers are measured. */
LAC_MUST_CHECK lac_status laci_pruning_exclude_held_groups(laci_pruning *pruning,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, lac_error *err);

/** weights.c: copies a stored tensor in the plan's order. The caller frees *bytes. It is NULL if
 * the order does not change the tensor. */
LAC_MUST_CHECK lac_status laci_copy_reordered_bytes(const laci_plan *plan, int stored,
                                                    uint8_t **bytes, lac_error *err);

/** weights.c: *view is a view of the weight in the plan's order. Reorders its scales and zero
 * points, if their axis is reordered. *memory holds them, and the caller frees it; NULL: nothing
 * moves. Returns false if there is no memory. */
bool laci_reorder_scales(const laci_plan *plan, const laci_layer *layer, laci_weight_view *view,
                         double **memory);

/** weights.c: *view is a view of the weight in the plan's order. Sets its scores. If they had to be
 * reordered, *memory holds them, and the caller frees it; else it is NULL. */
LAC_MUST_CHECK lac_status laci_reorder_scores(const laci_pruning *pruning, int stored,
                                              laci_weight_view *view, float **memory,
                                              lac_error *err);

/** weights.c: reorders every stored tensor as the plan says. With options->mask, also masks the
 * eligible layers' weights, except those that are all zero. */
LAC_MUST_CHECK lac_status laci_pruning_make_weights(laci_pruning *pruning,
                                                    const laci_prune_options *options,
                                                    laci_pool *pool, lac_error *err);

/** weights.c: makes `take`, from laci_alloc, the new bytes of a stored tensor, in the new order.
 * Takes ownership, also on failure. */
LAC_MUST_CHECK lac_status laci_pruning_replace_tensor(laci_pruning *pruning, int stored,
                                                      uint8_t *take, lac_error *err);

/** correct.c: corrects the statistics of batch normalizations, or biases, for what masks changed in
 * means and variances. Counts the layers in pruning->n_corrected. A layer that does not fit into
 * the memory limit stays as it is. Call it after laci_pruning_make_weights. Fails LAC_NO_MEMORY,
 * and as laci_stored_acquire. */
LAC_MUST_CHECK lac_status laci_pruning_correct_statistics(laci_pruning *pruning,
                                                          const laci_prune_options *options,
                                                          lac_error *err);

/** weights.c: makes `take` the layer's new weight, and `mask` its mask. take is from laci_alloc,
 * with the stored tensor's type and size. laci_pruned_layer.kept is measured on the reordered
 * weight without the mask. After a failure take still belongs to the caller. */
LAC_MUST_CHECK lac_status laci_pruning_set_masked_weight(laci_pruning *pruning, int layer,
                                                         const uint8_t *mask, uint8_t *take,
                                                         laci_pool *pool, lac_error *err);

/** calibrated.c: chooses, by samples, masks and weights of the layers that are not pruned yet, in
 * pruning->fitted. Call it after laci_pruning_make_weights. Fails as laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_calibrate(laci_pruning *pruning,
                                                 const laci_prune_options *options, laci_pool *pool,
                                                 lac_error *err);

/** magnitude.c: measures the error of the outputs with masks by magnitude, on the samples that
 * judge pruning->fitted. Fails with LAC_UNSUPPORTED if that error is below the error of
 * pruning->fitted, and as laci_compare_outputs. Does nothing if outputs cannot be compared. */
LAC_MUST_CHECK lac_status laci_pruning_compare_with_magnitude(laci_pruning *pruning,
                                                              const laci_prune_options *options,
                                                              laci_pool *pool, lac_error *err);

/** weights.c: copies a layer's weight in the plan's order, masked by scores or magnitudes. The
 * caller frees *bytes. It is NULL after a failure. */
LAC_MUST_CHECK lac_status laci_pruning_copy_masked(const laci_pruning *pruning, int layer,
                                                   laci_pool *pool, uint8_t **bytes,
                                                   lac_error *err);

/** calibrated.c: moves the masks and weights of pruning->fitted, which must not be NULL, into the
 * result. */
LAC_MUST_CHECK lac_status laci_pruning_use_fitted_weights(laci_pruning *pruning,
                                                          const laci_prune_options *options,
                                                          laci_pool *pool, lac_error *err);

/** weights.c: does the layer hold the pattern already, so that its zeros serve as its mask? True
 * for pruned layers with options->keep_pruned, and if calibration is optional. */
bool laci_pruning_keeps_mask_of_layer(const laci_pruning *pruning,
                                      const laci_prune_options *options, int layer);

/** Sets wanted[l], [n_layers]: layer l is to be pruned by samples. Returns the number of these
 * layers. */
int laci_pruning_select_layers_to_fit(const laci_pruning *pruning,
                                      const laci_prune_options *options, bool *wanted);

/** choose_orders.c: fits the network in the plan's orders and in the file's, and reverts the orders
 * that do not lower the errors. Stores the fit in the remaining orders in pruning->fitted. Fails as
 * laci_calibrate. */
LAC_MUST_CHECK lac_status laci_pruning_choose_orders(laci_pruning *pruning,
                                                     const laci_prune_options *options,
                                                     laci_pool *pool, lac_error *err);

/** The dense network that layers are fitted to. */
typedef struct laci_adapted {
  bool done;               /* true: batch normalizations have statistics of the samples */
  const uint8_t **weights; /* [n_stored] the bytes of each stored tensor, as in
                              laci_weighted_graph */
  laci_graph *view;        /* owns the new statistics; NULL: there are none */
} laci_adapted;

/** adapt.c: adapts the dense network to the samples, if all of them are drawn. Where that cannot be
 * done, its weights are the pruning's. Fails LAC_NO_MEMORY, LAC_INTERRUPTED. Call
 * laci_adapted_clear in any case. */
LAC_MUST_CHECK lac_status laci_pruning_adapt_to_samples(const laci_pruning *pruning,
                                                        const laci_prune_options *options,
                                                        laci_pool *pool, laci_adapted *to,
                                                        lac_error *err);
void laci_adapted_clear(laci_adapted *adapted);

/** fit.c: fits the wanted layers, [n_layers], in the new order. Adds the time to the calibration's
 * time. The caller frees *fitted by laci_calibrated_destroy. */
LAC_MUST_CHECK lac_status laci_pruning_fit_layers(laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  const bool *wanted, laci_pool *pool,
                                                  laci_calibrated **fitted, lac_error *err);

/** fit.c: as laci_pruning_fit_layers, but each layer as if it alone were pruned. The network's
 * outputs are not compared. */
LAC_MUST_CHECK lac_status laci_pruning_fit_each_alone(laci_pruning *pruning,
                                                      const laci_prune_options *options,
                                                      const bool *wanted, laci_pool *pool,
                                                      laci_calibrated **fitted, lac_error *err);

/** dense.c: chooses the layers that stay dense, as options->calibration says, and measures the loss
 * over the number of pruned layers. *fitted is at first a fit of all wanted layers. If layers stay
 * dense, a fit without them replaces it, and their entries of `wanted` become false. */
LAC_MUST_CHECK lac_status laci_pruning_choose_dense_layers(laci_pruning *pruning,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, bool *wanted,
                                                           laci_calibrated **fitted,
                                                           lac_error *err);

/** for_speed.c: chooses, by magnitude, the layers that need not be pruned to reach a wanted speed.
 * If there are samples, dense.c makes that choice; this then only checks early whether the speed
 * can be reached. Fails as laci_speed_choose_for_target. */
LAC_MUST_CHECK lac_status laci_pruning_exclude_for_speed(laci_pruning *pruning,
                                                         const laci_prune_options *options,
                                                         lac_error *err);

/** share.c: checks that all processes work on the same network with the same options. Call it after
 * the layers are measured. Fails with LAC_BAD_ARGUMENT, whose text names a process that differs, or
 * with LAC_PEER. */
LAC_MUST_CHECK lac_status laci_pruning_compare_processes(const laci_pruning *pruning,
                                                         const laci_prune_options *options,
                                                         lac_error *err);

/** share.c: sends the findings of process 0's verification, except the names of values, to all
 * processes. */
LAC_MUST_CHECK lac_status laci_pruning_share_verification(laci_pruning *pruning, laci_comm *comm,
                                                          lac_error *err);

/** If layer l holds the pattern but has hardly any nonzeros, sets its reason to a text with their
 * number. Hardly any: less than one in 16 of the weights that the pattern allows. Fails with
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_pruning_set_reason_few_nonzeros(laci_pruning *p, int l,
                                                               lac_error *err);

/** weights.c: measures the new weights of layers that got no mask. So their zeros, patterns and
 * `is_pruned` are the same as when the file is read later. Call it after all new weights are made.
 * Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_pruning_measure_unmasked(laci_pruning *p, laci_pool *pool,
                                                        lac_error *err);

/** Are all elements of the layer's weight zero, as in a newly initialized classifier? Then
 * magnitudes cannot choose a mask. */
static inline bool laci_pruned_layer_is_zero(const laci_pruned_layer *layer) {
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements;
}

/** A weight g * v / |v| has a gain g. If v was masked, g must change so that the kept weights stay
 * the same. Multiplies gain[k] by |after| / |before|: the norms of v's new and old bytes at index k
 * of the axis. */
LAC_MUST_CHECK lac_status laci_rescale_gain(const laci_stored *v, int axis, const uint8_t *before,
                                            const uint8_t *after, double *gain, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The private part of a report: its memory, masks, orders, and the text of the permutation file. */
#ifndef LACI_API_PRUNE_REPORT_IN_H
#define LACI_API_PRUNE_REPORT_IN_H

#include "base/memory.h"
#include "lacuna/report.h"
#include "sparse/weight_view.h"

typedef struct lac_plan_answer lac_plan_answer;
typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_job laci_job;
typedef struct laci_pruning laci_pruning;
typedef struct laci_spill laci_spill;

/** The mask of a stored tensor: one bit per element, 1 = kept, lowest bit first. */
typedef struct laci_report_mask {
  const char *tensor;
  int64_t count;
  uint8_t *bits;
  bool spilled; /* the bits are in the report's temporary file, masks_spill */
} laci_report_mask;

typedef struct laci_report_order {
  const char *tensor;
  int axis;
  int64_t count;
  int32_t *order; /* [count] the old index that comes to each new one; in the report's arena */
} laci_report_order;

typedef struct laci_report {
  lac_report pub; /* must be first: a lac_report * is cast to laci_report * */
  laci_arena arena;
  lac_layer *layers;
  lac_group *groups;
  size_t n_masks, n_orders;
  laci_report_mask *masks;    /* [n_masks] the masks; the array has space for one of each stored
                                       tensor */
  laci_spill *masks_spill;    /* temporary file with the masks' bits; NULL: they are in memory
                                       */
  laci_report_order *orders;  /* [n_orders] the orders; the array has space for one of each axis of
                                       each stored tensor */
  lac_target_report *targets; /* [n_targets] how each target handles the layers; in the arena
                                       */
  lac_target_layer **target_layers; /* [n_targets][n_layers] how each target handles each layer; in
                                       the arena */
  lac_plan_answer *answer;          /* the engine's answer to lac_options.plan; NULL: no plan was
                                       asked for */
  char *permutation;                /* text of the permutation file; NULL: there is none */
} laci_report;

/** Frees the engine's answer about a plan that the report holds. (inspect.c) */
void laci_report_clear_plan(laci_report *report);

/** Creates a report from the analysis: names, groups, and layers without figures; nothing counts as
 * reordered. */
LAC_MUST_CHECK lac_status laci_report_create(const lac_model *model, const char *verb,
                                             const lac_options *options,
                                             const laci_analysis *analysis, laci_report **report,
                                             lac_error *err);

/** Stores why optional calibration was left out. An empty reason means that it was done. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_report_set_uncalibrated(laci_report *report, const char *reason,
                                                       lac_error *err);

/* The functions below add a pruning's results to the report. The pruning must be of the report's
 * analysis, unless the comment says otherwise. Each fails LAC_NO_MEMORY. */

/** Adds the layers' figures, and which groups are held in their order. */
LAC_MUST_CHECK lac_status laci_report_add_layer_figures(laci_report *report,
                                                        const laci_pruning *pruning,
                                                        lac_error *err);
/** Adds which layers are reordered, the orders of all stored tensors, and the permutation file's
 * text. The pruning may also be of the original of the report's network. */
LAC_MUST_CHECK lac_status laci_report_add_orders(laci_report *report, const laci_pruning *pruning,
                                                 lac_error *err);
/** Adds the results of the verification; the pruning may be of any network. */
LAC_MUST_CHECK lac_status laci_report_add_verification(laci_report *report,
                                                       const laci_pruning *pruning, lac_error *err);
/** Adds all of the above, the groups' orders, the search's results and the sums. Takes ownership of
 * the masks. */
LAC_MUST_CHECK lac_status laci_report_add_pruning(laci_report *report, laci_pruning *pruning,
                                                  lac_error *err);

/** Measures the layers' weights in the model and sums them up; layers whose weights are pruned
 * count as pruned. Fails LAC_BAD_VALUE, too. */
LAC_MUST_CHECK lac_status laci_report_measure_weights(laci_report *report, const laci_job *job,
                                                      const lac_options *options, lac_error *err);

/** Measures the computed weights of the job's network without storing them, adds the targets'
 * answers for them, and sums up. Weights that cannot be evaluated stay unmeasured; the log says
 * why. Call it last. Fails LAC_NO_MEMORY, LAC_IO. (report_computed.c) */
LAC_MUST_CHECK lac_status laci_report_measure_computed_weights(laci_report *report,
                                                               const laci_job *job,
                                                               const lac_options *options,
                                                               lac_error *err);

/** Does laci_report_measure_computed_weights after the network was changed: a failure is only a
 * warning, since the change cannot be undone. (report_computed.c) */
void laci_report_remeasure_computed_weights(laci_report *report, const laci_job *job,
                                            const lac_options *options);

/** Computes the summary's sums over the layers: pruned, permuted, kept_before, kept_after. */
void laci_report_compute_sums(laci_report *report);
/** Marks the report as unmeasured and logs this, for a model whose large weights stay in their
 * files. */
void laci_report_leave_unmeasured(laci_report *report, const char *path);

/** Adds how the options' targets handle the layers; call it after the layers' figures were added.
 * pruning NULL: for the job's network as it is; else with the pruning's new weights. Fails
 * LAC_NO_MEMORY. (target.c) */
LAC_MUST_CHECK lac_status laci_report_add_targets(laci_report *report, const laci_job *job,
                                                  const lac_options *options,
                                                  const laci_pruning *pruning, lac_error *err);

/** Adds how the targets handle a layer whose weight is computed; `view` is the computed weight.
 * (target.c) */
LAC_MUST_CHECK lac_status laci_report_add_computed_target(laci_report *report, const laci_job *job,
                                                          int layer, const laci_weight_view *view,
                                                          lac_error *err);

/** Adds to a report the predicted run times of its network, dense and pruned. Call it after the
 * layers' figures were added. pruning NULL: predicts the job's network as it is, and its dense form
 * with the zeros filled in. Adds nothing if the model's tensors are not in memory, or if no layer
 * is pruned. Fails LAC_NO_MEMORY, and as laci_engine_ask. (report_predicted.c) */
LAC_MUST_CHECK lac_status laci_report_add_prediction(laci_report *report, const laci_job *job,
                                                     const lac_options *options,
                                                     const laci_pruning *pruning, lac_error *err);

#endif

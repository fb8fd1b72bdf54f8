/* SPDX-License-Identifier: Apache-2.0
 * A report with what belongs to it: memory, masks, orders, the text of its permutation file. */
#ifndef LACI_API_PRUNE_REPORT_IN_H
#define LACI_API_PRUNE_REPORT_IN_H

#include "base/memory.h"
#include "lacuna/report.h"
#include "sparse/weight_view.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_job laci_job;
typedef struct laci_pruning laci_pruning;
typedef struct laci_spill laci_spill;

/** Of one stored tensor that was masked: one bit an element, 1 = kept, lowest bit first. */
typedef struct laci_report_mask {
  const char *tensor;
  int64_t count;
  uint8_t *bits;
  bool spilled; /* they are in the report's spill */
} laci_report_mask;

typedef struct laci_report_order {
  const char *tensor;
  int axis;
  int64_t count;
  int32_t *order; /* arena */
} laci_report_order;

typedef struct laci_report {
  lac_report pub; /* first: a lac_report * is a laci_report * */
  laci_arena arena;
  lac_layer *layers;
  lac_group *groups;
  size_t n_masks, n_orders;
  laci_report_mask *masks;          /* [n stored] */
  laci_spill *masks_spill;          /* where their bits are; NULL: in memory */
  laci_report_order *orders;        /* [n stored * LACI_MAX_RANK] */
  lac_target_report *targets;       /* [n_targets] of the arena */
  lac_target_layer **target_layers; /* [n_targets][n_layers], likewise */
  char *permutation;                /* text of the permutation file; NULL: none */
} laci_report;

/** A report of the analysis: layers without figures, groups, names; nothing moved. */
LAC_MUST_CHECK lac_status laci_report_create(const lac_model *model, const char *verb,
                                             const lac_options *options,
                                             const laci_analysis *analysis, laci_report **report,
                                             lac_error *err);

/* What a result says goes into the report; the result is of the report's analysis, where nothing
 * else is said. Each fails LAC_NO_MEMORY. */

/** The layers' figures, and what is held in its order. */
LAC_MUST_CHECK lac_status laci_report_add_layers(laci_report *report, const laci_pruning *pruning,
                                                 lac_error *err);
/** Which layers move, the orders of all stored tensors, the permutation file's text. The result may
 * be of the network that the report's came from. */
LAC_MUST_CHECK lac_status laci_report_add_orders(laci_report *report, const laci_pruning *pruning,
                                                 lac_error *err);
/** What the verification found; of any network. */
LAC_MUST_CHECK lac_status laci_report_add_verification(laci_report *report,
                                                       const laci_pruning *pruning, lac_error *err);
/** All of these, the groups' orders, the search and the sums; takes the masks. */
LAC_MUST_CHECK lac_status laci_report_fill(laci_report *report, laci_pruning *pruning,
                                           lac_error *err);

/** Measures the layers as they are in the model, of which those that are pruned weights count as
 * pruned, and sums them up. Fails LAC_BAD_VALUE, too. */
LAC_MUST_CHECK lac_status laci_report_look(laci_report *report, const laci_job *job,
                                           const lac_options *options, lac_error *err);

/** Measures the weights that are computed, as the job's network is now, without storing any, shows
 * them to the targets, and sums up. Those that cannot be evaluated stay unmeasured, and the log
 * says why. The last of all. Fails LAC_NO_MEMORY, LAC_IO. (report_computed.c) */
LAC_MUST_CHECK lac_status laci_report_look_at_computed(laci_report *report, const laci_job *job,
                                                       const lac_options *options, lac_error *err);

/** The same once the network has changed: that they cannot be looked at is a warning,
 * since nothing can be taken back. (report_computed.c) */
void laci_report_look_again(laci_report *report, const laci_job *job, const lac_options *options);

/** Sums over the layers: pruned, permuted, kept_before, kept_after. */
void laci_report_sum(laci_report *report);
/** Of a model whose large weights stay in their files: nothing is read of them, and the log says
 * so. */
void laci_report_leave_unmeasured(laci_report *report, const char *path);

/** What the targets of the options make of the layers, after these were added: of the job's
 * network, or with the new weights of a result. Fails LAC_NO_MEMORY. (target.c) */
LAC_MUST_CHECK lac_status laci_report_add_targets(laci_report *report, const laci_job *job,
                                                  const lac_options *options,
                                                  const laci_pruning *pruning, lac_error *err);

/** The same of a layer whose weight is computed, and of which `view` is the product. (target.c) */
LAC_MUST_CHECK lac_status laci_report_add_computed_target(laci_report *report, const laci_job *job,
                                                          int layer, const laci_weight_view *view,
                                                          lac_error *err);

#endif

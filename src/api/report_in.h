/* SPDX-License-Identifier: Apache-2.0
 * A report with what belongs to it: memory, masks, orders, the text of its permutation file. */
#ifndef LACI_API_REPORT_IN_H
#define LACI_API_REPORT_IN_H

#include "api/model_in.h"
#include "permute/plan.h"

/** Of one stored tensor that was masked: one bit an element, 1 = kept, lowest bit first. */
typedef struct laci_report_mask {
  const char *tensor;
  int64_t count;
  uint8_t *bits; /* arena */
} laci_report_mask;

typedef struct laci_report_order {
  const char *tensor;
  int axis;
  int64_t count;
  int32_t *order; /* arena */
} laci_report_order;

typedef struct laci_report {
  lac_report pub;   /* first: a lac_report * is a laci_report * */
  bool keep_pruned; /* the option */
  laci_arena arena;
  lac_layer *layers;
  lac_group *groups;
  size_t n_masks, n_orders;
  laci_report_mask *masks;   /* [n stored] */
  laci_report_order *orders; /* [n stored * LACI_MAX_RANK] */
  char *permutation;         /* text of the permutation file; NULL: none */
} laci_report;

/** A report of the analysis: layers without figures, groups, names; nothing moved. */
LAC_MUST_CHECK lac_status laci_report_create(const lac_model *model, const char *verb,
                                             const lac_options *options,
                                             const laci_analysis *analysis, laci_report **report,
                                             lac_error *err);

/** What the plan (of the report's analysis) does: which layers move, the groups' orders and scores.
 */
LAC_MUST_CHECK lac_status laci_report_add_plan(laci_report *report, const laci_analysis *analysis,
                                               const laci_plan *plan, lac_error *err);

/** Copies the orders of all stored tensors that the plan moves, and the permutation file's text. */
LAC_MUST_CHECK lac_status laci_report_keep_orders(laci_report *report,
                                                  const laci_analysis *analysis,
                                                  const laci_plan *plan, const lac_options *options,
                                                  lac_error *err);

/** Keeps a mask of `count` bytes. */
LAC_MUST_CHECK lac_status laci_report_keep_mask(laci_report *report, const char *tensor,
                                                const uint8_t *mask, int64_t count, lac_error *err);

/** Nothing but zeros, as heads begin: no magnitude tells which of them to keep. */
static inline bool laci_layer_is_zero(const lac_layer *layer) {
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements;
}

/** A layer that was measured is a pruned weight when the pattern says something about it and holds,
 * and something is left of it. */
static inline bool laci_layer_is_pruned(const lac_layer *layer, int pattern_n) {
  return layer->holds_pattern && layer->channels_in > pattern_n && !laci_layer_is_zero(layer);
}

/** With keep_pruned, after the layers are measured: what is pruned already keeps its mask, so that
 * the groups of its input channels are held in their order by the plan. */
LAC_MUST_CHECK lac_status laci_keep_pruned(laci_report *report, const laci_analysis *analysis,
                                           laci_plan *plan, lac_error *err);

/** Sums over the layers: pruned, permuted, kept_before, kept_after. */
void laci_report_sum(laci_report *report);

#endif

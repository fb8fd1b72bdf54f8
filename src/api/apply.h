/* SPDX-License-Identifier: Apache-2.0
 * Changing a model's stored tensors as one step: all new bytes are made first, then all are put in
 * place. */
#ifndef LACI_API_APPLY_H
#define LACI_API_APPLY_H

#include "api/report_in.h"

/** The layers as they are in the model: kept_identity (and kept, equal to it), total, zeros; fills
 * the report's layers. Fails LAC_BAD_VALUE for NaN or Inf in an eligible one. */
LAC_MUST_CHECK lac_status laci_measure_layers(laci_report *report, const laci_analysis *analysis,
                                              laci_pattern pattern, laci_pool *pool,
                                              lac_error *err);

/** kept of every eligible layer that the plan reorders; the others must be measured already. */
LAC_MUST_CHECK lac_status laci_measure_kept(laci_report *report, const laci_analysis *analysis,
                                            const laci_plan *plan, laci_pattern pattern,
                                            laci_pool *pool, lac_error *err);

/** Reorders every stored tensor as the plan says and, with prune, masks the eligible layers'
 * weights, but for those that are all zero; what keeps its mask has it measured. On failure the
 * model is as it was. report gets masks, zeros and holds_pattern; it may be NULL when prune is
 * false. */
LAC_MUST_CHECK lac_status laci_apply(laci_graph *graph, const laci_analysis *analysis,
                                     const laci_plan *plan, bool prune, laci_pattern pattern,
                                     laci_pool *pool, laci_report *report, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Predicted run times, by which src/prune chooses layers. Layers that the library's own engine
 * would not run faster are left out. */
#ifndef LACI_API_PRUNE_TIMING_IN_H
#define LACI_API_PRUNE_TIMING_IN_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_options lac_options;
typedef struct laci_job laci_job;
typedef struct laci_prune_timing laci_prune_timing; /* prune/speed.h */
typedef struct laci_timing laci_timing;

/** Sets zeros in the weight of layer l as pruning by magnitude would, in weights[stored]. Does
 * nothing if that copy was made already. */
LAC_MUST_CHECK lac_status laci_timing_mask_layer(const laci_job *job, const lac_options *options,
                                                 int l, uint8_t **weights, lac_error *err);

/** Opens the timing of a job, which must outlive it. *timing is NULL where no choice depends on
 * time, and on failure: LAC_BAD_ARGUMENT, LAC_UNSUPPORTED (the weights are not in memory). */
LAC_MUST_CHECK lac_status laci_timing_open(const laci_job *job, const lac_options *options,
                                           laci_timing **timing, lac_error *err);
void laci_timing_close(laci_timing *timing); /* NULL is fine */
/** Returns the interface through which src/prune asks for times; NULL for NULL. */
const laci_prune_timing *laci_timing_get_interface(const laci_timing *timing);

/** Makes eligible layers ineligible that a plan of the pruned network would run as dense, for the
 * target "lacuna-cpu". A model whose tensors are not in memory stays unchanged.
 * (target_plan_limit.c) */
LAC_MUST_CHECK lac_status laci_target_exclude_planned_dense(const laci_job *job,
                                                            const lac_options *options,
                                                            lac_error *err);

#endif

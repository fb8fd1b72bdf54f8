/* SPDX-License-Identifier: Apache-2.0
 * The plain engine: runs a graph node by node with the operators' own eval, in double and int64.
 *
 * It is the reference for results, not for speed: the verification and the interop tests compare
 * with it. Shapes come from real operands, so that a model with dynamic sizes runs as it would
 * anywhere. It runs stepwise, because verification looks at every value. row.c makes it one of the
 * list of engines, loop.c runs the bodies of If, Loop and Scan. */
#ifndef LACI_ENGINE_PLAIN_PLAIN_H
#define LACI_ENGINE_PLAIN_PLAIN_H

#include "engine/engine.h"

typedef struct laci_plain laci_plain;

/** A run of `graph` (borrowed, as is pool; pool NULL: one thread). load NULL: stored bytes as they
 * are. The graph must be finished; it need not be inferred. Not for several threads at once. */
LAC_MUST_CHECK lac_status laci_plain_create(const laci_graph *graph, laci_stepper_load *load,
                                            void *context, laci_pool *pool, laci_plain **run,
                                            lac_error *err);
void laci_plain_destroy(laci_plain *run);

/** No value may have more elements (default 2^31): a lying shape must not take all memory. */
void laci_plain_limit(laci_plain *run, int64_t max_elements);
/** Stored tensors up to that many elements are kept between nodes (default 65536), longer ones
 * loaded anew. */
void laci_plain_keep(laci_plain *run, int64_t max_elements);

/** As `iterations` of laci_stepper_options. */
void laci_plain_iterations(laci_plain *run, int max_iterations);

/** As that of laci_stepper_options. */
void laci_plain_single(laci_plain *run, bool single);

/** As that of laci_stepper_options. */
void laci_plain_unrounded(laci_plain *run, bool unrounded);

/** As that of laci_stepper_options; NULL (default): no limit. */
void laci_plain_budget(laci_plain *run, laci_budget *budget);

/** As laci_stepper_set. */
void laci_plain_set(laci_plain *run, int value, laci_buf *take);

/** As laci_stepper_step; LAC_BAD_SHAPE also for a value that is over the limit. */
LAC_MUST_CHECK lac_status laci_plain_step(laci_plain *run, int node, lac_error *err);

/** All nodes in order. */
LAC_MUST_CHECK lac_status laci_plain_run_all(laci_plain *run, lac_error *err);

/** As laci_stepper_plan: values as double and int64. */
LAC_MUST_CHECK lac_status laci_plain_plan(const laci_graph *graph, const laci_type *types,
                                          const bool *skipped, laci_budget *budget, lac_error *err);

/** As laci_stepper_value. */
const laci_buf *laci_plain_value(const laci_plain *run, int value);

#endif

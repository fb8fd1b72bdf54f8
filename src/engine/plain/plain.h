/* SPDX-License-Identifier: Apache-2.0
 * The plain engine: runs a graph node by node, each by its operator's own evaluation, in double and
 * int64.
 *
 * It is the reference for correct results and not fast; the verification and the interop tests
 * compare with it. Shapes come from the real operands, so that a model with open sizes can be run.
 * It runs step by step, because verification reads every value. row.c adds it to the list of
 * engines; loop.c runs the bodies of If, Loop and Scan. */
#ifndef LACI_ENGINE_PLAIN_PLAIN_H
#define LACI_ENGINE_PLAIN_PLAIN_H

#include "engine/stepper.h"

typedef struct laci_plain laci_plain;

/** Creates a run of `graph`. graph and pool are borrowed; pool NULL: one thread. load NULL: stored
 * bytes are used as they are in memory. The graph must be finished; it need not be inferred. A run
 * is for one thread at a time. */
LAC_MUST_CHECK lac_status laci_plain_create(const laci_graph *graph, laci_stepper_load *load,
                                            void *context, laci_pool *pool, laci_plain **run,
                                            lac_error *err);
void laci_plain_destroy(laci_plain *run);

/** Sets the maximum number of elements of a value (default 2^31), so that a false shape in a file
 * cannot use up memory. */
void laci_plain_set_max_elements(laci_plain *run, int64_t max_elements);
/** Sets the maximum number of elements of a stored tensor that is kept between nodes (default
 * 65536); a larger one is loaded again for each node. */
void laci_plain_set_max_kept_elements(laci_plain *run, int64_t max_elements);

/** Limits the iterations of loops, as laci_stepper_options.iterations says. */
void laci_plain_set_max_iterations(laci_plain *run, int max_iterations);

/** Rounds results to f32, as laci_stepper_options.single says. */
void laci_plain_set_single_precision(laci_plain *run, bool single);

/** Leaves results of narrow types unrounded, as laci_stepper_options.unrounded says. */
void laci_plain_set_unrounded(laci_plain *run, bool unrounded);

/** Sets laci_stepper_options.budget; NULL (default): no limit. */
void laci_plain_set_budget(laci_plain *run, laci_budget *budget);

/** Sets a value, as laci_stepper_set_value does. */
void laci_plain_set_value(laci_plain *run, int value, laci_buf *take);

/** Computes a node, as laci_stepper_step; also fails LAC_BAD_SHAPE for a value of more elements
 * than the limit. */
LAC_MUST_CHECK lac_status laci_plain_step(laci_plain *run, int node, lac_error *err);

/** Counts a node as stepped, as laci_stepper_skip. */
void laci_plain_skip(laci_plain *run, int node);

/** Runs all nodes of the graph one after the other. */
LAC_MUST_CHECK lac_status laci_plain_run_all(laci_plain *run, lac_error *err);

/** Adds the memory of a walk to the budget, as laci_stepper_plan_memory does, for this engine,
 * which holds values as double and int64. */
LAC_MUST_CHECK lac_status laci_plain_plan_memory(const laci_graph *graph, const laci_type *types,
                                                 const bool *skipped, laci_budget *budget,
                                                 lac_error *err);

/** Returns the content of a value, as laci_stepper_value does. */
const laci_buf *laci_plain_value(const laci_plain *run, int value);

#endif

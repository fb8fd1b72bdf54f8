/* SPDX-License-Identifier: Apache-2.0
 * The plain engine: runs a graph node by node with the operators' own eval, in double and int64.
 *
 * It is the definition of right, not of fast: the proof and the interop tests stand on it. Shapes
 * come from real operands, so that a model with dynamic sizes runs as it would anywhere. Stepwise,
 * because the proof looks at every value. */
#ifndef LACI_BACKEND_PLAIN_PLAIN_H
#define LACI_BACKEND_PLAIN_PLAIN_H

#include "base/budget.h"
#include "cpu/pool.h"
#include "graph/graph.h"

typedef struct laci_plain laci_plain;

/** Gives the content of stored tensor `stored` (an index of graph->stored), to be owned by the
 * engine. */
typedef lac_status laci_plain_load(void *context, int stored, laci_buf **buf, lac_error *err);

/** A run of `graph` (borrowed, as is pool; pool NULL: one thread). load NULL: stored bytes as they
 * are. The graph must be finished; it need not be inferred. Not for several threads at once. */
LAC_MUST_CHECK lac_status laci_plain_create(const laci_graph *graph, laci_plain_load *load,
                                            void *context, laci_pool *pool, laci_plain **run,
                                            lac_error *err);
void laci_plain_destroy(laci_plain *run);

/** No value may have more elements (default 2^31): a lying shape must not take all memory. */
void laci_plain_limit(laci_plain *run, int64_t max_elements);
/** Stored tensors up to that many elements are kept between nodes (default 65536), longer ones
 * loaded anew. */
void laci_plain_keep(laci_plain *run, int64_t max_elements);

/** What the run holds is added to the budget, which may be that of several runs, and given back;
 * what is above it is not allocated: LAC_MEMORY_LIMIT. NULL (default): no limit. */
void laci_plain_budget(laci_plain *run, laci_budget *budget);

/** Sets a value: a graph input, a stored tensor to be replaced, or an output of a node that could
 * not be stepped. Takes buf; an older content is freed. */
void laci_plain_set(laci_plain *run, int value, laci_buf *take);

/** Computes the outputs of a node, whose producers were stepped before. Its inputs, and outputs
 * that nobody reads, live until the next step; other values until the step after their last
 * reader's; graph outputs until the end. Fails LAC_UNSUPPORTED where the operator cannot be run or
 * an input was not computed (the caller may then set the outputs), LAC_BAD_SHAPE where operands do
 * not fit or a value is over the limit; the text names the node. */
LAC_MUST_CHECK lac_status laci_plain_step(laci_plain *run, int node, lac_error *err);

/** All nodes in order. */
LAC_MUST_CHECK lac_status laci_plain_run_all(laci_plain *run, lac_error *err);

/** What a run over all nodes would hold at most, beside what the budget has already, which gets it:
 * values of these types, [n_values] (unknown shapes count as nothing), as double and int64.
 * skipped: stored tensors that are not loaded, [n_stored], or NULL. */
LAC_MUST_CHECK lac_status laci_plain_plan(const laci_graph *graph, const laci_type *types,
                                          const bool *skipped, laci_budget *budget, lac_error *err);

/** Content of a value, or NULL: not computed, or freed already. A view. */
const laci_buf *laci_plain_value(const laci_plain *run, int value);

#endif

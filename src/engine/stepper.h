/* SPDX-License-Identifier: Apache-2.0
 * Running a network node by node, in double and int64.
 *
 *   laci_stepper_options o = {.load = load, .load_context = model};
 *   st = laci_stepper_create(graph, &o, &stepper, err);
 *   for (int node = 0; !st && node < graph->n_nodes; node++)
 *     st = laci_stepper_step(stepper, node, err);
 *
 * Between two steps the caller may read and replace values. An engine that offers this is in the
 * same list as the others (engine.h). */
#ifndef LACI_ENGINE_STEPPER_H
#define LACI_ENGINE_STEPPER_H

#include "tensor/shape.h"

typedef struct laci_buf laci_buf;
typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;

/** A walk over a graph in double and int64, during which the caller reads and sets values. Shapes
 * come from the real operands, so that a model with open sizes can be run. */
typedef struct laci_stepper laci_stepper;

/** Loads the content of stored tensor `stored` (an index of graph->stored); the stepper owns
 * *buf. */
typedef lac_status laci_stepper_load(void *context, int stored, laci_buf **buf, lac_error *err);

typedef struct laci_stepper_options {
  const char *engine;      /* name of an engine that can step; NULL: LACI_ENGINE_EXACT */
  laci_stepper_load *load; /* loads stored tensors; NULL: stored bytes are in memory and
                              unchanged */
  void *load_context;      /* first argument of `load` */
  laci_pool *pool;         /* threads that compute, borrowed; NULL: one thread */
  int iterations; /* 0: bodies of If, Loop and Scan run normally. Else all bodies are run as far as
                     they can be, and this is the maximum number of iterations of a loop. In outputs
                     with a slice for each iteration, the last slice is then repeated for the
                     iterations that did not run */
  bool single;    /* results are rounded to f32, except those of type f64, as in engines that
                     compute in f32. Results that depend on no content of an input are rounded in
                     any case */
  bool unrounded; /* results of f16, bf16 and narrower types are not rounded to their type: for
                     verification, which compares sums in another order */
  laci_budget *budget; /* counts the memory that is held; several walks may share it. Allocations
                          beyond its limit fail LAC_MEMORY_LIMIT. NULL: no limit. Must live as long
                          as the stepper */
} laci_stepper_options;

/** Can the engine of this name run a network node by node? */
bool laci_engine_has_stepper(const char *engine);

/** Begins a walk over `graph`, which is borrowed and finished, and need not be inferred. Fails
 * LAC_NOT_FOUND (no such engine), LAC_UNSUPPORTED (the engine cannot step), LAC_NO_MEMORY, and as
 * `load` does. A stepper is for one thread at a time. */
LAC_MUST_CHECK lac_status laci_stepper_create(const laci_graph *graph,
                                              const laci_stepper_options *options,
                                              laci_stepper **stepper, lac_error *err);
void laci_stepper_destroy(laci_stepper *stepper); /* NULL is fine */

/** Sets a value: a graph input, a stored tensor to be replaced, or an output of a node that could
 * not be stepped. Takes ownership of `take` and frees the old content. */
void laci_stepper_set_value(laci_stepper *stepper, int value, laci_buf *take);

/** Computes the outputs of a node, whose producers were stepped before. Its inputs, and outputs
 * without readers, live until the next step; other values until the step after their last
 * reader's; graph outputs until the end. Fails LAC_UNSUPPORTED where the operator cannot be run or
 * an input was not computed (the caller may then set the outputs), LAC_BAD_SHAPE where operands do
 * not fit; the text names the node. */
LAC_MUST_CHECK lac_status laci_stepper_step(laci_stepper *stepper, int node, lac_error *err);

/** Counts a node as stepped without computing it, so that values it reads can be freed. The caller
 * may set its outputs. */
void laci_stepper_skip(laci_stepper *stepper, int node);

/** Returns the content of a value as a view; NULL: it was not computed, or was freed. */
const laci_buf *laci_stepper_value(const laci_stepper *stepper, int value);

/** Adds to `budget` the maximum memory that a walk over all nodes would hold at a time. types:
 * [n_values] types of the values (unknown shapes count as nothing). skipped: [n_stored] stored
 * tensors that are not loaded, or NULL. engine: as in laci_stepper_options. */
LAC_MUST_CHECK lac_status laci_stepper_plan_memory(const char *engine, const laci_graph *graph,
                                                   const laci_type *types, const bool *skipped,
                                                   laci_budget *budget, lac_error *err);

#endif

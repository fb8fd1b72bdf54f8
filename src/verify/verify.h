/* SPDX-License-Identifier: Apache-2.0
 * Verifies a reordering: compares the network before and after it, value by value, on random inputs
 * and in double.
 *
 * Both networks run in step on the plain engine. After each node, its outputs in the original
 * network, when reordered, must equal its outputs in the reordered network. There are two rounds:
 * with the real parameters, and with random ones, since zero gammas and saturated softmaxes hide
 * errors.
 *
 * In large networks, the fast engine computes the products (Conv, Gemm, MatMul). The first round is
 * then the whole network in float32, compared as closely as float32 allows. The second is exact:
 * the operands of products are small integers, whose sums do not depend on the order. Each node
 * reads what it should have read, so that errors do not add up over the layers. A difference that
 * this finds only counts if the plain engine alone finds it, too. */
#ifndef LACI_VERIFY_VERIFY_H
#define LACI_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_budget laci_budget;
typedef struct laci_buf laci_buf;
typedef struct laci_graph laci_graph;
typedef struct laci_orders laci_orders;
typedef struct laci_pool laci_pool;
typedef struct laci_shape laci_shape;

typedef enum laci_verify_engine {
  LACI_VERIFY_AUTO,  /* the plain engine if it is fast enough, else the fast engine */
  LACI_VERIFY_PLAIN, /* the plain engine computes everything, in double */
  LACI_VERIFY_CPU,   /* for tests: the fast engine computes all products, and a difference is not
                        checked again on the plain engine */
} laci_verify_engine;

/** laci_verify_engine_by_name: returns how to verify if the caller names this engine:
 * LACI_VERIFY_PLAIN for the exact one, LACI_VERIFY_AUTO for the others. name NULL: the default
 * engine. laci_verify_can_use_engine: returns false for an engine from a plug-in, since a
 * verification must not rest on code from outside. */
laci_verify_engine laci_verify_engine_by_name(const char *name);
bool laci_verify_can_use_engine(const char *name);

typedef struct laci_verify_options {
  uint64_t seed;
  double tolerance; /* largest difference that is accepted, relative to the largest |element| of the
                       value; default 1e-9 */
  laci_verify_engine engine;
  const laci_budget *budget; /* the memory limit, and the memory that is in use already; NULL: no
                                limit */
} laci_verify_options;

/** How much of the network was computed and compared in both orders. Before this, channel by
 * channel, the orders were checked to be valid (analyze/classes_in.h). */
typedef enum laci_verify_state {
  LACI_VERIFY_NONE,    /* the verification was not run, or nothing is reordered */
  LACI_VERIFY_ALL,     /* every output was compared and has a finite element that is not 0 */
  LACI_VERIFY_PART,    /* some values were compared, but perhaps not all outputs */
  LACI_VERIFY_NOTHING, /* no finite element was compared; laci_verification.reason says why */
} laci_verify_state;

typedef struct laci_verification {
  laci_verify_state state;
  double max_abs_error;      /* largest |difference| between elements of the network's outputs, in
                                the round with the real parameters */
  double max_abs_output;     /* largest |element| of the network's outputs, in the round with the
                                real parameters */
  double worst_ratio;        /* largest |difference| of a value, divided by that value's largest
                                |element|; the maximum over all values in both rounds. If the fast
                                engine computes products, only the round with integers counts, which
                                is exact */
  const char *worst_value;   /* name of the value that has worst_ratio */
  int n_compared;            /* number of values that were compared, in both rounds together */
  int n_skipped;             /* number of values that could not be computed, or have no finite
                                element */
  const char *first_skipped; /* name of the first node that could not run, or had no finite output;
                                NULL: there is none. Values before it were compared */
  char reason[512];          /* why the node first_skipped was skipped, one sentence; empty: no node
                                was skipped */
  int n_outputs;             /* number of outputs of the network, without those that no node
                                computes */
  int n_outputs_compared;    /* number of these outputs that the first round compared, that have a
                                finite element, and that do not depend on random substitutes */
  const char *engine;        /* name of the engine that computed products, as
                                laci_verify_engine_name returns it */
} laci_verification;

/** Returns the name of the engine that computes products: fast or exact. */
const char *laci_verify_engine_name(bool fast);

/** Adds the maximum number of bytes that the verification will hold, for any orders, to the budget.
 * Fails with LAC_MEMORY_LIMIT if this exceeds the limit. Memory that cannot be known beforehand is
 * checked by laci_verify. */
LAC_MUST_CHECK lac_status laci_verify_plan_memory(const laci_graph *graph,
                                                  const laci_verify_options *options,
                                                  laci_budget *budget, lac_error *err);

/** Verifies the orders of a graph. Sizes that are not known get small plausible numbers, the same
 * for the same symbol. Integer inputs get values below the size of the axis that they index. A
 * network that does not run, or whose outputs are empty, not finite or 0, is tried with other sizes
 * and numbers, a limited number of times. A node that never runs is skipped. found->state says how
 * much was compared.
 *
 * Fails with LAC_PROOF_FAILED if a value differs. The text names the first such value, its node and
 * the difference; *found is then filled up to that value. Peak memory: the live values of two
 * runs. */
LAC_MUST_CHECK lac_status laci_verify(const laci_graph *graph, const laci_orders *orders,
                                      const laci_verify_options *options, laci_pool *pool,
                                      laci_verification *found, lac_error *err);

/** Sets the shapes of the inputs, [n_inputs], that the verification tries first. Fails with
 * LAC_UNSUPPORTED if the network accepts none of the tried shapes. */
LAC_MUST_CHECK lac_status laci_verify_find_input_shapes(const laci_graph *graph, laci_shape *shapes,
                                                        lac_error *err);
/** Draws random content for an input, in the range that its readers accept. The caller frees
 * *buf. */
LAC_MUST_CHECK lac_status laci_verify_draw_input(const laci_graph *graph, int value,
                                                 const laci_shape *shape, uint64_t seed,
                                                 laci_buf **buf, lac_error *err);

#endif

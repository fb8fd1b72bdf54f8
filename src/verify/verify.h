/* SPDX-License-Identifier: Apache-2.0
 * The verification: the network before and after a reordering, value by value, on random inputs and
 * in double.
 *
 * Both networks run in step on the plain engine; after each node every output of the one,
 * reordered, must be the output of the other. Two rounds: the real parameters, and parameters drawn
 * anew (zero gammas and saturated softmaxes hide errors).
 *
 * Large networks have their products (Conv, Gemm, MatMul) computed by the fast engine. The first
 * round is then the whole network in float32, compared as closely as float32 allows. The second is
 * exact: the operands of products are small integers, which sum alike in any order, and each
 * node begins with what it should have read, so that nothing adds up over the layers. What this
 * finds wrong is not believed before the plain engine alone has found it, too. */
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
  LACI_VERIFY_AUTO,  /* plain where that is quick */
  LACI_VERIFY_PLAIN, /* double throughout */
  LACI_VERIFY_CPU,   /* all products on the fast engine, its findings believed: for tests */
} laci_verify_engine;

typedef struct laci_verify_options {
  uint64_t seed;
  double tolerance; /* of the scale of each value, its largest |element|; default 1e-9 */
  laci_verify_engine engine;
  const laci_budget *budget; /* the limit, and what others hold; NULL: no limit */
} laci_verify_options;

/** What came of it. The order itself is certain before: it was checked channel by channel
 * (analyze/classes_in.h); this says how much of the network has been computed in both orders. */
typedef enum laci_verify_state {
  LACI_VERIFY_NONE,    /* not run, or nothing moves */
  LACI_VERIFY_ALL,     /* every output was compared, each by a finite element that is not 0 */
  LACI_VERIFY_PART,    /* values were, and not every output, maybe none */
  LACI_VERIFY_NOTHING, /* no finite element was compared: reason says why */
} laci_verify_state;

typedef struct laci_verification {
  laci_verify_state state;
  double max_abs_error;      /* largest |difference| of the network's outputs, real parameters */
  double max_abs_output;     /* largest |output| there */
  double worst_ratio;        /* largest |difference| / scale, all values and both rounds; only the
                                exact one with the fast engine */
  const char *worst_value;   /* the graph's name of that value */
  int n_compared;            /* values compared, both rounds */
  int n_skipped;             /* values that could not be computed, or have no finite element */
  const char *first_skipped; /* the graph's name of the first node that could not, or gave nothing
                                finite; NULL: none. Up to it values were compared */
  char reason[512];          /* why it could not, one sentence; empty: none was skipped */
  int n_outputs;             /* of the network, without those that nothing computes */
  int n_outputs_compared;    /* of these, in the first round, by a finite element and computed from
                                what the network was given, nothing made up */
  const char *engine;        /* laci_verify_engine_name: that which computed products */
} laci_verification;

/** The name of the engine that computes products, in f32 where `fast`, else in f64. */
const char *laci_verify_engine_name(bool fast);

/** Adds to the budget what the verification will hold at most, whatever the orders. Fails
 * LAC_MEMORY_LIMIT where that is above it. What is not known beforehand is held to the budget by
 * laci_verify. */
LAC_MUST_CHECK lac_status laci_verify_plan_memory(const laci_graph *graph,
                                                  const laci_verify_options *options,
                                                  laci_budget *budget, lac_error *err);

/** Verifies orders over graph. Dynamic sizes get small sensible values (consistent per symbol),
 * integer inputs values below the size of what they index. What does not run, or gives outputs that
 * are empty, not finite or 0, is tried with other sizes and numbers, a bounded number of times; a
 * node that never runs is stepped over. found->state says how far that led. Fails LAC_PROOF_FAILED
 * naming the first value that differs, by how much and its node; found is filled as far as it came.
 * Peak memory: the live values of two runs. */
LAC_MUST_CHECK lac_status laci_verify(const laci_graph *graph, const laci_orders *orders,
                                      const laci_verify_options *options, laci_pool *pool,
                                      laci_verification *found, lac_error *err);

/** What the verification shows the network first: a shape for each input, [n_inputs]. Fails
 * LAC_UNSUPPORTED where the network accepts none that was tried. */
LAC_MUST_CHECK lac_status laci_verify_shapes(const laci_graph *graph, laci_shape *shapes,
                                             lac_error *err);
/** ... and its content: usual numbers in the domain of what reads them. *buf: the caller's. */
LAC_MUST_CHECK lac_status laci_verify_input(const laci_graph *graph, int value,
                                            const laci_shape *shape, uint64_t seed, laci_buf **buf,
                                            lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The proof: the network before and after a reordering, value by value, on random inputs and in
 * double.
 *
 * Both networks run in step on the plain engine; after each node every output of the one,
 * reordered, must be the output of the other. Two rounds: the real parameters, and parameters drawn
 * anew (zero gammas and saturated softmaxes hide errors). */
#ifndef LACI_PROVE_PROVE_H
#define LACI_PROVE_PROVE_H

#include "cpu/pool.h"
#include "permute/orders.h"

typedef struct laci_proof_options {
  uint64_t seed;
  double tolerance; /* of the scale of each value, its largest |element|; default 1e-9 */
} laci_proof_options;

typedef struct laci_proof {
  double max_abs_error;      /* largest |difference| of the network's outputs, real parameters */
  double max_abs_output;     /* largest |output| there */
  double worst_ratio;        /* largest |difference| / scale, all values and both rounds */
  const char *worst_value;   /* the graph's name of that value */
  int n_compared;            /* values compared, both rounds */
  int n_skipped;             /* values that could not be computed, both rounds */
  const char *first_skipped; /* the graph's name of the first node that could not; NULL: none */
} laci_proof;

/** Proves orders over graph. Dynamic sizes get small sensible values (consistent per symbol),
 * integer inputs values below the size of what they index. Fails LAC_PROOF_FAILED naming the first
 * value that differs, by how much and its node; proof is filled as far as it came. Peak memory: the
 * live values of two runs. */
LAC_MUST_CHECK lac_status laci_prove(const laci_graph *graph, const laci_orders *orders,
                                     const laci_proof_options *options, laci_pool *pool,
                                     laci_proof *proof, lac_error *err);

#endif

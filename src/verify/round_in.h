/* SPDX-License-Identifier: Apache-2.0
 * One round of the verification: both runs with given sizes and one kind of draw (verify.c), and
 * the tries that search for sizes and draws with meaningful outputs (verify_tries.c). Private to
 * verify. */
#ifndef LACI_VERIFY_ROUND_IN_H
#define LACI_VERIFY_ROUND_IN_H

#include "base/budget.h"
#include "verify/verify_in.h"

typedef struct laci_stepper laci_stepper;

enum { LACI_N_ROUNDS = 2 };

/* Where the stored tensors of one of the two runs come from. */
typedef struct laci_round_source {
  laci_parameters *parameters;
  const laci_graph *graph;
  const laci_orders *orders;     /* orders of the channels of this run; NULL: not reordered */
  const laci_products *products; /* the products that the fast engine computes in this run; NULL:
                                    the fast engine is not used */
  bool anew; /* true: stored tensors are drawn at random; false: they have their own content */
} laci_round_source;

/* How much the comparison of an output shows, in ascending order. */
typedef enum laci_seen {
  LACI_SEEN_NOTHING,    /* not compared, or computed from random substitutes for values that no node
                           could compute */
  LACI_SEEN_BLANK,      /* empty, or without a finite element */
  LACI_SEEN_ZERO,       /* all 0, as wrong outputs often are */
  LACI_SEEN_WHOLE_ZERO, /* all 0, but integers or booleans, which are often rightly 0 */
  LACI_SEEN_NUMBERS
} laci_seen;

typedef struct laci_round {
  const laci_graph *graph;
  const laci_orders *orders;
  laci_pool *pool;
  laci_verification *found;
  const int64_t *size_of_symbol;
  uint64_t seed;
  laci_verify_engine engine;
  double wanted_tolerance;    /* the tolerance for runs in double */
  double tolerance, rounding; /* largest difference that this round accepts, relative to the largest
                                 |element| of the value; and, for rounding errors, relative to that
                                 of the node's operands */
  int number;                 /* 0: the round with the network's parameters; 1: the round with
                                 random ones */
  laci_draw_kind draw;        /* how inputs, and substitutes for values that no node can compute,
                                 are drawn */
  bool tolerant;              /* a node that fails in both runs is skipped */
  bool fast;                  /* the fast engine computes products */
  laci_round_source from_a, from_b; /* where the stored tensors of the original run, and of the
                                       reordered run, come from */
  laci_stepper *a, *b; /* the run of the original network, and that of the reordered one */
  laci_budget budget;  /* the memory limit, the memory in use, and the memory of both runs */
  double *scale;       /* [n_values] largest |element| of each compared value */
  bool *substituted;   /* [n_values] the value is a random substitute, or computed from one */
  uint8_t *matters;    /* [n_values] the value's content can affect the outputs (graph/content.h);
                          other values are not compared */
  uint8_t *seen;       /* [n_values] laci_seen of each output, in this run */
  int n_finite;        /* number of values that were compared and have a finite element */
  int at;              /* index of the node that runs, or that failed */
  int first_blank;     /* index of the first compared value without a finite element; -1: none */
} laci_round;

/** Runs both networks in step and compares their values. Fails LAC_PROOF_FAILED, and as nodes fail
 * on the drawn inputs. */
LAC_MUST_CHECK lac_status laci_round_run_and_compare(laci_round *round, lac_error *err);

/** Runs both rounds, each with the first try whose outputs are meaningful; it tries sizes, then
 * kinds of draws. Fills round->found, including its state. sizes: [n_symbols + 1], scratch memory
 * of the caller. */
LAC_MUST_CHECK lac_status laci_rounds_run_with_tries(laci_round *round, int64_t *sizes,
                                                     lac_error *err);

#endif

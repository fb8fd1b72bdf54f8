/* SPDX-License-Identifier: Apache-2.0
 * One round of the verification runs both networks with given sizes and one kind of random numbers
 * (verify.c). Tries search for sizes and numbers that give meaningful outputs (verify_tries.c).
 * Private to src/verify. */
#ifndef LACI_VERIFY_ROUND_IN_H
#define LACI_VERIFY_ROUND_IN_H

#include "base/budget.h"
#include "verify/verify_in.h"

typedef struct laci_stepper laci_stepper;

enum { LACI_N_ROUNDS = 2 };

/* Where one of the two runs gets its stored tensors from. */
typedef struct laci_round_source {
  laci_parameters *parameters;
  const laci_graph *graph;
  const laci_orders *orders;     /* orders of the channels in this run; NULL: nothing is
                                    reordered */
  const laci_products *products; /* products that the fast engine computes in this run; NULL: the
                                    fast engine computes nothing */
  bool anew; /* true: stored tensors get random content; false: they have their own */
} laci_round_source;

/* How much the comparison of an output shows, in ascending order. */
typedef enum laci_output_evidence {
  LACI_EVIDENCE_NONE,  /* the output was not compared, or was computed from random substitutes for
                          values that no node could compute */
  LACI_EVIDENCE_BLANK, /* the output is empty, or has no finite element */
  LACI_EVIDENCE_ZERO,  /* the output is all 0, as wrong outputs often are */
  LACI_EVIDENCE_INTEGER_ZERO, /* the output is all 0, but of integers or booleans, which are often
                                 rightly 0 */
  LACI_EVIDENCE_NUMBERS
} laci_output_evidence;

typedef struct laci_round {
  const laci_graph *graph;
  const laci_orders *orders;
  laci_pool *pool;
  laci_verification *found;
  const int64_t *size_of_symbol;
  uint64_t seed;
  laci_verify_engine engine;
  double wanted_tolerance;    /* tolerance for runs in double */
  double tolerance, rounding; /* largest difference that this round accepts. tolerance: relative to
                                 the largest |element| of the value. rounding: for rounding errors,
                                 relative to the largest |element| of the node's operands */
  int number;                 /* 0: the round with the network's parameters; 1: the round with
                                 random ones */
  laci_draw_kind draw;        /* how random inputs, and substitutes for values that no node can
                                 compute, are drawn */
  bool tolerant;              /* true: a node that fails in both runs is skipped */
  bool fast;                  /* true: the fast engine computes products */
  laci_round_source from_a, from_b; /* where the stored tensors of the original run, and of the
                                       reordered run, come from */
  laci_stepper *a, *b; /* the run of the original network (a), and that of the reordered one (b) */
  laci_budget budget;  /* memory limit, memory in use, and the memory of both runs */
  double *scale;       /* [n_values] largest |element| of each compared value */
  bool *substituted;   /* [n_values] true: the value is a random substitute, or was computed from
                          one */
  uint8_t *matters;    /* [n_values] 1: the value's content can affect the outputs
                          (graph/content.h); other values are not compared */
  uint8_t *seen;   /* [n_values] how much each output shows in this run: a laci_output_evidence */
  int n_finite;    /* number of values that were compared and have a finite element */
  int at;          /* index of the node that runs now, or that failed */
  int first_blank; /* index of the first compared value without a finite element; -1: none */
} laci_round;

/** Runs both networks in step and compares their values. Fails with LAC_PROOF_FAILED, and as nodes
 * fail on the random inputs. */
LAC_MUST_CHECK lac_status laci_round_run_and_compare(laci_round *round, lac_error *err);

/** Runs both rounds. Each takes the first try whose outputs are meaningful; it tries sizes, then
 * kinds of random numbers. Fills round->found, including its state. sizes: [n_symbols + 1], scratch
 * memory of the caller. */
LAC_MUST_CHECK lac_status laci_rounds_run_with_tries(laci_round *round, int64_t *sizes,
                                                     lac_error *err);

#endif

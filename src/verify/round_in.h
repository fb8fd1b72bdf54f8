/* SPDX-License-Identifier: Apache-2.0
 * One round of the verification: both runs with given sizes and one kind of draw (verify.c), and
 * the tries that lead to one that says something (verify_tries.c). Private to verify. */
#ifndef LACI_VERIFY_ROUND_IN_H
#define LACI_VERIFY_ROUND_IN_H

#include "base/budget.h"
#include "verify/verify_in.h"

typedef struct laci_stepper laci_stepper;

enum { LACI_N_ROUNDS = 2 };

/* Where the stored tensors of one run come from. */
typedef struct laci_round_source {
  laci_parameters *parameters;
  const laci_graph *graph;
  const laci_orders *orders;     /* NULL: as they are */
  const laci_products *products; /* NULL: none on the fast engine */
  bool anew;
} laci_round_source;

/* What a comparison of an output says, from little to much. */
typedef enum laci_seen {
  LACI_SEEN_NOTHING,    /* not compared, or made up */
  LACI_SEEN_BLANK,      /* empty, or without a finite element */
  LACI_SEEN_ZERO,       /* 0 throughout: so is much that is wrong */
  LACI_SEEN_WHOLE_ZERO, /* integers or booleans that are 0, as many are by their nature */
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
  double wanted_tolerance;    /* in double */
  double tolerance, rounding; /* of this round */
  int number;                 /* 0: real parameters, 1: drawn anew */
  laci_draw_kind draw;        /* of inputs, and of what is made up */
  bool tolerant;              /* a node that fails in both runs is stepped over */
  bool fast;                  /* the fast engine computes products */
  laci_round_source from_a, from_b;
  laci_stepper *a, *b;
  laci_budget budget; /* what others hold, and both runs */
  double *scale;      /* [n_values] largest |element|, of what was compared */
  bool *made_up;      /* [n_values] what no node computed, and all that comes of it */
  uint8_t *matters;   /* [n_values] graph/content.h: what does not is not compared */
  uint8_t *seen;      /* [n_values] laci_seen of outputs, of this run */
  int n_finite;       /* values compared by a finite element */
  int at;             /* node that runs, or failed */
  int first_blank;    /* value that was compared by no finite element; -1: none */
} laci_round;

/** Both runs in step. Fails LAC_PROOF_FAILED, and as a node fails on what was drawn. */
LAC_MUST_CHECK lac_status laci_round_run(laci_round *round, lac_error *err);

/** Both rounds, each with the first try that says something: sizes, then kinds of draws. *found is
 * filled, its state as well. sizes: [n_symbols + 1], the caller's, for any use. */
LAC_MUST_CHECK lac_status laci_rounds_run(laci_round *round, int64_t *sizes, lac_error *err);

#endif

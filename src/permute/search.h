/* SPDX-License-Identifier: Apache-2.0
 * The permutation search: the order of one class' channels that keeps the most of the weights'
 * scores under N:M: of their squares, or of their magnitudes.
 *
 * A problem is a class of n channels and its *slices*: a slice is one weight whose C axis holds the
 * class (one convolution group of it, one copy label). Slices that cut the places into the same
 * blocks simply stack their rows. */
#ifndef LACI_PERMUTE_SEARCH_H
#define LACI_PERMUTE_SEARCH_H

#include <stdbool.h>

#include "sparse/weight_view.h"

/** Weights of more elements are sampled; stacked ones are sampled together. */
enum { LACI_MOST_ELEMENTS = 1 << 26 };

typedef struct laci_pool laci_pool;

typedef struct laci_slice {
  laci_weight_view weight;
  int64_t outer_begin, outer_end; /* rows of this slice: o in [outer_begin, outer_end), all i */
  const int32_t *column; /* [n_channels]: place j of the class is this column of the weight */
  const int32_t *held;   /* [columns] or NULL (identity): the old column that is now at a column
                            outside the class; blocks that mix classes do not move it */
} laci_slice;

typedef struct laci_problem {
  const char *name; /* for the log */
  int n_channels;
  laci_pattern pattern;
  int n_slices;
  const laci_slice *slices;
} laci_problem;

typedef enum laci_effort { LACI_EFFORT_FAST, LACI_EFFORT_NORMAL, LACI_EFFORT_BEST } laci_effort;

typedef struct laci_comm laci_comm;

typedef struct laci_search_options {
  laci_effort effort;
  uint64_t seed;
  const char *strategy; /* NULL: chosen by the problem */
  int64_t iterations;   /* of annealing, a problem; 0: by effort and number of channels */
  double seconds; /* of wall time for all problems of a call together, which then decides instead of
                     iterations; 0: none. The result then depends on the machine. */
  /* Of laci_plan_search: */
  laci_comm *comm;               /* processes that share its groups; NULL: alone */
  const laci_weight_view *views; /* [n_layers of the analysis] the weights as the search is to score
                                    them, of the same sizes; what was found is then measured as the
                                    analysis sees them. NULL: searched so, too */
} laci_search_options;

/** Is there a strategy of that name? */
bool laci_search_knows(const char *strategy);

/** The text of that name that stays; NULL: there is no such strategy. */
const char *laci_search_strategy(const char *name);

/** All names, for messages: "exact, assign, ...". */
const char *laci_search_strategies(void);

/** kept: sum of |w| (scores, float64, summed in a fixed order) over what
 * N:M keeps of all blocks that hold a column of the class; upper: every row keeps its largest as if
 * blocks could be chosen freely (row by row over the class' columns plus those that stay in mixed
 * blocks). kept >= kept_identity always. */
typedef struct laci_found {
  int32_t *order; /* [n_channels], caller's: order[j] = old channel (class rank) now at place j */
  double kept_identity, kept, upper;
  const char *strategy;
  int64_t iterations;
  int proven; /* 1: the best there is */
} laci_found;

/** Searches one problem on the calling thread (pool may help inside a large one; NULL is fine). The
 * same bytes for any number of threads and any instruction set. Ends early with the best found when
 * laci_interrupted(). */
LAC_MUST_CHECK lac_status laci_search(const laci_problem *problem,
                                      const laci_search_options *options, laci_pool *pool,
                                      laci_found *found, lac_error *err);

/** kept_identity, kept and upper of found->order, for another scoring of the weights than the one
 * that was searched. Fails as laci_search. */
LAC_MUST_CHECK lac_status laci_search_measure(const laci_problem *problem, laci_pool *pool,
                                              laci_found *found, lac_error *err);

/** What searching a problem costs about, in nanoseconds of one core: to rank problems, and to share
 * time among them. */
double laci_search_cost(const laci_problem *problem, laci_effort effort);

/** Many problems, several at a time (the most expensive first); found[i] belongs to problems[i].
 * Reports progress. */
LAC_MUST_CHECK lac_status laci_search_all(const laci_problem *problems, int n,
                                          const laci_search_options *options, laci_pool *pool,
                                          laci_found *found, lac_error *err);

#endif

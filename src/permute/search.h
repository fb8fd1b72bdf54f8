/* SPDX-License-Identifier: Apache-2.0
 * The permutation search: finds the order of a class's channels with which N:M pruning keeps the
 * largest sum of scores. The score of a weight is its square or its magnitude.
 *
 * A problem is a class of n channels, which are reordered together, and its *slices*. A slice is
 * one weight that has the class along its axis of input channels (for one convolution group and one
 * copy of the channels). Slices that divide the positions into the same blocks are stacked: their
 * rows are searched as one table. */
#ifndef LACI_PERMUTE_SEARCH_H
#define LACI_PERMUTE_SEARCH_H

#include <stdbool.h>

#include "sparse/weight_view.h"

/** Weights with more elements than this are sampled. Stacked weights count together. */
enum { LACI_MOST_ELEMENTS = 1 << 26 };

typedef struct laci_pool laci_pool;

typedef struct laci_slice {
  laci_weight_view weight;
  int64_t outer_begin, outer_end; /* range of outer indices of the weight: the slice has their rows,
                                     for all inner indices */
  const int32_t *column; /* [n_channels] column of the weight in which the channel at each position
                            is */
  const int32_t *original_column; /* [columns] for each column, the original column that is there
                                     after the orders found so far; NULL: no column has moved. It is
                                     read for columns that share a block with the class's channels
                                     without belonging to them, which the search leaves in place */
} laci_slice;

typedef struct laci_problem {
  const char *name; /* name of the problem for the log */
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
  const char *strategy; /* name of the search strategy; NULL: the search chooses one that fits the
                           problem */
  int64_t iterations;   /* number of annealing iterations for each problem; 0: effort and number of
                           channels determine it */
  double seconds;       /* limit of the wall time for all problems of a call together, in place of
                           iterations; 0: no limit. With a limit, the result depends on the
                           machine's speed */
  /* The fields below are for laci_plan_search_orders: */
  laci_comm *comm;               /* processes that divide the search among them; NULL: this process
                                    alone */
  const laci_weight_view *views; /* [n_layers of the analysis] weights of the same sizes, which the
                                    search scores in place of the analysis's weights. Its results
                                    are then measured with the analysis's weights. NULL: the search
                                    uses these, too */
} laci_search_options;

/** Is there a search strategy of this name? */
bool laci_search_has_strategy(const char *strategy);

/** Returns the strategy's name as a static string; NULL: there is no such strategy. */
const char *laci_search_find_strategy_name(const char *name);

/** Returns the names of all strategies, for messages: "exact, assign, ...". */
const char *laci_search_strategy_names(void);

/** The result of a search. kept: sum of the scores that N:M keeps in the found order, over all
 * blocks with a column of the class (float64, in a fixed order of summation). kept_identity: the
 * same sum for the order before the search, at most kept. upper: an upper bound of kept. It is the
 * sum if each row could choose its blocks freely, so that it keeps its largest scores (among the
 * class's columns and the fixed columns of mixed blocks). */
typedef struct laci_search_result {
  int32_t *order; /* [n_channels] memory of the caller. order[j] is the old channel (its index in
                     the class) that moves to position j */
  double kept_identity, kept, upper;
  const char *strategy;
  int64_t iterations;
  int proven; /* 1: the search has proven that no order keeps more; 0: it has not */
} laci_search_result;

/** Searches one problem on the calling thread. pool, which may be NULL, helps with large problems.
 * The result has the same bytes for any number of threads and any instruction set. If
 * laci_interrupted(), it ends early with the best order found. */
LAC_MUST_CHECK lac_status laci_search(const laci_problem *problem,
                                      const laci_search_options *options, laci_pool *pool,
                                      laci_search_result *found, lac_error *err);

/** Computes kept_identity, kept and upper of found->order with the problem's weights. The search
 * may have scored other weights. Fails as laci_search. */
LAC_MUST_CHECK lac_status laci_search_measure_order(const laci_problem *problem, laci_pool *pool,
                                                    laci_search_result *found, lac_error *err);

/** Estimates the time for searching a problem, in nanoseconds of one core. Problems are ranked by
 * it, and time limits are divided by it. */
double laci_search_estimate_ns(const laci_problem *problem, laci_effort effort);

/** Searches n problems, several at a time, the most expensive first; found[i] is the result of
 * problems[i]. Reports progress. */
LAC_MUST_CHECK lac_status laci_search_all(const laci_problem *problems, int n,
                                          const laci_search_options *options, laci_pool *pool,
                                          laci_search_result *found, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The interface of search strategies: a strategy is one const laci_strategy in a file
 * strategy_NAME.c, and one line in strategy.def.
 *
 * search.c measures the problem, runs a strategy, and accepts its result only if float64 confirms
 * it: a strategy only has to return a permutation. It is run at every effort up to the one asked
 * for, or until it sets `final`. So a higher effort never has a worse result. It must find the same
 * permutation for any number of threads and on any machine. So it compares integers, takes random
 * numbers from base/rng.h, and limits iterations. It reads the clock only if the caller sets a
 * deadline. */
#ifndef LACI_PERMUTE_STRATEGY_H
#define LACI_PERMUTE_STRATEGY_H

#include "base/clock.h"
#include "base/log.h"
#include "permute/search_matrix.h"

typedef struct laci_task {
  const laci_cuts *cuts;
  const laci_measure *measure;
  laci_matrix (*matrices)[2]; /* matrices: [n_cuts][laci_number] the columns of each cut (table of
                                 columns) as small integers, made by
                                 laci_task_find_or_make_matrix */
  laci_effort effort;
  uint64_t seed;
  laci_pool *pool;           /* threads that the strategy may use; NULL: the calling thread alone */
  int64_t iterations_wanted; /* number of iterations that the user wants; 0: the effort determines
                                it */
  double deadline;           /* time (laci_clock_seconds) at which to end with the best order found;
                                0: none */
  int32_t *order;            /* [n_channels] in: the permutation to start from; out: the result */
  int64_t iterations;        /* out: number of iterations that were made; the strategy defines what
                                one is */
  const char *found_by; /* out: name of the strategy that found the result, if this strategy ran
                           another one; else NULL */
  bool proven;          /* out: no order is better, which the strategy has proven */
  bool final;           /* out: a higher effort would give the same result */
} laci_task;

typedef struct laci_strategy {
  bool (*fits)(const laci_cuts *cuts, bool asked); /* Is the strategy applicable? asked: the user
                                                      named it, so that it may take long */
  lac_status (*run)(laci_task *task, lac_error *err);
} laci_strategy;

/** Should the strategy end with the best order found, because of an interrupt or the deadline? */
static inline bool laci_task_is_over(const laci_task *task) {
  return laci_interrupted() || (task->deadline > 0 && laci_clock_seconds() >= task->deadline);
}

#define LACI_STRATEGY(id, name) extern const laci_strategy laci_strategy_##id;
#include "permute/strategy.def"
#undef LACI_STRATEGY

/** Sets *matrix to the columns of a cut as small integers (search_matrix.h). They are made on the
 * first call and shared by all runs on the problem. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_task_find_or_make_matrix(const laci_task *task, const laci_cut *cut,
                                                        laci_number number,
                                                        const laci_matrix **matrix, lac_error *err);

/** Returns the number of iterations that annealed assignment makes at this effort. It is also used
 * to estimate the time of a search. */
int64_t laci_assign_iterations(laci_effort effort, int n_channels);

/** Runs annealed assignment on one stacked cut (table of columns) of the task (strategy_assign.c).
 * Other strategies use it, too. */
LAC_MUST_CHECK lac_status laci_search_cut_by_assignment(laci_task *task, const laci_cut *cut,
                                                        lac_error *err);

/** Swaps pairs of channels if that improves the score over all weights, until no swap helps or the
 * budget is used up (strategy_swap.c). */
LAC_MUST_CHECK lac_status laci_search_by_swaps(laci_task *task, lac_error *err);

#endif

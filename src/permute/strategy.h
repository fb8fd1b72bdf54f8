/* SPDX-License-Identifier: Apache-2.0
 * What a search strategy is: one const laci_strategy in one file, strategy_NAME.c, and one line in
 * strategy.def.
 *
 * search.c measures the problem, lets a strategy work on it, and believes no result that float64
 * does not confirm: a strategy only has to leave a permutation. It is run at every effort up to the
 * one asked for, or until it is final, so that more effort never ends below less. It must find the
 * same one for any number of threads and on any machine: integers decide, random numbers come from
 * base/rng.h, budgets are iterations; seconds count only where the caller sets a deadline. */
#ifndef LACI_PERMUTE_STRATEGY_H
#define LACI_PERMUTE_STRATEGY_H

#include "base/clock.h"
#include "base/log.h"
#include "permute/search_matrix.h"

typedef struct laci_task {
  const laci_cuts *cuts;
  const laci_measure *measure;
  laci_matrix (*matrices)[2]; /* [n_cuts] by laci_number, as laci_task_matrix made them */
  laci_effort effort;
  uint64_t seed;
  laci_pool *pool;           /* may be NULL */
  int64_t iterations_wanted; /* 0: by effort */
  double deadline;           /* on base/clock.h's clock: end by then, as good as may be; 0: none */
  int32_t *order;       /* [n_channels] in: where to start (a permutation); out: what was found */
  int64_t iterations;   /* out: rounds of whatever the strategy counts */
  const char *found_by; /* out: the strategy that had the last word, if it is another; else NULL */
  bool proven;          /* out: there is no better order */
  bool final;           /* out: at any other effort the same would have been found */
} laci_task;

typedef struct laci_strategy {
  bool (*fits)(const laci_cuts *cuts, bool asked); /* asked: by name, so that it may take long */
  lac_status (*run)(laci_task *task, lac_error *err);
} laci_strategy;

/** Time to end with the best found: the user said so, or the deadline does. */
static inline bool laci_task_over(const laci_task *task) {
  return laci_interrupted() || (task->deadline > 0 && laci_clock_seconds() >= task->deadline);
}

#define LACI_STRATEGY(id, name) extern const laci_strategy laci_strategy_##id;
#include "permute/strategy.def"
#undef LACI_STRATEGY

/** A cut in small integers: made when it is first asked for, and the same for every run that works
 * on the problem. A view. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_task_matrix(const laci_task *task, const laci_cut *cut,
                                           laci_number number, const laci_matrix **matrix,
                                           lac_error *err);

/** Iterations of annealed assignment at an effort: the cost model. */
int64_t laci_assign_iterations(laci_effort effort, int n_channels);

/** Annealed assignment on one stacked cut of the task (strategy_assign.c); others build on it. */
LAC_MUST_CHECK lac_status laci_assign_cut(laci_task *task, const laci_cut *cut, lac_error *err);

/** Swaps of pairs on all cuts until none helps or the budget is spent (strategy_swap.c). */
LAC_MUST_CHECK lac_status laci_swap_all(laci_task *task, lac_error *err);

#endif

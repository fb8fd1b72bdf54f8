/* SPDX-License-Identifier: Apache-2.0
 * Searches many independent problems, several at a time, the most expensive first. A problem that
 * costs more than a thread's equal share is searched alone by all threads together. A time limit is
 * divided by the problems' costs. It is divided again whenever a problem begins, so that time which
 * one problem did not use goes to the others. Next: search.c. */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "permute/search.h"
#include "permute/strategy.h"

/* The constants are nanoseconds, measured with AVX-512. Only their ratios matter, and these are
 * similar on other processors. It is assumed that a third of the steps compute the values of a
 * table again. */
double laci_search_estimate_ns(const laci_problem *problem, laci_effort effort) {
  const double n = problem->n_channels;
  const double blocks = n / (problem->pattern.m > 0 ? problem->pattern.m : 1);
  double rows = 0;
  for (int i = 0; i < problem->n_slices; i++) {
    const laci_slice *s = &problem->slices[i];
    rows += (double)(s->outer_end - s->outer_begin) * (double)s->weight.inner;
  }
  double reading = 10 * n * rows, step = 500 + blocks * blocks * (2 + 0.002 * rows);
  return reading + step * (double)laci_assign_iterations(effort, problem->n_channels);
}

#define LEAST_SECONDS 1e-6

typedef struct ranked {
  double cost;
  int problem;
} ranked;

static int compare_most_expensive_first(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
  return x->problem - y->problem;
}

static int compare_least_expensive_first(const void *a, const void *b) {
  return compare_most_expensive_first(b, a);
}

/* A time limit for many searches, and how much of the time is assigned to problems so far. */
typedef struct budget {
  double end;       /* time (laci_clock_seconds) at which the limit ends; 0: no limit */
  int n_threads;    /* number of threads of the pool */
  double cost_left; /* sum of the costs of problems that have not begun */
  double promised;  /* sum over running problems: end time * number of threads */
  int n_busy;       /* number of threads that running problems use */
} budget;

typedef struct search_set {
  const laci_problem *problems;
  const laci_search_options *options;
  laci_pool *inner; /* pool that one problem uses with all its threads */
  laci_search_result *found;
  const ranked *ranked;
  lac_status *statuses; /* [n] status of each problem; errors: [n] error of each failed problem */
  lac_error *errors;
  int64_t n, n_done;
  budget budget;
  pthread_mutex_t lock; /* guards the budget and n_done, so that the reported progress never
                           decreases */
} search_set;

/* Returns the end time for a problem of this cost, which begins now on n_threads threads; 0: no
 * limit. The time that is not assigned to running problems is divided by cost. */
static double reserve_time_for_problem(search_set *a, double cost, int n_threads) {
  budget *b = &a->budget;
  if (!(b->end > 0)) return 0;
  const double now = laci_clock_seconds(), most = b->end - now;
  double free_time = most * b->n_threads - (b->promised - b->n_busy * now);
  double seconds = b->cost_left > 0 ? free_time * cost / b->cost_left / n_threads : most;
  seconds = seconds < most ? seconds : most;
  b->cost_left -= cost;
  b->promised += (now + seconds) * n_threads;
  b->n_busy += n_threads;
  return now + seconds;
}

static void search_ranked_problem(search_set *a, const ranked *r) {
  const int n_threads = laci_pool_threads(a->inner);
  laci_search_options options = *a->options;
  pthread_mutex_lock(&a->lock);
  const double end = reserve_time_for_problem(a, r->cost, n_threads);
  pthread_mutex_unlock(&a->lock);
  if (end > 0) {
    double seconds = end - laci_clock_seconds();
    options.seconds = seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS; /* 0 would mean no limit */
  }
  a->statuses[r->problem] = laci_search(&a->problems[r->problem], &options, a->inner,
                                        &a->found[r->problem], &a->errors[r->problem]);
  pthread_mutex_lock(&a->lock);
  if (end > 0) {
    a->budget.promised -= end * n_threads;
    a->budget.n_busy -= n_threads;
  }
  laci_progress("search", ++a->n_done, a->n);
  pthread_mutex_unlock(&a->lock);
}

static void search_ranked_range(int64_t begin, int64_t end, void *context) {
  search_set *a = context;
  for (int64_t i = begin; i < end; i++) search_ranked_problem(a, &a->ranked[i]);
}

static bool is_large_problem(const ranked *r, double cost, laci_pool *pool) {
  return r->cost * laci_pool_threads(pool) > cost;
}

/* Searches the problems without a time limit. order: problems by cost, the most expensive first.
 * cost: sum of all costs. */
static void search_most_expensive_first(search_set *a, const ranked *order, double cost,
                                        laci_pool *pool) {
  int64_t n_large = 0;
  for (double left = cost; n_large < a->n && is_large_problem(&order[n_large], left, pool);
       n_large++) {
    left -= order[n_large].cost;
    a->inner = pool;
    search_ranked_problem(a, &order[n_large]);
  }
  a->inner = NULL;
  a->ranked = order + n_large;
  laci_pool_for_in_order(pool, a->n - n_large, 1, search_ranked_range, a);
}

/* Searches the problems within a time limit. order: problems by cost, the least expensive first.
 * One step of a large problem may take as long as whole searches of small ones, so large ones come
 * last. If a problem takes longer than its share, later ones have less time. */
static void search_within_time(search_set *a, const ranked *order, double cost, laci_pool *pool) {
  int64_t n_small = a->n;
  for (double left = cost; n_small > 0 && is_large_problem(&order[n_small - 1], left, pool);
       n_small--) {
    left -= order[n_small - 1].cost;
  }
  a->budget = (budget){.n_threads = laci_pool_threads(pool), .cost_left = cost};
  a->budget.end = laci_clock_seconds() + a->options->seconds;
  a->ranked = order;
  laci_pool_for_in_order(pool, n_small, 1, search_ranked_range, a);
  a->inner = pool;
  for (int64_t i = n_small; i < a->n; i++) search_ranked_problem(a, &order[i]);
}

lac_status laci_search_all(const laci_problem *problems, int n, const laci_search_options *options,
                           laci_pool *pool, laci_search_result *found, lac_error *err) {
  search_set a = {.problems = problems, .options = options, .found = found, .n = n};
  lac_status st = LAC_OK;
  ranked *order = laci_alloc((size_t)n, sizeof *order);
  double cost = 0;
  pthread_mutex_init(&a.lock, NULL);
  a.statuses = laci_alloc((size_t)n, sizeof *a.statuses);
  a.errors = laci_alloc((size_t)n, sizeof *a.errors);
  if (!order || !a.statuses || !a.errors) {
    st = laci_fail_memory(err, "the search");
    goto out;
  }
  for (int i = 0; i < n; i++) {
    order[i] = (ranked){laci_search_estimate_ns(&problems[i], options->effort), i};
    cost += order[i].cost;
  }
  if (options->seconds > 0) {
    qsort(order, (size_t)n, sizeof *order, compare_least_expensive_first);
    search_within_time(&a, order, cost, pool);
  } else {
    qsort(order, (size_t)n, sizeof *order, compare_most_expensive_first);
    search_most_expensive_first(&a, order, cost, pool);
  }
  for (int i = 0; i < n && !st; i++) { /* returns the failure of the first problem in the list, not
                                          of the one that failed first */
    st = a.statuses[i];
    if (st && err) *err = a.errors[i];
  }
out:
  pthread_mutex_destroy(&a.lock);
  laci_free(a.errors);
  laci_free(a.statuses);
  laci_free(order);
  return st;
}

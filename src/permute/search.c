/* SPDX-License-Identifier: Apache-2.0
 * Searches for the best order of one problem's channels: measures the weights, runs a strategy,
 * normalizes the order that it finds, and accepts this order only if a float64 score confirms it.
 * Next: strategy.h, search_cut.h; search_all.c for many problems. */
#include "permute/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "permute/strategy.h"

static const struct {
  const char *name;
  const laci_strategy *strategy;
} strategies[] = {
#define LACI_STRATEGY(id, name) {name, &laci_strategy_##id},
#include "permute/strategy.def"
#undef LACI_STRATEGY
};
enum { N_STRATEGIES = sizeof strategies / sizeof *strategies };

const char *laci_search_find_strategy_name(const char *name) {
  for (int i = 0; i < N_STRATEGIES; i++) {
    if (!strcmp(name, strategies[i].name)) return strategies[i].name;
  }
  return NULL;
}

bool laci_search_has_strategy(const char *strategy) {
  return laci_search_find_strategy_name(strategy) != NULL;
}

const char *laci_search_strategy_names(void) {
#define LACI_STRATEGY(id, name) ", " name
  return &(
#include "permute/strategy.def"
      )[2];
#undef LACI_STRATEGY
}

/* Returns the index of the strategy `name` if it is applicable to the problem, else of the first
 * strategy that is. Strategy swap is always applicable. */
static int choose_strategy(const laci_cuts *cuts, const char *name) {
  int first = -1;
  for (int i = 0; i < N_STRATEGIES; i++) {
    const laci_strategy *s = strategies[i].strategy;
    bool asked = name && !strcmp(name, strategies[i].name);
    if (asked && s->fits(cuts, true)) return i;
    if (first < 0 && s->fits(cuts, false)) first = i;
  }
  return first;
}

static int compare_channel_numbers(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* A block of columns, and the channels that an order puts in it. */
typedef struct content {
  int size;
  int32_t channel[64];
} content;

static int compare_blocks_by_first_channel(const void *a, const void *b) {
  const content *x = a, *y = b;
  return compare_channel_numbers(&x->channel[0], &y->channel[0]);
}

/* Normalizes an order. Places within a block are interchangeable, and so are blocks of one size. Of
 * all equivalent orders it chooses the one in which channels ascend within blocks, and full blocks
 * by their first channel. */
static lac_status normalize_order(const laci_cuts *cuts, int32_t *order, lac_error *err) {
  const laci_cut *cut = &cuts->cuts[0];
  content *blocks = laci_alloc((size_t)cut->n_blocks, sizeof *blocks);
  if (!blocks) return laci_fail_memory(err, cuts->problem->name);
  int n_full = 0;
  for (int g = 0; g < cut->n_blocks; g++) {
    content c = {.size = cut->block_begin[g + 1] - cut->block_begin[g]};
    const laci_entry *entries = cut->entries + cut->block_begin[g];
    for (int i = 0; i < c.size; i++) c.channel[i] = order[entries[i].place];
    qsort(c.channel, (size_t)c.size, sizeof *c.channel, compare_channel_numbers);
    for (int i = 0; i < c.size; i++) order[entries[i].place] = c.channel[i];
    if (c.size == cuts->pattern.m) blocks[n_full++] = c;
  }
  qsort(blocks, (size_t)n_full, sizeof *blocks, compare_blocks_by_first_channel);
  for (int g = 0, next = 0; g < cut->n_blocks; g++) {
    int size = cut->block_begin[g + 1] - cut->block_begin[g];
    if (size != cuts->pattern.m) continue;
    for (int i = 0; i < size; i++)
      order[cut->entries[cut->block_begin[g] + i].place] = blocks[next].channel[i];
    next++;
  }
  laci_free(blocks);
  return LAC_OK;
}

static void set_identity(int32_t *order, int n) {
  for (int j = 0; j < n; j++) order[j] = j;
}

/* Stores the order that a strategy found in *found, if it is at least as good as the best found so
 * far, and better than the file's order. */
static lac_status accept_if_better(const laci_cuts *cuts, const laci_task *task,
                                   const char *strategy, laci_search_result *found,
                                   lac_error *err) {
  lac_status st = laci_cuts_are_plain(cuts) ? normalize_order(cuts, task->order, err) : LAC_OK;
  double kept = 0;
  if (!st) st = laci_cuts_score_order(cuts, task->order, task->pool, &kept, err);
  if (st) return st;
  found->proven |= task->proven;
  if (found->kept > found->kept_identity && kept < found->kept) return LAC_OK;
  found->strategy = task->found_by ? task->found_by : strategy;
  found->iterations = task->iterations;
  if (!(kept > found->kept_identity)) return LAC_OK;
  found->kept = kept;
  memcpy(found->order, task->order, (size_t)cuts->n_channels * sizeof *found->order);
  return LAC_OK;
}

/* Runs strategy number `chosen` at all efforts up to the one asked for, and keeps the best result.
 * Annealing at a higher effort is a different run, not a longer one, and may end worse. If the
 * caller limits iterations or time, there is only one run. */
static lac_status run_strategy_at_efforts(const laci_task *task, int chosen,
                                          laci_search_result *found, lac_error *err) {
  const laci_cuts *cuts = task->cuts;
  const bool one = task->deadline > 0 || task->iterations_wanted > 0;
  lac_status st = LAC_OK;
  for (laci_effort effort = one ? task->effort : LACI_EFFORT_FAST; effort <= task->effort;
       effort++) {
    laci_task run = *task;
    run.effort = effort;
    set_identity(run.order, cuts->n_channels);
    st = strategies[chosen].strategy->run(&run, err);
    if (!st) st = accept_if_better(cuts, &run, strategies[chosen].name, found, err);
    if (st || run.final || run.proven || laci_task_is_over(&run)) break;
  }
  return st;
}

static double percent_of_possible_gain(const laci_search_result *found) {
  double possible = found->upper - found->kept_identity;
  return possible > 0 ? 100 * (found->kept - found->kept_identity) / possible : 0;
}

/* Prepares what all runs of strategies on the problem share. */
static lac_status alloc_shared_memory(laci_task *task, lac_error *err) {
  task->order = laci_alloc((size_t)task->cuts->n_channels, sizeof *task->order);
  task->matrices = laci_alloc((size_t)task->cuts->n_cuts, sizeof *task->matrices);
  if (task->order && task->matrices) return LAC_OK;
  return laci_fail_memory(err, task->cuts->problem->name);
}

static void free_shared_memory(laci_task *task) {
  for (int i = 0; task->matrices && i < task->cuts->n_cuts; i++) {
    laci_matrix_clear(&task->matrices[i][LACI_U8]);
    laci_matrix_clear(&task->matrices[i][LACI_I16]);
  }
  laci_free(task->matrices);
  laci_free(task->order);
}

static lac_status search_order(const laci_cuts *cuts, const laci_search_options *options,
                               laci_pool *pool, laci_search_result *found, lac_error *err) {
  laci_measure measure;
  const double begin = laci_clock_seconds();
  lac_status st = laci_cuts_measure_weights(cuts, pool, &measure, err);
  if (st) return st;
  const double measured = laci_clock_seconds();
  const int chosen = choose_strategy(cuts, options->strategy);
  laci_task task = {
      .cuts = cuts, .measure = &measure, .effort = options->effort, .seed = options->seed};
  task.iterations_wanted = options->iterations;
  task.pool = pool;
  if (options->seconds > 0) { /* reserves time for the work after the strategy, which takes half as
                                 long as measuring an order */
    task.deadline = begin + options->seconds - 0.5 * (measured - begin);
  }
  found->kept_identity = found->kept = measure.kept_identity;
  found->upper = measure.upper;
  found->strategy = strategies[chosen].name;
  found->proven = 0;
  st = alloc_shared_memory(&task, err);
  if (!st) st = run_strategy_at_efforts(&task, chosen, found, err);
  free_shared_memory(&task);
  return st;
}

lac_status laci_search_measure_order(const laci_problem *problem, laci_pool *pool,
                                     laci_search_result *found, lac_error *err) {
  laci_cuts cuts;
  laci_measure measure;
  lac_status st = laci_cuts_init(&cuts, problem, err);
  if (!st && cuts.n_cuts > 0) {
    st = laci_cuts_measure_weights(&cuts, pool, &measure, err);
    if (!st) st = laci_cuts_score_order(&cuts, found->order, pool, &found->kept, err);
    found->kept_identity = st ? 0 : measure.kept_identity;
    found->upper = st ? 0 : measure.upper;
  }
  laci_cuts_clear(&cuts);
  return st;
}

lac_status laci_search(const laci_problem *problem, const laci_search_options *options,
                       laci_pool *pool, laci_search_result *found, lac_error *err) {
  int32_t *order = found->order;
  double start = laci_clock_seconds();
  laci_cuts cuts;
  *found = (laci_search_result){.order = order, .strategy = "none", .proven = 1};
  if (options->strategy && !laci_search_has_strategy(options->strategy)) {
    return laci_fail(err, LAC_NOT_FOUND, "no search strategy is called %s", options->strategy);
  }
  set_identity(order, problem->n_channels > 0 ? problem->n_channels : 0);
  lac_status st = laci_cuts_init(&cuts, problem, err);
  if (!st && cuts.n_cuts > 0) st = search_order(&cuts, options, pool, found, err);
  laci_cuts_clear(&cuts);
  if (!st && laci_log_is_enabled(LAC_LOG_DEBUG)) {
    laci_log(LAC_LOG_DEBUG,
             "search %s: %d channels, %s, %lld iterations, kept %.6g -> %.6g of at most %.6g, "
             "efficacy %.2f%s, %.0f ms",
             problem->name, problem->n_channels, found->strategy, (long long)found->iterations,
             found->kept_identity, found->kept, found->upper, percent_of_possible_gain(found),
             found->proven ? " (proven)" : "", 1e3 * (laci_clock_seconds() - start));
  }
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Strategy assign+swap: for channels that several weights divide into different blocks. First,
 * annealed assignment optimizes the stacked cut (table of columns) with the most elements. Then
 * swaps of pairs, judged by all cuts together, improve the order. If the assignment made the sum
 * over all cuts worse, swaps begin with the old order. */
#include "base/error.h"
#include "base/memory.h"
#include "permute/strategy.h"

#include <string.h>

static const laci_cut *largest_stacked_cut(const laci_cuts *cuts) {
  for (int i = 0; i < cuts->n_cuts; i++) {
    if (cuts->cuts[i].stacked)
      return &cuts->cuts[i]; /* the cuts (tables of columns) are sorted, the largest first */
  }
  return NULL;
}

static bool is_assign_swap_applicable(const laci_cuts *cuts, bool asked) {
  (void)asked;
  return largest_stacked_cut(cuts) != NULL;
}

static lac_status run_strategy(laci_task *task, lac_error *err) {
  const size_t n = (size_t)task->cuts->n_channels;
  int32_t *start = laci_alloc(n, sizeof *start);
  double before = 0, after = 0;
  if (!start) return laci_fail_memory(err, task->cuts->problem->name);
  memcpy(start, task->order, n * sizeof *start);
  const double end = task->deadline, now = laci_clock_seconds();
  if (end > 0)
    task->deadline = now + (end - now) / 2; /* half of the time is for the assignment, half for
                                               swaps */
  lac_status st = laci_search_cut_by_assignment(task, largest_stacked_cut(task->cuts), err);
  task->deadline = end;
  if (!st) st = laci_cuts_score_order(task->cuts, start, task->pool, &before, err);
  if (!st) st = laci_cuts_score_order(task->cuts, task->order, task->pool, &after, err);
  if (!st && !(after > before)) memcpy(task->order, start, n * sizeof *start);
  if (!st) st = laci_search_by_swaps(task, err);
  task->final = false; /* a higher effort may change the order with which swaps begin */
  laci_free(start);
  return st;
}

const laci_strategy laci_strategy_assign_swap = {.fits = is_assign_swap_applicable,
                                                 .run = run_strategy};

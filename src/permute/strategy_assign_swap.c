/* SPDX-License-Identifier: Apache-2.0
 * assign+swap: for a class that several weights cut into different blocks. The heaviest stacked cut
 * leads, by annealed assignment; then swaps of pairs are judged by all cuts together. Where leading
 * made the whole worse, swaps start from the old order. */
#include "base/error.h"
#include "base/memory.h"
#include "permute/strategy.h"

#include <string.h>

static const laci_cut *leader(const laci_cuts *cuts) {
  for (int i = 0; i < cuts->n_cuts; i++) {
    if (cuts->cuts[i].stacked) return &cuts->cuts[i]; /* the heaviest comes first */
  }
  return NULL;
}

static bool fits(const laci_cuts *cuts, bool asked) {
  (void)asked;
  return leader(cuts) != NULL;
}

static lac_status run(laci_task *task, lac_error *err) {
  const size_t n = (size_t)task->cuts->n_channels;
  int32_t *start = laci_alloc(n, sizeof *start);
  double before = 0, after = 0;
  if (!start) return laci_fail_memory(err, task->cuts->problem->name);
  memcpy(start, task->order, n * sizeof *start);
  const double end = task->deadline, now = laci_clock_seconds();
  if (end > 0) task->deadline = now + (end - now) / 2; /* half for leading, half for swaps */
  lac_status st = laci_assign_cut(task, leader(task->cuts), err);
  task->deadline = end;
  if (!st) st = laci_cuts_score(task->cuts, start, task->pool, &before, err);
  if (!st) st = laci_cuts_score(task->cuts, task->order, task->pool, &after, err);
  if (!st && !(after > before)) memcpy(task->order, start, n * sizeof *start);
  if (!st) st = laci_swap_all(task, err);
  task->final = false; /* the swaps are, but they began where the effort led */
  laci_free(start);
  return st;
}

const laci_strategy laci_strategy_assign_swap = {.fits = fits, .run = run};

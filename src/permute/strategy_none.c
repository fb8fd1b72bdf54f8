/* SPDX-License-Identifier: Apache-2.0
 * Strategy none: every channel keeps its place. It is the baseline for all other strategies. */
#include "permute/strategy.h"

static bool is_none_applicable(const laci_cuts *cuts, bool asked) {
  (void)asked;
  (void)cuts;
  return true;
}

static lac_status run_strategy(laci_task *task, lac_error *err) {
  (void)err;
  for (int j = 0; j < task->cuts->n_channels; j++) task->order[j] = j;
  task->final = true;
  return LAC_OK;
}

const laci_strategy laci_strategy_none = {.fits = is_none_applicable, .run = run_strategy};

/* SPDX-License-Identifier: Apache-2.0
 * What the strategies' runs on one problem share. */
#include "base/error.h"
#include "permute/strategy.h"

lac_status laci_task_matrix(const laci_task *task, const laci_cut *cut, laci_number number,
                            const laci_matrix **matrix, lac_error *err) {
  laci_matrix *kept = &task->matrices[cut - task->cuts->cuts][number];
  *matrix = kept;
  if (kept->bytes || laci_matrix_init(kept, number, task->cuts, cut, task->measure, task->pool)) {
    return LAC_OK;
  }
  return laci_fail_memory(err, task->cuts->problem->name);
}

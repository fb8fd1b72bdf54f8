/* SPDX-License-Identifier: Apache-2.0
 * What the strategies' runs on one problem share. */
#include "base/error.h"
#include "permute/strategy.h"

lac_status laci_task_matrix(const laci_task *task, const laci_cut *cut, laci_number number,
                            const laci_matrix **matrix, lac_error *err) {
  laci_matrix *kept = &task->matrices[cut - task->cuts->cuts][number];
  *matrix = kept;
  if (kept->bytes) return LAC_OK;
  const laci_matrix_source from = {task->cuts, cut, task->measure};
  return laci_matrix_init(kept, number, &from, task->pool, err);
}

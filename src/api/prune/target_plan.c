/* SPDX-License-Identifier: Apache-2.0
 * The library's own engine as a target: it accelerates the layers that its plan runs by sparse
 * kernels. */
#include "api/prune/target_plan_in.h"
#include "api/prune/job_in.h"
#include "lacuna/prune.h"
#include "target/target.h"

bool laci_target_is_own_engine(const laci_target_choice *choice) {
  return choice->target == &laci_target_lacuna_cpu;
}

bool laci_targets_include_own_engine(const laci_job *job, const lac_options *options) {
  for (int t = 0; t < options->n_targets; t++)
    if (laci_target_is_own_engine(&job->targets[t])) return true;
  return false;
}

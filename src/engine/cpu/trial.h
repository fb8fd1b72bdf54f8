/* SPDX-License-Identifier: Apache-2.0
 * A plan that is run some times to see what its steps take. */
#ifndef LACI_ENGINE_CPU_TRIAL_H
#define LACI_ENGINE_CPU_TRIAL_H

#include "engine/cpu/net.h"

typedef struct laci_trial {
  laci_net *net;
  void **inputs, **outputs;
  double *seconds, *least; /* [n_steps] of the last run; of all runs but the first */
} laci_trial;

/** Plans for that use of sparse kernels. Its memory is given back before the plan proper takes its
 * own: it is held against options->budget, and not added. Nobody observes it. Fails as
 * laci_net_create; end it in any case. */
LAC_MUST_CHECK lac_status laci_trial_begin(const laci_graph *graph,
                                           const laci_engine_options *options, laci_native_use use,
                                           laci_trial *trial, lac_error *err);
/** Runs it, once in its life, as often as `tuning` says. Fails as laci_net_run. */
LAC_MUST_CHECK lac_status laci_trial_run(laci_trial *trial, laci_engine_tuning tuning,
                                         lac_error *err);
void laci_trial_end(laci_trial *trial);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A plan that is run a few times to measure its steps. */
#ifndef LACI_ENGINE_CPU_TRIAL_H
#define LACI_ENGINE_CPU_TRIAL_H

#include "engine/cpu/net.h"

typedef struct laci_trial {
  laci_net *net;
  void **inputs, **outputs;
  double *seconds, *least; /* [n_steps] each: the seconds of the steps in the last run, and their
                              least times in all runs but the first */
} laci_trial;

/** Plans the graph, with native kernels as `use` says. The trial is checked against options->budget
 * but not counted in it: its memory is freed before the real plan is made. There is no observer.
 * Fails as laci_net_create; call laci_trial_end in any case. */
LAC_MUST_CHECK lac_status laci_trial_begin(const laci_graph *graph,
                                           const laci_engine_options *options, laci_native_use use,
                                           laci_trial *trial, lac_error *err);
/** Runs the plan as often as `tuning` says, and fills `least`. To be called once. Fails as
 * laci_net_run. */
LAC_MUST_CHECK lac_status laci_trial_run(laci_trial *trial, laci_engine_tuning tuning,
                                         lac_error *err);
void laci_trial_end(laci_trial *trial);

#endif

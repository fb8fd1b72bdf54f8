/* SPDX-License-Identifier: Apache-2.0
 * Implements trial.h: plans a network, runs it a few times, and keeps the least time of each
 * step. */
#include "base/budget.h"
#include "base/memory.h"
#include "engine/cpu/trial.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/cpu/net_in.h"

static void **allocate_port_buffers(const laci_engine_port *ports, int n) {
  void **buffers = laci_alloc((size_t)n, sizeof(void *));
  for (int at = 0; buffers && at < n; at++) {
    buffers[at] = laci_alloc(ports[at].size_bytes, 1);
    if (buffers[at]) continue;
    for (int done = 0; done < at; done++) laci_free(buffers[done]);
    laci_free((void *)buffers);
    return NULL;
  }
  return buffers;
}

static void free_port_buffers(void **buffers, int n) {
  for (int at = 0; buffers && at < n; at++) laci_free(buffers[at]);
  laci_free((void *)buffers);
}

void laci_trial_end(laci_trial *t) {
  if (!t->net) return;
  free_port_buffers(t->inputs, t->net->n_inputs);
  free_port_buffers(t->outputs, t->net->n_outputs);
  laci_free(t->seconds);
  laci_free(t->least);
  laci_net_destroy(t->net);
}

lac_status laci_trial_begin(const laci_graph *graph, const laci_engine_options *options,
                            laci_native_use use, laci_trial *t, lac_error *err) {
  laci_engine_options own = *options;
  laci_budget budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  *t = (laci_trial){.net = NULL};
  own.budget = &budget;
  own.observer = NULL;
  own.finite = LACI_FINITE_ASSUMED;
  return laci_net_create(graph, &own, use, NULL, &t->net, err);
}

static lac_status allocate_network_buffers(laci_trial *t, lac_error *err) {
  t->inputs = allocate_port_buffers(t->net->inputs, t->net->n_inputs);
  t->outputs = allocate_port_buffers(t->net->outputs, t->net->n_outputs);
  t->seconds = laci_alloc(t->net->n_steps, sizeof *t->seconds);
  t->least = laci_alloc(t->net->n_steps, sizeof *t->least);
  const bool whole = t->inputs && t->outputs && t->seconds && t->least;
  return whole ? LAC_OK : laci_fail_memory(err, "timing a plan");
}

/** Inputs are zeros: no kernel takes a time that depends on its data. The first run is a
 * warm-up. */
lac_status laci_trial_run(laci_trial *t, laci_engine_tuning tuning, lac_error *err) {
  const int most = tuning == LACI_TUNING_FULL ? 50 : 4;
  const double limit = tuning == LACI_TUNING_FULL ? 5 : 0.5; /* seconds */
  lac_status st = allocate_network_buffers(t, err);
  if (st) return st;
  const double begin = laci_clock_seconds();
  for (size_t at = 0; at < t->net->n_steps; at++) t->least[at] = INFINITY;
  const laci_engine_watch watch = {.seconds = t->seconds};
  for (int run = 0; run <= most && (run < 2 || laci_clock_seconds() - begin < limit); run++) {
    st = laci_net_run(t->net, (const void *const *)t->inputs, t->outputs, &watch, err);
    if (st) return st;
    for (size_t at = 0; run > 0 && at < t->net->n_steps; at++) {
      t->least[at] = fmin(t->least[at], t->seconds[at]);
    }
  }
  return LAC_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Measures a table of costs of this processor on one thread. It goes over all networks several
 * times. Each round times each algorithm as tuning does (tune.c), so that temporary slowness of the
 * machine affects all algorithms. The least time of all rounds counts. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/timings.h"
#include "engine/cpu/native/measure/measure.h"
#include "engine/cpu/native/tune.h"
#include "engine/cpu/trial.h"
#include "graph/graph.h"

enum { ROUNDS = 5, N_BATCHES = 2, MOST_NETWORKS = 32, IMAGES = LACI_SPARSE_LANES };

typedef struct timed {
  laci_graph *graph;
  laci_trial listed; /* a plan of the network in which its native layers are listed, but none is
                        chosen */
  size_t first;      /* index of the network's first observation */
} timed;

typedef struct measuring {
  timed networks[MOST_NETWORKS];
  int n_networks;
  laci_costs costs;
  laci_measured all;
} measuring;

static const laci_native_use listed = {LACI_NATIVE_USE_LISTED, 0};

/* ---- The networks that are timed ---- */

static lac_status plan_timed_network(measuring *m, int at, int64_t batch, lac_error *err) {
  timed *t = &m->networks[m->n_networks++];
  const laci_engine_options options = {.threads = 1};
  t->first = m->all.n;
  lac_status st = laci_measured_build_network(at, batch, &t->graph, err);
  if (!st) st = laci_trial_begin(t->graph, &options, listed, &t->listed, err);
  return st ? st
            : laci_measured_add_net(&m->all, t->listed.net, laci_measured_has_reorders(at), err);
}

static void free_measuring(measuring *m) {
  for (int at = 0; at < m->n_networks; at++) {
    laci_trial_end(&m->networks[at].listed);
    laci_graph_destroy(m->networks[at].graph);
  }
  laci_free(m->all.observations);
}

/* ---- Timing ---- */

static lac_status time_network(measuring *m, int at, lac_error *err) {
  const timed *t = &m->networks[at];
  const size_t last = at + 1 < m->n_networks ? t[1].first : m->all.n;
  laci_timings *timings = NULL;
  laci_engine_options options = {.threads = 1, .tuning = LACI_TUNING_QUICK};
  lac_status st = laci_timings_open(NULL, "", &timings, err);
  options.timings = timings;
  if (!st) st = laci_cpu_tune(t->graph, &options, err);
  if (!st) laci_measured_update_times(&m->all, t->first, last, timings);
  laci_timings_close(timings);
  return st;
}

static lac_status time_all_networks(measuring *m, lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; !st && at < ROUNDS * m->n_networks; at++) {
    laci_progress("costs", at, (int64_t)ROUNDS * m->n_networks);
    st = time_network(m, at % m->n_networks, err);
  }
  laci_progress("costs", 1, 1);
  laci_measured_drop_untimed(&m->all);
  return st;
}

/* ---- Measuring a table of costs ---- */

lac_status laci_cpu_measure_costs(char **text, lac_error *err) {
  static const int64_t batches[N_BATCHES] = {1, IMAGES};
  measuring m = {.n_networks = 0};
  m.all.costs = &m.costs;
  lac_status st = laci_costs_load(&m.costs, err);
  *text = NULL;
  if (!st && laci_jit_isa_allowed() == LACI_JIT_NONE) {
    st = laci_fail(err, LAC_UNSUPPORTED,
                   "costs: no code is generated here, so that there is nothing to choose from");
  }
  for (int at = 0; at < laci_measured_n_networks() * N_BATCHES && !st; at++) {
    st = plan_timed_network(&m, at / N_BATCHES, batches[at % N_BATCHES], err);
  }
  if (!st) st = time_all_networks(&m, err);
  if (!st) st = laci_measured_write_table(&m.all, m.n_networks * ROUNDS, text, err);
  free_measuring(&m);
  return st;
}

bool laci_cpu_has_own_costs(void) {
  laci_costs costs;
  lac_error ignored;
  if (laci_jit_isa_in_force() == LACI_JIT_NONE) return true; /* there is nothing to choose */
  return !laci_costs_load(&costs, &ignored) && costs.own;
}

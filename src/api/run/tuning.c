/* SPDX-License-Identifier: Apache-2.0
 * Implements tuning.h. Timings are a cache, so that a failure to store them is only a warning. */
#include "api/run/tuning.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/timings.h"
#include "cpu/model.h"
#include "engine/engine.h"
#include "graph/graph.h"

static const laci_engine_tuning tunings[] = {[LAC_TUNING_OFF] = LACI_TUNING_OFF,
                                             [LAC_TUNING_QUICK] = LACI_TUNING_QUICK,
                                             [LAC_TUNING_FULL] = LACI_TUNING_FULL};

/** Stores the timings, also if making the engine failed, since the measurements are valid. */
static void save_timings(laci_timings *timings) {
  lac_error why = {0};
  if (laci_timings_save(timings, &why)) {
    laci_log(LAC_LOG_WARNING, "timings are not kept: %s", why.text);
  }
  laci_timings_close(timings);
}

lac_status laci_engine_add_failure_hint(const laci_graph *graph, const laci_engine_options *options,
                                        lac_status st, lac_error *err) {
  const char *name = options->engine ? options->engine : LACI_ENGINE_FAST;
  bool all = st == LAC_UNSUPPORTED && strcmp(name, LACI_ENGINE_AUTO) != 0;
  for (int n = 0; all && n < graph->n_nodes; n++)
    all = laci_engine_can_run_node(LACI_ENGINE_AUTO, graph, &graph->nodes[n], NULL);
  return all && err && err->hint == LAC_HINT_NONE ? laci_hint(err, LAC_HINT_ENGINE, st) : st;
}

lac_status laci_check_tuning(lac_tuning tuning, lac_error *err) {
  if ((unsigned)tuning < sizeof tunings / sizeof *tunings) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "tuning %d, wanted off, quick or full", (int)tuning);
}

lac_status laci_tuned_engine_create(const laci_graph *graph, const laci_engine_options *options,
                                    lac_tuning tuning, const char *path, laci_engine **engine,
                                    lac_error *err) {
  char machine[LACI_CPU_MODEL];
  laci_engine_options own = *options;
  lac_status st = laci_check_tuning(tuning, err);
  if (st) return st;
  own.tuning = tunings[tuning];
  if (own.tuning == LACI_TUNING_OFF)
    return laci_engine_add_failure_hint(graph, &own, laci_engine_create(graph, &own, engine, err),
                                        err);
  laci_cpu_read_model(machine);
  st = laci_timings_open(path, machine, &own.timings, err);
  if (st) return st;
  st = laci_engine_create(graph, &own, engine, err);
  save_timings(own.timings);
  return laci_engine_add_failure_hint(graph, &own, st, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * tuning.h: timings are a cache, so that what cannot be kept is a warning. */
#include "api/run/tuning.h"

#include "base/error.h"
#include "base/log.h"
#include "base/timings.h"
#include "cpu/model.h"
#include "engine/engine.h"

static const laci_engine_tuning tunings[] = {[LAC_TUNING_OFF] = LACI_TUNING_OFF,
                                             [LAC_TUNING_QUICK] = LACI_TUNING_QUICK,
                                             [LAC_TUNING_FULL] = LACI_TUNING_FULL};

/** Whatever became of the engine: what was measured is right. */
static void keep(laci_timings *timings) {
  lac_error why = {0};
  if (laci_timings_save(timings, &why)) {
    laci_log(LAC_LOG_WARNING, "timings are not kept: %s", why.text);
  }
  laci_timings_close(timings);
}

lac_status laci_tuned_engine_create(const laci_graph *graph, const laci_engine_options *options,
                                    lac_tuning tuning, const char *path, laci_engine **engine,
                                    lac_error *err) {
  char machine[LACI_CPU_MODEL];
  laci_engine_options own = *options;
  if ((unsigned)tuning >= sizeof tunings / sizeof *tunings) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "tuning %d, wanted off, quick or full", (int)tuning);
  }
  own.tuning = tunings[tuning];
  if (own.tuning == LACI_TUNING_OFF) return laci_engine_create(graph, &own, engine, err);
  laci_cpu_model(machine);
  lac_status st = laci_timings_open(path, machine, &own.timings, err);
  if (st) return st;
  st = laci_engine_create(graph, &own, engine, err);
  keep(own.timings);
  return st;
}

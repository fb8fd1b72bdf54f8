/* SPDX-License-Identifier: Apache-2.0
 * Measuring the times from which native and dense layers are chosen.
 *
 * The network is planned and run once for each algorithm that may compute one of its layers. Layers
 * are timed inside the network, so that the caches are in the state in which their neighbours leave
 * them. A time is kept under a description of the layer, not of its position in the network, so
 * that it also serves other networks. */
#ifndef LACI_ENGINE_CPU_NATIVE_TUNE_H
#define LACI_ENGINE_CPU_NATIVE_TUNE_H

#include "engine/engine.h"

/** Adds to options->timings the times that are missing. Nothing is run if there is nothing to
 * choose, or all times are known. Fails as laci_net_create and laci_net_run. */
LAC_MUST_CHECK lac_status laci_cpu_tune(const laci_graph *graph, const laci_engine_options *options,
                                        lac_error *err);

/** Measures a table of costs of this processor (costs/costs.h): some minutes on one thread. *text
 * is the text of a file, and the caller's (laci_free). Logs its progress as "costs". Fails
 * LAC_UNSUPPORTED where no code is generated, LAC_INTERRUPTED, and as laci_cpu_tune.
 * measure/measure.c */
LAC_MUST_CHECK lac_status laci_cpu_measure_costs(char **text, lac_error *err);
/** Is there a table for exactly this processor, in the list or in the file of LAC_COSTS? */
bool laci_cpu_has_costs(void);

#endif

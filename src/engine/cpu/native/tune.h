/* SPDX-License-Identifier: Apache-2.0
 * Measures the times that the choice between native and dense layers is based on.
 *
 * The network is planned and run once for each algorithm that may compute one of its layers. Layers
 * are timed inside the network, so that their neighbours leave the caches in a realistic state. A
 * time is stored under a description of the layer, not its position in the network, so that other
 * networks can use it, too. */
#ifndef LACI_ENGINE_CPU_NATIVE_TUNE_H
#define LACI_ENGINE_CPU_NATIVE_TUNE_H

#include "engine/engine.h"

/** Adds to options->timings the times that are missing. Nothing is run if there is no choice, or
 * all times are known. Fails as laci_net_create and laci_net_run do. */
LAC_MUST_CHECK lac_status laci_cpu_tune(const laci_graph *graph, const laci_engine_options *options,
                                        lac_error *err);

/** Measures a table of costs of this processor (costs/costs.h): some minutes on one thread. *text
 * is the text of a file, which the caller frees (laci_free). Logs its progress as "costs". Fails
 * LAC_UNSUPPORTED where no code is generated, LAC_INTERRUPTED, and as laci_cpu_tune.
 * measure/measure.c */
LAC_MUST_CHECK lac_status laci_cpu_measure_costs(char **text, lac_error *err);
/** Is there a table for exactly this processor, in the list or in the file of LAC_COSTS? */
bool laci_cpu_has_own_costs(void);

#endif

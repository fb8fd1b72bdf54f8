/* SPDX-License-Identifier: Apache-2.0
 * Measuring what the choice between dense and sparse kernels needs to know.
 *
 * The network is planned three times, by dense kernels alone and, wherever weights are zeros, by
 * generated code and by lists, and all plans are run: layers are timed where they stand, with the
 * caches as their neighbours leave them. Times are kept by what a layer is, not by where it stands,
 * so that another network, or this one again, need not be measured. */
#ifndef LACI_ENGINE_CPU_NATIVE_TUNE_H
#define LACI_ENGINE_CPU_NATIVE_TUNE_H

#include "engine/engine.h"

/** Adds to options->timings what is not there yet. Nothing to be chosen, or all known: nothing is
 * run. Fails as laci_net_create and laci_net_run. */
LAC_MUST_CHECK lac_status laci_cpu_tune(const laci_graph *graph, const laci_engine_options *options,
                                        lac_error *err);

/** A table of costs of this processor (costs/costs.h), measured in some minutes on one thread, as
 * the text of a file, the caller's (laci_free). Logs what it does, its progress as "costs". Fails
 * LAC_UNSUPPORTED where no code is generated, LAC_INTERRUPTED, and as laci_cpu_tune.
 * measure/measure.c */
LAC_MUST_CHECK lac_status laci_cpu_measure_costs(char **text, lac_error *err);
/** Has this processor a table of its own, in the list or by LAC_COSTS? */
bool laci_cpu_has_costs(void);

#endif

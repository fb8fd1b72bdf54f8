/* SPDX-License-Identifier: Apache-2.0
 * Creation of an engine with tuning, and the file of timings. */
#ifndef LACI_API_RUN_TUNING_H
#define LACI_API_RUN_TUNING_H

#include "lacuna/engine.h"

typedef struct laci_engine laci_engine;
typedef struct laci_engine_options laci_engine_options;
typedef struct laci_graph laci_graph;

/** Checks the option `tuning`. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_tuning(lac_tuning tuning, lac_error *err);

/** Does laci_engine_create, tuned by the timings in the file at `path` (NULL: no file) and by new
 * measurements, which are added to the file. Fails as laci_engine_create, LAC_BAD_ARGUMENT (unknown
 * tuning). */
LAC_MUST_CHECK lac_status laci_tuned_engine_create(const laci_graph *graph,
                                                   const laci_engine_options *options,
                                                   lac_tuning tuning, const char *path,
                                                   laci_engine **engine, lac_error *err);

/** Adds a hint to the failure st of an engine, and returns st: the automatic engine can run the
 * network if every operator is known. */
lac_status laci_engine_add_failure_hint(const laci_graph *graph, const laci_engine_options *options,
                                        lac_status st, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * An engine that may be tuned, with the file of timings around its creation. */
#ifndef LACI_API_RUN_TUNING_H
#define LACI_API_RUN_TUNING_H

#include "lacuna/engine.h"

typedef struct laci_engine laci_engine;
typedef struct laci_engine_options laci_engine_options;
typedef struct laci_graph laci_graph;

/** laci_engine_create, tuned by what the file at `path` (NULL: there is none) says and what is
 * measured now, which is written there. Fails as that, LAC_BAD_ARGUMENT (no such tuning). */
LAC_MUST_CHECK lac_status laci_tuned_engine_create(const laci_graph *graph,
                                                   const laci_engine_options *options,
                                                   lac_tuning tuning, const char *path,
                                                   laci_engine **engine, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Inlines the Ifs of a network whose condition follows from the shapes of its inputs and from
 * stored tensors, as exporters write them for sizes that they leave open. */
#ifndef LACI_ENGINE_AUTO_INLINE_H
#define LACI_ENGINE_AUTO_INLINE_H

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_engine_options laci_engine_options;
typedef struct laci_graph laci_graph;

/** Infers the network for the shapes in the options, and builds *inlined: the graph without Ifs of
 * known condition and without branches that are never taken. Values and stored tensors keep their
 * indices, outputs their names. *inlined is `graph` where nothing is inlined or inference fails;
 * else it is allocated in the arena, and borrows from `graph`. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_auto_inline_branches(const laci_graph *graph,
                                                    const laci_engine_options *options,
                                                    laci_arena *arena, const laci_graph **inlined,
                                                    lac_error *err);

#endif

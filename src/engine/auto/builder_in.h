/* SPDX-License-Identifier: Apache-2.0
 * Creating the parts of the automatic engine: make.c, with fast_part.c for those of the fast engine
 * and choice.c for branches of If. */
#ifndef LACI_ENGINE_AUTO_BUILDER_IN_H
#define LACI_ENGINE_AUTO_BUILDER_IN_H

#include "engine/auto/auto_in.h"

/** The state of creating the parts of the automatic engine. */
typedef struct laci_auto_builder {
  laci_auto *a;
  const laci_engine_options *options;
  laci_budget budget;
  int64_t least_work; /* number of operations of the smallest part that gets an engine */
  bool *chosen;       /* [n_nodes] the node belongs to the current part */
  bool *listed;       /* [n_values] the value is already in the list of the current part's inputs */
  int refused;        /* number of a phase that the fast engine refused to plan; -1: none */
  lac_error why;
} laci_auto_builder;

/** Adds to the chosen nodes the constant nodes that they read: each part has its own copy, since
 * planning reads their content. */
void laci_auto_choose_constant_nodes(laci_auto_builder *m);
/** Allocates empty lists of the part's inputs and outputs. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_auto_begin_part(laci_auto_builder *m, laci_auto_part *part,
                                               lac_error *err);
/** Adds a value to the inputs of a part of the chosen nodes, unless it is stored, comes from a
 * chosen node, or is listed. */
void laci_auto_add_part_input(laci_auto_builder *m, laci_auto_part *part, int value);
/** Plans the chosen nodes by the engine of that name, with the part's inputs and outputs, and
 * allocates buffers of inputs that pass from part to part. Fails as laci_engine_create. */
LAC_MUST_CHECK lac_status laci_auto_make_engine(laci_auto_builder *m, const char *name,
                                                laci_auto_part *part, lac_error *err);
/** Makes a part of the fast nodes of a phase, if there are any. Fails as laci_engine_create. */
LAC_MUST_CHECK lac_status laci_auto_make_fast_part(laci_auto_builder *m, int phase, lac_error *err);

#endif

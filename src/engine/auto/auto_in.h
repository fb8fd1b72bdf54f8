/* SPDX-License-Identifier: Apache-2.0
 * What the automatic engine is made of: make.c makes it, run.c runs it, row.c tells of it. */
#ifndef LACI_ENGINE_AUTO_AUTO_IN_H
#define LACI_ENGINE_AUTO_AUTO_IN_H

#include "base/budget.h"
#include "base/memory.h"
#include "engine/auto/cut.h"
#include "engine/row.h"

/** A phase with anything in it. */
typedef struct laci_auto_part {
  laci_engine *engine; /* of fast nodes; NULL: exact ones, a step each */
  int *nodes;          /* [n_steps] exact ones, in their order */
  size_t first_step, n_steps;
  int n_inputs, n_outputs; /* of the engine */
  int *inputs, *outputs;   /* values */
  const laci_engine_port *input_ports, *output_ports;
  const void **in;
  void **out;
} laci_auto_part;

typedef struct laci_auto {
  laci_engine *whole; /* the fast engine, where it runs all; then nothing else is here */
  const laci_graph *graph;
  laci_auto_cut cut;
  laci_engine_graph own; /* with bytes of what exact nodes read */
  laci_arena memory;     /* of the parts */
  int n_parts;
  laci_auto_part *parts; /* [n_parts] */
  size_t n_steps;
  laci_engine_port *inputs, *outputs; /* of the network */
  void **at;    /* [n_values] where its content is in a run: ours or the caller's */
  bool *ours;   /* [n_values] `at` is to be freed */
  bool *walked; /* [n_values] exact nodes read it, or it comes out as it is */
  laci_pool *pool;
  laci_stepper *walk; /* of the last run: it has the results of exact nodes */
  laci_budget budget; /* what is held in addition to the walk, and the limit */
  laci_budget held;   /* with the walk */
  laci_engine_memory planned;
  char *text;
} laci_auto;

LAC_MUST_CHECK lac_status laci_auto_create(const laci_graph *graph,
                                           const laci_engine_options *options, void **self,
                                           lac_error *err);
void laci_auto_destroy(void *self);
/** What all parts are, one after the other. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_auto_write_text(laci_auto *a, lac_error *err);
LAC_MUST_CHECK lac_status laci_auto_run(void *self, const void *const *inputs, void *const *outputs,
                                        const laci_engine_watch *watch, lac_error *err);

#endif

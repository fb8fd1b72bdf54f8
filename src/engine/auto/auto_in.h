/* SPDX-License-Identifier: Apache-2.0
 * The data of the automatic engine: make.c creates it, run.c runs it, row.c describes it; choice.h
 * is about branches of If. */
#ifndef LACI_ENGINE_AUTO_AUTO_IN_H
#define LACI_ENGINE_AUTO_AUTO_IN_H

#include "base/budget.h"
#include "engine/auto/cut.h"
#include "engine/row.h"

typedef struct laci_stepper laci_stepper;

typedef struct laci_auto_choice laci_auto_choice;

/** A part of the network: nodes of one phase (cut.h), either all for the fast engine or all for the
 * exact one, or an If with its branches. */
typedef struct laci_auto_part {
  laci_engine *engine; /* engine of the fast nodes; NULL: the part has exact nodes, one step each */
  laci_auto_choice *choice; /* an If of which a branch has an engine of its own; NULL: none */
  int *nodes;               /* [n_nodes] indices of the exact nodes, in the order in which they
                               run */
  size_t n_nodes;
  size_t first_step, n_steps; /* first_step: index of the part's first step among all steps of the
                                 network; n_steps: number of its steps */
  int n_inputs, n_outputs;    /* numbers of input and of output ports of `engine` */
  int *inputs, *outputs;      /* [n_inputs], [n_outputs] the value (its index) that each port of
                                 `engine` has */
  const laci_engine_port *input_ports, *output_ports;
  const void **in; /* [n_inputs] addresses that a run of `engine` reads */
  void **out;      /* [n_outputs] addresses that a run of `engine` writes */
} laci_auto_part;

typedef struct laci_auto {
  /* the fast engine, if it can run the whole network; no other member is then used */
  laci_engine *whole;
  const laci_graph *graph; /* the network, without Ifs whose condition is known (inline.h) */
  laci_arena inlined;      /* memory of `graph`, if it differs from the caller's */
  laci_auto_cut cut;
  laci_engine_graph own; /* the graph, with bytes of the stored tensors that exact nodes read */
  laci_arena memory;     /* memory of the parts' arrays */
  int n_parts;
  laci_auto_part *parts;              /* [n_parts] parts of the network, in the order in which they
                                         run */
  bool *delegated;                    /* [n_nodes] the node is in a branch of an If that has an
                                         engine of its own */
  size_t n_steps;                     /* number of steps of all parts */
  laci_engine_port *inputs, *outputs; /* the network's ports */
  /* [n_values] address of each value's content during a run, in memory of this engine or of the
   * caller */
  void **at;
  /* [n_values] the value is a result of an If with engines, and each run writes it to its buffer */
  bool *buffered;
  bool *ours; /* [n_values] the memory of the value in `at` belongs to this engine, and is freed
                 with it */
  bool
      *in_stepper; /* [n_values] the value is copied to the stepper before exact nodes run: an exact
                      node reads it, or it is an output that no node computes */
  laci_pool *pool;
  laci_stepper *stepper; /* exact engine, node by node, of the last run; it has the results of exact
                            nodes */
  laci_budget budget;    /* memory limit, and the memory held without the stepper */
  laci_budget budget_with_stepper; /* `budget` with the memory of `stepper` added */
  laci_engine_memory planned;
  laci_engine_exact exact; /* the nodes that run exactly */
  char *text;
} laci_auto;

/** Does a value go from part to part in its buffer (`at`), and not in the stepper? */
bool laci_auto_is_in_buffer(const laci_auto *a, int value);

LAC_MUST_CHECK lac_status laci_auto_create(const laci_engine_row *row, const laci_graph *graph,
                                           const laci_engine_options *options, void **self,
                                           lac_error *err);
void laci_auto_destroy(void *self);
/** Writes a->text, which describes all parts one after the other. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_auto_write_text(laci_auto *a, lac_error *err);
LAC_MUST_CHECK lac_status laci_auto_run(void *self, const void *const *inputs, void *const *outputs,
                                        const laci_engine_watch *watch, lac_error *err);

#endif

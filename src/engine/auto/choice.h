/* SPDX-License-Identifier: Apache-2.0
 * Ifs whose condition is known only when the network runs. Each branch is a network of its own with
 * its own automatic engine, planned in advance; a run computes the condition and runs the engine of
 * one branch. A branch that cannot be planned, or is too small, has no engine: its nodes run on the
 * exact engine, one by one.
 *
 *     condition --------+
 *     x --> then's engine --> results --+--> outputs of the If
 *     x --> else's engine --> results --+
 *
 * choice.c creates the engines, choice_run.c runs them. */
#ifndef LACI_ENGINE_AUTO_CHOICE_H
#define LACI_ENGINE_AUTO_CHOICE_H

#include "engine/auto/auto_in.h"

typedef struct laci_auto_builder laci_auto_builder;

/** A branch of an If. */
typedef struct laci_auto_branch {
  laci_auto_part part; /* its engine; NULL: its nodes run exactly. `outputs` are the results that
                          the If reads, each once */
  int *buffers; /* [part.n_outputs] the output of the If in whose buffer the engine writes the
                          result; -1: there is none */
  void **own;   /* [part.n_outputs] else the memory where it writes the result; NULL: the
                          result is open, or has a buffer */
} laci_auto_branch;

struct laci_auto_choice {
  int node;                     /* the If */
  laci_auto_branch branches[2]; /* then, else */
  laci_engine_port *ports;      /* [n_outputs of the If] ports of outputs that are buffered */
  int *result_ports[2]; /* [n_outputs of the If] the output port of each branch's engine that
                                  has the result for each output; -1: nobody reads the output */
};

/** Creates the engines of the branches of node `node`, an If outside of all bodies. *choice: NULL
 * where no branch gets an engine, else allocated in m->a->memory; `branches` have to be
 * destroyed. Marks the nodes of branches with engines as delegated. Fails LAC_NO_MEMORY, and as
 * laci_engine_create does for lack of threads. */
LAC_MUST_CHECK lac_status laci_auto_make_choice(laci_auto_builder *m, int node,
                                                laci_auto_choice **choice, lac_error *err);
/** Destroys the engines of the branches. choice NULL: does nothing. */
void laci_auto_destroy_choice(laci_auto_choice *choice);

/** Is the node of a part's list a step of the exact engine? Nodes of branches with engines are not,
 * nor is an If whose branches both have one. */
bool laci_auto_is_exact_step(const laci_auto *a, const laci_auto_part *part, int node);
/** Is the node in a branch of the If? */
bool laci_auto_is_in_choice(const laci_graph *graph, const laci_auto_choice *choice, int node);

/** Runs the branch that the condition chooses, and sets the outputs of the If. part: the part whose
 * `choice` is run. */
LAC_MUST_CHECK lac_status laci_auto_run_choice(laci_auto *a, const laci_auto_part *part,
                                               const laci_engine_watch *watch, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the files of the plain engine share: values.c (memory of values), plain.c (a step) and
 * loop.c (bodies). */
#ifndef LACI_ENGINE_PLAIN_PLAIN_IN_H
#define LACI_ENGINE_PLAIN_PLAIN_IN_H

#include "engine/plain/plain.h"
#include "graph/graph.h"

struct laci_plain {
  const laci_graph *graph;
  laci_stepper_load *load;
  void *context;
  laci_pool *pool;
  int64_t max_elements, keep_elements; /* maximum number of elements of any value, and of a stored
                                          tensor that is kept between nodes */
  laci_buf **values; /* [n_values] content of each value; NULL: not computed, or freed */
  int *readers_left; /* [n_values] number of nodes that still have to read the value */
  bool *from_data;   /* [n_values] the value depends on the content of an input */
  bool *replaced;    /* [n_values] the caller set the value: it is not loaded from the file again */
  bool *iterates;    /* [n_bodies] the loop has at least one iteration */
  bool *keeps_outer_values; /* [n_bodies] values that the loop reads from outside have more readers
                               counted, so that they live until the end of the loop */
  lac_status (*step)(laci_plain *run, int node, lac_error *err); /* laci_plain_step, which loop.c
                                                                    calls */
  int max_iterations; /* copy of laci_stepper_options.iterations */
  bool single;        /* copy of laci_stepper_options.single */
  bool unrounded;     /* copy of laci_stepper_options.unrounded */
  /* iterations that all loops have run so far, not counting the first one of each loop */
  int64_t n_iterations;
  laci_budget *budget; /* memory limit and memory held; NULL: no limit */
  int last;            /* index of the node that was stepped last, whose inputs and outputs still
                          exist; -1: none */
};

/* ---- values.c ---- */

/** Returns the bytes that a value of that type takes in this engine: 8 for each element. */
uint64_t laci_plain_bytes_of_type(const laci_type *type);
/** Adds a value of that type to the budget. */
void laci_plain_add_to_budget(laci_budget *budget, const laci_graph *graph, int value,
                              const laci_type *type);
/** Loads a stored tensor unless its content is in memory already. */
LAC_MUST_CHECK lac_status laci_plain_load_value(laci_plain *run, int value, lac_error *err);

/** Replaces the content of a value by `take` (NULL: none), of which it takes ownership. */
void laci_plain_replace_value(laci_plain *run, int value, laci_buf *take);
/** Checks that the budget allows a value of that type. Fails LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_plain_check_budget(laci_plain *run, int value, const laci_type *type,
                                                  lac_error *err);
/** Makes sure that an operand has content: loads a stored tensor, and fails for a value that was
 * not computed. */
LAC_MUST_CHECK lac_status laci_plain_require_value(laci_plain *run, const laci_node *node,
                                                   int value, lac_error *err);
/** Returns the value of read number `at` of a node (inputs, then captures); -1: there is none, or
 * an earlier read has the same value. */
int laci_plain_nth_read(const laci_node *node, int at);
/** Frees a value whose readers have all run. A large stored tensor is freed after each reader, and
 * loaded again. */
void laci_plain_release_value(laci_plain *run, int value);
/** Frees the values that the last step kept for the caller. */
void laci_plain_release_last_step(laci_plain *run);

/* ---- loop.c ---- */

/** Shall the node run? False if it is in a branch that is not taken or a loop without
 * iterations. */
bool laci_plain_is_active(const laci_plain *run, const laci_node *node);
/** Runs a control node (If, Loop, Scan: begin or end of a body). The end of a loop runs all
 * iterations but the first one, whose nodes the caller has stepped. */
LAC_MUST_CHECK lac_status laci_plain_run_control_node(laci_plain *run, int node, lac_error *err);

#endif

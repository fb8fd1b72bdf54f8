/* SPDX-License-Identifier: Apache-2.0
 * What the files of the plain engine share: values.c (what is held), plain.c (a step) and
 * loop.c (bodies). */
#ifndef LACI_ENGINE_PLAIN_PLAIN_IN_H
#define LACI_ENGINE_PLAIN_PLAIN_IN_H

#include "engine/plain/plain.h"
#include "graph/graph.h"
#include "tensor/buf.h"

struct laci_plain {
  const laci_graph *graph;
  laci_stepper_load *load;
  void *context;
  laci_pool *pool;
  int64_t max_elements, keep_elements;
  laci_buf **values; /* [n_values] */
  int *readers_left; /* [n_values] */
  bool *from_data;   /* [n_values] it depends on the content of an input */
  bool *replaced;    /* [n_values] set by the caller: never loaded from the file again */
  bool *iterates;    /* [n_bodies] of a loop: it has an iteration at all */
  bool *held;        /* [n_bodies] of a loop: what it reads from outside counts more readers */
  lac_status (*step)(laci_plain *run, int node, lac_error *err); /* laci_plain_step, for loop.c */
  int max_iterations;   /* laci_stepper_options.iterations */
  bool single;          /* laci_stepper_options.single */
  bool unrounded;       /* the same */
  int64_t n_iterations; /* taken by all loops beyond their first ones */
  laci_budget *budget;  /* NULL: no limit */
  int last;             /* node stepped last, whose inputs and outputs are still there; -1: none */
};

/* values.c */

/** What a value of that type takes, as this engine holds it. */
uint64_t laci_plain_bytes(const laci_type *type);
/** Adds a value of that type to what is held. */
void laci_plain_count(laci_budget *budget, const laci_graph *graph, int value,
                      const laci_type *type);
/** Loads a stored tensor that is not there yet. */
LAC_MUST_CHECK lac_status laci_plain_load(laci_plain *run, int value, lac_error *err);

/** Gives a value content, which is taken, in place of what it had; NULL: none. */
void laci_plain_put(laci_plain *run, int value, laci_buf *take);
/** Does memory allow for a value of that type? */
LAC_MUST_CHECK lac_status laci_plain_make_sure(laci_plain *run, int value, const laci_type *type,
                                               lac_error *err);
/** Sees to it that an operand is there. */
LAC_MUST_CHECK lac_status laci_plain_find(laci_plain *run, const laci_node *node, int value,
                                          lac_error *err);
/** The at-th value that a node reads (inputs, then captures); -1: none, or read before. */
int laci_plain_read(const laci_node *node, int at);
/** Frees a value that nobody is to read any more. */
void laci_plain_release(laci_plain *run, int value);
/** Frees what the last step left. */
void laci_plain_release_last(laci_plain *run);

/* loop.c */

/** Is the node to be run: are the bodies that contain it taken? */
bool laci_plain_is_active(const laci_plain *run, const laci_node *node);
/** A node that steers the run. The end of a loop runs all iterations but the first, which was
 * stepped. */
LAC_MUST_CHECK lac_status laci_plain_iterate(laci_plain *run, int node, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What an engine is made of, for those who write one: a row of functions over an object of its own
 * (`self`), which engine.c calls. The functions mean what those of engine.h say; none is called by
 * two threads at once for the same object.
 *
 * The engines of this house are in engine.def; a plug-in or a test adds its row at run time. */
#ifndef LACI_ENGINE_ROW_H
#define LACI_ENGINE_ROW_H

#include "engine/engine.h"
#include "graph/graph.h"

/** Walking node by node, as far as an engine offers it; all functions are there. */
typedef struct laci_stepping {
  lac_status (*create)(const laci_graph *graph, const laci_stepper_options *options, void **self,
                       lac_error *err);
  void (*destroy)(void *self);
  void (*set)(void *self, int value, laci_buf *take);
  lac_status (*step)(void *self, int node, lac_error *err);
  const laci_buf *(*value)(const void *self, int value);
  lac_status (*plan)(const laci_graph *graph, const laci_type *types, const bool *skipped,
                     laci_budget *budget, lac_error *err);
} laci_stepping;

/** What an engine can do with a node for given shapes of the inputs. */
typedef enum laci_engine_reach {
  LACI_REACH_NOT,      /* it does not run it, or the shapes of its results come from data */
  LACI_REACH_RUNS,     /* it runs it in every run */
  LACI_REACH_CONSTANT, /* its results are the same in every run */
} laci_engine_reach;

/** What an engine finds of a graph that it need not be able to run. */
typedef struct laci_engine_reached {
  laci_engine_reach *nodes; /* [n_nodes] */
  laci_type *types; /* [n_values] in: what is known of results that the engine does not make,
                       of unknown shape where nothing is; out: with those that it does */
  int first;        /* the first node that it does not run; -1: it runs all */
  lac_error *why;   /* what it lacks there */
} laci_engine_reached;

typedef struct laci_engine_row {
  const char *name; /* unique in the list */
  bool (*supports)(const laci_graph *graph, const laci_node *node, lac_error *why);
  /** *self stays NULL on failure. */
  lac_status (*create)(const laci_graph *graph, const laci_engine_options *options, void **self,
                       lac_error *err);
  void (*destroy)(void *self);
  int (*inputs)(const void *self, const laci_engine_port **ports);
  int (*outputs)(const void *self, const laci_engine_port **ports);
  /** watch: NULL, or told of each step by the two functions below. */
  lac_status (*run)(void *self, const void *const *inputs, void *const *outputs,
                    const laci_engine_watch *watch, lac_error *err);
  /* The rest may be NULL. */
  int (*threads)(const void *self);                             /* 1 */
  laci_engine_memory (*planned)(const void *self);              /* nothing */
  const char *(*text)(const void *self);                        /* "" */
  size_t (*step_count)(const void *self);                       /* 0 */
  laci_engine_step (*step_look)(const void *self, size_t step); /* there with step_count */
  size_t (*output_step)(const void *self, int port);            /* when the run has ended */
  lac_status (*measure_costs)(char **text, lac_error *err);     /* it has none to measure */
  bool (*knows_costs)(void);                                    /* yes: it asks for none */
  bool (*bf16)(void);                                    /* can it compute in bf16 here? no */
  laci_engine_exact (*exact)(const void *self);          /* nothing is */
  const laci_buf *(*result)(const void *self, int port); /* NULL */
  /** How far it gets. What it does not run is none of its failures: LAC_NO_MEMORY,
   * LAC_MEMORY_LIMIT, and as create does for an input. NULL: not known. */
  lac_status (*reach)(const laci_graph *graph, const laci_engine_options *options,
                      laci_engine_reached *reached, lac_error *err);
  const laci_stepping *stepping; /* it does not step */
} laci_engine_row;

/** Adds an engine to the list, for good: the row stays the caller's and lives as long as the
 * process. Fails LAC_EXISTS (there is one of that name, another row), LAC_BAD_ARGUMENT (a
 * function or the name is missing), LAC_UNSUPPORTED (the list is full). Any thread. */
LAC_MUST_CHECK lac_status laci_engine_register(const laci_engine_row *row, lac_error *err);

/** As row->reach of the engine of that name. Fails LAC_UNSUPPORTED where it has none. */
LAC_MUST_CHECK lac_status laci_engine_reach_of(const char *engine, const laci_graph *graph,
                                               const laci_engine_options *options,
                                               laci_engine_reached *reached, lac_error *err);

/* ---- What engines have in common ---- */

/** Fills the port of a value that is of `type`. Fails LAC_UNSUPPORTED where it is neither of floats
 * nor of integers, or its shape is not known. */
LAC_MUST_CHECK lac_status laci_engine_port_init(const laci_graph *graph, int value,
                                                const laci_type *type, laci_engine_port *port,
                                                lac_error *err);
/** Are all values to be observed values of the graph, and is there a function? NULL: no one
 * observes. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_engine_observer_check(const laci_graph *graph,
                                                     const laci_engine_observer *observer,
                                                     lac_error *err);
/** Adds the port's bytes under its name. */
void laci_engine_port_count(const laci_graph *graph, int value, const laci_engine_port *port,
                            laci_budget *budget);

/** Is a run to end here? */
bool laci_engine_interrupted(const laci_engine_watch *watch);
/** Before a step of a run; what it returns is for laci_engine_step_ends. watch: NULL is fine. */
double laci_engine_step_begins(const laci_engine_watch *watch, size_t step);
/** After it, where it did not fail. Fails as watch->between does. */
LAC_MUST_CHECK lac_status laci_engine_step_ends(const laci_engine_watch *watch, size_t step,
                                                double begin, lac_error *err);

/** A port's elements (`bytes`) as a tensor of the port's shape and of type dtype, which has the
 * port's class. */
LAC_MUST_CHECK lac_status laci_engine_port_load(const laci_engine_port *port, lac_dtype dtype,
                                                const void *bytes, laci_buf **buf, lac_error *err);
/** The reverse. Fails LAC_INTERNAL where buf (NULL: not computed) is not what the port holds. */
LAC_MUST_CHECK lac_status laci_engine_port_store(const laci_engine_port *port, const laci_buf *buf,
                                                 void *bytes, lac_error *err);

/** A graph seen through a copy of its struct, whose stored tensors have bytes of their own where
 * the caller's are not in memory; nothing else of it is copied. */
typedef struct laci_engine_graph {
  laci_graph graph; /* `stored` is ours, [n_stored] */
  uint8_t *bytes;   /* of all stored tensors that were fetched; NULL: none */
  size_t size_bytes;
} laci_engine_graph;

/** What is fetched is added to the budget, and not fetched above it. skipped: stored tensors that
 * nobody reads, [n_stored]; NULL: none. Clear it in any case. Fails as options->fetch,
 * LAC_MEMORY_LIMIT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_graph_init(laci_engine_graph *own, const laci_graph *graph,
                                                 const laci_engine_options *options,
                                                 const bool *skipped, laci_budget *budget,
                                                 lac_error *err);
void laci_engine_graph_clear(laci_engine_graph *own);

/** LAC_UNSUPPORTED where the node's operator is not declared, or it has no evaluation. */
LAC_MUST_CHECK lac_status laci_engine_node_check(const laci_node *node, lac_error *err);

/** Multiplications and additions of a product, by the node alone and the shapes of its two
 * operands and its result; 0: it is none. */
int64_t laci_engine_node_flops(const laci_node *node, const laci_shape *x, const laci_shape *w,
                               const laci_shape *y);

#endif

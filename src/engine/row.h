/* SPDX-License-Identifier: Apache-2.0
 * What an engine consists of, for those who write one: a row of functions over its own object
 * (`self`), which engine.c calls. They mean the same as the functions of engine.h with these names.
 * Functions without an object get the row, which may be part of a larger struct with their data. No
 * two threads call them at the same time for the same object.
 *
 * The built-in engines are in engine.def; a test adds its row at run time, and so does plugin/ for
 * an engine from a shared object. */
#ifndef LACI_ENGINE_ROW_H
#define LACI_ENGINE_ROW_H

#include "engine/engine.h"
#include "graph/graph.h"

typedef struct laci_stepper_options laci_stepper_options;

/** The functions of an engine that can step node by node; none is NULL. */
typedef struct laci_stepper_functions {
  lac_status (*create)(const laci_graph *graph, const laci_stepper_options *options, void **self,
                       lac_error *err);
  void (*destroy)(void *self);
  void (*set)(void *self, int value, laci_buf *take);
  lac_status (*step)(void *self, int node, lac_error *err);
  void (*skip)(void *self, int node);
  const laci_buf *(*value)(const void *self, int value);
  lac_status (*plan)(const laci_graph *graph, const laci_type *types, const bool *skipped,
                     laci_budget *budget, lac_error *err);
} laci_stepper_functions;

/** What an engine can do with a node for given shapes of the inputs. */
typedef enum laci_engine_reach {
  LACI_REACH_NOT,      /* the engine does not run it, or the shapes of its results depend on data */
  LACI_REACH_RUNS,     /* the engine computes the node in every run */
  LACI_REACH_CONSTANT, /* the node's results are the same in every run */
} laci_engine_reach;

/** What an engine can run of a graph, which it need not be able to run as a whole. */
typedef struct laci_engine_reached {
  laci_engine_reach *nodes; /* [n_nodes] out: what the engine can do with each node */
  laci_type *types; /* [n_values] in: types of the values that the engine does not compute, of
                       unknown shape where it is not known; out: also the types of the values that
                       it computes */
  int first;        /* out: index of the first node that the engine does not run; -1: it runs all
                       nodes */
  lac_error *why;   /* out: what the engine lacks to run the node `first` */
  const char **reasons; /* [n_nodes] out: what the engine lacks to run each node, a text in
                           `memory`; NULL: not wanted */
  laci_arena *memory;   /* holds the texts of `reasons` */
} laci_engine_reached;

/** A row of the list of engines: its name and functions. */
typedef struct laci_engine_row laci_engine_row;
struct laci_engine_row {
  const char *name; /* unique in the list */
  bool (*supports)(const laci_engine_row *row, const laci_graph *graph, const laci_node *node,
                   lac_error *why);
  /** creates the engine's object for a graph; *self stays NULL on failure */
  lac_status (*create)(const laci_engine_row *row, const laci_graph *graph,
                       const laci_engine_options *options, void **self, lac_error *err);
  void (*destroy)(void *self);
  int (*inputs)(const void *self, const laci_engine_port **ports);
  int (*outputs)(const void *self, const laci_engine_port **ports);
  /** watch: NULL, or informed of each step by laci_engine_begin_step and laci_engine_end_step. */
  lac_status (*run)(void *self, const void *const *inputs, void *const *outputs,
                    const laci_engine_watch *watch, lac_error *err);
  /* The following may be NULL; their comments say what an engine without them answers. */
  int (*threads)(const void *self);                /* number of threads; NULL: 1 */
  laci_engine_memory (*planned)(const void *self); /* planned memory; NULL: 0 bytes */
  const char *(*text)(const void *self);           /* the plan as text; NULL: "" */
  size_t (*step_count)(const void *self);          /* number of steps of a run; NULL: 0 */
  laci_engine_step (*step_info)(const void *self, size_t step); /* NULL only if step_count is
                                                                   NULL */
  size_t (*output_step)(const void *self, int port);            /* laci_engine_output_step; NULL:
                                                                   the end of the run */
  lac_status (*measure_costs)(char **text, lac_error *err);     /* laci_engine_measure_costs; NULL:
                                                                   not supported */
  bool (*knows_costs)(void);                                    /* laci_engine_has_cost_table; NULL:
                                                                   true */
  laci_engine_exact (*exact)(const void *self);                 /* laci_engine_describe_exact_nodes;
                                                                   NULL: no nodes */
  /** As laci_engine_list_nodes; laci_engine_find_node finds a node of `graph`. */
  void (*nodes)(const void *self, const laci_graph *graph,
                laci_engine_node *nodes);                /* NULL: all nodes are LACI_RUNNER_FAST */
  const laci_buf *(*result)(const void *self, int port); /* laci_engine_result; NULL: no results */
  /** Finds which nodes the engine can run. A node that it cannot run is no failure. Fails
   * LAC_NO_MEMORY, LAC_MEMORY_LIMIT, and as create does for an input. NULL: not known. */
  lac_status (*reach)(const laci_graph *graph, const laci_engine_options *options,
                      laci_engine_reached *reached, lac_error *err);
  lac_status (*update)(void *self, const lac_engine_update *update,
                       lac_error *err); /* laci_engine_update_weights; NULL: not supported */
  /** Can the engine compute in this type? NULL: in f32 alone. */
  laci_engine_dtype (*computes_in)(const laci_engine_row *row, lac_dtype dtype);
  const laci_stepper_functions *stepping; /* NULL: the engine cannot step node by node */
};

/** Adds an engine to the list permanently; the row is borrowed and must live as long as the
 * process. Fails LAC_EXISTS (another row has this name), LAC_BAD_ARGUMENT (a function or the name
 * is missing), LAC_UNSUPPORTED (the list is full). May be called by any thread. */
LAC_MUST_CHECK lac_status laci_engine_register(const laci_engine_row *row, lac_error *err);

/** Calls row->reach of the engine of that name. Fails LAC_UNSUPPORTED where it is NULL. */
LAC_MUST_CHECK lac_status laci_engine_find_runnable_nodes(const char *engine,
                                                          const laci_graph *graph,
                                                          const laci_engine_options *options,
                                                          laci_engine_reached *reached,
                                                          lac_error *err);

/* ---- What engines have in common ---- */

/** Fills the port of a value of type `type`. Fails LAC_UNSUPPORTED where the elements are neither
 * floats nor integers, or the shape is not known. */
LAC_MUST_CHECK lac_status laci_engine_port_init(const laci_graph *graph, int value,
                                                const laci_type *type, laci_engine_port *port,
                                                lac_error *err);
/** Fails LAC_BAD_SHAPE for an input with a size that is not known. types: [n_values]. */
LAC_MUST_CHECK lac_status laci_engine_check_inputs(const laci_graph *graph, const laci_type *types,
                                                   lac_error *err);
/** Checks that an observer (NULL: none) has a function and names values of the graph. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_engine_observer_check(const laci_graph *graph,
                                                     const laci_engine_observer *observer,
                                                     lac_error *err);
/** Adds the port's bytes to the budget, under the name of the value. */
void laci_engine_port_add_to_budget(const laci_graph *graph, int value,
                                    const laci_engine_port *port, laci_budget *budget);

/** Shall the run end here, because the process was interrupted? Never if watch->ignores_interrupt.
 * */
bool laci_engine_is_interrupted(const laci_engine_watch *watch);
/** Called before each step of a run; returns the time to be passed to laci_engine_end_step. watch
 * may be NULL. */
double laci_engine_begin_step(const laci_engine_watch *watch, size_t step);
/** Called after each step that did not fail. Fails as watch->after_step does. */
LAC_MUST_CHECK lac_status laci_engine_end_step(const laci_engine_watch *watch, size_t step,
                                               double begin, lac_error *err);

/** Converts `bytes`, elements in the port's type, to a new tensor of the port's shape and of type
 * dtype, which must be of the same class (floats or integers). */
LAC_MUST_CHECK lac_status laci_engine_port_load(const laci_engine_port *port, lac_dtype dtype,
                                                const void *bytes, laci_buf **buf, lac_error *err);
/** Converts a tensor to elements in the port's type, written to `bytes`. Fails LAC_INTERNAL where
 * buf (NULL: not computed) is not of the port's class and shape. */
LAC_MUST_CHECK lac_status laci_engine_port_store(const laci_engine_port *port, const laci_buf *buf,
                                                 void *bytes, lac_error *err);

/** A shallow copy of a graph. Only `stored` differs: stored tensors that the caller does not have
 * in memory point to bytes fetched here. */
typedef struct laci_engine_graph {
  laci_graph graph; /* `stored` [n_stored] is owned; all else is borrowed */
  uint8_t *bytes;   /* bytes of the fetched stored tensors; NULL: none */
  size_t size_bytes;
} laci_engine_graph;

/** Fetches stored tensors and counts their bytes in the budget, never above its limit. skipped:
 * [n_stored] stored tensors that are not needed; NULL: none. Clear `own` in any case. Fails as
 * options->fetch, LAC_MEMORY_LIMIT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_graph_init(laci_engine_graph *own, const laci_graph *graph,
                                                 const laci_engine_options *options,
                                                 const bool *skipped, laci_budget *budget,
                                                 lac_error *err);
void laci_engine_graph_clear(laci_engine_graph *own);

/** Fills `nodes`, [n_nodes of graph], with how the engine runs them. `graph` is the graph of the
 * engine, or one of which the graph of the engine is a part, with the same values. Entries of
 * nodes without a step in a run are left as they are. */
void laci_engine_list_nodes(const laci_engine *engine, const laci_graph *graph,
                            laci_engine_node *nodes);
/** Returns the index in `graph` of `node`, a node of a part of the graph with the same values; -1:
 * the node has no output. */
int laci_engine_find_node(const laci_graph *graph, const laci_node *node);

/** Fails LAC_UNSUPPORTED where the node's operator is not declared, or has no evaluation. */
LAC_MUST_CHECK lac_status laci_engine_check_has_evaluation(const laci_node *node, lac_error *err);

/** Counts the multiplications and additions of a matrix product or convolution from its node and
 * the shapes of its two operands and its result; 0 for other operators. */
int64_t laci_engine_node_flops(const laci_node *node, const laci_shape *x, const laci_shape *w,
                               const laci_shape *y);

/** Writes a text to `to` as snprintf does, and returns its length. to NULL: only returns the
 * length, for a text that is measured before it is written. */
size_t laci_engine_format_text(char *to, size_t capacity, const char *format, ...) LAC_PRINTF(3, 4);

#endif

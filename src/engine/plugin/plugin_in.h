/* SPDX-License-Identifier: Apache-2.0
 * The data of engines from plug-ins (lacuna/engine_plugin.h): load.c adds one to the list, make.c
 * plans a network on it, view.c shows it the network, host.c works for it, run.c runs it, report.c
 * says what it does. */
#ifndef LACI_ENGINE_PLUGIN_PLUGIN_IN_H
#define LACI_ENGINE_PLUGIN_PLUGIN_IN_H

#include "base/memory.h"
#include "engine/row.h"
#include "lacuna/engine_plugin.h"

enum { LACI_PLUGIN_MOST_NAME = 63 };

/** A plug-in's engine in the list of engines; it exists until the process ends. */
typedef struct laci_plugin_row {
  laci_engine_row row; /* first: engine.c passes its address */
  lac_engine_plugin engine;
  lac_engine_device device; /* copy of the device; engine.device is NULL or points to it */
  char name[LACI_PLUGIN_MOST_NAME + 1];
} laci_plugin_row;

/** A graph as a plug-in sees it. It borrows the graph's names, lists and bytes. */
typedef struct laci_plugin_view {
  lac_graph_view graph;
  lac_graph_value **values; /* the array that graph.values points to, writable */
  laci_arena arena;
} laci_plugin_view;

/** A value that a run reads or writes. */
typedef struct laci_plugin_buffer {
  laci_engine_port port;
  int value;
  int at;       /* index of the network's port that has the value; -1: it is an output of the engine
                   only because it is observed */
  void *host;   /* memory for the value on the host, owned; NULL: the caller's buffer is used */
  void *device; /* memory for the value on the engine's device, owned; NULL: the engine uses host
                   memory */
} laci_plugin_buffer;

/** A value that a run shows to the caller's observer. */
typedef struct laci_plugin_seen {
  int value;
  laci_engine_port port;
  bool is_done; /* the value was shown in this run */
} laci_plugin_seen;

/** A network that is planned on a plug-in's engine. */
typedef struct laci_plugin_plan {
  const laci_plugin_row *row;
  laci_engine_graph own; /* the graph, with bytes of all stored tensors */
  laci_type *types;      /* [n_values] type of each value */
  laci_plugin_view view;
  lac_engine_request request;
  lac_engine_host host;
  lac_context *context; /* gets log lines of the plug-in's threads outside of any call;
                           NULL: those go to the process's context */
  laci_budget *budget;  /* the memory limit while the plan is made; NULL: no limit, or planning is
                           done */
  laci_pool *pool;
  void *self; /* the object that the plug-in's `create` made */

  laci_engine_port *input_ports, *output_ports; /* ports of the network */
  /* What the engine computes: each computed value among the network's outputs once, then observed
   * values, if the engine does not show these itself. */
  int n_results;
  int *results_of;             /* [n_outputs] index in `results` of each output of the network; -1:
                                  the output is an input or a stored tensor */
  laci_plugin_buffer *inputs;  /* [n_inputs] buffer of each input of the network */
  laci_plugin_buffer *results; /* [n_results] buffer of each value that the engine outputs */
  int *result_values;          /* [n_results] index of each value that the engine outputs */
  const void **in;             /* [n_inputs] addresses that a run passes to the engine */
  void **out;                  /* [n_results] addresses that a run passes to the engine */

  laci_engine_on_value *on_value; /* receives observed values; NULL: nothing is observed */
  void *on_value_context;         /* first argument of `on_value` */
  int n_seen;
  laci_plugin_seen *seen; /* [n_seen] the values that the observer sees */
  int *seen_at;           /* [n_values] index in `seen`; -1: not observed */
  int *shown;             /* [request.n_observed] the values that the engine itself shows to the
                             observer; request.observed points here */
  void *scratch;          /* host memory for the content of a value that the engine shows; NULL: the
                             engine has no device */

  int n_evaluated;    /* number of nodes that the library computes */
  const char *reason; /* why the library computes the first node that it does; NULL: it computes
                         none */
  /* [n_nodes] why the library computes the node, a text in the view's arena; NULL: the engine
   * computes it */
  const char **reasons;
  size_t n_steps;
  laci_engine_step *steps; /* [n_steps] the engine's steps; their texts are in the view's arena */
  laci_engine_memory memory;
  size_t device_bytes, counted_bytes; /* number of bytes on the device, and of bytes that
                                         lac_engine_host.count_memory was called with */
  char *text;

  /* the state of a run: this field and those below */
  const laci_engine_watch *watch;
  size_t next_step;
  lac_status ended; /* first failure of a function that the plug-in called in this run */
  lac_error why_ended;
} laci_plugin_plan;

/** Fills the view with a whole graph, whose stored bytes must all be in memory. types:
 * [n_values]. */
LAC_MUST_CHECK lac_status laci_plugin_view_init(laci_plugin_view *view, const laci_graph *graph,
                                                const laci_type *types, lac_error *err);
/** Fills the view with one node, as number 0, and its values without their contents. */
LAC_MUST_CHECK lac_status laci_plugin_view_init_node(laci_plugin_view *view,
                                                     const laci_graph *graph, const laci_node *node,
                                                     lac_error *err);
void laci_plugin_view_clear(laci_plugin_view *view);

/** Asks what the engine does with a node of the view; an invalid answer counts as a refusal.
 * Writes *why unless the engine computes the node. */
lac_engine_answer laci_plugin_ask_about_node(const laci_plugin_row *row,
                                             const laci_plugin_view *view, int node,
                                             lac_error *why);
/** Converts a plug-in's status and error to ours: a failure's text names the engine, and says so
 * where the plug-in gave no reason. doing: "to plan the network". */
LAC_MUST_CHECK lac_status laci_plugin_check_status(const laci_plugin_row *row, const char *doing,
                                                   lac_status status, const lac_error *given,
                                                   lac_error *err);

LAC_MUST_CHECK lac_status laci_plugin_create(const laci_engine_row *row, const laci_graph *graph,
                                             const laci_engine_options *options, void **self,
                                             lac_error *err);
void laci_plugin_destroy(void *self);
LAC_MUST_CHECK lac_status laci_plugin_run(void *self, const void *const *inputs,
                                          void *const *outputs, const laci_engine_watch *watch,
                                          lac_error *err);
LAC_MUST_CHECK lac_status laci_plugin_update(void *self, const lac_engine_update *update,
                                             lac_error *err);

/** Fills p->host with the functions that the plug-in may call. */
void laci_plugin_host_init(laci_plugin_plan *p);
/** Writes a stored tensor's elements to `to`, as floats or int64_t, the types of ports. */
LAC_MUST_CHECK lac_status laci_plugin_read_stored(const laci_plugin_plan *p, int value, void *to,
                                                  lac_error *err);

/** Asks the engine for its steps, its memory and its text. Fails LAC_BAD_FILE where these cannot be
 * true. */
LAC_MUST_CHECK lac_status laci_plugin_describe(laci_plugin_plan *p, lac_error *err);

#endif

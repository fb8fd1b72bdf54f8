/* SPDX-License-Identifier: Apache-2.0
 * The contents of lac_session and of its plans: which call gets which engine, and which plans are
 * dropped.
 *
 * session.c creates and describes a session, session_run.c runs it, session_plans.c keeps the
 * plans. */
#ifndef LACI_API_RUN_SESSION_IN_H
#define LACI_API_RUN_SESSION_IN_H

#include <pthread.h>

#include "api/model/model_in.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "lacuna/engine.h"
#include "lacuna/session.h"

typedef struct laci_session_engine laci_session_engine;
typedef struct laci_session_plan laci_session_plan;

/** An engine and the buffers for a run. A call that took it uses it alone. */
struct laci_session_engine {
  laci_session_engine *next; /* next in its list: the plan's idle engines, or engines to be freed */
  laci_session_plan *plan;
  lac_engine *engine;
  uint64_t bytes; /* bytes of the engine's planned memory */
  int n_inputs, n_outputs;
  const lac_engine_port *inputs, *outputs;
  const void **in;  /* [n_inputs] buffers of a run */
  void **out;       /* [n_outputs] buffers of a run */
  void **allocated; /* [n_outputs] data that a run allocates for the caller's outputs */
  void **converted; /* [n_inputs] the caller's elements in the port's type; NULL until needed */
  void **results;   /* [n_outputs] elements that the caller does not take in this format; NULL until
                       needed */
  double *times;    /* [2 n_steps] times of a watched run: when each step began, then how long each
                       took; NULL until needed */
};

/** The function that is called for each step of a run. */
typedef struct laci_session_watcher {
  lac_on_step *on_step; /* function that is called for each step; NULL: none */
  void *context;
} laci_session_watcher;

/** All plans of a session. The lock guards every field after it; it is held for moments only. */
typedef struct laci_session_plans {
  /* Fixed at creation. */
  int most_plans, most_copies;
  uint64_t limit;         /* largest number of bytes that `planned_bytes` may reach */
  pthread_mutex_t tuning; /* held while layers are timed */
  pthread_mutex_t lock;
  pthread_cond_t gate;  /* signalled when no call is seeking memory any more */
  pthread_cond_t freed; /* signalled to the seeking call when an engine is given back, or work has
                          ended */
  bool sought;   /* a call is waiting for memory for its plan (the seeker): later calls wait at the
                    gate */
  int n_working; /* number of threads that make or free engines at this time, without the lock */
  laci_session_plan *first;
  int n_plans, n_engines;
  uint64_t planned_bytes; /* bytes of planned memory of all engines */
  uint64_t promised;      /* bytes that plans being made may take */
  uint64_t tick;          /* counts calls, to tell when a plan was used last */
  uint64_t n_planned, n_copied, n_dropped;
} laci_session_plans;

struct lac_session {
  lac_model *view;            /* view (laci_model_view_create) of the caller's model as it was when
                                 the session was created */
  lac_context *context;       /* context of all runs of the session; NULL: the process's */
  lac_engine_options options; /* options of every engine of the session, except for shapes */
  const laci_budget *base;    /* memory that the caller holds in addition, which counts with each
                              plan's; NULL: none */
  bool as_computed;           /* an output whose declared type is of the wrong class has the type in
                                  which it is computed; else it is refused */
  laci_parallel parallel;     /* runs parts on the caller's threads; parallel.run is NULL if it has
                                 none */
  char *engine, *timings;     /* the texts of `options` */
  lac_array *inputs, *outputs; /* names, types and shapes of the ports, as the model declares
                                  them */
  int n_inputs, n_outputs;
  laci_session_plans plans;
  bool is_watched;              /* a watcher is set; read and written atomically */
  laci_session_watcher watcher; /* the watcher that is set; guarded by plans.lock */
  lac_session *next;            /* next session in the list of all sessions of the process
                                   (session_fork.c) */
};

/** Initializes the plans; n_plans and n_copies are those of the options, not 0. */
void laci_session_plans_init(lac_session *session, int n_plans, int n_copies);
/** Frees all engines. */
void laci_session_plans_clear(lac_session *session);

/** Runs an engine that was taken, on the buffers that it holds. Reports its steps to the session's
 * watcher. */
LAC_MUST_CHECK lac_status laci_session_run_engine(lac_session *session, laci_session_engine *engine,
                                                  lac_error *err);

/** Returns an engine for inputs of these shapes, [n_inputs], for the calling thread alone, until it
 * is given back: one that nobody runs, a new one, or one that another thread gives back. */
LAC_MUST_CHECK lac_status laci_session_take_engine(lac_session *session, const laci_shape *shapes,
                                                   laci_session_engine **engine, lac_error *err);
void laci_session_give_back(lac_session *session, laci_session_engine *engine);

/* ---- Fork: all locks are held during it, so that the new process finds consistent plans ---- */

/** Adds the session to the list of the process's sessions; laci_session_list_remove removes it. */
void laci_session_list_add(lac_session *session);
void laci_session_list_remove(lac_session *session);
void laci_session_plans_before_fork(lac_session *session);
/** Called in the parent process after the fork. */
void laci_session_plans_after_fork(lac_session *session);
/** Called in the new process after the fork: drops engines that other threads were running or
 * making. */
void laci_session_plans_in_child(lac_session *session);

/** Fills the fields of *facts that describe the session's plans. */
void laci_session_plans_add_facts(lac_session *session, lac_session_facts *facts);

#endif

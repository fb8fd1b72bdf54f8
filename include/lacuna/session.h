/* SPDX-License-Identifier: Apache-2.0
 * Running a network from any number of threads, with shapes as they come. A session plans an engine
 * (engine.h) for each set of input shapes at its first use, and keeps the plans.
 *
 *   lac_session_options o = lac_session_options_default();
 *   lac_session_create(model, &o, &session, &err);
 *   lac_array x = {.dtype = LAC_DTYPE_F32, .rank = 2, .shape = {1, 128}, .data = values,
 *                  .size_bytes = sizeof values};
 *   lac_array y = {.name = "logits"};                          the library allocates its data
 *   lac_session_run(session, &x, 1, &y, 1, &err);
 *   lac_session_release(&y, 1);
 *
 * Threads. Any number of threads may call lac_session_run and lac_session_about of one session at
 * the same time. A plan is an engine, and further copies of it for callers that come while it runs.
 * An engine runs for one caller at a time. Others with the same shapes get a copy, or wait where
 * there may be no more copies (n_copies, max_memory). No caller waits for runs or for the planning
 * of other shapes, with two exceptions. If n_plans or max_memory is reached and every plan is in
 * use, a call with new shapes waits until a plan can be dropped. Later calls wait for it. With
 * tuning, shapes are planned one after the other, since layers are timed. A run uses `threads`
 * threads of the calling thread's OpenMP team: n callers at once need n times as many cores. The
 * function `parallel` in the options gives the part of a run that is Lacuna's own to the caller's
 * threads.
 *
 * Results. Equal inputs give equal bits, whichever thread runs and whichever copy computes, if
 * `tuning` is off. With tuning, copies may use other kernels unless `timings` names a file.
 *
 * Model. A session borrows the model, which must not be changed or destroyed before it. It reads
 * inferred shapes once, under the model's lock, so that other threads may call functions of a const
 * model at any time (model.h).
 *
 * Processes. A forked process may use its parent's sessions with 1 thread (engine.h says what holds
 * for more). Plans that other threads were running or making at the fork are left out there, and
 * their memory stays allocated. */
#ifndef LACUNA_SESSION_H
#define LACUNA_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/array.h"
#include "lacuna/dtype.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_model lac_model; /* lacuna/model.h */

/** A network that any number of threads can run; opaque. */
typedef struct lac_session lac_session;

/** How a session plans and runs a network, and how many plans it keeps. Start from
 * lac_session_options_default() and set fields. */
typedef struct lac_session_options {
  size_t size;         /* sizeof of this struct, set by lac_session_options_init */
  lac_run_options run; /* how each run is done: threads of one run, and max_memory of all engines
                          together, see run.h */
  int n_plans;         /* maximum number of plans that are kept, one for each set of input shapes;
                          beyond it, the least recently used plan that no caller runs is dropped. 0
                          (default): 16 */
  int n_copies;        /* maximum number of engines of one plan, which run at the same time; each
                          has its own copy of the weights. 0 (default): cores / threads, at least 1
                          */
  lac_parallel *parallel; /* function that runs the work of Lacuna's own kernels on the caller's
                             threads, `threads` parts at a time. These kernels compute sparse and
                             native layers, and all layers of the engine "plain". oneDNN's kernels
                             stay on the OpenMP run time, which starts its own threads if `threads`
                             is not 1. NULL (default): no threads of the caller */
  void *parallel_context; /* passed to parallel; default NULL */
} lac_session_options;

/** Facts about a session, at one moment. */
typedef struct lac_session_facts {
  size_t size;         /* sizeof of this struct, set by LAC_SIZED */
  const char *engine;  /* name of the engine, see lac_session_options; valid until the session is
                          destroyed */
  lac_dtype dtype;     /* type of the computation */
  int threads;         /* number of threads of one run */
  int n_plans;         /* number of plans kept now, one for each set of input shapes */
  int n_engines;       /* number of engines of these plans, copies included */
  uint64_t n_planned;  /* number of plans made so far */
  uint64_t n_copied;   /* number of copies of plans made so far */
  uint64_t n_dropped;  /* number of plans dropped so far */
  uint64_t bytes;      /* planned memory of all engines kept now: weights, values, ports */
  uint64_t max_memory; /* limit of `bytes` */
} lac_session_facts;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_session_options). */
LAC_API void lac_session_options_init(lac_session_options *options, size_t size);
LAC_DEFAULT(lac_session_options)

/** Creates a session. Nothing is planned yet: the first run with new shapes plans them. options:
 * copied; NULL: the defaults. *session is NULL on failure. Fails LAC_BAD_ARGUMENT (a field out of
 * range), LAC_UNSUPPORTED (a field that this library does not know is set), LAC_NOT_FOUND (no
 * engine of that name), LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_session_create(const lac_model *model,
                                                     const lac_session_options *options,
                                                     lac_session **session, lac_error *err);

/** Frees the session and its plans; no other thread may be in a call. Outputs that were not
 * released stay valid. NULL is fine. */
LAC_API void lac_session_destroy(lac_session *session);

/** Sets *inputs to the network's inputs in its order, without initializers that the file lists as
 * inputs, and returns their number. They have names, declared types and shapes; data is NULL. The
 * arrays are valid until the session is destroyed. */
LAC_API int lac_session_inputs(const lac_session *session, const lac_array **inputs);
/** Sets *outputs to the network's outputs in its order, as lac_session_inputs does. */
LAC_API int lac_session_outputs(const lac_session *session, const lac_array **outputs);

/** Runs the network once, planning it if these input shapes are new. Any thread.
 *  inputs   [n_inputs] every input of the network once, in any order
 *  outputs  [n_outputs] in and out: the outputs that the caller wants, each at most once, in any
 *           order. n_outputs 0: only plans and runs, as preparation
 * Elements given as f32 or i64 are not rounded to a narrower declared type of floats, and must be
 * in the range of a declared type of integers. Those of f64 are rounded to f32. A caller's output
 * buffer may be larger than its elements, and any alignment will do. Data of an output that is NULL
 * is allocated, and owned is set. On failure outputs are unchanged, and the caller's buffers are
 * undefined. Fails LAC_NOT_FOUND (an unknown name or index, or an input is missing), LAC_BAD_SHAPE,
 * and LAC_BAD_VALUE (an element out of range). Fails LAC_BAD_ARGUMENT for a NULL pointer, an array
 * given twice, or a type that is neither of the two. Also fails LAC_BAD_ARGUMENT if size_bytes of
 * an input are not those of its elements, or an output's buffer is too small. Fails as
 * lac_engine_create and lac_engine_run do, too; a plan that failed is not kept. Fails
 * LAC_MEMORY_LIMIT only if the plan alone needs more than max_memory. */
LAC_API LAC_MUST_CHECK lac_status lac_session_run(lac_session *session, const lac_array *inputs,
                                                  int n_inputs, lac_array *outputs, int n_outputs,
                                                  lac_error *err);

/** Plans for inputs of these shapes, unless there is a plan for them, and runs nothing.
 *  inputs   [n_inputs] every input of the network once, in any order, with type and shape; their
 *           data are not read, and may be NULL
 * Any thread. Fails as lac_session_run does before it runs. */
LAC_API LAC_MUST_CHECK lac_status lac_session_plan(lac_session *session, const lac_array *inputs,
                                                   int n_inputs, lac_error *err);

/** Frees the data of those of n arrays that are `owned`, and sets data to NULL and size_bytes to 0
 * there. Other arrays stay as they are. Any thread, also after lac_session_destroy. NULL is fine.
 */
LAC_API void lac_session_release(lac_array *outputs, int n);

/** A step of a run: one node, or several that are computed as one. The texts are valid during the
 * call that passes them. */
typedef struct lac_session_step {
  size_t size;          /* sizeof of the library's struct */
  const char *name;     /* name of the node; NULL: the step only changes a layout for the next
                           step */
  const char *op;       /* the node's operator with all that was fused into it */
  const char *kernel;   /* name of the kernel: oneDNN's name, "own" for a copy, "exact" for the
                           exact engine */
  bool sparse;          /* the kernel skips zeros of the weight */
  double begin_seconds; /* when the step began, by the system's monotonic clock (CLOCK_MONOTONIC) */
  double seconds;       /* how long the step took */
} lac_session_step;

/** A caller's function that gets the steps of a run. It is called after the run, on the run's
 * thread, for one step after the other. It must not call the session. */
typedef void lac_on_step(void *context, const lac_session_step *step);

/** Times the steps of all runs that begin from now on, and passes them to on_step. NULL: no run is
 * timed any more, which costs nothing. Runs that fail have no steps. Any thread; a run that began
 * before may call the earlier function until it ends. */
LAC_API void lac_session_watch(lac_session *session, lac_on_step *on_step, void *context);

/** Fills *facts. Any thread. */
LAC_API LAC_MUST_CHECK lac_status lac_session_about(lac_session *session, lac_session_facts *facts,
                                                    lac_error *err);

#ifdef __cplusplus
}
#endif
#endif

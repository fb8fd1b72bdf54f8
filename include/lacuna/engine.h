/* SPDX-License-Identifier: Apache-2.0
 * Running a network fast: an engine plans it once for fixed input shapes, and then runs it any
 * number of times.
 *
 *   lac_engine_options o = lac_engine_options_default();
 *   lac_engine_create(model, &o, &engine, &err);
 *   lac_engine_run(engine, inputs, outputs, &err);      pointers in the order of the ports
 *
 * It is the low-level form, on the caller's buffers and without a lock or a copy. A session
 * (session.h) plans such engines for any number of threads, and for shapes as they come.
 *
 * Threads. One thread at a time may use an engine; for any number of threads, and for shapes as
 * they come, see session.h. Several engines, of the same model or of different ones, may be created
 * and run at the same time from different threads. Each engine runs on its own `threads` threads,
 * so n engines at once need n times as many cores. Results do not depend on other work on the
 * machine; their last bits may depend on the number of threads.
 *
 * Memory. The OpenMP run time and oneDNN end the process if they cannot get a thread or a little
 * memory. Therefore threads are started as a test before the run time starts them. If only fewer
 * start, fewer are used, with a warning. 16 MB must be free before each oneDNN primitive is made
 * and before an engine's first run. A plan's memory is computed before it is allocated
 * (max_memory). Some cases cannot be caught. Another thread of the process takes the last memory in
 * between, a limit is lowered later, or the system has overcommitted memory. Or a limit of the
 * address space is too small even for the program's libraries, so that the loader fails.
 *
 * The threads belong to an OpenMP run time. In GNU's, waiting threads spin for milliseconds, which
 * is slow if other work needs the cores. Start such a program with GOMP_SPINCOUNT=1000, as the
 * command lacuna does for itself.
 *
 * Processes. A forked process does not have its parent's threads. The thread that forks may have
 * planned or run an engine of several threads before. Planning or running such an engine in the new
 * process then fails LAC_UNSUPPORTED, since the run time would wait forever for the missing
 * threads. An engine of 1 thread works, and so does everything after exec. Fork before the first
 * engine is made, or from a thread that has used none.
 *
 * Engines from plug-ins. lac_engine_load adds one to the list. What is said above of OpenMP and
 * oneDNN holds for the built-in engines alone. */
#ifndef LACUNA_ENGINE_H
#define LACUNA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_model lac_model; /* lacuna/model.h */

/** A network that is planned on an engine and can be run; opaque. */
typedef struct lac_engine lac_engine;

/** The shape of an input. A size of -1 keeps the size given in the model's file. */
typedef struct lac_engine_shape {
  const char *name;
  int rank; /* number of axes, 0 .. 8 */
  int64_t shape[8];
} lac_engine_shape;

/** How a network is planned. */
typedef struct lac_engine_options {
  size_t size;         /* sizeof of this struct, set by lac_engine_options_init */
  lac_run_options run; /* its `engine`: "auto" (NULL, the default) uses the fast engine, and the
                          operators' slow definitions for nodes that only these can run, see
                          lac_engine_about */
  const lac_engine_shape *shapes; /* shapes of inputs whose sizes the file leaves open; a symbolic
                                     size that several inputs share needs to be given only once */
  int n_shapes;                   /* length of `shapes`; default 0 */
} lac_engine_options;

/** An input or output in the format of the caller's buffer, row-major and packed. Its type is
 * LAC_DTYPE_F32 for all float types, LAC_DTYPE_I64 for integers and booleans. It is valid until the
 * engine is destroyed. */
typedef struct lac_engine_port {
  const char *name;
  lac_dtype dtype;
  int rank;          /* -1 for an open output of unknown rank */
  int64_t shape[8];  /* a size that depends on data is -1 */
  size_t size_bytes; /* 0 for an open output */
  bool open;         /* an output whose shape depends on data: call lac_engine_result after a run */
} lac_engine_port;

/** The memory of a plan. */
typedef struct lac_engine_memory {
  size_t size;         /* sizeof of this struct, set by LAC_SIZED */
  size_t arena_bytes;  /* bytes of the block that holds all values between steps */
  size_t weight_bytes; /* bytes of the weights, in the layouts that the kernels need */
} lac_engine_memory;

/** Facts about an engine and its network. The texts are valid until the engine is destroyed. */
typedef struct lac_engine_facts {
  size_t size;              /* sizeof of this struct, set by LAC_SIZED */
  const char *name;         /* name of the engine */
  lac_dtype dtype;          /* type of the computation */
  int n_nodes;              /* number of nodes of the network */
  int n_exact;              /* number of nodes that run by the operators' slow definitions: because
                       the fast engine cannot run them ("auto"), or an engine from a plug-in has no
                       code for them; 0 for other engines */
  const char *exact_reason; /* why the first node that n_exact counts cannot be run fast; NULL:
                               n_exact is 0 */
} lac_engine_facts;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_engine_options). */
LAC_API void lac_engine_options_init(lac_engine_options *options, size_t size);
LAC_DEFAULT(lac_engine_options)

/** Loads a plug-in, a shared object that offers an engine (engine_plugin.h). *name is the engine's
 * name, for lac_run_options.engine; it stays valid for the rest of the process. `path` is a file.
 * One without '/' that is not in the working folder is looked for where the loader looks for
 * libraries. A file that is loaded already only gives its name. A plug-in is never unloaded, and
 * its code runs with all rights of this process: load only files that you trust. Any number of
 * threads may call it at once; engines of the plug-in may be used by any of them. *name is NULL on
 * failure. Fails LAC_NOT_FOUND (no such file), LAC_EXISTS (another engine has this name),
 * LAC_NO_MEMORY. Fails LAC_BAD_FILE if the file is not a shared object for this program or not a
 * plug-in, or if its engine lacks a function. Fails LAC_UNSUPPORTED if it was compiled for another
 * version of the interface, this machine cannot run its engine, or the list is full. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_load(const char *path, const char **name,
                                                  lac_error *err);

/** Returns the name of engine number `at` of the list: first those of the library, then those that
 * were loaded, in this order. NULL: there are not so many. */
LAC_API const char *lac_engine_name(int at);

/** Plans the model. The engine borrows the model, which must not be changed or destroyed before the
 * engine is destroyed. Weights are read from the model's file in parts, which takes at most
 * weight_bytes and a few megabytes of memory. A run does not need the file any more. *engine is
 * NULL on failure. Fails LAC_BAD_ARGUMENT (dtype is neither f32 nor bf16), LAC_NO_MEMORY, and
 * LAC_IO (the model's file was cut short). Fails LAC_NOT_FOUND if there is no engine of that name,
 * or a shape names an unknown input. Fails LAC_BAD_SHAPE if an open size was not given, or shapes
 * of operands do not fit together. Fails LAC_UNSUPPORTED for an operator that cannot be run. Also
 * fails LAC_UNSUPPORTED with "cpu" for a shape that depends on data and for a system that forbids
 * executable memory, with "plain" for bf16. Fails LAC_MEMORY_LIMIT if weights, values and ports
 * together take more than max_memory: the text names the largest. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_create(const lac_model *model,
                                                    const lac_engine_options *options,
                                                    lac_engine **engine, lac_error *err);
/** Frees the engine. NULL is fine. */
LAC_API void lac_engine_destroy(lac_engine *engine);

/** Sets *ports to the engine's inputs in the network's order and returns their number. Initializers
 * that the model lists as inputs are left out. */
LAC_API int lac_engine_inputs(const lac_engine *engine, const lac_engine_port **ports);
/** Sets *ports to the engine's outputs in the network's order and returns their number. */
LAC_API int lac_engine_outputs(const lac_engine *engine, const lac_engine_port **ports);

/** Runs the network once: reads inputs[i] and writes outputs[i], buffers of the ports' size_bytes.
 * outputs[i] of an open output may be NULL. Allocates no memory except for operators without a fast
 * implementation ("plain" or "exact" in the plan's text) and oneDNN's short list of arguments.
 * Fails LAC_BAD_ARGUMENT (a NULL buffer), LAC_BAD_VALUE (an element used as an index is out of
 * range), LAC_INTERRUPTED, LAC_NO_MEMORY. The contents of the outputs are then undefined. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_run(lac_engine *engine, const void *const *inputs,
                                                 void *const *outputs, lac_error *err);

/** Returns output number `output` of the last run. For an open output, *port has the actual shape,
 * and *values the elements, which belong to the engine and are valid until the next run. For other
 * outputs *values is NULL, since the caller's buffer has the elements. Fails LAC_NOT_FOUND (no such
 * output, or there was no run), LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_result(lac_engine *engine, int output,
                                                    lac_engine_port *port, const void **values,
                                                    lac_error *err);

/** Fills *facts; the texts are valid until the engine is destroyed. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_about(const lac_engine *engine,
                                                   lac_engine_facts *facts, lac_error *err);

/** Returns the plan as text, one line per step: the operation, the kernel, the result's shape, the
 * node. Valid until the engine is destroyed. */
LAC_API const char *lac_engine_plan_text(const lac_engine *engine);
/** Fills *memory with the bytes of memory of the plan. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_planned(const lac_engine *engine,
                                                     lac_engine_memory *memory, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif

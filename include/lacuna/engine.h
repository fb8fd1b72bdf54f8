/* SPDX-License-Identifier: Apache-2.0
 * Running a network fast: an engine plans it once for fixed input shapes, and then runs it any
 * number of times.
 *
 *   lac_engine_options o = lac_engine_options_default();
 *   lac_engine_create(model, &o, &engine, &err);
 *   lac_engine_run(engine, inputs, outputs, &err);      pointers in the order of the ports
 *
 * Threads. One thread at a time may use an engine; for any number of threads, and for shapes as they
 * come, see session.h. Several engines, of the same model or of
 * different ones, may be created and run at the same time from different threads. Each engine runs
 * on its own `threads` threads, so n engines at once need n times as many cores. Results do not
 * depend on other work on the machine; their last bits may depend on the number of threads.
 * Memory. The OpenMP run time and oneDNN end the process if they cannot get a thread or a little
 * memory. Therefore threads are started as a test before the run time starts them (if only fewer
 * start, fewer are used, with a warning); 16 MB must be free before each oneDNN primitive is made
 * and before an engine's first run; and a plan's memory is computed before it is allocated
 * (max_memory). Some cases cannot be caught: another thread of the process takes the last memory in
 * between, a limit is lowered later, the system has overcommitted memory, or a limit of the address
 * space is too small even for the program's libraries, so that the loader fails.
 *
 * The threads belong to an OpenMP run time. In GNU's, waiting threads spin for milliseconds, which
 * is slow if other work needs the cores: start such a program with GOMP_SPINCOUNT=1000, as the
 * command lacuna does for itself.
 * Processes. A forked process does not have its parent's threads. If the thread that forks has
 * planned or run an engine of several threads before, then planning or running such an engine in
 * the new process fails LAC_UNSUPPORTED, since the run time would wait forever for the missing
 * threads. An engine of 1 thread works, and so does everything after exec. Fork before the first
 * engine is made, or from a thread that has used none. */
#ifndef LACUNA_ENGINE_H
#define LACUNA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/model.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A network that is planned on an engine and can be run; opaque. */
typedef struct lac_engine lac_engine;

/** The shape of an input. A size of -1 keeps the size given in the model's file. */
typedef struct lac_engine_shape {
  const char *name;
  int rank; /* 0 .. 8 */
  int64_t shape[8];
} lac_engine_shape;

/** How an engine chooses between dense and sparse kernels for a layer that both can compute. */
typedef enum lac_tuning {
  LAC_TUNING_OFF,   /* by a fixed rule: the plan is the same every time */
  LAC_TUNING_QUICK, /* by the layers' times on this machine, measured in a few runs */
  LAC_TUNING_FULL,  /* by the layers' least times on this machine in many runs */
} lac_tuning;

/** How a network is planned. */
typedef struct lac_engine_options {
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default), or LAC_DTYPE_BF16: weights and values in bf16 inside;
                      inputs and outputs stay f32. On a processor without bf16 instructions f32 is
                      used, with a warning; see lac_engine_about */
  const lac_engine_shape *shapes; /* shapes of inputs whose sizes the file leaves open; a symbolic
                                     size that several inputs share needs to be given only once */
  int n_shapes;                   /* default 0 */
  uint64_t max_memory; /* limit in bytes of the planned memory; 0 (default): 80 % of the machine's
                          memory, or of its control group's limit */
  const char *engine;  /* "auto" (NULL, the default) uses the fast engine, and the operators' slow
                          definitions for nodes that only these can run (shapes that depend on data,
                          bodies of If, Loop and Scan), see lac_engine_about; "cpu" is the fast
                          engine alone and refuses such networks; "plain" uses the slow definitions
                          for all nodes, in double. A plug-in may add other engines */
  bool dense_only;     /* use no sparse kernels: zeros are multiplied, too; default false. The
                          environment variable LAC_SPARSE=0 sets this for every engine */
  lac_tuning tuning;   /* default LAC_TUNING_OFF */
  const char *timings; /* file in which tuning stores the times measured on this machine: layers
                          found there are not measured again. If it cannot be written, there is only
                          a warning. NULL (default): no file */
} lac_engine_options;

/** An input or output in the format of the caller's buffer: row-major and packed, of LAC_DTYPE_F32
 * for all float types, of LAC_DTYPE_I64 for integers and booleans. A view, valid until the engine
 * is destroyed. */
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
  size_t arena_bytes;  /* one block for all values between steps */
  size_t weight_bytes; /* weights in the layouts of the kernels */
} lac_engine_memory;

/** Facts about an engine and its network. The texts are views, valid until the engine is destroyed.
 */
typedef struct lac_engine_facts {
  const char *name;         /* of the engine */
  lac_dtype dtype;          /* type of the computation */
  int n_nodes;              /* of the network */
  int n_exact;              /* number of nodes that the engine "auto" runs by the operators' slow
                       definitions, because the fast engine cannot run them; 0 for other engines */
  const char *exact_reason; /* why the first of these nodes cannot be run fast; NULL: there is no
                               such node */
} lac_engine_facts;

/** Every field's default, which its line names. */
LAC_API lac_engine_options lac_engine_options_default(void);

/** Plans the model. The engine borrows the model, which must not be changed or destroyed before the
 * engine is destroyed. Weights are read from the model's file in parts, which takes at most
 * weight_bytes and a few megabytes of memory; a run does not need the file any more. *engine is
 * NULL on failure. Fails LAC_BAD_ARGUMENT (dtype is neither f32 nor bf16), LAC_NOT_FOUND (no engine
 * of that name, or a shape for an unknown input), LAC_BAD_SHAPE (an open size was not given, or
 * operands do not fit together), LAC_UNSUPPORTED (an operator that cannot be run, for "cpu" a shape
 * that depends on data or a system that forbids executable memory, for "plain" bf16), LAC_IO (the
 * model's file was cut short), LAC_NO_MEMORY, LAC_MEMORY_LIMIT (weights, values and ports together
 * take more than max_memory: the text names the largest). */
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
 * range), LAC_INTERRUPTED, LAC_NO_MEMORY; the contents of the outputs are then undefined. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_run(lac_engine *engine, const void *const *inputs,
                                                 void *const *outputs, lac_error *err);

/** Returns output number `output` of the last run, for open outputs: *port with the actual shape,
 * and *values, the elements, which belong to the engine and are valid until the next run. For other
 * outputs *values is NULL, since the caller's buffer has the elements. Fails LAC_NOT_FOUND (no such
 * output, or there was no run), LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_result(lac_engine *engine, int output,
                                                    lac_engine_port *port, const void **values,
                                                    lac_error *err);

/** Returns facts about the engine; the texts are valid until the engine is destroyed. */
LAC_API lac_engine_facts lac_engine_about(const lac_engine *engine);

/** Returns the plan as text, one line per step: the operation, the kernel, the result's shape, the
 * node. Valid until the engine is destroyed. */
LAC_API const char *lac_engine_plan_text(const lac_engine *engine);
/** Returns the bytes of memory of the plan. */
LAC_API lac_engine_memory lac_engine_planned(const lac_engine *engine);

#ifdef __cplusplus
}
#endif
#endif

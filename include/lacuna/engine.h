/* SPDX-License-Identifier: Apache-2.0
 * Running a network fast: planned once for fixed input shapes, run as often as wanted.
 *
 *   lac_engine_options o = lac_engine_options_default();
 *   lac_engine_create(model, &o, &engine, &err);
 *   lac_engine_run(engine, inputs, outputs, &err);      pointers in the order of the ports
 *
 * Threads. An engine is used by one thread at a time. Several engines, of one model or of several,
 * may be made and run at the same time from different threads: each run works on its own
 * `threads` threads, so n engines at once want n times as many cores. Results do not depend on what
 * else is running; they may differ in the last bits between numbers of threads.
 * Memory. The run time and oneDNN end the process where they do not get a thread or a little memory
 * for themselves. So threads are tried before the run time is asked for them (fewer are used, with
 * a warning, where fewer start), 16 MB have to be free before each primitive and before an engine's
 * first run, and what a plan needs is known before it is taken (max_memory). What cannot be caught:
 * other threads of the process that take the last memory in between, a limit that is lowered later,
 * memory that the system promised and does not have, and a limit of address space in which the
 * program's libraries do not fit: then it is the loader that fails.
 *
 * The threads are an OpenMP run time's. GNU's lets those that wait spin for milliseconds, which
 * costs dearly where other work wants the cores: start such a program with GOMP_SPINCOUNT=1000, as
 * the command does for itself.
 * Processes. Threads do not live on in a process that is forked. Where the thread that forks has
 * run or planned an engine of several threads before, planning or running one of several threads in
 * the new process is LAC_UNSUPPORTED (the run time would wait for threads that are not there); an
 * engine of 1 thread works, and so does everything after exec. Fork before the first engine, or
 * from a thread that has used none. */
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

/** The shape of an input. A size of -1 stays what the file says. */
typedef struct lac_engine_shape {
  const char *name;
  int rank; /* 0 .. 8 */
  int64_t shape[8];
} lac_engine_shape;

/** How an engine chooses where dense and sparse kernels can do the same. */
typedef enum lac_tuning {
  LAC_TUNING_OFF,   /* by a rule: the same plan every time */
  LAC_TUNING_QUICK, /* by the times that layers take here, in a few runs */
  LAC_TUNING_FULL,  /* by the least time of many runs */
} lac_tuning;

/** How a network is planned. */
typedef struct lac_engine_options {
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default), or LAC_DTYPE_BF16: weights and values in bf16 inside;
                      inputs and outputs stay f32. A processor without instructions for it computes
                      in f32, which is a warning: lac_engine_about */
  const lac_engine_shape *shapes; /* of inputs whose sizes the file leaves open; a size that the
                                     file uses in several places needs to be given once */
  int n_shapes;                   /* default 0 */
  uint64_t max_memory; /* bytes that the work may take, as planned; 0 (default): 80 % of the
                          machine's, or of its control group's */
  const char *engine;  /* "auto" (NULL, the default) is fast, and runs what only the slow
                          definitions can (shapes that come from data, bodies of If, Loop and Scan)
                          by these: lac_engine_about; "cpu" refuses such networks; "plain" computes
                          all with the operators' slow definitions, in double; a plug-in may add
                          others */
  bool dense_only;     /* no sparse kernels: zeros are multiplied, too; default false. The
                          environment variable LAC_SPARSE=0 says so for every engine */
  lac_tuning tuning;   /* default LAC_TUNING_OFF */
  const char *timings; /* file where tuning keeps what it measured on this machine, for the next
                          engine: layers that it names are not measured again. One that cannot be
                          written is a warning. NULL (default): nothing is kept */
} lac_engine_options;

/** An input or output as the caller hands it over: row-major and packed, LAC_DTYPE_F32 for float
 * types of any width, LAC_DTYPE_I64 for integers and booleans. A view; dies with the engine. */
typedef struct lac_engine_port {
  const char *name;
  lac_dtype dtype;
  int rank;          /* of an open output that nothing is known of: -1 */
  int64_t shape[8];  /* a size that comes from data: -1 */
  size_t size_bytes; /* of an open output 0 */
  bool open; /* an output whose shape comes from data: lac_engine_result has it after a run */
} lac_engine_port;

/** What a plan holds. */
typedef struct lac_engine_memory {
  size_t arena_bytes;  /* one block for all values between steps */
  size_t weight_bytes; /* weights in the layouts that the kernels want */
} lac_engine_memory;

/** What an engine does with the network that it was made for. */
typedef struct lac_engine_facts {
  const char *name; /* of the engine */
  lac_dtype dtype;  /* that it computes in */
  int n_nodes;      /* of the network */
  int n_exact;      /* of these, that "auto" runs by the operators' slow definitions, for want of
                       anything faster; 0 of other engines */
  const char *exact_reason; /* why the first of these cannot be run fast; NULL: there is none */
} lac_engine_facts;

/** Every field's default, which its line names. */
LAC_API lac_engine_options lac_engine_options_default(void);

/** Plans the model. It is borrowed: it must not be changed or destroyed before the engine. Its
 * weights are read from its file, a part of each at a time: the most memory that this takes is
 * weight_bytes and a few megabytes, and a run needs the file no more. *engine is NULL on failure.
 * Fails LAC_BAD_ARGUMENT (a dtype that is none of the two), LAC_NOT_FOUND (no engine of that name,
 * a shape for an unknown input), LAC_BAD_SHAPE (a size not given, operands that do not fit),
 * LAC_UNSUPPORTED (an operator that cannot be run, for "cpu" a shape that depends on data or a
 * system that forbids executable memory, for "plain" bf16),
 * LAC_IO (the model's file was cut short), LAC_NO_MEMORY, LAC_MEMORY_LIMIT (weights, values and
 * ports together are more than max_memory: the text names the largest; no kernel was made). */
LAC_API LAC_MUST_CHECK lac_status lac_engine_create(const lac_model *model,
                                                    const lac_engine_options *options,
                                                    lac_engine **engine, lac_error *err);
/** Frees the engine. NULL is fine. */
LAC_API void lac_engine_destroy(lac_engine *engine);

/** The ports in the network's order; returns how many. Initializers that are listed as inputs are
 * not among them. */
LAC_API int lac_engine_inputs(const lac_engine *engine, const lac_engine_port **ports);
/** The same of its outputs. */
LAC_API int lac_engine_outputs(const lac_engine *engine, const lac_engine_port **ports);

/** One run: reads inputs[i] and writes outputs[i], size_bytes of each port; that of an open output
 * may be NULL. Takes no memory, but for what an operator without a fast form needs for itself (the
 * plan's text says "plain" or "exact") and oneDNN's short list of arguments. Fails LAC_BAD_ARGUMENT
 * (a NULL), LAC_BAD_VALUE (an index outside), LAC_INTERRUPTED, LAC_NO_MEMORY; what the outputs hold
 * then is not defined. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_run(lac_engine *engine, const void *const *inputs,
                                                 void *const *outputs, lac_error *err);

/** Output `output` as the last run made it: its port with the shape that it has now, and its
 * elements, which are the engine's until the next run. For open outputs; of others *values is NULL,
 * since the caller has them. Fails LAC_NOT_FOUND (no such output, or no run), LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_engine_result(lac_engine *engine, int output,
                                                    lac_engine_port *port, const void **values,
                                                    lac_error *err);

/** Views; they die with the engine. */
LAC_API lac_engine_facts lac_engine_about(const lac_engine *engine);

/** The plan, one line per step: what it does, the kernel that does it, its result's shape, the
 * node. Dies with the engine. */
LAC_API const char *lac_engine_plan_text(const lac_engine *engine);
/** What the plan holds, in bytes. */
LAC_API lac_engine_memory lac_engine_planned(const lac_engine *engine);

#ifdef __cplusplus
}
#endif
#endif

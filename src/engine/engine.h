/* SPDX-License-Identifier: Apache-2.0
 * The interface that every engine implements: a graph is planned once for fixed input shapes and
 * then run many times.
 *
 *   laci_engine_options o = {.threads = 2};
 *   st = laci_engine_create(graph, &o, &engine, err);
 *   st = laci_engine_run(engine, inputs, outputs, err);      buffers in the order of the ports
 *
 * Other rooms may include only this header of the engines, and stepper.h. The available engines
 * form a list (engine.def, laci_engine_load), from which the options choose one by name. An engine
 * may also offer a stepper (stepper.h). Next: row.h (the functions that make up an engine),
 * plain/plain.h, cpu/net.h. */
#ifndef LACI_ENGINE_ENGINE_H
#define LACI_ENGINE_ENGINE_H

#include "tensor/shape.h"

typedef struct laci_arena laci_arena;
typedef struct laci_buf laci_buf;
typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_input_shape laci_input_shape;
typedef struct laci_node laci_node;
typedef struct laci_packed laci_packed;
typedef struct laci_packing laci_packing;
typedef struct laci_parallel laci_parallel;
typedef struct laci_pool laci_pool;
typedef struct laci_timings laci_timings;

typedef struct lac_engine_update lac_engine_update; /* declared in lacuna/engine_plugin.h */

typedef struct laci_engine laci_engine;

/** Names of the built-in engines by purpose; they are spelled nowhere else. FAST is the default
 * when the options give no name. EXACT can step node by node. AUTO runs any network: the nodes that
 * FAST supports by FAST, the rest by EXACT. */
#define LACI_ENGINE_FAST "cpu"
#define LACI_ENGINE_EXACT "plain"
#define LACI_ENGINE_AUTO "auto"

/** Copies n bytes of a stored tensor, which need not be in memory, from the position `bytes` to
 * `to`. May be called by any thread. */
typedef lac_status laci_engine_fetch(void *context, const uint8_t *bytes, size_t n, void *to,
                                     lac_error *err);

/** Copies rows [first, first + n) of a packed weight, values and index words, in the format that
 * its packing describes. May be called by any thread. */
typedef lac_status laci_engine_fetch_rows(void *context, int64_t first, int64_t n,
                                          const laci_packed *to, lac_error *err);

/** An input or output buffer in the caller's format: f32 for every float type, i64 for integers and
 * booleans, row-major. */
typedef struct laci_engine_port {
  const char *name;
  laci_type type; /* F32 or I64; the shape is known, except of an open output */
  size_t size_bytes;
  bool open; /* an output whose shape depends on data: laci_engine_result returns it after a run,
                its buffer may be NULL, and size_bytes is 0. Only AUTO has such outputs */
} laci_engine_port;

/** Receives a value during a run as soon as it is computed, on the thread that called the run.
 * `content` has the format of `port` and is valid until the function returns. A failure ends the
 * run. */
typedef lac_status laci_engine_on_value(void *context, int value, const laci_engine_port *port,
                                        const void *content, lac_error *err);

/** Which values of the graph a run passes to the observer: values of floats, integers or booleans,
 * stored and constant ones included. A plan with an observer keeps all of these values when it
 * fuses nodes, so its results may differ in the last bits from those of a plan without. */
typedef struct laci_engine_observer {
  const int *values; /* [n_values], each value once; read only during creation */
  int n_values;
  laci_engine_on_value *on_value; /* receives each value */
  void *context;
} laci_engine_observer;

/** Facts about a weight other than its bytes. An engine may use or ignore them; they must be true
 * in every run. All pointers are the caller's and are read only while the engine is created. */
typedef struct laci_engine_weight {
  int value; /* index in the graph of the value: a stored tensor, or an input (a weight in
                training) */
  /* the weight's sparsity pattern, and which elements form a block; NULL: not known */
  const laci_packing *packing;
  const uint8_t *mask; /* [elements] in the weight's own order: the weight is zero where the mask is
                          0; NULL: not known */
  const int *gradient; /* index of the graph output that is the gradient of this weight. Where the
                          mask is 0, that output may be 0 or the true gradient. NULL: there is no
                          such output */
  laci_engine_fetch_rows *rows; /* copies rows of the packed weight, in the format of `packing`;
                                   NULL: not available */
  void *rows_context;           /* first argument of `rows` */
} laci_engine_weight;

/** Called after a step of a run, on the thread that runs. A failure ends the run. */
typedef lac_status laci_engine_after_step(void *context, size_t step, lac_error *err);

/** What a caller can watch during a run: times and a function after each step. Every pointer may be
 * NULL. The time spent in `after_step` is not counted in any step. */
typedef struct laci_engine_watch {
  double *begins;  /* [laci_engine_step_count] out: when each step began, by laci_clock_seconds */
  double *seconds; /* [laci_engine_step_count] out: duration of each step */
  laci_engine_after_step *after_step;
  void *context;          /* first argument of `after_step` */
  bool ignores_interrupt; /* an interrupt does not end the run, because other processes wait for its
                             result */
} laci_engine_watch;

/** How an engine chooses between kernels that compute the same. */
typedef enum laci_engine_tuning {
  LACI_TUNING_OFF,   /* kernels are chosen by a rule: the same plan every time */
  LACI_TUNING_QUICK, /* kernels are chosen by measured times, of a run or two of each */
  LACI_TUNING_FULL,  /* kernels are chosen by the least measured time of many runs */
} laci_engine_tuning;

/** What a run does about NaN and infinity. Kernels of the fast engine may lose them: max(NaN, 0) is
 * 0 there, and sparse kernels do not read the elements that a zero weight would multiply. */
typedef enum laci_engine_finite {
  LACI_FINITE_SURE,    /* a run that may have met NaN or infinity is repeated in careful mode, which
                          gives the NaN and infinities that operators define, or fails. With an
                          observer nothing is repeated: the run fails */
  LACI_FINITE_ASSUMED, /* no check: the caller checks the values it needs, as in training and
                          timing */
  LACI_FINITE_CAREFUL, /* every run is in careful mode, and slow */
} laci_engine_finite;

/** How completely an engine is created: to run, or only to describe its plan. */
typedef enum laci_engine_extent {
  LACI_EXTENT_WHOLE,   /* complete: it can run */
  LACI_EXTENT_OUTLINE, /* the engine is planned only, and cannot run. Creation fails where that of a
                          whole engine does, except for a lack of memory or time. Engines may ignore
                          it */
  LACI_EXTENT_PARTIAL, /* an outline that leaves out what cannot be run, see laci_engine_ask. Only
                          AUTO makes it; other engines take it as an outline */
} laci_engine_extent;

typedef struct laci_engine_options {
  const char *engine;            /* name of the engine; NULL: LACI_ENGINE_FAST */
  int threads;                   /* number of threads; <= 0: one for each core that this process may
                                    use */
  const laci_parallel *parallel; /* the caller's threads, for all kernels but oneDNN's; must live as
                                    long as the engine. NULL: the engine's own threads */
  bool bf16;                     /* activations and weights are stored in bf16 between steps */
  bool dense_only; /* weights with zeros are computed by dense kernels. The environment variable
                      LAC_SPARSE=0 sets this for all engines of the process */
  laci_engine_finite finite;
  bool early_outputs; /* true: the caller promises that no output buffer is also an input buffer.
                         Each output may then be written as soon as it is computed, and needs no
                         memory of the engine */
  int recompute;      /* number of nodes of the forward part, with which the graph begins. Where it
                         saves memory, values of this part that only later nodes still read may be
                         dropped and computed again: the same bits, in more time. 0: no value is
                         computed twice. Engines that plan no memory ignore it */
  laci_engine_tuning tuning;
  laci_timings *timings;          /* times measured by tuning: stored ones are read, new ones are
                                     added; NULL: none are stored */
  const laci_input_shape *shapes; /* [n_shapes] shapes of inputs; they must fix all sizes that the
                                     file leaves open */
  int n_shapes;
  laci_engine_fetch *fetch; /* copies bytes of stored tensors that are not in memory; NULL: all are
                               in memory */
  void *fetch_context; /* first argument of `fetch`. Both must stay valid as long as the engine,
                          which may plan in careful mode (LACI_FINITE_SURE) only when a run needs
                          it */
  laci_budget *budget; /* the memory limit, and the memory that others hold; the engine adds its
                          ports, weights and values. NULL: no limit */
  laci_engine_extent extent;
  const laci_engine_weight *weights;    /* [n_weights], at most one for each value */
  int n_weights;                        /* 0: nothing is known about any weight */
  const laci_engine_observer *observer; /* NULL: none, which costs nothing */
} laci_engine_options;

typedef struct laci_engine_memory {
  size_t arena_bytes;  /* bytes of the arena, which holds everything that is kept between steps */
  size_t weight_bytes; /* bytes of the weights, in the layouts of the engine */
  int n_recomputed;    /* number of nodes that are computed twice, so that the arena is smaller */
} laci_engine_memory;

/** Description of a step, for reports. Its texts are views that live as long as the engine. */
typedef struct laci_engine_step {
  /* name of the step's node; NULL: the step only changes a layout for the next step */
  const char *name;
  const char *op;        /* the node's operator, "reorder" or "output" */
  const char *what;      /* operator with all that was fused into it */
  const char *kernel;    /* the library's name of the kernel, LACI_ENGINE_EXACT, or "own" for a copy
                            made by our code */
  bool plain;            /* the operator's own evaluation computes the step, since there is no fast
                            kernel */
  bool exact;            /* the exact engine computes the step, in a network that mostly runs fast;
                            `plain` is then true, too */
  bool sparse;           /* the kernel skips zeros of the weight */
  bool recomputed;       /* the step computes a value for the second time:
                            laci_engine_options.recompute */
  int64_t micro_batches; /* number of micro-batches of equal size into which a run splits this step;
                            0 means 1. Its time, flops and bytes are those of all micro-batches
                            together */
  int64_t flops; /* multiplications and additions of a matrix product or convolution, those by zeros
                    included; 0 for other steps */
  int64_t bytes_read, bytes_written; /* bytes of all operands, and of all results, each counted
                                        once */
  double predicted_seconds; /* seconds of the step, predicted by a table of costs without a run; 0:
                               not predicted */
} laci_engine_step;

/** What computes a node of the network in a run. */
typedef enum laci_engine_runner {
  LACI_RUNNER_NONE,    /* nothing: the network is refused */
  LACI_RUNNER_UNKNOWN, /* not known, since sizes of the inputs are open, or do not fit */
  LACI_RUNNER_NO_STEP, /* nothing in a run: its results are the same in every run, or nobody reads
                          them, or the node is merged into another one */
  LACI_RUNNER_FAST,    /* a fast kernel, alone or with other nodes */
  LACI_RUNNER_PLAIN,   /* the operator's own evaluation, in the fast engine */
  LACI_RUNNER_EXACT,   /* the exact engine */
} laci_engine_runner;

/** How an engine runs a node of its graph. */
typedef struct laci_engine_node {
  laci_engine_runner runner;
  bool sparse;              /* the kernel skips zeros of the weight */
  bool sparse_possible;     /* a kernel could skip the zeros that the weight has, faster or not */
  const char *reason;       /* why no fast kernel runs the node; NULL: one does, or none is needed.
                               Lives as long as the engine */
  double predicted_seconds; /* predicted seconds of the node's step, with all that was fused into
                               it, as in laci_engine_step. Only laci_engine_ask sets it */
  int64_t flops;            /* multiplications and additions of the node's step. Only
                               laci_engine_ask sets it */
} laci_engine_node;

/** The part of a network that runs on the exact engine, because the fast one cannot run it. */
typedef struct laci_engine_exact {
  int n_nodes;        /* number of nodes that run on the exact engine; 0: there are none */
  const char *reason; /* why the first of them does not run on the fast engine; NULL: there are
                         none. Lives as long as the engine */
} laci_engine_exact;

/** Whether an engine can compute in an element type. */
typedef enum laci_engine_dtype {
  LACI_DTYPE_NOT,      /* the engine cannot compute in the type, on any machine */
  LACI_DTYPE_NOT_HERE, /* the engine cannot compute in the type on this machine, which lacks
                          instructions */
  LACI_DTYPE_HERE,
} laci_engine_dtype;

/** Writes the names of all engines in the list's order, at most `capacity` of them; returns how
 * many engines there are. */
int laci_engine_names(const char **names, int capacity);

/** Loads a plug-in that offers an engine, and adds the engine to the list. *name: its name, which
 * stays valid; the same for a file that is loaded already. Any thread. Fails LAC_NOT_FOUND (no such
 * file), LAC_BAD_FILE (no plug-in, or what it offers cannot be true), LAC_UNSUPPORTED (a plug-in
 * for another version; this machine cannot run its engine; the list is full), LAC_EXISTS (another
 * engine has the name), LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_load(const char *path, const char **name, lac_error *err);

/** Is there an engine of that name? Fails LAC_NOT_FOUND, with a list of all. */
LAC_MUST_CHECK lac_status laci_engine_check_name(const char *name, lac_error *err);

/** Can that engine (NULL: the default) run the node of an inferred graph, by a fast kernel or not?
 * If not, *why (may be NULL) says what is missing. Nothing is planned: mismatched operands are
 * found only by laci_engine_create. */
bool laci_engine_can_run_node(const char *engine, const laci_graph *graph, const laci_node *node,
                              lac_error *why);

/** The answer of laci_engine_ask: whether an engine accepts the network, and how fast it would
 * be. */
typedef struct laci_engine_answer {
  lac_error refusal; /* the failure of laci_engine_create for this graph; status LAC_OK: it does not
                        fail */
  bool open;         /* sizes of inputs are open: the answer about nodes is that for sizes that were
                        assumed */
  double predicted_seconds; /* predicted seconds of a run, all steps together; 0: refused, or not
                               predicted */
} laci_engine_answer;

/** Can the graph be planned with these options, and how is each node run? Sizes of inputs may be
 * open. Answered by planning, without what only a run needs.
 *  nodes    [n_nodes] out: how each node of the graph is run. If the graph is refused: how it would
 *           be, if nothing else prevented it
 *  memory   holds the reasons
 * With all sizes fixed, laci_engine_create fails as answer->refusal says, or makes a plan that runs
 * the nodes so (without tuning). With open sizes, the graph is refused, and a node is
 * LACI_RUNNER_NONE, only if no sizes can change that. Fails as laci_engine_create, but for
 * LAC_UNSUPPORTED, LAC_BAD_SHAPE and LAC_MEMORY_LIMIT, which are answers. */
LAC_MUST_CHECK lac_status laci_engine_ask(const laci_graph *graph,
                                          const laci_engine_options *options, laci_arena *memory,
                                          laci_engine_node *nodes, laci_engine_answer *answer,
                                          lac_error *err);

/** Can that engine (NULL: the default) compute in that type? LACI_DTYPE_NOT for an unknown
 * engine. */
laci_engine_dtype laci_engine_find_dtype_support(const char *engine, lac_dtype dtype);

/** Measures what layers cost on this machine with that engine (NULL: the default), which takes some
 * minutes. *text is the content of a file that LAC_COSTS=FILE reads; the caller frees it
 * (laci_free). Fails LAC_NOT_FOUND (no such engine), LAC_UNSUPPORTED (the engine does not use
 * costs), LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_measure_costs(const char *engine, char **text,
                                                    lac_error *err);
/** Does that engine (NULL: the default) have a cost table for this kind of processor? True if it
 * needs none. */
bool laci_engine_has_cost_table(const char *engine);

/** Plans `graph`, which is borrowed and must not change while the engine lives. Fails LAC_NOT_FOUND
 * (no engine of that name, a shape for an unknown input), LAC_BAD_SHAPE (a size not fixed,
 * operands that do not fit), LAC_UNSUPPORTED (an operator that cannot be run, a shape that depends
 * on data, bf16 on an engine or processor without, a text to be observed), LAC_BAD_ARGUMENT (an
 * observer without a function, or of a value that is none; a weight that is none), LAC_NO_MEMORY,
 * LAC_MEMORY_LIMIT (what the plan needs is above the budget; nothing large was allocated). Any
 * thread. */
LAC_MUST_CHECK lac_status laci_engine_create(const laci_graph *graph,
                                             const laci_engine_options *options,
                                             laci_engine **engine, lac_error *err);
void laci_engine_destroy(laci_engine *engine); /* NULL is fine */

const char *laci_engine_name(const laci_engine *engine);
int laci_engine_inputs(const laci_engine *engine, const laci_engine_port **ports);
int laci_engine_outputs(const laci_engine *engine, const laci_engine_port **ports);
laci_engine_memory laci_engine_planned_memory(const laci_engine *engine);
int laci_engine_threads(const laci_engine *engine);
/** The plan as text for a reader, one line per step; it lives as long as the engine. */
const char *laci_engine_plan_text(const laci_engine *engine);

size_t laci_engine_step_count(const laci_engine *engine);
laci_engine_step laci_engine_step_info(const laci_engine *engine, size_t step);
/** Returns which nodes the engine AUTO runs on the exact engine; other engines run none there. */
laci_engine_exact laci_engine_describe_exact_nodes(const laci_engine *engine);
/** Returns the content of output `port` after a run, in the type and precision in which it was
 * computed; a view, valid until the next run. NULL: only the caller's buffer has the content,
 * which is never so for an open output. */
const laci_buf *laci_engine_result(const laci_engine *engine, int port);
/** Returns how many steps use kernels that skip the zeros of a weight. */
int laci_engine_sparse_step_count(const laci_engine *engine);
/** Returns the number of the step after which a run writes no more to the buffer of output `port`.
 * It may be an early step with early_outputs. laci_engine_step_count: the content is final only
 * at the end of the run. */
size_t laci_engine_output_step(const laci_engine *engine, int port);

/** Runs once; buffers are in the order of the ports. An engine runs once at a time; different
 * engines may run at the same time, each on its own threads. Fails LAC_BAD_VALUE (an index out of
 * range; a value that is not finite, as laci_engine_finite defines), LAC_INTERRUPTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_run(laci_engine *engine, const void *const *inputs,
                                          void *const *outputs, lac_error *err);
/** Like laci_engine_run, with a watch (NULL: none, which costs nothing). Also fails as
 * watch->after_step does: then no step follows, and outputs whose step was not reached are
 * undefined. */
LAC_MUST_CHECK lac_status laci_engine_run_watched(laci_engine *engine, const void *const *inputs,
                                                  void *const *outputs,
                                                  const laci_engine_watch *watch, lac_error *err);

/** Takes one step of an optimizer on the engine. Fails LAC_UNSUPPORTED, with nothing changed, if
 * the engine has no optimizer: the caller then takes the step itself. */
LAC_MUST_CHECK lac_status laci_engine_update_weights(laci_engine *engine,
                                                     const lac_engine_update *update,
                                                     lac_error *err);

#endif

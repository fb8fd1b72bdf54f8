/* SPDX-License-Identifier: Apache-2.0
 * What any engine offers: a graph, planned once for fixed input shapes, run many times.
 *
 *   laci_engine_options o = {.threads = 2};
 *   st = laci_engine_create(graph, &o, &engine, err);
 *   st = laci_engine_run(engine, inputs, outputs, err);      buffers in the order of the ports
 *
 * This is all that other rooms may include of engines. Which engines there are is a list
 * (engine.def, laci_engine_register); options choose one by name. An engine may also offer a walk
 * node by node, with every value within reach: a stepper. Next: row.h (what an engine is made of),
 * plain/plain.h, cpu/net.h. */
#ifndef LACI_ENGINE_ENGINE_H
#define LACI_ENGINE_ENGINE_H

#include "tensor/shape.h"

typedef struct laci_buf laci_buf;
typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_input_shape laci_input_shape;
typedef struct laci_node laci_node;
typedef struct laci_packed laci_packed;
typedef struct laci_packing laci_packing;
typedef struct laci_pool laci_pool;
typedef struct laci_timings laci_timings;

typedef struct laci_engine laci_engine;

/** The engines of this house by what they are for: no other place spells their names. FAST is the
 * one that options without a name mean, EXACT the one that steps. AUTO runs a network of any kind:
 * by FAST what that can, by EXACT the rest. */
#define LACI_ENGINE_FAST "cpu"
#define LACI_ENGINE_EXACT "plain"
#define LACI_ENGINE_AUTO "auto"

/** Copies n of a stored tensor's bytes, which need not be in memory. Any thread. */
typedef lac_status laci_engine_fetch(void *context, const uint8_t *bytes, size_t n, void *to,
                                     lac_error *err);

/** Copies rows [first, first + n) of a packed weight, as its packing says: values and index words.
 * Any thread. */
typedef lac_status laci_engine_fetch_rows(void *context, int64_t first, int64_t n,
                                          const laci_packed *to, lac_error *err);

/** An input or output as the caller hands it over: f32 for every float type, i64 for integers and
 * booleans, row-major. */
typedef struct laci_engine_port {
  const char *name;
  laci_type type; /* F32 or I64; the shape is known, but for an open output */
  size_t size_bytes;
  bool open; /* an output whose shape comes from data: laci_engine_result has it after a run, its
                buffer may be NULL, and size_bytes is 0. Engines other than AUTO have none */
} laci_engine_port;

/** Gets a value in a run as soon as it is there, on the thread that runs: `content` is what `port`
 * says, and stays until the function returns. A failure ends the run. */
typedef lac_status laci_engine_see(void *context, int value, const laci_engine_port *port,
                                   const void *content, lac_error *err);

/** Which values of the graph a run shows: any of floats, integers or booleans, stored and constant
 * ones too. A plan with an observer fuses none of them away; it may differ from one without in the
 * last bits. */
typedef struct laci_engine_observer {
  const int *values; /* [n_values], each once; read while the engine is being created */
  int n_values;
  laci_engine_see *see;
  void *context;
} laci_engine_observer;

/** What is known of a weight besides its bytes. An engine may make use of it or not; what is said
 * here must be true of every run. All is the caller's, and read while the engine is being
 * created. */
typedef struct laci_engine_weight {
  int value; /* of the graph: a stored tensor, or an input (a weight in training) */
  const laci_packing *packing; /* its pattern, and which elements are a block; NULL: not known */
  const uint8_t *mask;         /* [elements] in the weight's own order: the weight is zero where the
                                  mask is 0; NULL: not known */
  const int *gradient;         /* the output that is its gradient, where a mask is known: what the
                                  mask leaves out is 0 there, or what it is anyway; NULL: none */
  laci_engine_fetch_rows *rows; /* its packed rows, as packing says; NULL: there are none */
  void *rows_context;
} laci_engine_weight;

/** Called after a step of a run, on the thread that runs. A failure ends the run. */
typedef lac_status laci_engine_between(void *context, size_t step, lac_error *err);

/** Functions that are called during a run; each may be NULL. The time that `between` takes counts
 * for no step. */
typedef struct laci_engine_watch {
  double *begins;  /* [laci_engine_step_count] when each step began, by laci_clock_seconds */
  double *seconds; /* [laci_engine_step_count] that each step took */
  laci_engine_between *between;
  void *context; /* of between */
  bool keeps_on; /* an interrupt does not end the run: others count on it */
} laci_engine_watch;

/** How an engine chooses where several kernels could do the same. */
typedef enum laci_engine_tuning {
  LACI_TUNING_OFF,   /* by a rule: the same plan every time */
  LACI_TUNING_QUICK, /* by the times that they take, a run or two of each */
  LACI_TUNING_FULL,  /* by the least time of many runs */
} laci_engine_tuning;

/** What a run does with numbers that are not finite. The fast engine's kernels may lose some: the
 * larger of a NaN and 0 is 0 there, and none reads what a zero of a weight multiplies. */
typedef enum laci_engine_finite {
  LACI_FINITE_SURE,    /* a run that cannot be sure that all numbers are finite is done once more,
                          carefully: what operators define to be NaN or infinite is so, or the run
                          fails. An observer sees the first run alone, which then fails */
  LACI_FINITE_ASSUMED, /* the caller looks at what it needs: training, timing */
  LACI_FINITE_CAREFUL, /* each run is careful, and slow */
} laci_engine_finite;

typedef struct laci_engine_options {
  const char *engine; /* NULL: LACI_ENGINE_FAST */
  int threads;        /* <= 0: the cores this process may use */
  bool bf16;          /* activations and weights in bf16 between steps */
  bool dense_only;    /* no sparse kernels: the same zeros, by dense ones. The environment variable
                         LAC_SPARSE=0 says so for all engines of the process */
  laci_engine_finite finite;
  bool early_outputs; /* no output's buffer is an input's: each may be written as soon as it is
                         there, and takes no memory from then on */
  int recompute;      /* > 0: the graph's first `recompute` nodes are a forward part. Where a run
                         then needs less memory, values of it that only later nodes still read may
                         be computed again for these: the same bits, in more time. 0: no value is
                         computed twice. Engines that plan no memory ignore it */
  laci_engine_tuning tuning;
  laci_timings *timings;          /* of tuning: what was measured before, and is measured now; NULL:
                                     nothing is kept */
  const laci_input_shape *shapes; /* of inputs; sizes that the file leaves open must be here */
  int n_shapes;
  laci_engine_fetch *fetch; /* NULL: stored bytes are read where they are */
  void *fetch_context; /* both for as long as the engine lives: a careful run may be planned late */
  laci_budget *budget; /* what others hold and the limit; the engine's ports, weights and values are
                          added. NULL: no limit */
  const laci_engine_weight *weights;    /* [n_weights], of each value one at most */
  int n_weights;                        /* 0: nothing is known of any */
  const laci_engine_observer *observer; /* NULL: none, which costs nothing */
} laci_engine_options;

typedef struct laci_engine_memory {
  size_t arena_bytes;  /* of all that lives between steps */
  size_t weight_bytes; /* of weights in the engine's own layouts */
  int n_recomputed;    /* nodes that are computed twice, so that the arena is smaller */
} laci_engine_memory;

/** What a step is, for reports. Views; they die with the engine. */
typedef struct laci_engine_step {
  const char *name;   /* of its node; NULL: it only changes a layout for what comes next */
  const char *op;     /* the node's operator, "reorder" or "output" */
  const char *what;   /* with all that was fused into it */
  const char *kernel; /* the library's name, LACI_ENGINE_EXACT, or "own" for a copy of ours */
  bool plain;         /* by the operator's own evaluation: there is no fast form */
  bool exact;         /* plain, by the exact engine next to a fast one */
  bool sparse;        /* by a kernel that skips zeros of the weight */
  bool recomputed;    /* for the second time: laci_engine_options.recompute */
  int64_t
      micro_batches; /* in which a run does it, each for as many images of the batch; 0 is 1. Its
                         time and what follows are of all of them */
  int64_t flops;     /* multiplications and additions of a product, those by zeros with them; 0
                         for all else */
  int64_t bytes_read, bytes_written; /* every operand and result once */
} laci_engine_step;

/** What of a network runs exactly, because the fast engine cannot run it. */
typedef struct laci_engine_exact {
  int n_nodes;        /* of the network; 0: none */
  const char *reason; /* why the first of them does; NULL: none does. Dies with the engine */
} laci_engine_exact;

/** The names of all engines in the list's order, at most `capacity` of them; returns how many there
 * are. */
int laci_engine_names(const char **names, int capacity);

/** Can that engine (NULL: the default) run the node of an inferred graph, fast or slowly? If not,
 * *why (it may be NULL) says what it lacks. Nothing is planned: operands that do not fit are found
 * by laci_engine_create. */
bool laci_engine_supports(const char *engine, const laci_graph *graph, const laci_node *node,
                          lac_error *why);

/** Can that engine (NULL: the default) compute in bf16 on this machine? */
bool laci_engine_offers_bf16(const char *engine);
/** Could it on another? */
bool laci_engine_lacks_bf16(const char *engine);

/** A table of what layers cost on this machine, measured by that engine (NULL: the default) in some
 * minutes, as the text of a file that LAC_COSTS=FILE reads; the caller's (laci_free). Fails
 * LAC_NOT_FOUND (no such engine), LAC_UNSUPPORTED (it has nothing to choose from by costs),
 * LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_measure_costs(const char *engine, char **text,
                                                    lac_error *err);
/** Does it know what layers cost on this kind of processor, as far as it asks? */
bool laci_engine_knows_costs(const char *engine);

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
laci_engine_memory laci_engine_planned(const laci_engine *engine);
int laci_engine_threads(const laci_engine *engine);
/** The plan as text for a reader, one line per step; it lives as long as the engine. */
const char *laci_engine_text(const laci_engine *engine);

size_t laci_engine_step_count(const laci_engine *engine);
laci_engine_step laci_engine_step_look(const laci_engine *engine, size_t step);
/** Which nodes an engine that does both runs exactly. */
laci_engine_exact laci_engine_exactly(const laci_engine *engine);
/** The content of output `port` after a run, in the type and with the digits that it was computed
 * with; a view, until the next run. NULL: what the caller's buffer holds is all there is, which no
 * open output has. */
const laci_buf *laci_engine_result(const laci_engine *engine, int port);
/** How many steps skip zeros. */
int laci_engine_sparse_count(const laci_engine *engine);
/** The step after which the content of output `port` is final: nothing of the run writes to its
 * buffer from then on. laci_engine_step_count: when the run has ended. With early_outputs it may
 * be long before. */
size_t laci_engine_output_step(const laci_engine *engine, int port);

/** One run; buffers in the order of the ports. One run at a time per engine; different engines run
 * side by side, each on its own threads. Fails LAC_BAD_VALUE (an index outside; a value that is not
 * finite, where laci_engine_finite says so), LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_engine_run(laci_engine *engine, const void *const *inputs,
                                          void *const *outputs, lac_error *err);
/** The same with somebody who watches; NULL: nobody, which costs nothing. Fails as between does,
 * too: then no step follows, and outputs whose step was not reached hold anything. */
LAC_MUST_CHECK lac_status laci_engine_run_watched(laci_engine *engine, const void *const *inputs,
                                                  void *const *outputs,
                                                  const laci_engine_watch *watch, lac_error *err);

/* ---- Node by node ---- */

/** A walk over a graph in double and int64, during which the caller sees and sets values. Shapes
 * come from real operands, so that a model with open sizes runs as it would anywhere. */
typedef struct laci_stepper laci_stepper;

/** Gives the content of stored tensor `stored` (an index of graph->stored), to be owned by the
 * stepper. */
typedef lac_status laci_stepper_load(void *context, int stored, laci_buf **buf, lac_error *err);

typedef struct laci_stepper_options {
  const char *engine;      /* one that steps; NULL: LACI_ENGINE_EXACT */
  laci_stepper_load *load; /* NULL: stored bytes as they are */
  void *load_context;
  laci_pool *pool; /* borrowed; NULL: one thread */
  int iterations;  /* 0: bodies of If, Loop and Scan are run as they say. Else all bodies are run as
                      far as they can be, and a loop takes at most so many iterations: of what it
                      gives for each iteration, the others repeat the last */
  bool single;     /* results are rounded to f32, but those of type f64: as engines that
                  compute in f32 have them. So are always those that no input's content reaches */
  bool unrounded;  /* nor are results of f16, bf16 and fewer bits rounded to their type, as they are
                     else: for proofs, which compare sums in another order */
  laci_budget *budget; /* what is held is added to it, which may be that of several walks, and
                          given back; what is above it is not allocated: LAC_MEMORY_LIMIT. NULL: no
                          limit. Must live as long as the stepper steps or is given values */
} laci_stepper_options;

/** Does that engine step? */
bool laci_stepper_offered(const char *engine);

/** A walk over `graph`, which is borrowed, finished, and need not be inferred. Fails LAC_NOT_FOUND
 * (no such engine), LAC_UNSUPPORTED (an engine that does not step), LAC_NO_MEMORY, and as `load`
 * does. Not for several threads at once. */
LAC_MUST_CHECK lac_status laci_stepper_create(const laci_graph *graph,
                                              const laci_stepper_options *options,
                                              laci_stepper **stepper, lac_error *err);
void laci_stepper_destroy(laci_stepper *stepper); /* NULL is fine */

/** Sets a value: a graph input, a stored tensor to be replaced, or an output of a node that could
 * not be stepped. Takes buf; an older content is freed. */
void laci_stepper_set(laci_stepper *stepper, int value, laci_buf *take);

/** Computes the outputs of a node, whose producers were stepped before. Its inputs, and outputs
 * without readers, live until the next step; other values until the step after their last
 * reader's; graph outputs until the end. Fails LAC_UNSUPPORTED where the operator cannot be run or
 * an input was not computed (the caller may then set the outputs), LAC_BAD_SHAPE where operands do
 * not fit; the text names the node. */
LAC_MUST_CHECK lac_status laci_stepper_step(laci_stepper *stepper, int node, lac_error *err);

/** Content of a value, or NULL: not computed, or freed already. A view. */
const laci_buf *laci_stepper_value(const laci_stepper *stepper, int value);

/** What a walk over all nodes would hold at most, in addition to what the budget has already; the
 * budget gets it: values of these types, [n_values] (unknown shapes count as nothing). skipped:
 * stored tensors that are not loaded, [n_stored], or NULL. engine: as in laci_stepper_options. */
LAC_MUST_CHECK lac_status laci_stepper_plan(const char *engine, const laci_graph *graph,
                                            const laci_type *types, const bool *skipped,
                                            laci_budget *budget, lac_error *err);

#endif

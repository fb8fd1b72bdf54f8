/* SPDX-License-Identifier: Apache-2.0
 * Engines from outside: the functions by which a shared object computes networks for Lacuna. It
 * needs this header and plugin.h, and links nothing of the library.
 *
 *   static const lac_engine_plugin engine = {.size = sizeof engine, .name = "naive", ...};
 *   static const lac_engine_plugin *open_engine(const char **why) { return &engine; }
 *   const lac_plugin *lac_plugin_open(void);       returns a lac_plugin with that open_engine
 *
 * lac_engine_load (engine.h) loads it; docs/how-to/write-an-engine.md builds one.
 *
 * Buffers. In all buffers of a run, an element of any float type is a float, of any integer type or
 * bool an int64_t, row-major and packed. Only lac_graph_value.stored has the file's types.
 *
 * Threads. No two threads call functions of one engine object at a time. `supports` and `create`
 * are called by any thread, also at the same time.
 *
 * Failures. A function that fails returns a status other than LAC_OK and writes err->text, one
 * line; err is never NULL.
 *
 * Growth. Every struct begins with its size. The library fills structs in full; a plug-in that is
 * newer than the library finds a smaller size there, and later fields are missing. The library
 * treats missing fields of a plug-in's struct as 0. It refuses fields that it does not know,
 * unless they are 0. */
#ifndef LACUNA_ENGINE_PLUGIN_H
#define LACUNA_ENGINE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/log.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The network, as an engine sees it: views that live as long as the engine ---- */

/** A value of the network: an input, a stored tensor, or a result of a node. */
typedef struct lac_graph_value {
  size_t size;          /* sizeof this struct */
  const char *name;     /* unique in the network */
  lac_dtype dtype;      /* element type in the network */
  int rank;             /* number of axes; -1: not known, in a graph for `supports` only */
  const int64_t *shape; /* [rank] sizes of the axes; -1: not known, in a graph for `supports` only
                           */
  int64_t count;        /* number of elements; -1: not known */
  bool is_stored;       /* the value is a tensor of the file, the same in every run */
  const void *stored;   /* content of a stored tensor: little-endian elements of `dtype`, packed and
                           row-major. NULL: the value is no stored tensor, or the graph is one for
                           `supports` */
  size_t stored_bytes;  /* size of `stored` in bytes */
  int producer;         /* index of the node that computes the value; -1: none */
  const uint8_t *mask;  /* [count] the weight is zero where the mask is 0, in every run; NULL: not
                          known */
  /* The weight's pattern: of every pattern_m elements along the axis of pattern_columns elements,
   * at most pattern_n differ from zero. Element c of that axis, with outer index o and inner index
   * i, is element (o * pattern_columns + c) * pattern_inner + i. pattern_m 0: not known. */
  int pattern_n, pattern_m;
  int64_t pattern_columns; /* number of elements along the pattern's axis */
  int64_t pattern_inner;   /* stride of the pattern's axis, in elements */
} lac_graph_value;

/** Kinds of attributes. */
typedef enum lac_attribute_kind {
  LAC_ATTRIBUTE_OTHER = 0, /* graphs, sparse tensors, types: the engine does not get their content
                              */
  LAC_ATTRIBUTE_INT = 1,
  LAC_ATTRIBUTE_FLOAT = 2,
  LAC_ATTRIBUTE_TEXT = 3,
  LAC_ATTRIBUTE_INTS = 4,
  LAC_ATTRIBUTE_FLOATS = 5,
  LAC_ATTRIBUTE_TEXTS = 6,
  LAC_ATTRIBUTE_TENSOR = 7,
} lac_attribute_kind;

/** An attribute of a node. The field of its kind is set. */
typedef struct lac_graph_attribute {
  size_t size; /* sizeof this struct */
  const char *name;
  lac_attribute_kind kind;  /* which field is set */
  int64_t i;                /* value of an integer attribute */
  float f;                  /* value of a float attribute */
  const char *text;         /* value of a text attribute */
  int64_t n;                /* number of elements of the list or tensor */
  const int64_t *ints;      /* [n] elements of a list or tensor of integers */
  const float *floats;      /* [n] elements of a list of floats */
  const char *const *texts; /* [n] elements of a list of texts */
  lac_dtype dtype; /* element type of a tensor; the elements are in `doubles` if it is a float type,
                      else in `ints` */
  int rank;
  const int64_t *shape;  /* [rank] sizes of a tensor's axes */
  const double *doubles; /* [n] elements of a tensor of floats */
} lac_graph_attribute;

/** A node of the network. */
typedef struct lac_graph_node {
  size_t size;        /* sizeof this struct */
  const char *name;   /* unique in the network */
  const char *type;   /* the operator, as in ONNX */
  const char *domain; /* "": ONNX itself. "lacuna": operators of gradients, which only the library
                         defines; leave them to `evaluate` */
  int version;        /* opset version of the domain; 0: not given */
  int n_inputs, n_outputs;
  const int *inputs, *outputs; /* [n_inputs], [n_outputs] index of each value in
                                  lac_graph_view.values; -1: an optional one that is absent */
  int n_attributes;
  const lac_graph_attribute *const *attributes; /* [n_attributes] the node's attributes */
} lac_graph_node;

/** A network. Nodes are in an order in which they can be computed. */
typedef struct lac_graph_view {
  size_t size; /* sizeof this struct */
  int n_values, n_nodes, n_inputs, n_outputs;
  const lac_graph_value *const *values; /* [n_values] inputs, stored tensors and results of nodes */
  const lac_graph_node *const *nodes;   /* [n_nodes] nodes, producers first */
  const int *inputs, *outputs;          /* [n_inputs], [n_outputs] index in `values` of each input
                                           and output of the network, in the order of a run's
                                           buffers */
} lac_graph_view;

/* ---- What the library does for an engine ---- */

/** Functions of the library for one engine object; valid while that exists. */
typedef struct lac_engine_host {
  size_t size; /* sizeof this struct */
  void *self;  /* first argument of all functions */
  /** Computes a node by the operator's definition, slowly, so that an engine needs fast code only
   * for the operators that it is good at. Buffers are in the host's memory. The inputs [n_inputs]
   * are those of the node, NULL where absent or where the library is to read the stored tensor
   * itself. The outputs [n_outputs] are NULL where absent. Called during create or a run, on the
   * thread on which the library called the engine. Fails LAC_BAD_ARGUMENT (no such node, a buffer
   * is missing), LAC_BAD_VALUE (an index out of range), LAC_NO_MEMORY. */
  lac_status (*evaluate)(void *self, int node, const void *const *inputs, void *const *outputs,
                         lac_error *err);
  /** Writes a stored tensor's elements as floats or int64_t to `to` [count]. Any thread. Fails
   * LAC_BAD_ARGUMENT if the value is no stored tensor. */
  lac_status (*read_stored)(void *self, int value, void *to, lac_error *err);
  /** Counts host memory that the engine is about to allocate in `create`. what: names the memory in
   * the message. Fails LAC_MEMORY_LIMIT if that is above the caller's limit. */
  lac_status (*count_memory)(void *self, uint64_t bytes, const char *what, lac_error *err);
  /** Calls part(arg, 0) .. part(arg, n - 1), each once, on the caller's threads or those of the
   * library, and returns when all have returned. Called during create or a run. */
  void (*parallel)(void *self, lac_part *part, void *arg, int n);
  /** Logs a line, without newline. Any thread. Lines of a thread that called the engine, and of
   * parts, go to the context of that call. Lines of other threads go to the context in which the
   * engine was made. */
  void (*log)(void *self, lac_log_level level, const char *line);
} lac_engine_host;

/** How a network is to be planned. */
typedef struct lac_engine_request {
  size_t size;         /* sizeof this struct */
  lac_dtype dtype;     /* element type to compute in: one of the engine's types */
  int threads;         /* number of threads that a run may use, >= 1: those of
                          lac_engine_host.parallel */
  bool dense_only;     /* zeros of weights are to be multiplied, too */
  bool is_training;    /* true: the caller checks results for NaN. false: a result that operators
                          define to be NaN or infinite must be so, even if the engine skips zeros of
                          weights */
  int n_observed;      /* number of observed values; more than 0 only if lac_engine_plugin.observes
                          is true */
  const int *observed; /* [n_observed] index of each computed value that every run has to pass to
                          lac_engine_call.see */
  const lac_engine_host *host; /* what the library does for this engine */
} lac_engine_request;

/** Buffers and functions for one run; valid until `run` or `wait` returns. */
typedef struct lac_engine_call {
  size_t size;               /* sizeof this struct */
  void *self;                /* first argument of all functions */
  const void *const *inputs; /* [n_inputs] buffers of the network's inputs, in the memory of the
                                engine's device */
  void *const *outputs;      /* [n_outputs] buffers of the network's outputs, in the memory of the
                                engine's device */
  /** Passes an observed value to the library. content: its elements, in the memory of the engine's
   * device, valid until the call returns. A failure must end the run. */
  lac_status (*see)(void *self, int value, const void *content, lac_error *err);
  /** Says that a step is done, and how long it took. To be called once for each step, in order, on
   * the thread on which `run`, `start` or `wait` was called. A failure must end the run. */
  lac_status (*step_done)(void *self, int step, double seconds, lac_error *err);
  /** Shall the run end early? It then fails LAC_INTERRUPTED. To be called on the thread on which
   * `run`, `start` or `wait` was called, or in a part of lac_engine_host.parallel. */
  bool (*is_interrupted)(void *self);
} lac_engine_call;

/* ---- An engine ---- */

/** Memory of an engine that the host's processor cannot read, such as a GPU's. Pointers to it are
 * passed around, and never read by the library. All functions are set. */
typedef struct lac_engine_device {
  size_t size;                                  /* sizeof this struct */
  const char *name;                             /* name of the device, such as "cuda:0" */
  void *(*allocate)(void *context, size_t n);   /* returns n bytes of the device; NULL: no memory */
  void (*release)(void *context, void *memory); /* NULL is fine */
  /** Copies n bytes from the host, and returns when that is done. */
  lac_status (*to_device)(void *context, void *to, const void *from, size_t n, lac_error *err);
  /** Copies n bytes to the host, and returns when that is done. */
  lac_status (*to_host)(void *context, void *to, const void *from, size_t n, lac_error *err);
} lac_engine_device;

/** What an engine does with a node. */
typedef enum lac_engine_answer {
  LAC_ENGINE_REFUSES = 0,   /* it cannot run networks with this node; the text says why */
  LAC_ENGINE_COMPUTES = 1,  /* the engine computes the node by its own code */
  LAC_ENGINE_EVALUATES = 2, /* the engine has no code for the node and calls
                               lac_engine_host.evaluate; the text says why it has none */
} lac_engine_answer;

/** A step of a run, for reports. Texts live as long as the engine. */
typedef struct lac_engine_step {
  size_t size;        /* sizeof this struct */
  int node;           /* the step's node; -1: several or none */
  const char *what;   /* what is computed, such as "Conv + Relu" */
  const char *kernel; /* name of the code that computes it, such as "naive" or "cudnn" */
  bool is_sparse;     /* zeros of a weight are skipped */
  int64_t flops;      /* multiplications and additions, those by zeros included; 0: no product */
  int64_t bytes_read, bytes_written; /* bytes of all operands, and of all results; 0: not known */
} lac_engine_step;

/** Memory of an engine object. */
typedef struct lac_engine_held {
  size_t size;         /* sizeof this struct */
  size_t value_bytes;  /* bytes of values in host memory */
  size_t weight_bytes; /* bytes of weights in host memory */
  size_t device_bytes; /* bytes in the device's memory */
} lac_engine_held;

/** A parameter tensor of an update; buffers are in the memory of the engine's device. */
typedef struct lac_engine_parameter {
  size_t size;         /* sizeof this struct */
  const char *name;    /* name of the graph's input that holds the weights */
  int64_t count;       /* number of elements */
  bool is_vector;      /* a scale, shift or bias: LARS uses the ratio 1 */
  float decay;         /* weight decay of this tensor */
  const uint8_t *mask; /* [count] mask, in the host's memory: gradients are set to 0 where it is 0;
                          weights and state are 0 there already. NULL: there is no mask */
  float *weights;      /* [count] weights to be updated */
  float *gradients;    /* [count] gradients of the weights */
  float *state[2];     /* [count] each: state[0] is the momentum, state[1] AdamW's mean of squared
                          gradients, else NULL */
} lac_engine_parameter;

/** One step of an optimizer. With g the gradient times `scale`, w the weight, v the first state:
 *
 *   sgd    d = g + decay w
 *          rate outside: v' = momentum v + d;       w' = w - rate (nesterov ? d + momentum v' : v')
 *          rate inside:  v' = momentum v + rate d;  w' = w - (nesterov ? rate d + momentum v' : v')
 *   lars   sgd with the rate inside, times trust |w| / (|g| + decay |w| + epsilon) for each tensor
 *          (1 where |w| or |g| is 0, and for vectors)
 *   adamw  v' = v + (1 - momentum) (g - v);   s' = beta2 s + (1 - beta2) g g
 *          w' = (1 - rate decay) w - rate / (1 - momentum^step) v' / (sqrt(s' / (1 - beta2^step)) +
 *          epsilon) */
typedef struct lac_engine_update {
  size_t size;                                   /* sizeof this struct */
  const char *rule;                              /* "sgd", "lars" or "adamw" */
  float rate;                                    /* learning rate */
  float scale;                                   /* factor of all gradients: 1 / the number of
                                                    batches */
  float momentum;                                /* factor of the momentum; adamw: beta 1 */
  float beta2;                                   /* adamw: beta 2 */
  float epsilon;                                 /* adamw, lars: `epsilon` in the formulas */
  float trust;                                   /* lars: the factor `trust` in the formulas */
  bool nesterov;                                 /* sgd, lars: use Nesterov's momentum */
  bool rate_inside;                              /* sgd: the rate is inside the momentum, see
                                                    above */
  int64_t step;                                  /* number of the step: 1, 2 ... */
  int n_parameters;                              /* length of parameters */
  const lac_engine_parameter *const *parameters; /* [n_parameters] the parameters to update */
} lac_engine_update;

/** An engine: constant data of the plug-in, which stay valid for the rest of the process. */
typedef struct lac_engine_plugin {
  size_t size;             /* sizeof this struct */
  const char *name;        /* 1 to 63 letters, digits, '_', '-' and '.'; no other engine may have
                              this name */
  const lac_dtype *dtypes; /* [n_dtypes] element types in which it can compute on this machine */
  int n_dtypes;            /* length of `dtypes`, at least 1 */
  const lac_engine_device *device; /* the engine's memory; NULL: it reads and writes the host's
                                      memory */
  void *context; /* first argument of supports, create and the device's functions */

  /** What would the engine do with node `node` of a network? Sizes may be open, and stored tensors
   * absent: this only asks. The graph may be a part of a network. */
  lac_engine_answer (*supports)(void *context, const lac_graph_view *graph, int node,
                                lac_error *why);
  /** Plans a network, whose shapes are all known, and whose nodes `supports` accepts. graph and
   * request live as long as the engine. Sets *self, which may not be NULL. */
  lac_status (*create)(void *context, const lac_graph_view *graph,
                       const lac_engine_request *request, void **self, lac_error *err);
  /** Frees what create made. */
  void (*destroy)(void *self);

  /** Runs the network. NULL: the library calls `start` and `wait` instead. */
  lac_status (*run)(void *self, const lac_engine_call *call, lac_error *err);
  /** Starts a run and returns at once. One run at a time. Used in the place of `run` if both are
   * set. */
  lac_status (*start)(void *self, const lac_engine_call *call, lac_error *err);
  /** Returns when the run is done; called after each successful start. */
  lac_status (*wait)(void *self, lac_error *err);

  /* The following may be NULL. */
  /** Returns the number of steps of a run, which does not change. NULL: one, the network. */
  int (*step_count)(const void *self);
  /** Describes a step, 0 <= step < step_count. NULL where step_count is. */
  void (*step_info)(const void *self, int step, lac_engine_step *info);
  /** Fills *held. NULL: values take what was counted (lac_engine_host.count_memory). */
  void (*memory)(const void *self, lac_engine_held *held);
  /** The plan as text, a line for each step. NULL: the library writes the steps. */
  const char *(*text)(const void *self);
  /** Takes one step of an optimizer, after a run of a training. Fails LAC_UNSUPPORTED, with nothing
   * changed, to have the library do it. NULL: the library does. */
  lac_status (*update)(void *self, const lac_engine_update *update, lac_error *err);
  bool observes; /* the engine passes observed values to lac_engine_call.see; false: the library
                    makes them outputs of the network */
} lac_engine_plugin;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * A network as a graph: stored tensors, values and nodes in execution order.
 *
 * A graph knows nothing of files: an importer fills it through the builder functions below and
 * keeps its own handles in `source`. Everything except the modified bytes of stored tensors is
 * allocated in the graph's arena and freed with it. Values, nodes and stored tensors are named by
 * their index. Next: op.h (what an operator is), infer.h (shapes). */
#ifndef LACI_GRAPH_GRAPH_H
#define LACI_GRAPH_GRAPH_H

#include "tensor/shape.h"

typedef struct laci_arena laci_arena;
typedef struct laci_buf laci_buf;
typedef struct laci_byte_source laci_byte_source;
typedef struct laci_acquired_bytes laci_acquired_bytes;
typedef struct laci_spill laci_spill;

struct laci_op;

/** A tensor that is stored in the file: an initializer, or the constant of a Constant node. */
typedef struct laci_stored {
  const char *name; /* initializer's name, or the Constant node's output; unique */
  lac_dtype dtype;
  /* all sizes are known; a tensor of more than LACI_MAX_RANK axes has shape.rank == -1, and only
   * its `bytes` can be used */
  laci_shape shape;
  /* little-endian, packed, row-major; while the bytes are not in memory, the address that stands
   * for them (laci_stored_acquire loads them) */
  const uint8_t *bytes;
  size_t size_bytes;     /* count * element size */
  uint8_t *owned;        /* not NULL: a modified copy, freed with the graph */
  bool spilled;          /* `owned` is in one of the graph's spills, and is not written to */
  bool overridable;      /* the tensor is also listed as an input of the graph (from IR 4 on), so
                            that a caller may replace it */
  bool in_function;      /* the tensor is defined in the body of a local function, and all calls of
                            the function share it */
  bool in_constant_node; /* the tensor is the attribute of a Constant node */
  int value;             /* the value that holds this tensor */
  void *source;          /* private data of the importer */
} laci_stored;

typedef struct laci_value {
  const char *name; /* unique; never NULL */
  laci_type type;   /* declared in the file, refined by inference */
  int producer;     /* index of the node that outputs the value; -1: the value is an input of the
                       graph, or stored */
  int stored;       /* index of the stored tensor that is the value's content; -1: the value is not
                       stored */
  bool is_input, is_output;
  /* the part of the file outside of all nodes that refers to this value by name, so that its
   * channels must stay in place; a string literal, or NULL */
  const char *tied_by;
  /* the file has another value of this name, inside a function or a body, which was renamed here */
  bool is_contested;
  int n_readers;
  const int *readers; /* nodes that read it (inputs or captures), ascending, each once */
  /* contents as far as inference knows them (elements may be symbols), or NULL; the graph owns
   * it */
  laci_buf *known;
} laci_value;

typedef enum laci_attr_kind {
  LACI_ATTR_INT = 1,
  LACI_ATTR_FLOAT,
  LACI_ATTR_TEXT,
  LACI_ATTR_INTS,
  LACI_ATTR_FLOATS,
  LACI_ATTR_TEXTS,
  LACI_ATTR_TENSOR, /* the value is in `tensor` */
  LACI_ATTR_OTHER,  /* graphs, sparse tensors, types: kept by the importer only */
} laci_attr_kind;

typedef struct laci_attr {
  const char *name;
  laci_attr_kind kind;
  int64_t i;
  float f;
  const char *text;
  size_t n; /* length of ints, floats or texts */
  const int64_t *ints;
  const float *floats;
  const char *const *texts;
  laci_buf *tensor; /* the value of a LACI_ATTR_TENSOR, owned by the graph */
} laci_attr;

typedef struct laci_node {
  /* a unique name for messages: the node's name in the file if that is unique and not empty */
  const char *name;
  const char *type;         /* name of the operator, as in the file */
  const char *domain;       /* "" is ai.onnx */
  int version;              /* opset version of the operator's domain; 0: the file does not import
                               this domain */
  const struct laci_op *op; /* NULL: this operator is not declared */
  /* the operator of ai.onnx that attribute "of" names (UnaryGrad); NULL: no such attribute */
  const struct laci_op *of_op;
  int n_inputs, n_outputs;
  const int *inputs;  /* values; -1: absent */
  const int *outputs; /* values; -1: absent */
  int n_captures;     /* number of `captures`: values from outside of an If, Loop or Scan that its
                         bodies read */
  const int *captures;
  int n_attrs;
  const laci_attr *attrs;
  /* "same": the user has declared that the operator treats all channels alike, so that they may be
   * reordered; else NULL */
  const char *assume;
  /* why op is NULL although the operator is declared: how the node breaks ONNX's typing (typing.h),
   * or why its bodies are not imported. NULL: no fault. A string that outlives the graph */
  const char *fault;
  /* the body that the node is part of: bodies[body - 1]; 0: the network itself */
  int body;
  /* number (index + 1) of the body that the node begins or ends; for an If, of the first of its two
   * bodies; 0: the node frames no body */
  int frames;
} laci_node;

/** How the input ports of a Loop or Scan node, which ends a body, are grouped (see laci_body). */
typedef struct laci_end_ports {
  int n_carried, n_slices;
  int first, in, out, slices; /* the first input port of each group */
} laci_end_ports;

/** The nodes of a body (of an If, a Loop or a Scan) are in the graph's list of nodes, between the
 * node that begins an iteration and the node that ends it:
 *
 *   If    then's nodes, else's nodes, If (condition, then's results.., else's results..)
 *   Loop  LoopBegin (trips, condition, first..), nodes, Loop (condition, first.., in.., out..,
 *         slices..)
 *   Scan  ScanBegin (first.., sequences..), nodes, Scan (first.., in.., out.., slices..)
 *
 * first: values carried into the first iteration; in: carried values at the start of any iteration;
 * out: carried values at its end. Only nodes of the same body read the values of a body; the node
 * that ends it outputs the results. */
typedef struct laci_body {
  int outer;      /* the enclosing body, as in laci_node.body */
  int begin, end; /* indices of nodes; an If has no begin: -1 */
  int branch;     /* 1: the body is the then-branch of an If; 0: it is the else-branch; -1: it is an
                     iteration of a loop */
} laci_body;

typedef struct laci_graph {
  laci_arena *arena; /* memory of texts and arrays, owned by `own` below */
  int ir_version;
  /* names of the classes that the outputs stand for, one per line; NULL: not known */
  const char *class_names;
  int n_nodes, n_values, n_stored, n_inputs, n_outputs;
  laci_node *nodes; /* sorted: producers before readers */
  laci_value *values;
  laci_stored *stored;
  int *inputs;  /* the values that are inputs of the network, without stored tensors */
  int *outputs; /* the values that are outputs of the network */
  int n_bodies;
  laci_body *bodies;
  /* the caller of inference fixed sizes of inputs, so conclusions from sizes do not hold for every
   * run */
  bool sizes_fixed;
  int n_symbols; /* symbols 1 .. n_symbols are in use */
  size_t node_capacity, value_capacity, stored_capacity, input_capacity, output_capacity,
      body_capacity;          /* capacities of the arrays while the graph is built */
  struct laci_graph_own *own; /* private to the builder: tables of names, and the arena */
  /* set by the importer: reads bytes of stored tensors that are not in memory; NULL: all are in
   * memory (base/acquire.h) */
  const laci_byte_source *bytes_from;
  /* files with modified bytes of stored tensors; owned by the graph */
  laci_spill *spills;
  laci_buf **bufs; /* attribute tensors, freed with the graph */
  size_t n_bufs, buf_capacity;
} laci_graph;

LAC_MUST_CHECK lac_status laci_graph_create(laci_graph **graph, lac_error *err);
void laci_graph_destroy(laci_graph *graph);

/* Building. Texts and arrays are copied. Functions that return an id return one >= 0. */

/** Returns the value of that name, and creates it if there is none yet. -1: no memory. */
int laci_graph_intern_value(laci_graph *graph, const char *name);
/** Returns the value of that name; -1: there is none. */
int laci_graph_find_value(const laci_graph *graph, const char *name);

/** Returns LAC_NOT_FOUND with the message that the network has no input `name`, and a list of its
 * inputs. */
lac_status laci_graph_fail_unknown_input(const laci_graph *graph, const char *name, lac_error *err);

/** Adds a stored tensor. Its bytes are not copied: they must live as long as the graph. Fails
 * LAC_BAD_FILE where a tensor or value of that name is defined already. */
LAC_MUST_CHECK lac_status laci_graph_add_stored(laci_graph *graph, const laci_stored *stored,
                                                int *id, lac_error *err);
/** Adds a node. attrs are copied deeply, except each `tensor`, whose ownership passes to the graph.
 * If `name` is NULL or taken already, the graph makes a unique one. op is looked up by type and
 * domain. Fails LAC_BAD_FILE where one of the outputs is defined already. */
LAC_MUST_CHECK lac_status laci_graph_add_node(laci_graph *graph, const laci_node *node, int *id,
                                              lac_error *err);
/** Adds a node as laci_graph_add_node does, but copies each `tensor` of attributes too: the caller
 * keeps its own. */
LAC_MUST_CHECK lac_status laci_graph_add_node_copy(laci_graph *graph, const laci_node *node,
                                                   int *id, lac_error *err);
/** Makes nodes that are added from now on part of that body, as in laci_node.body. */
void laci_graph_set_current_body(laci_graph *graph, int body);
/** Adds a body and returns its number, to be passed to laci_graph_set_current_body. The caller sets
 * `begin` and `end`; they are kept up to date when nodes get other ids. -1: no memory. */
int laci_graph_add_body(laci_graph *graph, const laci_body *body);
LAC_MUST_CHECK lac_status laci_graph_add_input(laci_graph *graph, const char *name,
                                               const laci_type *type, lac_error *err);
LAC_MUST_CHECK lac_status laci_graph_add_output(laci_graph *graph, const char *name,
                                                lac_error *err);
/** Returns a new size symbol: the negative number that represents it in shapes. */
int64_t laci_graph_add_symbol(laci_graph *graph);

/** The last step of building: sorts the nodes, fills readers, checks that every value read is
 * defined and that there is no cycle (LAC_BAD_FILE, with its name). The nodes of a loop become
 * consecutive. Ids of nodes change here. */
LAC_MUST_CHECK lac_status laci_graph_finish(laci_graph *graph, lac_error *err);

/** Returns the bytes of a stored tensor for writing; they are copied on first use, and must be in
 * memory. NULL: no memory. */
uint8_t *laci_stored_writable_bytes(laci_stored *stored);

/** Loads the bytes of a stored tensor into memory until laci_bytes_release is called. Fails
 * LAC_NO_MEMORY, and LAC_IO where a file was changed since it was loaded. May be called from any
 * thread. */
LAC_MUST_CHECK lac_status laci_stored_acquire(const laci_graph *graph, const laci_stored *stored,
                                              laci_acquired_bytes *held, lac_error *err);

/** Replaces the modified bytes of a stored tensor by `take`, which the graph then owns. spilled:
 * the bytes are in one of the graph's spills. */
void laci_stored_replace_bytes(laci_stored *stored, uint8_t *take, bool spilled);

/* Make attributes for a node that is to be added; texts and arrays are not copied here. */
static inline laci_attr laci_attr_int(const char *name, int64_t i) {
  return (laci_attr){.name = name, .kind = LACI_ATTR_INT, .i = i};
}
static inline laci_attr laci_attr_float(const char *name, float f) {
  return (laci_attr){.name = name, .kind = LACI_ATTR_FLOAT, .f = f};
}
static inline laci_attr laci_attr_text(const char *name, const char *text) {
  return (laci_attr){.name = name, .kind = LACI_ATTR_TEXT, .text = text};
}
static inline laci_attr laci_attr_ints(const char *name, int n, const int64_t *ints) {
  return (laci_attr){.name = name, .kind = LACI_ATTR_INTS, .n = (size_t)n, .ints = ints};
}

/** Returns the groups of input ports of a Loop or Scan node that ends a body. */
laci_end_ports laci_node_loop_end_ports(const laci_node *node);
/** Returns the axis of a value of that rank along which its slices are stacked: entry k of the list
 * attribute `name`; -1: it is outside of the rank. */
int laci_node_slice_axis(const laci_node *node, const char *name, int k, int rank);

/* Read attributes; the default is returned where the attribute is absent or of another kind. */
const laci_attr *laci_node_attr(const laci_node *node, const char *name);
int64_t laci_node_int(const laci_node *node, const char *name, int64_t otherwise);
float laci_node_float(const laci_node *node, const char *name, float otherwise);
const char *laci_node_text(const laci_node *node, const char *name, const char *otherwise);
/** Returns a list of integers, and its length in *n; NULL where it is absent. */
const int64_t *laci_node_ints(const laci_node *node, const char *name, size_t *n);

#endif

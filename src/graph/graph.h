/* SPDX-License-Identifier: Apache-2.0
 * A network as a graph: stored tensors, values and nodes in execution order.
 *
 * A graph knows nothing of files: an importer fills it through the builder below and keeps its own
 * handles in `source`. Everything but the modified bytes of stored tensors lives in the graph's
 * arena and dies with it. Values, nodes and stored tensors are named by their index. Next: op.h
 * (what an operator is), infer.h (shapes). */
#ifndef LACI_GRAPH_GRAPH_H
#define LACI_GRAPH_GRAPH_H

#include "tensor/shape.h"

typedef struct laci_arena laci_arena;
typedef struct laci_buf laci_buf;
typedef struct laci_byte_source laci_byte_source;
typedef struct laci_held laci_held;
typedef struct laci_spill laci_spill;

struct laci_op;

/** A tensor that is stored in the file: an initializer, or the constant of a Constant node. */
typedef struct laci_stored {
  const char *name; /* initializer's name, or the Constant node's output; unique */
  lac_dtype dtype;
  laci_shape shape; /* known; rank > LACI_MAX_RANK: shape.rank == -1 and only `bytes` can be used */
  const uint8_t
      *bytes; /* little-endian, packed, row-major; where they are, or would be (laci_stored_hold) */
  size_t size_bytes;     /* count * element size */
  uint8_t *owned;        /* not NULL: a modified copy, freed with the graph */
  bool spilled;          /* `owned` is in one of the graph's spills, and is not written to */
  bool overridable;      /* from IR 4 on: also listed as graph input, so a caller may replace it */
  bool in_function;      /* lives in a local function's body; all calls share it */
  bool in_constant_node; /* from a Constant node */
  int value;             /* the value that it is */
  void *source;          /* importer's own */
} laci_stored;

typedef struct laci_value {
  const char *name; /* unique; never NULL */
  laci_type type;   /* declared in the file, refined by inference */
  int producer;     /* node, or -1: graph input or stored */
  int stored;       /* stored tensor, or -1 */
  bool is_input, is_output;
  const char *tied_by; /* the part of the file, outside of all nodes, that names it, so that its
                          channels stay in place; a literal, or NULL */
  bool is_contested; /* a value of a function or body should have had this name, and got another */
  int n_readers;
  const int *readers; /* nodes that read it (inputs or captures), ascending, each once */
  laci_buf *known;    /* contents as far as inference found them (symbols inside), or NULL; owned by
                         the graph */
} laci_value;

typedef enum laci_attr_kind {
  LACI_ATTR_INT = 1,
  LACI_ATTR_FLOAT,
  LACI_ATTR_TEXT,
  LACI_ATTR_INTS,
  LACI_ATTR_FLOATS,
  LACI_ATTR_TEXTS,
  LACI_ATTR_TENSOR, /* of an attribute that is a tensor: `tensor` */
  LACI_ATTR_OTHER,  /* graphs, sparse tensors, types: kept by the importer only */
} laci_attr_kind;

typedef struct laci_attr {
  const char *name;
  laci_attr_kind kind;
  int64_t i;
  float f;
  const char *text;
  size_t n; /* of ints, floats or texts */
  const int64_t *ints;
  const float *floats;
  const char *const *texts;
  laci_buf *tensor; /* owned by the graph */
} laci_attr;

typedef struct laci_node {
  const char *name;         /* for messages: unique; the file's name if unique and not empty */
  const char *type;         /* operator, as in the file */
  const char *domain;       /* "" is ai.onnx */
  int version;              /* opset version of its domain; 0: not imported */
  const struct laci_op *op; /* NULL: this operator is not declared */
  const struct laci_op *of; /* of ai.onnx: what attribute "of" names (UnaryGrad); NULL: nothing */
  int n_inputs, n_outputs;
  const int *inputs;  /* values; -1: absent */
  const int *outputs; /* values; -1: absent */
  int n_captures;     /* outer values that the bodies of If, Loop, Scan read */
  const int *captures;
  int n_attrs;
  const laci_attr *attrs;
  const char
      *assume; /* "same": the user declares that it passes channel orders through; else NULL */
  const char *fault; /* how it breaks ONNX's typing (typing.h), or why its bodies are not looked
                        into: then op is NULL; else NULL; of static storage where it is added */
  int body;          /* which body it belongs to: bodies[body - 1]; 0: the network itself */
  int frames;        /* the body that it begins or ends, of an If the first of two; 0: none */
} laci_node;

/** The groups of ports of the node that ends a body (see laci_body). */
typedef struct laci_end_ports {
  int n_carried, n_slices;
  int first, in, out, slices; /* the first input port of each kind */
} laci_end_ports;

/** The body of an If, a Loop or a Scan is nodes like all others, between the node that begins an
 * iteration and the one that ends it:
 *
 *   If    then's nodes, else's nodes, If (condition, then's results.., else's results..)
 *   Loop  LoopBegin (trips, condition, first..), nodes, Loop (condition, first.., in.., out..,
 *         slices..)
 *   Scan  ScanBegin (first.., sequences..), nodes, Scan (first.., in.., out.., slices..)
 *
 * first: what is carried into the first iteration, in: into any, out: out of one. The values of a
 * body are read inside of it only; the node that ends it hands the results on. */
typedef struct laci_body {
  int outer;      /* the body around it, as in laci_node.body */
  int begin, end; /* nodes; an If has no begin: -1 */
  int branch;     /* of an If: 1 then, 0 else; -1: an iteration of a loop */
} laci_body;

typedef struct laci_graph {
  laci_arena *arena; /* of texts and arrays; inside `own` */
  int ir_version;
  const char *class_names; /* what its outputs mean: folders of images, one a line; NULL: not known
                            */
  int n_nodes, n_values, n_stored, n_inputs, n_outputs;
  laci_node *nodes; /* sorted: producers before readers */
  laci_value *values;
  laci_stored *stored;
  int *inputs;  /* values, without stored tensors */
  int *outputs; /* values */
  int n_bodies;
  laci_body *bodies;
  bool
      sizes_fixed; /* by the caller of inference: what follows from them is not true of every run */
  int n_symbols;   /* symbols 1 .. n_symbols are in use */
  size_t node_capacity, value_capacity, stored_capacity, input_capacity, output_capacity,
      body_capacity;                  /* builder's */
  struct laci_graph_own *own;         /* builder's names, and the arena */
  const laci_byte_source *bytes_from; /* importer's: where bytes are that are not in memory; NULL:
                                         all are (base/held.h) */
  laci_spill *spills;                 /* of modified copies; the graph's */
  laci_buf **bufs;                    /* attribute tensors, freed with the graph */
  size_t n_bufs, buf_capacity;
} laci_graph;

LAC_MUST_CHECK lac_status laci_graph_create(laci_graph **graph, lac_error *err);
void laci_graph_destroy(laci_graph *graph);

/* Building. Texts and arrays are copied. Ids come back as results >= 0. */

/** The value of that name, made if there is none yet. Never fails on content; -1: no memory. */
int laci_graph_value(laci_graph *graph, const char *name);
/** -1: there is none. */
int laci_graph_find_value(const laci_graph *graph, const char *name);

/** LAC_NOT_FOUND: the network has no input of that name; the text lists those that it has. */
lac_status laci_graph_fail_input(const laci_graph *graph, const char *name, lac_error *err);

/** Adds a stored tensor (bytes stay the caller's, for as long as the graph lives). Fails
 * LAC_BAD_FILE on a name that is defined already. */
LAC_MUST_CHECK lac_status laci_graph_add_stored(laci_graph *graph, const laci_stored *stored,
                                                int *id, lac_error *err);
/** Fails LAC_BAD_FILE where an output is defined already. attrs are copied deeply, but for
 * `tensor`, which the graph takes. `name` may be NULL or taken already: the graph finds a unique
 * one. op is looked up by type and domain. */
LAC_MUST_CHECK lac_status laci_graph_add_node(laci_graph *graph, const laci_node *node, int *id,
                                              lac_error *err);
/** The same, but `tensor` of attributes stays whose it is: the graph takes copies. */
LAC_MUST_CHECK lac_status laci_graph_add_copy(laci_graph *graph, const laci_node *node, int *id,
                                              lac_error *err);
/** Nodes that are added from now on belong to that body, as in laci_node.body. */
void laci_graph_enter(laci_graph *graph, int body);
/** A body, to be entered; its nodes `begin` and `end` are set by the caller, and follow when they
 * get other ids. -1: no memory. */
int laci_graph_add_body(laci_graph *graph, const laci_body *body);
LAC_MUST_CHECK lac_status laci_graph_add_input(laci_graph *graph, const char *name,
                                               const laci_type *type, lac_error *err);
LAC_MUST_CHECK lac_status laci_graph_add_output(laci_graph *graph, const char *name,
                                                lac_error *err);
/** A new size symbol, as the (negative) number that shapes have for it. */
int64_t laci_graph_symbol(laci_graph *graph);

/** Sorts the nodes, fills readers, checks that every value read is defined and that there is no
 * cycle (LAC_BAD_FILE, naming it). The nodes of a loop are consecutive. The last step of building;
 * ids of nodes change here. */
LAC_MUST_CHECK lac_status laci_graph_finish(laci_graph *graph, lac_error *err);

/** Bytes of a stored tensor to write to: copies them on first use; they must be in memory. NULL: no
 * memory. */
uint8_t *laci_stored_mut(laci_stored *stored);

/** Its bytes in memory, until laci_let_go. Fails LAC_NO_MEMORY, and LAC_IO where a file was changed
 * since it was loaded. Any thread. */
LAC_MUST_CHECK lac_status laci_stored_hold(const laci_graph *graph, const laci_stored *stored,
                                           laci_held *held, lac_error *err);

/** New bytes, which become the graph's, in the place of modified ones. spilled: they are in a spill
 * that is the graph's, too. */
void laci_stored_replace(laci_stored *stored, uint8_t *take, bool spilled);

/* Attributes to be added with a node; texts and arrays stay the caller's. */
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

/** Ports of a Loop or a Scan that ends a body. */
laci_end_ports laci_node_end_ports(const laci_node *node);
/** The axis of slices in the k-th list (attribute `name`) of a value of that rank; -1: it is
 * outside. */
int laci_slice_axis(const laci_node *node, const char *name, int k, int rank);

/* Attributes; the default comes back where the attribute is absent or of another kind. */
const laci_attr *laci_node_attr(const laci_node *node, const char *name);
int64_t laci_node_int(const laci_node *node, const char *name, int64_t otherwise);
float laci_node_float(const laci_node *node, const char *name, float otherwise);
const char *laci_node_text(const laci_node *node, const char *name, const char *otherwise);
/** NULL where absent; *n its length. */
const int64_t *laci_node_ints(const laci_node *node, const char *name, size_t *n);

#endif

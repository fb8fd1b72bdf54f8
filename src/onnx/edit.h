/* SPDX-License-Identifier: Apache-2.0
 * Changes the nodes of a loaded file: adds nodes and stored tensors, makes inputs read other
 * values, removes nodes.
 *
 *   laci_onnx_edit_begin(file, &edit, err)
 *   name = laci_edit_make_unique_name(edit, "x", "_scale")
 *   laci_edit_add_tensor(...); laci_edit_add_node(...)
 *   laci_onnx_edit_apply(edit, &graph, err)     the file is changed, and graph is imported from it
 *   laci_onnx_edit_keep(edit) or laci_onnx_edit_undo(edit)
 *
 * Only nodes of the main graph are changed. A node is identified by a value that it outputs. All
 * else of the file stays unchanged: fields that this library does not know, bodies (subgraphs),
 * functions, names. Stored tensors that nothing reads any more are removed. Next: edit.c collects
 * the changes, edit_apply.c makes them. */
#ifndef LACI_ONNX_EDIT_H
#define LACI_ONNX_EDIT_H

#include "tensor/shape.h"

typedef struct laci_graph laci_graph;
typedef struct laci_onnx laci_onnx;
typedef struct laci_onnx_edit laci_onnx_edit;

enum { LACI_EDIT_INPUTS = 4, LACI_EDIT_OUTPUTS = 3 };

/** A node of the domain ai.onnx that an edit adds. */
typedef struct laci_edit_node {
  const char *type;
  const char *inputs[LACI_EDIT_INPUTS];
  int n_inputs;
  const char *name;   /* name of the node, from laci_edit_make_unique_name; NULL: it is made of
                         `output` */
  const char *output; /* name of the first output: a new one, or one of laci_edit_replace_value */
  const char *others[LACI_EDIT_OUTPUTS - 1]; /* names of further outputs; NULL: none */
  /* the new node is added after the node that outputs the value `after`; if that is NULL, before
   * the node that outputs `before` */
  const char *after;
  const char *before; /* the new node is added before the node that outputs this value, if `after`
                         is NULL */
  const char *attribute; /* name of the node's only attribute, an integer; NULL: it has none */
  int64_t number;        /* value of the attribute */
} laci_edit_node;

/** Begins an edit. The file is not changed before laci_onnx_edit_apply, and must outlive the
 * edit. */
LAC_MUST_CHECK lac_status laci_onnx_edit_begin(laci_onnx *file, laci_onnx_edit **edit,
                                               lac_error *err);

/** Is the value an output of a node of the main graph? The node may be a call of a function. */
bool laci_edit_is_computed(const laci_onnx_edit *edit, const char *value);
/** Is the value the output of a node of the main graph, whose type in ai.onnx and whose number of
 * inputs are these? Nodes inside functions do not count: the file has them only in the function. */
bool laci_edit_is_output_of(const laci_onnx_edit *edit, const char *value, const char *type,
                            int n_inputs);
/** Is the value an initializer, the output of a Constant node, or an input of the main graph? */
bool laci_edit_is_stored_or_input(const laci_onnx_edit *edit, const char *value);

/** Returns a name that the file does not have yet: base and suffix, followed by a number if that
 * name is taken. NULL: no memory. */
const char *laci_edit_make_unique_name(laci_onnx_edit *edit, const char *base, const char *suffix);

/** Adds an initializer. name is from laci_edit_make_unique_name, or is a value that
 * laci_edit_replace_value replaces. The bytes are copied. */
LAC_MUST_CHECK lac_status laci_edit_add_tensor(laci_onnx_edit *edit, const char *name,
                                               lac_dtype dtype, const laci_shape *shape,
                                               const void *bytes, lac_error *err);
/** Adds a node when the edit is applied. The texts in *node must live as long as the edit. */
LAC_MUST_CHECK lac_status laci_edit_add_node(laci_onnx_edit *edit, const laci_edit_node *node,
                                             lac_error *err);
/** Makes all nodes of the main graph that read the value `from` read `to` instead. Nodes added by
 * this edit, bodies and the graph's outputs are not changed. */
LAC_MUST_CHECK lac_status laci_edit_redirect_value(laci_onnx_edit *edit, const char *from,
                                                   const char *to, lac_error *err);
/** Makes input number `port` of a node read the value `input`. The node is the one that outputs
 * `output`; port may be one beyond its last input. */
LAC_MUST_CHECK lac_status laci_edit_set_input(laci_onnx_edit *edit, const char *output, int port,
                                              const char *input, lac_error *err);
/** Removes the attribute `name`, if there is one, from the node that outputs `output`. */
LAC_MUST_CHECK lac_status laci_edit_drop_attribute(laci_onnx_edit *edit, const char *output,
                                                   const char *name, lac_error *err);
/** Makes the file import this version of the operator set ai.onnx. The caller changes the nodes to
 * fit it. */
void laci_edit_set_opset_version(laci_onnx_edit *edit, int64_t version);
/** Removes the node that outputs the value `output`. Its operand `instead` must be read by this
 * node alone. The node that computes `instead` then outputs it under the name `output`, so that
 * readers of `output` read it. Other calls of this edit identify the remaining node by `output`. */
LAC_MUST_CHECK lac_status laci_edit_remove_node(laci_onnx_edit *edit, const char *output,
                                                const char *instead, lac_error *err);

/** Replaces a computed value by a stored tensor or by the output of a new node, which the caller
 * adds by laci_edit_add_tensor or laci_edit_add_node under the value's name. The node that computed
 * it is removed. So are nodes whose outputs are then no longer read. If other outputs of the node
 * (laci_edit_node_outputs) are read, they must be replaced, too. */
LAC_MUST_CHECK lac_status laci_edit_replace_value(laci_onnx_edit *edit, const char *value,
                                                  lac_error *err);
/** Returns the names of all outputs of the node that outputs the value, and sets *n to their
 * number; some may be "". NULL: no node of the main graph outputs the value. */
const char *const *laci_edit_node_outputs(const laci_onnx_edit *edit, const char *value, size_t *n);

/** A value that the body of a local function computes, in one call of the function. */
typedef struct laci_edit_call_value {
  int function;      /* index of the function in the file */
  int call;          /* index in the main graph of the node that calls the function */
  const char *value; /* name of the value in the function */
} laci_edit_call_value;

/** Finds the value of a function's call that inlining named `value`. Returns false if there is no
 * such value, if the function is not only called from the main graph, or if its calls have no
 * unique names. */
bool laci_edit_find_call_value(const laci_onnx_edit *edit, const char *value,
                               laci_edit_call_value *found);
/** A function is called several times in the main graph, and inlining gives a value of it a name in
 * each call. Returns that name for call number `at` (0, 1, ...), and sets *call to the index of the
 * calling node. If another value has this name already, that value is marked
 * laci_value.is_contested. The text is in the edit's arena. NULL: there is no such call, or no
 * memory. */
const char *laci_edit_find_call_value_name(laci_onnx_edit *edit, const laci_edit_call_value *value,
                                           int at, int *call);
/** Replaces a value that a function computes by a new input of the function, for which this call
 * passes `tensor`. The caller must do this for all calls of the function. Nodes and inputs of the
 * function that nothing reads any more are removed. */
LAC_MUST_CHECK lac_status laci_edit_replace_call_value(laci_onnx_edit *edit,
                                                       const laci_edit_call_value *value,
                                                       const char *tensor, lac_error *err);

/** Changes the file, and imports it as *graph. After a failure the file is as it was before. Graphs
 * that were imported earlier point to bytes that laci_onnx_edit_keep may free. */
LAC_MUST_CHECK lac_status laci_onnx_edit_apply(laci_onnx_edit *edit, laci_graph **graph,
                                               lac_error *err);
/** End an edit and destroy it. keep: the change is final. undo: the file is restored; graphs made
 * by laci_onnx_edit_apply must be destroyed before. edit may be NULL. */
void laci_onnx_edit_keep(laci_onnx_edit *edit);
void laci_onnx_edit_undo(laci_onnx_edit *edit);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Changing the nodes of a file that was read: new nodes and stored tensors, inputs that read
 * another value, nodes that go.
 *
 *   laci_onnx_edit_begin(file, &edit, err)
 *   name = laci_edit_name(edit, "x", "_scale"); laci_edit_add_tensor(...); laci_edit_add_node(...)
 *   laci_onnx_edit_apply(edit, &graph, err)     the file is another one, graph is what it says now
 *   laci_onnx_edit_keep(edit) or laci_onnx_edit_undo(edit)
 *
 * Nodes are those of the main graph, named by the value that they make. All else of the file stays
 * as it is: fields that this library does not know, bodies, functions, names. Stored tensors that
 * nothing reads any more go. Next: edit.c collects, edit_apply.c does it. */
#ifndef LACI_ONNX_EDIT_H
#define LACI_ONNX_EDIT_H

#include "tensor/shape.h"

typedef struct laci_graph laci_graph;
typedef struct laci_onnx laci_onnx;
typedef struct laci_onnx_edit laci_onnx_edit;

enum { LACI_EDIT_INPUTS = 3 };

/** A node to be added, of ai.onnx, with one output. */
typedef struct laci_edit_node {
  const char *type;
  const char *inputs[LACI_EDIT_INPUTS];
  int n_inputs;
  const char *output; /* and the node's name begins with it */
  const char *after;  /* it is added after the node that makes this value; NULL: ... */
  const char *before; /* ... before the node that makes this one */
  bool has_axis;
  int64_t axis;
} laci_edit_node;

/** Nothing is changed before laci_onnx_edit_apply. The file must outlive the edit. */
LAC_MUST_CHECK lac_status laci_onnx_edit_begin(laci_onnx *file, laci_onnx_edit **edit,
                                               lac_error *err);

/** Is the value made by a node of the main graph, be it the call of a function? */
bool laci_edit_makes(const laci_onnx_edit *edit, const char *value);
/** ... and by this one of ai.onnx, not by one of a function that was inlined? */
bool laci_edit_is_node(const laci_onnx_edit *edit, const char *value, const char *type,
                       int n_inputs);
/** Is it an initializer or a Constant node of the main graph, or one of its inputs? */
bool laci_edit_holds(const laci_onnx_edit *edit, const char *value);

/** A name that the file does not have yet: base and suffix, and a number where these are taken.
 * NULL: no memory. */
const char *laci_edit_name(laci_onnx_edit *edit, const char *base, const char *suffix);

/** Adds an initializer; name is laci_edit_name's, or that of laci_edit_replace; bytes are copied.
 */
LAC_MUST_CHECK lac_status laci_edit_add_tensor(laci_onnx_edit *edit, const char *name,
                                               lac_dtype dtype, const laci_shape *shape,
                                               const void *bytes, lac_error *err);
/** Texts must live as long as the edit. */
LAC_MUST_CHECK lac_status laci_edit_add_node(laci_onnx_edit *edit, const laci_edit_node *node,
                                             lac_error *err);
/** All nodes of the main graph that read `from` read `to`; not those that are added, and neither
 * bodies nor the graph's outputs. */
LAC_MUST_CHECK lac_status laci_edit_redirect(laci_onnx_edit *edit, const char *from, const char *to,
                                             lac_error *err);
/** Input `port` of the node that makes `output` reads `input`; port may be one past the last. */
LAC_MUST_CHECK lac_status laci_edit_input(laci_onnx_edit *edit, const char *output, int port,
                                          const char *input, lac_error *err);
/** The node that makes `output` goes, and what made its operand `instead`, which nothing else
 * reads, makes `output`. Other calls name the node that stays by `output`. */
LAC_MUST_CHECK lac_status laci_edit_drop(laci_onnx_edit *edit, const char *output,
                                         const char *instead, lac_error *err);

/** The value is a stored tensor from now on, which laci_edit_add_tensor adds under the value's
 * name. The node that makes it goes, and so do nodes whose results nothing reads then. What else
 * the node makes (laci_edit_results) must be replaced, too, where it is read. */
LAC_MUST_CHECK lac_status laci_edit_replace(laci_onnx_edit *edit, const char *value,
                                            lac_error *err);
/** All values that the value's node makes, [*n]; some may be "". NULL: no node of the main graph
 * makes it. */
const char *const *laci_edit_results(const laci_onnx_edit *edit, const char *value, size_t *n);

/** A value of the graph that the body of a local function makes, in one call of it. */
typedef struct laci_edit_call_value {
  int function;      /* of the file */
  int call;          /* node of the main graph */
  const char *value; /* its name in the function */
} laci_edit_call_value;

/** Finds it by the name that inlining gave it. False: it is none, or the function is called from
 * elsewhere than the main graph, or its calls have no names of their own. */
bool laci_edit_find_inner(const laci_onnx_edit *edit, const char *value,
                          laci_edit_call_value *found);
/** The name that inlining gives the same value in the main graph's call number `at`, 0, 1 ...,
 * unless that was taken: whose it is then says laci_value.is_contested. In the edit's arena. NULL:
 * there is no such call, or no memory. */
const char *laci_edit_inner_name(laci_onnx_edit *edit, const laci_edit_call_value *value, int at,
                                 int *call);
/** The function gets the value as an input from now on, and this call hands it `tensor`. To be said
 * for all calls of the function. Nodes and inputs of the function that nothing reads then go. */
LAC_MUST_CHECK lac_status laci_edit_replace_inner(laci_onnx_edit *edit,
                                                  const laci_edit_call_value *value,
                                                  const char *tensor, lac_error *err);

/** Changes the file, and makes the graph of what it says then. What fails leaves the file as it
 * was. Graphs of the file from before see bytes that may go with laci_onnx_edit_keep. */
LAC_MUST_CHECK lac_status laci_onnx_edit_apply(laci_onnx_edit *edit, laci_graph **graph,
                                               lac_error *err);
/** The change stays, or goes; the edit is destroyed. Graphs made by apply must be destroyed before
 * undo. NULL is fine. */
void laci_onnx_edit_keep(laci_onnx_edit *edit);
void laci_onnx_edit_undo(laci_onnx_edit *edit);

#endif

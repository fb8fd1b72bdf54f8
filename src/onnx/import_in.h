/* SPDX-License-Identifier: Apache-2.0
 * The state of importing a file. It is shared by import.c (inputs, outputs, initializers), scope.c
 * (names), open.c (the bodies of If, Loop and Scan), body.c (the outer values read by bodies that
 * are not imported), node.c (nodes and constants) and function.c (calls of local functions). */
#ifndef LACI_ONNX_IMPORT_IN_H
#define LACI_ONNX_IMPORT_IN_H

#include "graph/names.h"
#include "onnx/onnx_in.h"

typedef struct laci_node laci_node;
typedef struct laci_stored laci_stored;

/** A local function of the file (a FunctionProto). */
typedef struct laci_onnx_function {
  const Onnx__FunctionProto *proto;
  int next_of_name; /* index of another function with this name, but another domain or overload; -1:
                       none */
  /* true: bodies or graphs that are not imported call the function, too, so its constants must not
   * change */
  bool is_hidden;
  bool has_constants;        /* true: `constants` is filled */
  laci_name_table constants; /* maps the output of a Constant node in the function to its value,
                                which is one stored tensor for all calls */
} laci_onnx_function;

enum { LACI_MAX_SCOPES = 100 /* limit for the nesting depth of calls and bodies */ };
/** The first IR version of ONNX in which an initializer that is also an input is a default value.
 * Older files list every initializer as an input. */
enum { LACI_FIRST_IR_WITH_DEFAULTS = 4 };

/** A scope of the names of values: the main graph, one call of a function, or a body (subgraph of a
 * node) in either. A body also sees the names of the scopes around it. */
typedef struct laci_scope {
  const struct laci_scope *outer;  /* the scope around a body (subgraph of a node); NULL: this scope
                                      is no body */
  const struct laci_scope *caller; /* the scope that calls the function; NULL: this is the main
                                      graph */
  laci_onnx_function *function;    /* the function that is called; NULL: this is the main graph */
  const Onnx__NodeProto *call;
  /* prefix of the names of nodes and values in this scope, "call/"; "" in the main graph */
  const char *prefix;
  /* maps a name to 1 + the index of its value; to 0 for an input that the call leaves out. Empty
   * for the main graph */
  laci_name_table values;
  int depth;
} laci_scope;

typedef struct laci_importer laci_importer;

struct laci_importer {
  laci_onnx *file;
  laci_graph *graph;
  laci_arena scratch;
  laci_name_table symbols;      /* maps the name of a dynamic size to its symbol */
  laci_name_table function_ids; /* maps a name to the index of the first function with that name */
  laci_onnx_function *functions;
  size_t n_functions;
  laci_name_table
      shared; /* shared: maps the address of a tensor in the bodies of a function to its value */
  int body;   /* index of the body that nodes are added to, as in laci_node.body */
  /* number of bytes that inlining may still allocate; without a limit, a small file could require
   * terabytes */
  int64_t budget;
  /* laci_import_any_node, called through this pointer by open.c for the nodes of bodies */
  lac_status (*add_node)(laci_importer *im, const laci_scope *scope, const Onnx__NodeProto *node,
                         lac_error *err);
  int n_fresh; /* number of unique names that were made so far */
};

/* ---- Functions of declared.c ---- */

/** Converts a type that the file declares. */
LAC_MUST_CHECK lac_status laci_import_convert_type(laci_importer *im,
                                                   const Onnx__ValueInfoProto *info,
                                                   laci_type *type, lac_error *err);
/** Adds an initializer as a stored tensor. about: all that is known of it but its type, shape and
 * bytes. */
LAC_MUST_CHECK lac_status laci_import_add_initializer(laci_importer *im, Onnx__TensorProto *tensor,
                                                      const laci_stored *about, lac_error *err);
/** Sets the type that the file declares for a value. in_body: sizes with names are local to the
 * body. */
LAC_MUST_CHECK lac_status laci_import_declare_type(laci_importer *im, int value,
                                                   const Onnx__ValueInfoProto *info, bool in_body,
                                                   lac_error *err);

/* ---- Functions of constant.c ---- */

/** Returns the type of an attribute's value. If the file does not give it, it follows from the
 * fields that are set. */
Onnx__AttributeProto__AttributeType laci_import_find_attr_type(const Onnx__AttributeProto *attr);
/** Returns the attribute of a Constant node that has its tensor or numbers; NULL: the node is no
 * Constant. */
Onnx__AttributeProto *laci_import_find_constant_attr(const Onnx__NodeProto *node);
/** Adds the content of a Constant node's attribute (resolved) as a stored tensor. about: all that
 * is known of it but its type, shape and bytes. is_shared: the attribute is an argument of a
 * function call. Other nodes may read it too, so the tensor must not change. */
LAC_MUST_CHECK lac_status laci_import_add_constant(laci_importer *im, Onnx__AttributeProto *attr,
                                                   const laci_stored *about, bool is_shared,
                                                   int *value, lac_error *err);

/* ---- Functions of node.c ---- */

/** Imports a node that calls no local function. */
LAC_MUST_CHECK lac_status laci_import_operator_node(laci_importer *im, const laci_scope *scope,
                                                    const Onnx__NodeProto *node, lac_error *err);
/* ---- Functions of scope.c ---- */

/** Finds the value with this name in a scope. *value is -1 for the empty name, and for an input
 * that the call leaves out. */
LAC_MUST_CHECK lac_status laci_import_find_value_or_fail(laci_importer *im, const laci_scope *scope,
                                                         const char *name, int *value,
                                                         lac_error *err);
/** Is the name defined in the scope? Sets *value as laci_import_find_value_or_fail does. */
bool laci_import_find_value(const laci_importer *im, const laci_scope *scope, const char *name,
                            int *value);
/** Defines a name in a scope that is not the main graph, as `value`. Fails with LAC_BAD_FILE if the
    scope defines the name already. */
LAC_MUST_CHECK lac_status laci_import_define_value(laci_scope *scope, const char *name, int value,
                                                   lac_error *err);
/** Returns the version of a domain's operator set that a scope imports; 0: it imports none. */
int laci_import_find_domain_version(const laci_importer *im, const laci_scope *scope,
                                    const char *domain);
/** Resolves an attribute in a scope. *resolved is the attribute itself, or, if it refers to a
 * parameter of the function, the argument of the call; NULL: the call does not pass it. */
LAC_MUST_CHECK lac_status laci_import_resolve_attribute(const laci_scope *scope,
                                                        Onnx__AttributeProto *attr,
                                                        Onnx__AttributeProto **resolved,
                                                        lac_error *err);

/** Sets *joined to first and second, concatenated, in the importer's memory. */
LAC_MUST_CHECK lac_status laci_import_join_names(laci_importer *im, const char *first,
                                                 const char *second, const char **joined,
                                                 lac_error *err);
/** Sets *name to first and second, concatenated and made unique among the names of values. */
LAC_MUST_CHECK lac_status laci_import_unique_value_name(laci_importer *im, const char *first,
                                                        const char *second, const char **name,
                                                        lac_error *err);
/** Subtracts size_bytes from the importer's memory budget. Fails with LAC_UNSUPPORTED if the budget
 * is used up. */
LAC_MUST_CHECK lac_status laci_import_spend_budget(laci_importer *im, size_t size_bytes,
                                                   lac_error *err);

/* ---- Functions of hidden.c ---- */

/** Returns the local function that a node calls; NULL: it calls none. */
laci_onnx_function *laci_import_find_called_function(const laci_importer *im,
                                                     const Onnx__NodeProto *node);
/** Marks the functions that training graphs call as hidden (hidden.c). */
LAC_MUST_CHECK lac_status laci_import_hide_training_functions(laci_importer *im, lac_error *err);
/** Freezes the tensors of functions that the node's bodies call, since these bodies are not
 * imported. */
LAC_MUST_CHECK lac_status laci_import_hide_functions_in_bodies(laci_importer *im,
                                                               const Onnx__NodeProto *node,
                                                               lac_error *err);

/* ---- Functions of function.c ---- */

/** Lists the local functions of the file, and finds which are called from training graphs. */
LAC_MUST_CHECK lac_status laci_import_list_functions(laci_importer *im, lac_error *err);
/** Imports any node. If it calls a local function, the function's nodes are added instead. */
LAC_MUST_CHECK lac_status laci_import_any_node(laci_importer *im, const laci_scope *scope,
                                               const Onnx__NodeProto *node, lac_error *err);

/* ---- Functions of open.c ---- */

/** Imports the bodies (subgraphs) of an If, a Loop or a Scan as nodes of the graph, and then adds
 * the node itself; *is_done is true then. Otherwise node->fault may say why the bodies are not
 * imported. `node` is complete except for its inputs and outputs. */
LAC_MUST_CHECK lac_status laci_import_bodies(laci_importer *im, const laci_scope *scope,
                                             const Onnx__NodeProto *from, laci_node *node,
                                             bool *is_done, lac_error *err);

/* ---- Functions of body.c ---- */

/** Finds the outer values that the bodies in the node's attributes read, each value once. */
LAC_MUST_CHECK lac_status laci_import_find_captures(laci_importer *im, const laci_scope *scope,
                                                    const Onnx__NodeProto *node, const int **ids,
                                                    int *n, lac_error *err);

/* ---- Functions of import.c, ties.c and opset.c ---- */

/** Marks the values that the file names outside of its nodes (laci_value.tied_by). Defined in
 * ties.c. */
void laci_import_mark_externally_named_values(laci_importer *im);

/** Fails if the file imports a version of ai.onnx outside 7 to 28. */
LAC_MUST_CHECK lac_status laci_import_check_opsets(Onnx__OperatorSetIdProto *const *sets, size_t n,
                                                   lac_error *err);

#endif

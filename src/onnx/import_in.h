/* SPDX-License-Identifier: Apache-2.0
 * The importer's state, shared by import.c (the graph's frame), scope.c (names), open.c (the bodies
 * of If, Loop and Scan), body.c (what bodies read that stay closed), node.c (nodes and constants)
 * and function.c (calls of local functions). */
#ifndef LACI_ONNX_IMPORT_IN_H
#define LACI_ONNX_IMPORT_IN_H

#include "graph/names.h"
#include "onnx/onnx_in.h"

typedef struct laci_node laci_node;
typedef struct laci_stored laci_stored;

/** A local function. */
typedef struct laci_onnx_function {
  const Onnx__FunctionProto *proto;
  int next_of_name;   /* another function of this name, of another domain or overload; -1: none */
  bool is_hidden;     /* also called from where the graph does not look: its constants must stay */
  bool has_constants; /* the table is filled */
  laci_name_table constants; /* output of a Constant node -> value; one tensor for all calls */
} laci_onnx_function;

enum { LACI_MAX_SCOPES = 100 /* calls and bodies in each other */ };
/** Where an initializer that is listed as an input is a default value; before, each is listed. */
enum { LACI_FIRST_IR_WITH_DEFAULTS = 4 };

/** Where names of values mean something: the main graph, one call of a function, or a body of a
 * node in either, which sees what is around it. */
typedef struct laci_scope {
  const struct laci_scope *outer;  /* of a body: around it; NULL: it is none */
  const struct laci_scope *caller; /* NULL: the main graph */
  laci_onnx_function *function;    /* NULL: the main graph */
  const Onnx__NodeProto *call;
  const char *prefix;     /* of the scope's nodes and values, "call/"; "" in the main graph */
  laci_name_table values; /* of all but the main graph: name -> value + 1; 0: an input that is left
                             out */
  int depth;
} laci_scope;

typedef struct laci_importer laci_importer;

struct laci_importer {
  laci_onnx *file;
  laci_graph *graph;
  laci_arena scratch;
  laci_name_table symbols;      /* name of a size -> its symbol */
  laci_name_table function_ids; /* name -> first function of that name */
  laci_onnx_function *functions;
  size_t n_functions;
  laci_name_table shared; /* place in the file of a tensor in a function's bodies -> value */
  int body;               /* that nodes are added to, as in laci_node.body */
  int64_t budget; /* bytes that inlining may still make; a small file could ask for terabytes */
  /* laci_import_node, for nodes of bodies */
  lac_status (*add_node)(laci_importer *im, const laci_scope *scope, const Onnx__NodeProto *node,
                         lac_error *err);
  int n_fresh; /* names made unique so far */
};

/* declared.c */

/** The type that the file declares. */
LAC_MUST_CHECK lac_status laci_import_type(laci_importer *im, const Onnx__ValueInfoProto *info,
                                           laci_type *type, lac_error *err);
/** Adds an initializer as the stored tensor that `about` describes. */
LAC_MUST_CHECK lac_status laci_import_initializer(laci_importer *im, Onnx__TensorProto *tensor,
                                                  const laci_stored *about, lac_error *err);
/** Gives a value the type that the file declares. in_body: names of sizes mean nothing outside. */
LAC_MUST_CHECK lac_status laci_import_declare(laci_importer *im, int value,
                                              const Onnx__ValueInfoProto *info, bool in_body,
                                              lac_error *err);

/* constant.c */

/** What an attribute holds, whether the file says it or not. */
Onnx__AttributeProto__AttributeType laci_import_attr_type(const Onnx__AttributeProto *attr);
/** The attribute with the tensor or the numbers of a Constant node; NULL: it is no such node. */
Onnx__AttributeProto *laci_import_constant_attr(const Onnx__NodeProto *node);
/** Adds the content of such an attribute (resolved) as the stored tensor that `about` describes.
 * is_shared: the caller of a function gives it, so that it must stay as it is. */
LAC_MUST_CHECK lac_status laci_import_constant(laci_importer *im, Onnx__AttributeProto *attr,
                                               const laci_stored *about, bool is_shared, int *value,
                                               lac_error *err);

/* node.c */

/** A node that calls no local function. */
LAC_MUST_CHECK lac_status laci_import_own_node(laci_importer *im, const laci_scope *scope,
                                               const Onnx__NodeProto *node, lac_error *err);
/* scope.c */

/** Value of a name; -1 for the empty name and for an input that the call leaves out. */
LAC_MUST_CHECK lac_status laci_import_lookup(laci_importer *im, const laci_scope *scope,
                                             const char *name, int *value, lac_error *err);
/** Does the name mean something in a scope? *value as in laci_import_lookup. */
bool laci_import_find(const laci_importer *im, const laci_scope *scope, const char *name,
                      int *value);
/** Gives a name a value in a scope that is not the main graph. Fails LAC_BAD_FILE where it has one.
 */
LAC_MUST_CHECK lac_status laci_import_define(laci_scope *scope, const char *name, int value,
                                             lac_error *err);
/** The version of a domain's operators that a scope imports; 0: none. */
int laci_import_version(const laci_importer *im, const laci_scope *scope, const char *domain);
/** What an attribute refers to in a scope: itself, what the call gives for it; NULL: nothing. */
LAC_MUST_CHECK lac_status laci_import_resolve(const laci_scope *scope, Onnx__AttributeProto *attr,
                                              Onnx__AttributeProto **resolved, lac_error *err);

/** first + second; the importer's memory. */
LAC_MUST_CHECK lac_status laci_import_join(laci_importer *im, const char *first, const char *second,
                                           const char **joined, lac_error *err);
/** The same, made unique among the names of values. */
LAC_MUST_CHECK lac_status laci_import_value_name(laci_importer *im, const char *first,
                                                 const char *second, const char **name,
                                                 lac_error *err);
/** Takes from the budget; fails LAC_UNSUPPORTED where it is spent. */
LAC_MUST_CHECK lac_status laci_import_spend(laci_importer *im, size_t size_bytes, lac_error *err);

/* hidden.c */

/** The local function that a node calls; NULL: none. */
laci_onnx_function *laci_import_function_of(const laci_importer *im, const Onnx__NodeProto *node);
/** Finds the functions that training graphs call. */
LAC_MUST_CHECK lac_status laci_import_hide_training(laci_importer *im, lac_error *err);
/** Freezes the tensors of functions that the node's bodies call: nobody looks into these bodies. */
LAC_MUST_CHECK lac_status laci_import_hide(laci_importer *im, const Onnx__NodeProto *node,
                                           lac_error *err);

/* function.c */

/** Lists the local functions, and finds out which are called from training graphs. */
LAC_MUST_CHECK lac_status laci_import_functions(laci_importer *im, lac_error *err);
/** A node, whatever it is: a call is expanded. */
LAC_MUST_CHECK lac_status laci_import_node(laci_importer *im, const laci_scope *scope,
                                           const Onnx__NodeProto *node, lac_error *err);

/* open.c */

/** Opens the bodies of an If, a Loop or a Scan: then all of it is done. Else node->fault may say
 * why they stay closed. `node` is as it would be added, but for its values. */
LAC_MUST_CHECK lac_status laci_import_open(laci_importer *im, const laci_scope *scope,
                                           const Onnx__NodeProto *from, laci_node *node,
                                           bool *is_done, lac_error *err);

/* body.c */

/** Values that the bodies among the node's attributes read from outside, each once. */
LAC_MUST_CHECK lac_status laci_import_captures(laci_importer *im, const laci_scope *scope,
                                               const Onnx__NodeProto *node, const int **ids, int *n,
                                               lac_error *err);

/* import.c */

/** Marks the values that the file names outside of its nodes (laci_value.tied_by). ties.c */
void laci_import_ties(laci_importer *im);

/** Fails for a version of the standard's operators outside 7 to 28. */
LAC_MUST_CHECK lac_status laci_import_check_opsets(Onnx__OperatorSetIdProto *const *sets, size_t n,
                                                   lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The importer's state, shared by import.c (the graph's frame), scope.c (names), body.c (what
 * the bodies of If, Loop and Scan read), node.c (nodes and constants) and function.c (calls of
 * local functions). */
#ifndef LACI_ONNX_IMPORT_IN_H
#define LACI_ONNX_IMPORT_IN_H

#include "graph/names.h"
#include "onnx/onnx_in.h"

typedef struct laci_stored laci_stored;

/** A local function. */
typedef struct laci_onnx_function {
  const Onnx__FunctionProto *proto;
  int next_of_name;   /* another function of this name, of another domain or overload; -1: none */
  bool is_hidden;     /* also called from where the graph does not look: its constants must stay */
  bool has_constants; /* the table is filled */
  laci_name_table constants; /* output of a Constant node -> value; one tensor for all calls */
} laci_onnx_function;

/** Where names of values mean something: the main graph, or one call of a function. */
typedef struct laci_scope {
  const struct laci_scope *caller; /* NULL: the main graph */
  laci_onnx_function *function;    /* NULL: the main graph */
  const Onnx__NodeProto *call;
  const char *prefix;     /* of the call's nodes and values, "call/"; "" in the main graph */
  laci_name_table values; /* of a call: name -> value + 1; 0: an input that is left out */
  int depth;
} laci_scope;

typedef struct laci_importer {
  laci_onnx *file;
  laci_graph *graph;
  laci_arena scratch;
  laci_name_table symbols;      /* name of a size -> its symbol */
  laci_name_table function_ids; /* name -> first function of that name */
  laci_onnx_function *functions;
  size_t n_functions;
  int64_t budget; /* bytes that inlining may still make; a small file could ask for terabytes */
  int n_fresh;    /* names made unique so far */
} laci_importer;

/* node.c */

/** A node that calls no local function. */
LAC_MUST_CHECK lac_status laci_import_own_node(laci_importer *im, const laci_scope *scope,
                                               const Onnx__NodeProto *node, lac_error *err);
/** The attribute with the tensor or the numbers of a Constant node; NULL: it is no such node. */
Onnx__AttributeProto *laci_import_constant_attr(const Onnx__NodeProto *node);
/** Adds the content of such an attribute (resolved) as the stored tensor that `about` describes.
 * is_shared: the caller of a function gives it, so that it must stay as it is. */
LAC_MUST_CHECK lac_status laci_import_constant(laci_importer *im, Onnx__AttributeProto *attr,
                                               const laci_stored *about, bool is_shared, int *value,
                                               lac_error *err);

/* scope.c */

/** Value of a name; -1 for the empty name and for an input that the call leaves out. */
LAC_MUST_CHECK lac_status laci_import_lookup(laci_importer *im, const laci_scope *scope,
                                             const char *name, int *value, lac_error *err);
/** The version of a domain's operators that a scope imports; 0: none. */
int laci_import_version(const laci_importer *im, const laci_scope *scope, const char *domain);
/** What an attribute stands for in a scope: itself, what the call gives for it; NULL: nothing. */
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

/* function.c */

/** Lists the local functions, and finds out which are called from bodies. */
LAC_MUST_CHECK lac_status laci_import_functions(laci_importer *im, lac_error *err);
/** A node, whatever it is: a call is expanded. */
LAC_MUST_CHECK lac_status laci_import_node(laci_importer *im, const laci_scope *scope,
                                           const Onnx__NodeProto *node, lac_error *err);

/* body.c */

/** Values that the bodies among the node's attributes read from outside, each once. */
LAC_MUST_CHECK lac_status laci_import_captures(laci_importer *im, const laci_scope *scope,
                                               const Onnx__NodeProto *node, const int **ids, int *n,
                                               lac_error *err);

/* import.c */

/** Fails for a version of the standard's operators outside 7 to 28. */
LAC_MUST_CHECK lac_status laci_import_check_opsets(Onnx__OperatorSetIdProto *const *sets, size_t n,
                                                   lac_error *err);

#endif

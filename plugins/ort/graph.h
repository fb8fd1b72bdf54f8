/* SPDX-License-Identifier: Apache-2.0
 * ONNX Runtime's graph as plain structs: nodes in an order in which producers come first, and
 * values by number. Texts and handles are ONNX Runtime's. They are valid until the function returns
 * to which ONNX Runtime passed the graph. */
#ifndef LAC_ORT_GRAPH_H
#define LAC_ORT_GRAPH_H

#include "arena.h"
#include "table.h"

typedef struct lac_context lac_context; /* lacuna/context.h */

typedef struct laci_ort_value {
  const char *name;
  const ort_value_info *info;
  int producer;  /* number of the node; -1: none in this graph */
  bool constant; /* an initializer that no caller may replace */
  bool output;   /* it is an output of the graph */
} laci_ort_value;

typedef struct laci_ort_node {
  const ort_node *node;
  const char *name, *op, *domain;
  const char *provider; /* that has the node already; empty: none */
  int n_inputs, n_implicit, n_outputs, n_bodies;
  const int *inputs;  /* [n_inputs + n_implicit] values, -1: left out. Implicit ones are read by
                          its bodies */
  const int *outputs; /* [n_outputs] values, -1: left out */
} laci_ort_node;

typedef struct laci_ort_graph {
  const laci_ort *ort;
  const ort_graph *graph;
  laci_ort_arena arena;
  laci_ort_node *nodes;
  laci_ort_value *values;
  int n_nodes, n_values, most_values;
  int *index; /* [n_index] hash table of names: number of the value + 1; 0: free */
  size_t n_index;
  const char **domains;
  int64_t *versions;
  size_t n_opsets;
  int64_t ir_version;
  const char *path;     /* of the model's file; empty: it has none */
  lac_context *context; /* of Lacuna's calls about it */
} laci_ort_graph;

/** The type of a tensor. */
typedef struct laci_ort_type {
  int dtype;            /* 0: no tensor, or not known */
  int rank;             /* -1: not known */
  const int64_t *sizes; /* [rank] -1: open */
  const char **symbols; /* [rank] names of open sizes, may be empty */
} laci_ort_type;

/** Fills *read. Clear it in any case. */
LAC_MUST_CHECK lac_status laci_ort_read_graph(laci_ort_graph *read, const laci_ort *ort,
                                              const ort_graph *graph, lac_error *err);
void laci_ort_graph_clear(laci_ort_graph *read);

/** Returns the number of the value with that name; -1: there is none. */
int laci_ort_find_value(const laci_ort_graph *read, const char *name);

/** Fills *type, in the graph's memory. */
LAC_MUST_CHECK lac_status laci_ort_read_type(laci_ort_graph *read, const ort_value_info *value,
                                             laci_ort_type *type, lac_error *err);

#endif

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
  int producer;  /* number of the node that computes the value; -1: no node of this graph */
  bool constant; /* the value is an initializer that no caller may replace */
  bool output;   /* the value is an output of the graph */
} laci_ort_value;

typedef struct laci_ort_node {
  const ort_node *node;
  const char *name, *op, *domain;
  const char *provider; /* name of the provider that has taken the node already; empty: none */
  int n_inputs, n_implicit, n_outputs, n_bodies;
  const int *inputs;  /* [n_inputs + n_implicit] number of the value of each input, -1: left out;
                         after them, of each value that a body of the node reads from outside */
  const int *outputs; /* [n_outputs] number of the value of each output, -1: left out */
} laci_ort_node;

typedef struct laci_ort_graph {
  const laci_ort *ort;
  const ort_graph *graph;
  laci_ort_arena arena;
  laci_ort_node *nodes;
  laci_ort_value *values;
  int n_nodes, n_values, most_values;
  int *index; /* [n_index] hash table of names: 1 + the number of the value; 0: a free place */
  size_t n_index;
  const char **domains;
  int64_t *versions;
  size_t n_opsets;
  int64_t ir_version;
  const char *path;     /* path of the model's file; empty: the model has none */
  lac_context *context; /* context of Lacuna's calls about the graph */
} laci_ort_graph;

/** The type of a tensor. */
typedef struct laci_ort_type {
  int dtype;            /* element type; 0: the value is no tensor, or its type is not known */
  int rank;             /* number of axes; -1: not known */
  const int64_t *sizes; /* [rank] size of each axis; -1: open */
  const char **symbols; /* [rank] name of the size of each axis if it is open; may be empty */
} laci_ort_type;

/** Reads the graph into *read. Clear it in any case. */
LAC_MUST_CHECK lac_status laci_ort_read_graph(laci_ort_graph *read, const laci_ort *ort,
                                              const ort_graph *graph, lac_error *err);
void laci_ort_graph_clear(laci_ort_graph *read);

/** Returns the number of the value with that name; -1: there is none. */
int laci_ort_find_value(const laci_ort_graph *read, const char *name);

/** Reads the type of a value into *type, whose arrays are in the graph's memory. */
LAC_MUST_CHECK lac_status laci_ort_read_type(laci_ort_graph *read, const ort_value_info *value,
                                             laci_ort_type *type, lac_error *err);

#endif

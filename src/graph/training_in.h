/* SPDX-License-Identifier: Apache-2.0
 * Shared by training_graph.c and training_params.c: the role of each stored tensor in training. */
#ifndef LACI_GRAPH_TRAINING_IN_H
#define LACI_GRAPH_TRAINING_IN_H

#include "graph/training_graph.h"

typedef struct laci_node laci_node;

/** The role of a stored tensor in training; the first three are kinds of parameters. */
typedef enum laci_training_role {
  LACI_TRAINING_WEIGHT = LACI_PARAM_WEIGHT,
  LACI_TRAINING_BIAS = LACI_PARAM_BIAS,
  LACI_TRAINING_NORM = LACI_PARAM_NORM,
  LACI_TRAINING_STATISTIC,
  LACI_TRAINING_CONSTANT,
  LACI_TRAINING_UNUSED, /* no needed node reads the tensor (laci_training_find_roles) */
} laci_training_role;

/** Returns the stored tensor that a value holds, looking through any number of Identity nodes (by
 * which exporters share equal tensors); -1: none. */
int laci_training_find_stored(const laci_graph *model, int value);

/** Is the node a batch normalization that is to use the statistics of the batch? */
bool laci_training_is_norm_with_batch_statistics(const laci_graph *model, const laci_node *node,
                                                 const laci_training_options *options);
/** Is the node a batch normalization that a gradient passes through and that keeps its stored
 * statistics? */
bool laci_training_is_norm_with_fixed_statistics(const laci_graph *model, const laci_node *node,
                                                 const laci_training_options *options);

/** Finds the role of every stored tensor: roles[n_stored]. Only nodes with needed[node] count as
 * readers. */
LAC_MUST_CHECK lac_status laci_training_find_roles(const laci_graph *model, const bool *needed,
                                                   const laci_training_options *options,
                                                   laci_training_role *roles, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Between training_graph.c and training_params.c: what becomes of each stored tensor. */
#ifndef LACI_GRAPH_TRAINING_IN_H
#define LACI_GRAPH_TRAINING_IN_H

#include "graph/training_graph.h"

typedef struct laci_node laci_node;

/** The first ones are kinds of parameters. */
typedef enum laci_training_sort {
  LACI_SORT_WEIGHT = LACI_PARAM_WEIGHT,
  LACI_SORT_BIAS = LACI_PARAM_BIAS,
  LACI_SORT_NORM = LACI_PARAM_NORM,
  LACI_SORT_STATISTIC,
  LACI_SORT_CONSTANT,
  LACI_SORT_UNUSED, /* nothing that is needed reads it */
} laci_training_sort;

/** The stored tensor that a value is, through any number of Identity nodes (exporters share equal
 *  tensors like that); -1: none. */
int laci_training_stored(const laci_graph *model, int value);

/** Is it a batch normalization that is to use the batch's own statistics? */
bool laci_training_is_batch_norm(const laci_graph *model, const laci_node *node,
                                 const laci_training_options *options);
/** Or one under a gradient whose stored statistics stay? */
bool laci_training_is_fixed_norm(const laci_graph *model, const laci_node *node,
                                 const laci_training_options *options);

/** sorts[n_stored]; only nodes with needed[node] count. */
LAC_MUST_CHECK lac_status laci_training_sort_tensors(const laci_graph *model, const bool *needed,
                                                     const laci_training_options *options,
                                                     laci_training_sort *sorts, lac_error *err);

#endif

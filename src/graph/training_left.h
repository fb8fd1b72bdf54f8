/* SPDX-License-Identifier: Apache-2.0
 * Which weights a training leaves as they are, for a word of warning: those that only other outputs
 * than the first read, and those in the trained part that count as constants or that no gradient
 * reaches. */
#ifndef LACI_GRAPH_TRAINING_LEFT_H
#define LACI_GRAPH_TRAINING_LEFT_H

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_training_graph laci_training_graph;

typedef struct laci_training_left {
  int n;             /* tensors */
  const char *first; /* the name of one of them; a view of the model; NULL: there is none */
} laci_training_left;

/** Of float tensors of more than one element after the model's output `at`, those that the training
 * graph does not have. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_training_left_of_output(const laci_graph *model,
                                                       const laci_training_graph *made, int at,
                                                       laci_training_left *left, lac_error *err);

/** Operands of products in the training graph (Conv, Gemm, MatMul, Einsum ...) that are stored in
 * the model, but not trained. */
laci_training_left laci_training_left_of_products(const laci_graph *model,
                                                  const laci_training_graph *made);

/** Parameters whose gradient is zero whatever the images are: the loss does not depend on them, or
 * only through operators without a gradient. */
laci_training_left laci_training_left_without_gradient(const laci_training_graph *made);

#endif

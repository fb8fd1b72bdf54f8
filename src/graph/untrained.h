/* SPDX-License-Identifier: Apache-2.0
 * Weights that training does not change, so that the caller can warn: those that only outputs after
 * the first depend on, those that count as constants, and those that no gradient reaches. */
#ifndef LACI_GRAPH_UNTRAINED_H
#define LACI_GRAPH_UNTRAINED_H

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_training_graph laci_training_graph;

typedef struct laci_untrained {
  int n; /* number of tensors */
  const char
      *first; /* the name of one of these tensors, a text of the model; NULL: there is none */
} laci_untrained;

/** Finds float tensors of more than one element that the model's output `at` depends on and that
 * the training graph does not have. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_untrained_find_before_output(const laci_graph *model,
                                                            const laci_training_graph *made, int at,
                                                            laci_untrained *left, lac_error *err);

/** Finds operands of products in the training graph (Conv, Gemm, MatMul, Einsum ...) that are
 * stored in the model, but not trained. */
laci_untrained laci_untrained_find_in_products(const laci_graph *model,
                                               const laci_training_graph *made);

/** Finds parameters whose gradient is zero for all images: the loss does not depend on them, or
 * only through operators without a gradient. */
laci_untrained laci_untrained_find_without_gradient(const laci_training_graph *made);

#endif

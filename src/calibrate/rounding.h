/* SPDX-License-Identifier: Apache-2.0
 * Integers for a layer's weights that are fitted to the layer's inputs: they are summed batch by
 * batch, and then the weights are rounded such that the outputs, apart from their means, change
 * least from those in floats. The means are left to the bias. Next: round.c. */
#ifndef LACI_CALIBRATE_ROUNDING_H
#define LACI_CALIBRATE_ROUNDING_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;
typedef struct laci_pool laci_pool;
typedef struct laci_shape laci_shape;

typedef struct laci_rounding laci_rounding;

typedef struct laci_rounding_options {
  const laci_graph *graph;
  const laci_node *node; /* a Conv, ConvTranspose, Gemm or MatMul of the graph */
  int port;              /* index of the node's input that is the weight, one of floats */
  const laci_shape *input, *output; /* shapes of the node's data and of its output in a batch */
  int64_t n_batches;                /* number of batches that will be summed */
  bool centered;                    /* a bias makes up for the mean errors of the outputs */
  bool from_floats; /* the outputs are fitted to those that the layer has in the network of floats;
                       false: to those of its weights in floats and the data that it has */
  laci_pool *pool;
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_rounding_options;

/** Creates empty sums. Sets *reason, a static text, and *rounding to NULL if the layer cannot be
 * rounded so; else *reason is NULL. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_rounding_create(const laci_rounding_options *options,
                                               laci_rounding **rounding, const char **reason,
                                               lac_error *err);
void laci_rounding_destroy(laci_rounding *rounding); /* NULL is fine */

/** Adds a batch of the layer's data, of the shape options->input. floats: the same batch in the
 * network of floats; NULL without options->from_floats. */
void laci_rounding_add(laci_rounding *rounding, const float *data, const float *floats);

/** Rounds the weights, given in units of a step of their grid and in the layout of the stored
 * weight, to integers of magnitude `most` or less. Weights that are 0 stay 0. Call it once, after
 * the last batch. Fails LAC_BAD_VALUE, LAC_NO_MEMORY, LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_rounding_finish(laci_rounding *rounding, const double *weights,
                                               int most, int8_t *rounded, lac_error *err);

#endif

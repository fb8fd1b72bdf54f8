/* SPDX-License-Identifier: Apache-2.0
 * Mean and variance of each channel of a network's values, without any data.
 *
 * A batch normalization gives channel c the mean bias[c] and the standard deviation |scale[c]| on
 * the data that it was trained with. Taken as a normal distribution, this gives the moments after
 * an activation function (Nagel and others, 2019), and those of sums, whose terms count as
 * independent. Values that follow from no stored statistics have no moments. */
#ifndef LACI_CALIBRATE_MOMENTS_H
#define LACI_CALIBRATE_MOMENTS_H

#include <stdbool.h>

#include "base/memory.h"
#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

/** The moments of a value's channels, which are along its axis 1. */
typedef struct laci_channel_moments {
  int64_t n;               /* number of channels; 0: nothing is known of the value */
  double *mean, *variance; /* [n] over all samples and positions */
} laci_channel_moments;

typedef struct laci_network_moments {
  laci_channel_moments *values; /* [n_values] in the file's order of channels */
  laci_arena arena;             /* memory of the moments */
} laci_network_moments;

/** Is the node a BatchNormalization by stored statistics, all of whose parameters are stored? */
bool laci_node_has_statistics(const laci_graph *graph, const laci_node *node);

/** Computes the moments of all values. The graph's shapes must be inferred. The same bits come out
 * on any processor where activation functions need no library function. Fails LAC_NO_MEMORY, and as
 * laci_stored_acquire. */
LAC_MUST_CHECK lac_status laci_network_moments_compute(const laci_graph *graph,
                                                       laci_network_moments *to, lac_error *err);
void laci_network_moments_clear(laci_network_moments *moments); /* also after a failure */

#endif

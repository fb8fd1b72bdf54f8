/* SPDX-License-Identifier: Apache-2.0
 * The batch normalizations of a network that store the statistics of real data: private to
 * calibrate. */
#ifndef LACI_CALIBRATE_NORMS_IN_H
#define LACI_CALIBRATE_NORMS_IN_H

#include "base/memory.h"

typedef struct laci_graph laci_graph;

#include "lacuna/status.h"

typedef struct laci_norm {
  int value; /* the value that the node normalizes */
  int64_t channels;
  size_t first;            /* sum of the channels of all normalizations before this one in
                              laci_norms.list */
  double *mean, *variance; /* [channels] the stored mean and variance of each channel */
} laci_norm;

typedef struct laci_norms {
  laci_norm *list; /* [n] normalizations in the order of the graph; no two have the same input */
  int *values;     /* [n] the value that each normalization of `list` normalizes */
  int n;
  size_t n_channels; /* sum of the channels of all normalizations */
  laci_arena arena;
} laci_norms;

/** Finds the batch normalizations whose statistics are stored and whose input is the output of a
 * node. Fails LAC_NO_MEMORY. Call laci_norms_clear in any case. */
LAC_MUST_CHECK lac_status laci_norms_find(const laci_graph *graph, laci_norms *norms,
                                          lac_error *err);
void laci_norms_clear(laci_norms *norms);

#endif

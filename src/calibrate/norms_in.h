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
  laci_norm *list; /* [n] in the order of the graph; their inputs differ */
  int *values;     /* [n] the value that each normalization of `list` normalizes */
  int n;
  size_t n_channels; /* channels of all normalizations */
  laci_arena arena;
} laci_norms;

/** Finds the normalizations whose statistics are stored and whose input a node computes. Fails
 * LAC_NO_MEMORY. To be cleared in any case. */
LAC_MUST_CHECK lac_status laci_norms_find(const laci_graph *graph, laci_norms *norms,
                                          lac_error *err);
void laci_norms_clear(laci_norms *norms);

#endif

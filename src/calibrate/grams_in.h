/* SPDX-License-Identifier: Apache-2.0
 * Sums of products of a layer's inputs, over batches (kernel/gram). Private to calibrate. */
#ifndef LACI_CALIBRATE_GRAMS_IN_H
#define LACI_CALIBRATE_GRAMS_IN_H

#include "calibrate/layer_in.h"

typedef struct laci_pool laci_pool;

/** Sums of one unfolding; layers that read the same one share them. Of wide ones, batches of
 * few positions wait for others: every sum reads and writes the whole matrices. */
typedef struct laci_grams {
  laci_unfold unfold;  /* of a batch */
  int64_t n_positions; /* so far */
  double *h;           /* [groups, columns, columns] sum x_p x_p' */
  double *k;           /* sum x_d x_p', row: dense; NULL: it is h */
  int64_t most;        /* positions of a batch that are summed at most */
  int64_t *positions;  /* those of a sum, if not all */
  uint64_t n_sums;     /* so far */
  void *scratch;
  int most_waiting, n_waiting; /* batches; most_waiting 1: none does */
  float *dense, *pruned;       /* [most_waiting] values of those that wait; dense NULL where k is */
} laci_grams;

uint64_t laci_grams_memory(const laci_unfold *unfold, bool asymmetric); /* at most */
/** most: positions of a batch that are summed at most, spread evenly and drawn anew for every
 * batch: neighbours tell little that is new. All of them where that costs no more. */
LAC_MUST_CHECK lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric,
                                          int64_t most, lac_error *err);
void laci_grams_clear(laci_grams *g); /* zeroed is fine */

/** One batch: the value in the dense and in the pruned network. Same bytes for any pool. */
void laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool);
/** After the last batch: all of h and k are there. */
void laci_grams_finish(laci_grams *g, laci_pool *pool);

#endif

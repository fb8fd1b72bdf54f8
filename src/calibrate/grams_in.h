/* SPDX-License-Identifier: Apache-2.0
 * Sums of products of a layer's inputs, over batches (kernel/gram). Private to calibrate. */
#ifndef LACI_CALIBRATE_GRAMS_IN_H
#define LACI_CALIBRATE_GRAMS_IN_H

#include "calibrate/layer_in.h"

typedef struct laci_pool laci_pool;

/** The Gram matrices for one unfolding of a value (the matrix whose columns are a layer's inputs
 * x); layers that read the same unfolding share them. In wide layers, batches of few positions are
 * collected and summed together, since every summation reads and writes the whole matrices. */
typedef struct laci_grams {
  laci_unfold unfold;  /* how a batch of the value is unfolded into the inputs x */
  int layer;           /* index of a layer that reads this unfolding; set by the caller */
  int64_t n_positions; /* number of positions (inputs x) that are summed so far */
  double *h;           /* [groups, columns, columns] Gram matrices of the inputs in the pruned
                          network, H = sum x_p x_p' */
  double *k;           /* [groups, columns, columns] products of the dense network's inputs (rows)
                          with the pruned network's (columns), K = sum x_d x_p'; NULL: K equals H */
  double *sums;        /* [groups, columns] sums of the pruned network's inputs over the positions;
                          NULL: they are not summed */
  double *dense_sums;  /* [groups, columns] the same of the dense network's; NULL where k or sums
                          is */
  float *lines;        /* [columns, 64] memory for the inputs at some positions; NULL like sums */
  int64_t most;        /* limit of the positions of a batch that are summed */
  int64_t *positions;  /* indices of the positions of a batch that are summed; NULL: all are
                          summed */
  uint64_t n_sums;     /* number of summations so far */
  void *scratch;
  int most_waiting, n_waiting; /* most_waiting: number of batches that are collected, then summed
                                  together; 1: each is summed at once. n_waiting: number of batches
                                  collected now */
  float *dense, *pruned;       /* [most_waiting] values of the collected batches; dense is NULL
                                  where k is NULL */
} laci_grams;

uint64_t laci_grams_memory_bytes(const laci_unfold *unfold, bool asymmetric); /* returns an upper
                                                                                 bound of the bytes
                                                                                 of a laci_grams */
/** Returns the usual limit of the positions of each of n_batches batches, for a layer of this many
 * columns. All batches together have 128 positions for each column, but no more than 65536; and at
 * least of_wide for each column, since with fewer the damping (fit.h) grows. */
int64_t laci_grams_choose_positions(int64_t columns, int64_t of_wide, int64_t n_batches);
/** Initializes the sums. most: limit of the positions of a batch that are summed. They are spread
 * evenly, since neighbouring ones are alike, and are drawn at random for every batch. All positions
 * are summed if that costs no more. */
LAC_MUST_CHECK lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric,
                                          int64_t most, lac_error *err);
/** Sums the inputs themselves, too, from now on. Call it before the first batch. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_grams_want_sums(laci_grams *g, lac_error *err);
void laci_grams_clear(laci_grams *g); /* zeroed is fine */

/** Adds one batch of the value to the sums: as it is in the dense network (dense), and in the
 * pruned one (pruned). The sums have the same bytes for any pool. */
void laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool);
/** Continues with batches of other sizes. Groups, channels and windows must stay the same. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_grams_set_batch_sizes(laci_grams *g, const laci_unfold *unfold,
                                                     laci_pool *pool, lac_error *err);
/** Returns the seconds that laci_grams_add takes for one batch, measured with zeros and sums that
 * are made for this call. Negative: there is no memory for it. */
double laci_grams_measure_seconds(const laci_unfold *unfold, bool asymmetric, int64_t most,
                                  laci_pool *pool);
/** Completes the sums h and k. Call it after the last batch. */
void laci_grams_finish(laci_grams *g, laci_pool *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One step of the annealed assignment: every block offers one of its places (its slot). The
 * channels in these slots are assigned to the slots anew, all at once and optimally.
 *
 * With one place for each block, the gains of the exchanges add up exactly (search_values.h). So
 * the best reassignment is a linear assignment problem. Noise that is added to the gains makes it a
 * step of annealing. Next: strategy_assign.c, which controls the temperature. */
#ifndef LACI_PERMUTE_SEARCH_ANNEAL_H
#define LACI_PERMUTE_SEARCH_ANNEAL_H

#include "permute/search_lap.h"
#include "permute/search_values.h"

typedef struct laci_anneal {
  laci_values values;
  laci_pool *pool; /* threads for the step; NULL: the weights are too small for several threads */
  uint64_t seed;
  int n_groups;               /* number of blocks; each has at least one of the channels that are
                                 searched */
  const int32_t *place_begin; /* [n_groups + 1] index in `places` at which each block's places
                                 begin */
  const int32_t *places;
  int32_t *slot;            /* [n_groups] for each block, the place that it offers in this step */
  int32_t *changed_places;  /* [n_groups] the places whose channel changed in the last step */
  int32_t *offered_channel; /* [n_groups] for each block, the channel that it offers, before the
                               assignment */
  int32_t *table; /* [n_groups][n_groups] element (k, h) is the value of block k if its slot gets
                     the channel that block h offers; not used if `caches` */
  bool caches;    /* true: this step reads values from laci_values.table, which has all channels,
                     instead of `table` */
  int32_t *price; /* [n_channels] price of each channel in the last assignment that contained it */
  bool *priced;   /* [n_channels] true: price[] has a value for the channel */
  uint32_t *noise_key; /* [n_groups] key of the random noise in each row of the costs */
  int64_t *column_sum; /* [n_groups] working memory: sum of the costs in each column */
  laci_lap lap;        /* the assignment problem; a cost is a constant of the row, minus the value,
                          minus noise */
  int32_t *order;      /* [n_channels] the present order */
  int64_t total;       /* sum of the scores that the pattern keeps in the present order, in the
                          integers of the matrix */
  laci_arena arena;
} laci_anneal;

/** The settings of one step. */
typedef struct laci_anneal_step {
  int64_t iteration;
  int64_t temperature; /* fixed-point number with LACI_TEMPERATURE_BITS fraction bits, in the
                          integers of the matrix */
  bool caches;         /* true: reads values from the table of all channels, laci_values.table */
} laci_anneal_step;

/** Initializes *a, with a copy of order. Clear it also after a failure. */
LAC_MUST_CHECK lac_status laci_anneal_init(laci_anneal *a, const laci_cuts *cuts,
                                           const laci_cut *cut, const int32_t *order,
                                           laci_pool *pool, lac_error *err);
void laci_anneal_clear(laci_anneal *a);

/** Sets the matrix whose integers all later steps compute with. x must exist as long as steps are
 * made. */
void laci_anneal_use_matrix(laci_anneal *a, const laci_matrix *x);

/** Makes one step. Returns the number of blocks that changed. */
int laci_anneal_run_step(laci_anneal *a, laci_anneal_step step);

/** Returns the mean absolute value in the last step's table, after the means of rows and columns
 * are subtracted. Noise is scaled by it. Not for a step with `caches`. */
int64_t laci_anneal_mean_deviation(const laci_anneal *a);

#endif

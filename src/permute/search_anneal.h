/* SPDX-License-Identifier: Apache-2.0
 * One step of the annealed assignment: every block offers one of its places (its slot), and the
 * channels in the slots are assigned to the slots anew, all at once and optimally.
 *
 * With one place a block, the gains of the exchanges add up exactly (search_values.h), so the best
 * reassignment is a linear assignment. Noise on the gains makes it a step of annealing. Next:
 * strategy_assign.c, which controls the temperature. */
#ifndef LACI_PERMUTE_SEARCH_ANNEAL_H
#define LACI_PERMUTE_SEARCH_ANNEAL_H

#include "permute/search_lap.h"
#include "permute/search_values.h"

typedef struct laci_anneal {
  laci_values values;
  laci_pool *pool; /* NULL if the cut is too small for several threads */
  uint64_t seed;
  int n_groups;               /* number of blocks, all of which have places of the class */
  const int32_t *place_begin; /* [n_groups + 1] index in `places` at which the places of each block
                                 begin */
  const int32_t *places;
  int32_t *slot;  /* [n_groups] for each block, the place whose channel it offers in this step */
  int32_t *moved; /* [n_groups] places whose channel changed in the last step */
  int32_t *dealt; /* [n_groups] the channel at each block's slot before the assignment */
  int32_t *table; /* [n_groups][n_groups] value of slot k for the channel of slot h; not used
                          if `caches` */
  bool caches;    /* the present step reads values from laci_values.table, that of all channels,
                     instead of `table` */
  int32_t *price; /* [n_channels] price of the channel in the last assignment that contained it
                          */
  bool *priced;   /* [n_channels] true: price[] has a value for the channel */
  uint32_t *noise_key; /* [n_groups] the key of the noise for each row of the costs */
  int64_t *column_sum; /* [n_groups] */
  laci_lap lap;        /* costs: the row's constant minus the value minus noise */
  int32_t *order;      /* [n_channels] the present order */
  int64_t total;       /* sum of the scores that the pattern keeps in the present order, in the
                          matrix's integers */
  laci_arena arena;
} laci_anneal;

/** A step's settings. */
typedef struct laci_anneal_step {
  int64_t iteration;
  int64_t temperature; /* LACI_TEMPERATURE_BITS fraction bits, in units of the total */
  bool caches;         /* reads values from the table of all channels */
} laci_anneal_step;

/** Initializes a, with a copy of order. Clear also after a failure. */
LAC_MUST_CHECK lac_status laci_anneal_init(laci_anneal *a, const laci_cuts *cuts,
                                           const laci_cut *cut, const int32_t *order,
                                           laci_pool *pool, lac_error *err);
void laci_anneal_clear(laci_anneal *a);

/** From now on steps compute with the integers of x, which must exist as long as steps are made. */
void laci_anneal_use_matrix(laci_anneal *a, const laci_matrix *x);

/** Makes one step; returns how many blocks changed. */
int laci_anneal_run_step(laci_anneal *a, laci_anneal_step step);

/** Returns the mean absolute value in the last step's table after means of rows and columns are
 * subtracted: the scale for the noise. Not for a step with `caches`. */
int64_t laci_anneal_mean_deviation(const laci_anneal *a);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One step of the annealed assignment: every block offers one of its places, and the channels there
 * are reassigned to these places, all at once and optimally.
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
  laci_pool *pool; /* NULL where the cut is too small to share */
  uint64_t seed;
  int n_groups;               /* blocks that hold a place of the class: all of them */
  const int32_t *place_begin; /* [n_groups + 1] into places */
  const int32_t *places;
  int32_t *slot;       /* [n_groups] the place that a block offers */
  int32_t *moved;      /* [n_groups] places that got another channel in the last step */
  int32_t *dealt;      /* [n_groups] channels at the slots before the deal */
  int32_t *table;      /* [n_groups][n_groups] value of slot k for the channel of slot h, unless: */
  bool caches;         /* this step reads it from the table of all channels */
  int32_t *price;      /* [n_channels] what a channel's scarcity cost when it was last dealt */
  bool *priced;        /* [n_channels] whether it ever was */
  uint32_t *noise_key; /* [n_groups] */
  int64_t *column_sum; /* [n_groups] */
  laci_lap lap;        /* its costs: a constant of the row less the table, less noise */
  int32_t *order;      /* [n_channels] the present order */
  int64_t total;       /* what it keeps */
  laci_arena arena;
} laci_anneal;

/** A step's settings. */
typedef struct laci_anneal_step {
  int64_t iteration;
  int64_t temperature; /* LACI_TEMPERATURE_BITS fraction bits, in units of the total */
  bool caches;         /* reads values from the table of all channels */
} laci_anneal_step;

/** order: copied. Clear also after a failure. */
LAC_MUST_CHECK lac_status laci_anneal_init(laci_anneal *a, const laci_cuts *cuts,
                                           const laci_cut *cut, const int32_t *order,
                                           laci_pool *pool, lac_error *err);
void laci_anneal_clear(laci_anneal *a);

/** From now on in the integers of x (the caller's, for as long as steps are made). */
void laci_anneal_use(laci_anneal *a, const laci_matrix *x);

/** Makes one step; returns how many blocks changed. */
int laci_anneal_do(laci_anneal *a, laci_anneal_step step);

/** Mean size of the last step's values (of its own table) after the means of rows and columns are
 * taken off: the scale of the noise. */
int64_t laci_anneal_spread(const laci_anneal *a);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a channel is worth at a place, as long as the other columns of its block stay: the one
 * identity both searches use.
 *
 *     kept of a block in one row = (the n - 1 largest others) + max(the n-th largest other, x)
 *
 * The first term does not depend on x. So every place has an *open* column, the n-th largest of its
 * siblings row by row (0 where there are fewer), and, up to a constant of the place,
 *
 *     value(place, x) = sum over rows of max(open[r], x[r]).
 *
 * Differences of values are differences of what the whole cut keeps. A place's own channel has no
 * part in its values: exchanging it spoils the values of its siblings only. For stacked cuts. */
#ifndef LACI_PERMUTE_SEARCH_VALUES_H
#define LACI_PERMUTE_SEARCH_VALUES_H

#include "permute/search_matrix.h"

typedef struct laci_values {
  const laci_cuts *cuts;
  const laci_cut *cut;
  const laci_matrix *x; /* the columns, in use since laci_values_use */
  int32_t *block_of;    /* [n_channels] block of a place */
  uint8_t *open;        /* [n_channels] columns like those of x */
  int32_t *table;       /* [n_channels][n_channels] values of every place, or NULL */
  uint8_t *valid;       /* [n_channels] which rows of the table are right */
  int32_t *
      fresh; /* working memory of laci_values_rows: as many rows of the table as it makes at once */
  int32_t *wanted; /* likewise: [n_channels] */
} laci_values;

/** largest: the number that takes most space. The table may be left out. Clear also after a
 * failure.
 */
LAC_MUST_CHECK lac_status laci_values_init(laci_values *values, const laci_cuts *cuts,
                                           const laci_cut *cut, laci_number largest,
                                           bool with_table, lac_error *err);
void laci_values_clear(laci_values *values);

/** From now on in x, with `order`: all open columns are made, no row of the table is right. x stays
 * the caller's. */
void laci_values_use(laci_values *values, const laci_matrix *x, const int32_t *order,
                     laci_pool *pool);

/** The channels at these places (in different blocks) have changed to those of `order`. */
void laci_values_changed(laci_values *values, const int32_t *places, int n, const int32_t *order,
                         laci_pool *pool);

/** Makes these places' rows of the table right. */
void laci_values_rows(laci_values *values, const int32_t *places, int n, laci_pool *pool);

/** Sum of what the cut keeps, in x's integers. */
int64_t laci_values_total(const laci_values *values, const int32_t *order);

static inline const void *laci_values_open(const laci_values *values, int32_t place) {
  return values->open + (size_t)place * values->x->column_bytes;
}

static inline const int32_t *laci_values_row(const laci_values *values, int32_t place) {
  return values->table + (int64_t)place * values->cuts->n_channels;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Computes the value of a channel at a place, while the other columns of the place's block stay the
 * same. Both searches (assign, swap) use this identity:
 *
 *     kept of a block in one row = (the n - 1 largest others) + max(the n-th largest other, x)
 *
 * The first term does not depend on x. So each place has an *open* column, which is, row by row,
 * the n-th largest of its siblings, the other columns of the block (0 if there are fewer). Up to a
 * constant per place,
 *
 *     value(place, x) = sum over rows of max(open[r], x[r]).
 *
 * A difference of values is the difference between the sums of scores that the whole cut keeps. The
 * channel at a place does not affect that place's values: exchanging it invalidates only the values
 * of its siblings. For stacked cuts only. */
#ifndef LACI_PERMUTE_SEARCH_VALUES_H
#define LACI_PERMUTE_SEARCH_VALUES_H

#include "permute/search_matrix.h"

typedef struct laci_values {
  const laci_cuts *cuts;
  const laci_cut *cut;
  const laci_matrix *x; /* the columns as integers: the argument of laci_values_set_matrix */
  int32_t *block_of;    /* [n_channels] index of the block that each place belongs to */
  uint8_t *open;   /* [n_channels] the open column of each place, in the format of the matrix x */
  int32_t *table;  /* [n_channels][n_channels] for each place, the value of each channel at that
                      place; NULL: there is no table */
  uint8_t *valid;  /* [n_channels] 1: the place's row of `table` is up to date */
  int32_t *fresh;  /* working memory of laci_values_update_table_rows: rows of one batch */
  int32_t *wanted; /* [n_channels] working memory of laci_values_update_table_rows: rows that are
                      computed again */
} laci_values;

/** Allocates memory. largest: the largest integer type that will be used. with_table: false: no
 * table is kept. Clear *values also after a failure. */
LAC_MUST_CHECK lac_status laci_values_init(laci_values *values, const laci_cuts *cuts,
                                           const laci_cut *cut, laci_number largest,
                                           bool with_table, lac_error *err);
void laci_values_clear(laci_values *values);

/** Sets the columns x and the order that all values are computed with from now on. Computes all
 * open columns, and marks all rows of the table as out of date. x still belongs to the caller. */
void laci_values_set_matrix(laci_values *values, const laci_matrix *x, const int32_t *order,
                            laci_pool *pool);

/** Updates the open columns after the channels at n places, all in different blocks, have changed
 * to those of `order`. */
void laci_values_update_open_columns(laci_values *values, const int32_t *places, int n,
                                     const int32_t *order, laci_pool *pool);

/** Computes the table's rows of these places again, if they are out of date. */
void laci_values_update_table_rows(laci_values *values, const int32_t *places, int n,
                                   laci_pool *pool);

/** Returns the sum of the scores that the pattern keeps with this order, in the integers of x. */
int64_t laci_values_sum_kept(const laci_values *values, const int32_t *order);

static inline const void *laci_values_open_column(const laci_values *values, int32_t place) {
  return values->open + (size_t)place * values->x->column_bytes;
}

static inline const int32_t *laci_values_row(const laci_values *values, int32_t place) {
  return values->table + (int64_t)place * values->cuts->n_channels;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A cut's columns as small integers, column after column, with rows padded by zeros. Searches
 * compute with these integers. Values of u8 are clipped at laci_measure.common; values of i16
 * represent all scores up to the largest. If a cut has so many rows that sums could exceed
 * LACI_MAXSUM_LIMIT, the scale is lowered. Very large cuts are sampled: only every row_step-th row
 * is used. The final check of an order, in float64, uses all rows. */
#ifndef LACI_PERMUTE_SEARCH_MATRIX_H
#define LACI_PERMUTE_SEARCH_MATRIX_H

#include "kernel/search/number.h"
#include "permute/search_score.h"

typedef struct laci_matrix {
  laci_number number;
  int n_columns;
  size_t rows;         /* number of rows, padding included */
  size_t column_bytes; /* number of bytes from one column to the next */
  double scale;        /* an element is the score times this, rounded */
  uint8_t *bytes;      /* the columns; free with laci_free */
} laci_matrix;

/** The input of laci_matrix_init. */
typedef struct laci_matrix_source {
  const laci_cuts *cuts;
  const laci_cut *cut; /* the table of columns to convert, one of the problem's cuts */
  const laci_measure *measure;
} laci_matrix_source;

/** Converts a cut (a table of columns) to small integers. All cuts of a problem get the same scale,
 * so that their sums can be added. Fails with LAC_NO_MEMORY, and as reading weights does; *matrix
 * is then empty. */
LAC_MUST_CHECK lac_status laci_matrix_init(laci_matrix *matrix, laci_number number,
                                           const laci_matrix_source *from, laci_pool *pool,
                                           lac_error *err);
void laci_matrix_clear(laci_matrix *matrix);

/** Returns the factor that converts sums of the matrix `from` to the scale of the matrix `to`; 1 if
 * one of them has no scale, since its scores are too small. */
static inline double laci_matrix_growth(const laci_matrix *from, const laci_matrix *to) {
  return from->scale > 0 && to->scale > 0 ? to->scale / from->scale : 1;
}

static inline void *laci_matrix_column(const laci_matrix *matrix, int64_t column) {
  return matrix->bytes + (size_t)column * matrix->column_bytes;
}

/** Returns the number of rows that the matrix of a cut (table of columns) has, after sampling and
 * padding. */
size_t laci_matrix_count_padded_rows(const laci_cut *cut);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A cut's columns as small integers, one after the other, rows padded with zeros: what the searches
 * count with.
 *
 * u8 clips at the common largest score (laci_measure), i16 goes to the very largest. Rows are so
 * many that sums could leave LACI_MAXSUM_LIMIT only if the scale were not lowered, which it then
 * is. Very large cuts are sampled, every row_step-th row: the final check in float64 sees all of
 * them. */
#ifndef LACI_PERMUTE_SEARCH_MATRIX_H
#define LACI_PERMUTE_SEARCH_MATRIX_H

#include "kernel/search/number.h"
#include "permute/search_score.h"

typedef struct laci_matrix {
  laci_number number;
  int n_columns;
  size_t rows;         /* padded */
  size_t column_bytes; /* from one column to the next */
  double scale;        /* element = score * scale, rounded */
  uint8_t *bytes;      /* laci_free */
} laci_matrix;

/** What a matrix is made from. */
typedef struct laci_matrix_source {
  const laci_cuts *cuts;
  const laci_cut *cut; /* one of them */
  const laci_measure *measure;
} laci_matrix_source;

/** The same scale for all cuts of a problem, so that their sums may be added. Fails LAC_NO_MEMORY,
 * and as weights are read; *matrix is empty then. */
LAC_MUST_CHECK lac_status laci_matrix_init(laci_matrix *matrix, laci_number number,
                                           const laci_matrix_source *from, laci_pool *pool,
                                           lac_error *err);
void laci_matrix_clear(laci_matrix *matrix);

/** What a number in one matrix is in another: 1 where scores are so small that there is no scale.
 */
static inline double laci_matrix_growth(const laci_matrix *from, const laci_matrix *to) {
  return from->scale > 0 && to->scale > 0 ? to->scale / from->scale : 1;
}

static inline void *laci_matrix_column(const laci_matrix *matrix, int64_t column) {
  return matrix->bytes + (size_t)column * matrix->column_bytes;
}

/** Rows that are left of a cut when it is sampled, padded: what a matrix will have. */
size_t laci_matrix_rows(const laci_cut *cut);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The linear assignment problem: each row gets a column of its own, so that the sum of the costs is
 * the least.
 *
 * The method is that of R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense
 * and sparse linear assignment problems" (Computing 38, 1987). A cheap phase finds correct prices
 * of columns for most rows. Dijkstra's algorithm assigns the remaining rows. */
#ifndef LACI_PERMUTE_SEARCH_LAP_H
#define LACI_PERMUTE_SEARCH_LAP_H

#include <stdint.h>

#include "kernel/search/lap_rows.h"
#include "lacuna/status.h"

enum {
  LACI_LAP_LIMIT = 1 << 27,      /* maximum of |cost| */
  LACI_LAP_PRICE_LIMIT = 1 << 26 /* maximum of |price|, in a hint of prices */
};

typedef struct laci_lap {
  int n;
  int stride;         /* number of elements from one row of `cost` to the next: n, rounded up */
  int32_t *cost;      /* [n][stride] cost of each column in each row; the caller fills the first n
                         columns, and must not write the others */
  int32_t *column_of; /* [n] result: the column of each row */
  int32_t *row_of;    /* [n] the row to which each column is assigned: the inverse of column_of */
  int32_t *price;     /* [stride] price (dual variable) of each column, after solving */
  int32_t *distance, *parent, *mark; /* [stride] working memory of Dijkstra's algorithm: distance of
                                        each column, row before it on the path, and whether it is
                                        done */
  int32_t *free_rows;
  const laci_lap_rows *rows;
  void *memory; /* memory of all arrays but cost */
} laci_lap;

/** Allocates memory for n rows and columns. Clear *lap also after a failure. */
LAC_MUST_CHECK lac_status laci_lap_init(laci_lap *lap, int n, lac_error *err);
void laci_lap_clear(laci_lap *lap);

/** Solves the problem lap->cost. The result is exact, and the same on every machine. It takes
 * O(n^3) at worst, and a few n^2 on annealing's tables. It is faster if the rows have similar
 * means. */
void laci_lap_solve(laci_lap *lap);

/** Solves lap->cost as laci_lap_solve does, but begins with the prices in lap->price, of a solution
 * for similar costs. Good prices save most of the work if rows compete for the same columns. */
void laci_lap_solve_hinted(laci_lap *lap);

static inline int32_t *laci_lap_row(const laci_lap *lap, int64_t row) {
  return lap->cost + row * lap->stride;
}

#endif

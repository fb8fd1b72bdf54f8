/* SPDX-License-Identifier: Apache-2.0
 * The assignment problem: every row gets a column of its own, so that the costs add up to the
 * least.
 *
 * The shortest augmenting path method of R. Jonker and A. Volgenant, "A shortest augmenting path
 * algorithm for dense and sparse linear assignment problems" (Computing 38, 1987): prices of
 * columns are made right cheaply for most rows, and Dijkstra's search places the rest. */
#ifndef LACI_PERMUTE_SEARCH_LAP_H
#define LACI_PERMUTE_SEARCH_LAP_H

#include <stdint.h>

#include "kernel/search/lap_rows.h"
#include "lacuna/status.h"

enum {
  LACI_LAP_LIMIT = 1 << 27,      /* |cost| is at most this */
  LACI_LAP_PRICE_LIMIT = 1 << 26 /* and |price| of a hint this */
};

typedef struct laci_lap {
  int n;
  int stride;         /* of the costs' rows: n, rounded up */
  int32_t *cost;      /* [n][stride], filled by the caller; columns past n stay untouched */
  int32_t *column_of; /* [n] the result: column of each row */
  int32_t *row_of;    /* [n] its inverse */
  int32_t *price;     /* [stride]; after solving: what each column's scarcity costs */
  int32_t *distance, *parent, *mark; /* [stride] */
  int32_t *free_rows;
  const laci_lap_rows *rows;
  void *memory; /* all of the arrays but cost */
} laci_lap;

/** Clear also after a failure. */
LAC_MUST_CHECK lac_status laci_lap_init(laci_lap *lap, int n, lac_error *err);
void laci_lap_clear(laci_lap *lap);

/** Solves for lap->cost, exactly; among equals the choice is fixed. O(n^3) at worst, a few n^2 on
 * annealing's tables. It is the faster the nearer the rows' means are to each other. */
void laci_lap_solve(laci_lap *lap);

/** The same, and lap->price holds a hint: prices that similar costs led to. Good ones spare most of
 * the work where rows compete for the same columns. */
void laci_lap_solve_hinted(laci_lap *lap);

static inline int32_t *laci_lap_row(const laci_lap *lap, int64_t row) {
  return lap->cost + row * lap->stride;
}

#endif

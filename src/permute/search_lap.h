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

#include "lacuna/status.h"

enum {
  LACI_LAP_LIMIT = 1 << 28
}; /* |cost| stays below it; prices then stay below five times as much */

typedef struct laci_lap {
  int n;
  int32_t *column_of; /* [n] the result: column of each row */
  int32_t *row_of;    /* [n] its inverse */
  int32_t *price, *distance, *reduced;
  int32_t *free_rows, *parent, *mark;
  void *memory; /* all of the above */
} laci_lap;

LAC_MUST_CHECK lac_status laci_lap_init(laci_lap *lap, int n, lac_error *err);
void laci_lap_clear(laci_lap *lap);

/** cost [n][n], row-major. Exact; among equals the choice is fixed. O(n^3) at worst, a few n^2 on
 * annealing's tables. */
void laci_lap_solve(laci_lap *lap, const int32_t *cost);

#endif

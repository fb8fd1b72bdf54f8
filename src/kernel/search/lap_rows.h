/* SPDX-License-Identifier: Apache-2.0
 * Operations on one row of a cost matrix: the innermost loops of the assignment solver
 * permute/search_lap.c.
 *
 * Rows have n elements, n a multiple of LACI_LAP_LANES; "reduced" is row[j] - price[j]. All is
 * integer arithmetic and ties go to the lowest index, so every variant gives the same result.
 * lap_rows_isa.c, written with arrays of lanes, is compiled for every instruction set. */
#ifndef LACI_KERNEL_SEARCH_LAP_ROWS_H
#define LACI_KERNEL_SEARCH_LAP_ROWS_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_LAP_LANES = 16 };

/** The smallest and the second smallest reduced cost of a row. at: index of the smallest, the
 * lowest one if several are equal. */
typedef struct laci_two_smallest {
  int32_t least, second;
  int at;
} laci_two_smallest;

/** The state of a shortest-path search (Dijkstra) from an unassigned row: for each column, its
 * distance so far, and the row that comes before it on the path (parent). */
typedef struct laci_lap_frontier {
  const int32_t *price;
  const int32_t *mark; /* [n] INT32_MAX: the column is finished and ignored; INT32_MIN: it is not */
  int32_t *distance, *parent;
  int n;
} laci_lap_frontier;

/** Row i of the costs; `shift` is subtracted from every cost. */
typedef struct laci_lap_offer {
  const int32_t *row;
  int32_t i, shift;
} laci_lap_offer;

typedef struct laci_lap_rows {
  /** Returns the two smallest values of row[j] - price[j]. */
  laci_two_smallest (*two_least)(const int32_t *row, const int32_t *price, int n);
  /** Returns the smallest value of row[j] - price[j]. */
  int32_t (*least)(const int32_t *row, const int32_t *price, int n);
  /** For every column j, with x = offer->row[j] - offer->shift: where x < least[j], sets least[j] =
   * x and from[j] = i. */
  void (*lower)(const laci_lap_offer *offer, int32_t *least, int32_t *from, int n);
  /** Extends the search over row i, which is at distance `base`: updates columns that have a
   * shorter path through it. Returns the unfinished column with the smallest distance. */
  int (*relax)(const laci_lap_frontier *frontier, const int32_t *row, int32_t i, int32_t base);
} laci_lap_rows;

#define LACI_LAP_ROWS_DECLARE(name, level) extern const laci_lap_rows laci_lap_rows_##name;
LACI_KERNEL_VARIANTS(LACI_LAP_ROWS_DECLARE)
#undef LACI_LAP_ROWS_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). Callable from any thread. */
const laci_lap_rows *laci_lap_rows_variant(void);

#endif

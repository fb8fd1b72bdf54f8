/* SPDX-License-Identifier: Apache-2.0
 * What the assignment solver asks of one row of costs, again and again: the innermost loops of
 * permute/search_lap.c.
 *
 * Rows have n elements, n a multiple of LACI_LAP_LANES; "reduced" is row[j] - price[j]. All is
 * integer arithmetic and ties go to the lowest index, so every variant gives the same result. The
 * text is one (lap_rows_isa.c), written for arrays of lanes, and compiled for every instruction
 * set. */
#ifndef LACI_KERNEL_SEARCH_LAP_ROWS_H
#define LACI_KERNEL_SEARCH_LAP_ROWS_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_LAP_LANES = 16 };

/** The two smallest of a row's reduced costs; at: index of the smallest, the first of equals. */
typedef struct laci_two_least {
  int32_t least, second;
  int at;
} laci_two_least;

/** Columns on the path from a free row: how far each is, and the row before it. */
typedef struct laci_lap_frontier {
  const int32_t *price;
  const int32_t *mark; /* INT32_MAX: done, out of sight; else INT32_MIN */
  int32_t *distance, *parent;
  int n;
} laci_lap_frontier;

/** Row i, every cost of it less `shift`. */
typedef struct laci_lap_offer {
  const int32_t *row;
  int32_t i, shift;
} laci_lap_offer;

typedef struct laci_lap_rows {
  /** Two smallest of row - price. */
  laci_two_least (*two_least)(const int32_t *row, const int32_t *price, int n);
  /** The smallest of row - price. */
  int32_t (*least)(const int32_t *row, const int32_t *price, int n);
  /** x = row[j] - shift: where x < least[j], least[j] = x and from[j] = i. */
  void (*lower)(const laci_lap_offer *offer, int32_t *least, int32_t *from, int n);
  /** Goes on from row i, which is `base` away: shorter paths are noted. Returns the nearest column
   * in sight. */
  int (*relax)(const laci_lap_frontier *frontier, const int32_t *row, int32_t i, int32_t base);
} laci_lap_rows;

#define LACI_LAP_ROWS_DECLARE(name, level) extern const laci_lap_rows laci_lap_rows_##name;
LACI_KERNEL_VARIANTS(LACI_LAP_ROWS_DECLARE)
#undef LACI_LAP_ROWS_DECLARE

/** The variant in force (cpu/cpu.h). Any thread. */
const laci_lap_rows *laci_lap_rows_now(void);

#endif

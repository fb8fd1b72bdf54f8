/* SPDX-License-Identifier: Apache-2.0
 * Reading the rows of a cut: a tile is up to 32 rows of all columns, as float64 scores, with one
 * array of rows per column. Tiles are numbered through all parts of a cut, so that parallel loops
 * can divide them. */
#ifndef LACI_PERMUTE_SEARCH_ROWS_H
#define LACI_PERMUTE_SEARCH_ROWS_H

#include "permute/search_cut.h"

enum { LACI_TILE_ROWS = 32 };

typedef struct laci_tile {
  const laci_cut_part *part;
  int64_t first_row; /* number of the tile's first row in the whole cut, in which the rows of
                        earlier parts come first */
  int n_rows;
  double *score; /* [n_columns][LACI_TILE_ROWS]; rows that the tile does not have, and columns that
                    the part does not have, are 0 */
} laci_tile;

/** Fills first_tile and first_row of the cut's parts. */
void laci_cut_number_tiles(laci_cut *cut);

int64_t laci_cut_count_tiles(const laci_cut *cut);

/** Reads tile `index`; tile->score is memory of the caller, [n_columns * LACI_TILE_ROWS]. */
void laci_cut_read_tile(const laci_cut *cut, int64_t index, laci_tile *tile);

#endif

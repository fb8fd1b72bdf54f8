/* SPDX-License-Identifier: Apache-2.0
 * Reads the rows of a cut (a table of columns, search_cut.h) in tiles. A tile is up to 32 rows of
 * all columns, as float64 scores, with one array of rows for each column. Tiles are numbered
 * through all parts of a cut, so that parallel loops can divide them. */
#ifndef LACI_PERMUTE_SEARCH_ROWS_H
#define LACI_PERMUTE_SEARCH_ROWS_H

#include "permute/search_cut.h"

enum { LACI_TILE_ROWS = 32 };

typedef struct laci_tile {
  const laci_cut_part *part;
  int64_t first_row; /* index of the tile's first row in the whole cut, where rows of earlier parts
                        come first */
  int n_rows;
  double *score; /* [n_columns][LACI_TILE_ROWS] scores; 0 in rows that the tile does not have, and
                    in columns that the part does not have */
} laci_tile;

/** laci_cut_number_tiles: sets first_tile and first_row of all parts of a cut (table of columns).
 * laci_cut_count_tiles: returns the number of tiles in the cut. */
void laci_cut_number_tiles(laci_cut *cut);

int64_t laci_cut_count_tiles(const laci_cut *cut);

/** Reads tile number `index` of the cut. tile->score is memory of the caller, [n_columns *
 * LACI_TILE_ROWS]. */
void laci_cut_read_tile(const laci_cut *cut, int64_t index, laci_tile *tile);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Reads tiles (up to 32 rows of all columns, search_rows.h) from stored weights. Adjacent columns
 * of the weight are read together and transposed, some columns of all rows at a time. If rows are
 * along a long inner axis (transposed weights), the rows of a column are adjacent and need no
 * transposition. */
#include "permute/search_rows.h"

#include <string.h>

#include "sparse/score.h"

enum { BLOCK = 2048 };

/* How the rows of a part (rows of one weight) are divided into tiles. The rows of one outer index
 * take several tiles, or several outer indices share a tile. */
typedef struct tiling {
  /* inner: number of inner indices. chunk: maximum number of rows that a tile has of one outer
     index, which takes n_chunks tiles. outers: number of outer indices in a tile, if n_chunks is
     1 */
  int64_t inner, chunk, n_chunks, outers;
  int64_t n_tiles;
} tiling;

static tiling divide_part_into_tiles(const laci_cut_part *part) {
  tiling t = {.inner = part->weight->inner, .n_chunks = 1, .outers = 1};
  if (part->n_rows == 0) return t;
  int64_t n_outer = part->n_rows / t.inner;
  t.chunk = t.inner < LACI_TILE_ROWS ? t.inner : LACI_TILE_ROWS;
  t.n_chunks = (t.inner + t.chunk - 1) / t.chunk;
  if (t.n_chunks == 1) t.outers = LACI_TILE_ROWS / t.inner;
  t.n_tiles = (n_outer + t.outers - 1) / t.outers * t.n_chunks;
  return t;
}

void laci_cut_number_tiles(laci_cut *cut) {
  int64_t tile = 0, row = 0;
  for (int i = 0; i < cut->n_parts; i++) {
    cut->parts[i].first_tile = tile;
    cut->parts[i].first_row = row;
    tile += divide_part_into_tiles(&cut->parts[i]).n_tiles;
    row += cut->parts[i].n_rows;
  }
}

int64_t laci_cut_count_tiles(const laci_cut *cut) {
  if (cut->n_parts == 0) return 0;
  const laci_cut_part *last = &cut->parts[cut->n_parts - 1];
  return last->first_tile + divide_part_into_tiles(last).n_tiles;
}

/* Returns the part (rows of one weight) that has this tile: the last part that begins at or before
 * it. Parts without tiles may begin there, too, but come before it. */
static const laci_cut_part *find_part_of_tile(const laci_cut *cut, int64_t tile) {
  int low = 0, high = cut->n_parts - 1;
  while (low < high) {
    int middle = low + (high - low + 1) / 2;
    if (cut->parts[middle].first_tile <= tile) low = middle;
    else high = middle - 1;
  }
  return &cut->parts[low];
}

/* Reads the columns [at, at + n), which are adjacent in the weight, of one outer index with all its
 * inner indices. */
static void read_adjacent_columns(const laci_cut_part *part, int64_t outer, int at, int n,
                                  double *raw) {
  const laci_weight_view *w = part->weight;
  for (int end = at + n, here; at < end; at += here) {
    here = laci_count_adjacent(part->source + at, end - at);
    laci_scores_read(w, (outer * w->columns + part->source[at]) * w->inner, here * w->inner, raw);
    raw += here * w->inner;
  }
}

/* Copies n runs of `inner` elements, which begin `stride` elements apart, to contiguous memory.
 * Most runs have one element. */
static void copy_strided_runs(const double *from, int stride, int n, int inner, double *to) {
  if (inner == 1) {
    for (int o = 0; o < n; o++) to[o] = from[o * stride];
    return;
  }
  for (int o = 0; o < n; o++) {
    for (int i = 0; i < inner; i++) *to++ = from[o * stride + i];
  }
}

/* Reads the rows of outer indices [outer, outer + n_outers). A few columns of all these rows are
 * read at a time, and transposed while they are in the L1 cache. */
static void read_rows_of_outer_indices(const laci_cut_part *part, int64_t outer, int n_outers,
                                       double *score) {
  const int inner = (int)part->weight->inner, capacity = BLOCK / (n_outers * inner);
  double raw[BLOCK];
  for (int at = 0; at < part->n_read; at += capacity) {
    const int n = part->n_read - at < capacity ? part->n_read - at : capacity, stride = n * inner;
    for (int o = 0; o < n_outers; o++)
      read_adjacent_columns(part, outer + o, at, n, raw + o * stride);
    for (int c = 0; c < n; c++) {
      double *to = score + (int64_t)part->column[at + c] * LACI_TILE_ROWS;
      copy_strided_runs(raw + c * inner, stride, n_outers, inner, to);
    }
  }
}

static void read_rows_of_inner_range(const laci_cut_part *part, int64_t outer, int64_t inner_at,
                                     int64_t n, double *score) {
  const laci_weight_view *w = part->weight;
  for (int c = 0; c < part->n_read; c++) {
    int64_t first = (outer * w->columns + part->source[c]) * w->inner + inner_at;
    laci_scores_read(w, first, n, score + (int64_t)part->column[c] * LACI_TILE_ROWS);
  }
}

/* Sets the elements of a tile that were not read to zero: columns that its part does not have, and
 * rows after its last one. */
static void zero_unread_elements(const laci_cut *cut, const laci_tile *tile) {
  if (tile->part->n_read < cut->n_columns) {
    memset(tile->score, 0, (size_t)cut->n_columns * LACI_TILE_ROWS * sizeof *tile->score);
    return;
  }
  for (int c = 0; c < cut->n_columns && tile->n_rows < LACI_TILE_ROWS; c++) {
    double *rows = tile->score + (int64_t)c * LACI_TILE_ROWS;
    for (int r = tile->n_rows; r < LACI_TILE_ROWS; r++) rows[r] = 0;
  }
}

void laci_cut_read_tile(const laci_cut *cut, int64_t index, laci_tile *tile) {
  const laci_cut_part *part = find_part_of_tile(cut, index);
  tiling t = divide_part_into_tiles(part);
  index -= part->first_tile;
  tile->first_row = part->first_row;
  tile->part = part;
  int64_t outer = index / t.n_chunks * t.outers, inner_at = index % t.n_chunks * t.chunk;
  tile->first_row += outer * t.inner + inner_at;
  if (t.n_chunks > 1) {
    tile->n_rows = (int)(t.inner - inner_at < t.chunk ? t.inner - inner_at : t.chunk);
    zero_unread_elements(cut, tile);
    read_rows_of_inner_range(part, part->outer_begin + outer, inner_at, tile->n_rows, tile->score);
    return;
  }
  int64_t left = part->n_rows / t.inner - outer, n_outers = left < t.outers ? left : t.outers;
  tile->n_rows = (int)(n_outers * t.inner);
  zero_unread_elements(cut, tile);
  read_rows_of_outer_indices(part, part->outer_begin + outer, (int)n_outers, tile->score);
}

/* SPDX-License-Identifier: Apache-2.0
 * Tiles from stored weights. Columns that neighbour in the weight are read as one stretch and
 * turned; where a row index runs inside (convolution kernels, transposed weights), rows of one
 * column neighbour and come straight. */
#include "permute/search_rows.h"

#include <string.h>

#include "sparse/score.h"

enum { STRETCH = 2048 };

/* Rows of one outer index are cut into chunks of at most a tile, or several outer indices share a
 * tile. */
typedef struct tiling {
  int64_t inner, chunk, n_chunks, outers; /* outers: whole outer indices a tile (n_chunks == 1) */
  int64_t n_tiles;
} tiling;

static tiling tiling_of(const laci_piece *piece) {
  tiling t = {.inner = piece->weight->inner, .n_chunks = 1, .outers = 1};
  if (piece->n_rows == 0) return t;
  int64_t n_outer = piece->n_rows / t.inner;
  t.chunk = t.inner < LACI_TILE_ROWS ? t.inner : LACI_TILE_ROWS;
  t.n_chunks = (t.inner + t.chunk - 1) / t.chunk;
  if (t.n_chunks == 1) t.outers = LACI_TILE_ROWS / t.inner;
  t.n_tiles = (n_outer + t.outers - 1) / t.outers * t.n_chunks;
  return t;
}

int64_t laci_tiles_count(const laci_cut *cut) {
  int64_t n = 0;
  for (int i = 0; i < cut->n_pieces; i++) n += tiling_of(&cut->pieces[i]).n_tiles;
  return n;
}

/* Columns [at, at + n) of the piece, which neighbour in the weight, with all of inner: into rows
 * from `row` on. */
static void read_stretch(const laci_piece *piece, int64_t outer, int at, int n, double *score) {
  const laci_weight_view *w = piece->weight;
  double raw[STRETCH];
  laci_scores_read(w, (outer * w->columns + piece->source[at]) * w->inner, n * w->inner, raw);
  for (int c = 0; c < n; c++) {
    double *to = score + (int64_t)piece->column[at + c] * LACI_TILE_ROWS;
    for (int64_t i = 0; i < w->inner; i++) to[i] = raw[c * w->inner + i];
  }
}

static void read_outer(const laci_piece *piece, int64_t outer, double *score) {
  const int room = (int)(STRETCH / piece->weight->inner);
  for (int at = 0; at < piece->n_read;) {
    int n = 1;
    while (n < room && at + n < piece->n_read && piece->source[at + n] == piece->source[at] + n)
      n++;
    read_stretch(piece, outer, at, n, score);
    at += n;
  }
}

static void read_chunk(const laci_piece *piece, int64_t outer, int64_t inner_at, int64_t n,
                       double *score) {
  const laci_weight_view *w = piece->weight;
  for (int c = 0; c < piece->n_read; c++) {
    int64_t first = (outer * w->columns + piece->source[c]) * w->inner + inner_at;
    laci_scores_read(w, first, n, score + (int64_t)piece->column[c] * LACI_TILE_ROWS);
  }
}

void laci_tile_read(const laci_cut *cut, int64_t index, laci_tile *tile) {
  const laci_piece *piece = cut->pieces;
  tiling t = tiling_of(piece);
  tile->first_row = 0;
  while (index >= t.n_tiles) {
    index -= t.n_tiles;
    tile->first_row += piece->n_rows;
    t = tiling_of(++piece);
  }
  tile->piece = piece;
  memset(tile->score, 0, (size_t)cut->n_columns * LACI_TILE_ROWS * sizeof *tile->score);
  int64_t outer = index / t.n_chunks * t.outers, inner_at = index % t.n_chunks * t.chunk;
  tile->first_row += outer * t.inner + inner_at;
  if (t.n_chunks > 1) {
    tile->n_rows = (int)(t.inner - inner_at < t.chunk ? t.inner - inner_at : t.chunk);
    read_chunk(piece, piece->outer_begin + outer, inner_at, tile->n_rows, tile->score);
    return;
  }
  int64_t n_outer = piece->n_rows / t.inner,
          last = outer + t.outers < n_outer ? outer + t.outers : n_outer;
  tile->n_rows = (int)((last - outer) * t.inner);
  for (int64_t o = outer; o < last; o++) {
    read_outer(piece, piece->outer_begin + o, tile->score + (o - outer) * t.inner);
  }
}

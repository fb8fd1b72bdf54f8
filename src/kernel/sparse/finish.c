/* SPDX-License-Identifier: Apache-2.0
 * What follows sums that generated code has stored (product.h), while they are still near: some
 * dozens of tiles' rows at a time are brought together, so that functions run over many of them. */
#include <stddef.h>
#include <string.h>

#include "kernel/pointwise/function.h"
#include "kernel/sparse/product.h"

enum { LANES = LACI_SPARSE_LANES, ALL = (1 << LANES) - 1, MOST = 64 };

typedef struct batch {
  float v[MOST][LANES];
  int64_t out[MOST];
  uint64_t lanes[MOST];
  int n;
} batch;

static void take(const laci_sparse_operands *o, batch *b, int64_t out, uint64_t lanes) {
  float *v = b->v[b->n];
  b->out[b->n] = out;
  b->lanes[b->n++] = lanes;
  if (lanes == ALL) {
    memcpy(v, o->y + out, LANES * sizeof *v);
    return;
  }
  for (int lane = 0; lane < LANES; lane++) v[lane] = lanes >> lane & 1 ? o->y[out + lane] : 0;
}

static void give_back(const laci_sparse_operands *o, batch *b, int at) {
  const float *residual = o->residual_last && o->residual ? o->residual + b->out[at] : NULL;
  float *v = b->v[at], *y = o->y + b->out[at];
  const uint64_t lanes = b->lanes[at];
  for (int lane = 0; residual && lane < LANES; lane++) {
    if (lanes >> lane & 1) v[lane] += residual[lane];
  }
  if (lanes == ALL) memcpy(y, v, LANES * sizeof *v);
  for (int lane = 0; lanes != ALL && lane < LANES; lane++) {
    if (lanes >> lane & 1) y[lane] = v[lane];
  }
}

static void flush(const laci_sparse_operands *o, laci_pointwise_apply *apply, batch *b) {
  for (int at = 0; at < o->n_functions; at++) {
    apply(&o->functions[at], b->v[0], (int64_t)b->n * LANES);
  }
  for (int at = 0; at < b->n; at++) give_back(o, b, at);
  b->n = 0;
}

void laci_sparse_finish(const laci_sparse_operands *o, int64_t row_stride,
                        const laci_sparse_part *part) {
  const int64_t n_rows = part->row_last - part->row_first;
  const int64_t n_tiles = part->tile_last - part->tile_first;
  /* In the order of addresses, or nearly: rows of a tile, or tiles of a row, are neighbours. */
  const bool rows_near = row_stride == LANES;
  laci_pointwise_apply *apply = laci_pointwise_apply_now();
  batch b;
  b.n = 0;
  for (int64_t outer = 0; outer < (rows_near ? n_tiles : n_rows); outer++) {
    for (int64_t inner = 0; inner < (rows_near ? n_rows : n_tiles); inner++) {
      const laci_sparse_tile *tile = &part->tiles[part->tile_first + (rows_near ? outer : inner)];
      const int64_t row = part->row_first + (rows_near ? inner : outer);
      take(o, &b, tile->out + row * row_stride, tile->lanes);
      if (b.n == MOST) flush(o, apply, &b);
    }
  }
  flush(o, apply, &b);
}

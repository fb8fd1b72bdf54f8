/* SPDX-License-Identifier: Apache-2.0
 * The definition of gradient.h: gradient by gradient. */
#include <math.h>
#include <stddef.h>

#include "kernel/sparse/gradient.h"

enum { LANES = LACI_SPARSE_LANES };

/* The sum of the tiles [first, last) for a row and a column. */
static float block_sum(const laci_sparse_gradient *g, const float *x, const float *dy,
                       int64_t first, int64_t last) {
  float sum[LANES] = {0};
  for (int64_t t = first; t < last; t++) {
    const laci_sparse_tile *tile = &g->tiles[t];
    for (int lane = 0; lane < LANES; lane++) {
      const float slope = tile->lanes >> lane & 1 ? dy[tile->out + lane] : 0;
      sum[lane] = fmaf(slope, x[tile->in + lane], sum[lane]);
    }
  }
  for (int apart = LANES / 2; apart > 0; apart /= 2) {
    for (int lane = 0; lane < apart; lane++) sum[lane] += sum[lane + apart];
  }
  return sum[0];
}

static float gradient_of(const laci_sparse_gradient *g, const float *x, const float *dy) {
  float sum = 0;
  for (int64_t first = 0; first < g->n_tiles; first += g->block) {
    const int64_t last = first + g->block < g->n_tiles ? first + g->block : g->n_tiles;
    const float more = block_sum(g, x, dy, first, last);
    sum = first ? sum + more : more;
  }
  return sum;
}

void laci_sparse_gradient_scalar(const laci_sparse_gradient *g, const laci_sparse_slopes *s,
                                 int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at++) {
    const laci_sparse_gradient_item *item = &g->items[at];
    const laci_sparse_run_row *row = g->rows + item->run_row_first;
    for (int64_t run_at = item->run_first; run_at < item[1].run_first; run_at++) {
      const laci_sparse_run *run = &g->runs[run_at];
      for (const laci_sparse_run_row *end = row + run->n_rows; row < end; row++) {
        for (int c = 0; c < run->n_columns; c++) {
          const float *in = s->x + g->column_at[item->column_first + run->column[c]];
          const float *out = s->dy + (item->row_first + row->row) * g->row_stride;
          s->gradient[row->k + c] = gradient_of(g, in, out);
        }
      }
    }
  }
}

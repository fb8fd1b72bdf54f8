/* SPDX-License-Identifier: Apache-2.0
 * The reference of gradient.h: it computes one gradient at a time. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/gradient.h"
#include "kernel/sparse/bf16_pairs.h"

enum { LANES = LACI_SPARSE_LANES };

/* The operands of one gradient: addresses of its row in dy and of its column in x, to which a
 * tile's `out` and `in` are added. With bf16, also which half of a pair each is. */
typedef struct operands {
  const laci_sparse_tile *tiles;
  const float *x, *dy;
  bool upper_x, upper_dy;
} operands;

/* Returns the sum of the lanes, added in a fixed order. */
static float sum_lanes_in_order(float *sum) {
  for (int apart = LANES / 2; apart > 0; apart /= 2) {
    for (int lane = 0; lane < apart; lane++) sum[lane] += sum[lane + apart];
  }
  return sum[0];
}

static bool is_result_lane(const laci_sparse_tile *tile, int lane) {
  return tile->lanes >> lane & 1;
}

/* Returns the sum over tiles [first, last) for one row and one column. */
static float sum_of_block(const operands *o, int64_t first, int64_t last) {
  float sum[LANES] = {0};
  for (const laci_sparse_tile *tile = o->tiles + first; tile < o->tiles + last; tile++) {
    for (int lane = 0; lane < LANES; lane++) {
      const float slope = is_result_lane(tile, lane) ? o->dy[tile->out + lane] : 0;
      sum[lane] = fmaf(slope, o->x[tile->in + lane], sum[lane]);
    }
  }
  return sum_lanes_in_order(sum);
}

/* Returns one half of a bf16 pair. */
static uint32_t bf16_half(const float *pair, bool upper) {
  uint32_t bits;
  memcpy(&bits, pair, sizeof bits);
  return upper ? bits >> 16 : bits & 0xFFFFU;
}

/* Returns the sum over tiles [first, last) for one row and one column of bf16. */
static float sum_of_bf16_block(const operands *o, int64_t first, int64_t last) {
  float sum[LANES] = {0};
  for (int64_t t = first; t < last; t += 2) {
    for (int lane = 0; lane < LANES; lane++) {
      uint32_t x = 0, slope = 0;
      for (int64_t at = 0; at < 2 && t + at < last; at++) {
        const laci_sparse_tile *tile = &o->tiles[t + at];
        x |= bf16_half(o->x + tile->in + lane, o->upper_x) << 16 * at;
        if (!is_result_lane(tile, lane)) continue;
        slope |= bf16_half(o->dy + tile->out + lane, o->upper_dy) << 16 * at;
      }
      sum[lane] = laci_sparse_add_dot(sum[lane], x, slope);
    }
  }
  return sum_lanes_in_order(sum);
}

static float compute_gradient(const laci_sparse_gradient *g, const operands *o) {
  float sum = 0;
  for (int64_t first = 0; first < g->n_tiles; first += g->block) {
    const int64_t last = first + g->block < g->n_tiles ? first + g->block : g->n_tiles;
    const float more = g->bf16 ? sum_of_bf16_block(o, first, last) : sum_of_block(o, first, last);
    sum = first ? sum + more : more;
  }
  return sum;
}

/* Returns the operands of the gradient for one row and one column. */
static operands find_operands(const laci_sparse_gradient *g, const laci_sparse_gradient_operands *s,
                              int64_t row, int64_t column) {
  return (operands){.tiles = g->tiles,
                    .x = s->x + g->column_at[column],
                    .dy = s->dy + (g->bf16 ? row / 2 : row) * g->row_stride,
                    .upper_x = column % 2 > 0,
                    .upper_dy = row % 2 > 0};
}

void laci_sparse_gradient_scalar(const laci_sparse_gradient *g,
                                 const laci_sparse_gradient_operands *s, int64_t first,
                                 int64_t last) {
  for (const laci_sparse_gradient_item *item = g->items + first; item < g->items + last; item++) {
    const laci_sparse_run_row *row = g->rows + item->run_row_first;
    for (int64_t run_at = item->run_first; run_at < item[1].run_first; run_at++) {
      const laci_sparse_run *run = &g->runs[run_at];
      for (const laci_sparse_run_row *end = row + run->n_rows; row < end; row++) {
        for (int c = 0; c < run->n_columns; c++) {
          const operands o =
              find_operands(g, s, item->row_first + row->row, item->column_first + run->column[c]);
          s->gradient[row->k + c] = compute_gradient(g, &o);
        }
      }
    }
  }
}

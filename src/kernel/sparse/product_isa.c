/* SPDX-License-Identifier: Apache-2.0
 * product.h for every instruction set: a row of some tiles at a time, so that each weight and its
 * column are looked up once for several vectors of sums. */
#include <stddef.h>

#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/tile_isa.h"
#include "kernel/variants.h"

enum { TILES = WIDTH == 16 ? 8 : 6 };
enum { LANES = LACI_SPARSE_LANES, VECTORS = LANES / WIDTH };

/* Some tiles of a part. */
typedef struct strip {
  const laci_sparse_tile *tiles;
  const float *x[TILES];
} strip;

/* A column of n tiles, lanes of which may have no such pixel. */
static void load_next_to(const strip *s, int64_t from, uint8_t neighbour, int n, float *to) {
  for (int t = 0; t < n; t++) {
    laci_sparse_load_tile(s->x[t] + from, laci_sparse_lanes_of(&s->tiles[t], neighbour),
                          to + (ptrdiff_t)(t * LANES));
  }
}

/* The sums of a row for n tiles; inlined with n known, so that they stay in registers. */
static inline __attribute__((always_inline)) void add_up(const laci_sparse_product *p,
                                                         const laci_sparse_operands *o,
                                                         const strip *s, int64_t row, const int n,
                                                         float *to) {
  float loaded[TILES * LANES];
  vector sum[TILES * VECTORS];
#pragma GCC unroll 32
  for (int at = 0; at < n * VECTORS; at++) sum[at] = ALL(o->bias[row]);
  for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
    const vector weight = ALL(o->weight[k]);
    const int32_t column = p->column[k];
    const int64_t from = p->column_at[column];
    if (p->neighbour && p->neighbour[column]) {
      load_next_to(s, from, p->neighbour[column], n, loaded);
#pragma GCC unroll 32
      for (int at = 0; at < n * VECTORS; at++) {
        sum[at] = FMA(weight, LOAD(loaded + (ptrdiff_t)(at * WIDTH)), sum[at]);
      }
      continue;
    }
#pragma GCC unroll 32
    for (int at = 0; at < n * VECTORS; at++) {
      const float *in = s->x[at / VECTORS] + from + (int64_t)(at % VECTORS * WIDTH);
      sum[at] = FMA(weight, LOAD(in), sum[at]);
    }
  }
#pragma GCC unroll 32
  for (int at = 0; at < n * VECTORS; at++) STORE(to + (ptrdiff_t)(at * WIDTH), sum[at]);
}

/* n tiles, all rows of the part. */
static inline __attribute__((always_inline)) void multiply_tiles(const laci_sparse_product *p,
                                                                 const laci_sparse_operands *o,
                                                                 const laci_sparse_part *part,
                                                                 int64_t first, const int n) {
  const laci_sparse_tile *tiles = part->tiles + first;
  strip s = {.tiles = tiles};
  float sums[TILES * LANES];
  for (int t = 0; t < n; t++) s.x[t] = o->x + tiles[t].in;
  for (int64_t row = part->row_first; row < part->row_last; row++) {
    add_up(p, o, &s, row, n, sums);
    const laci_sparse_part done = {tiles, 0, n, row, row + 1};
    LACI_VARIANT(laci_sparse_finish)(o, p->row_stride, LACI_SPARSE_F32, &done, sums);
  }
}

void LACI_VARIANT(laci_sparse_multiply)(const laci_sparse_product *p, const laci_sparse_operands *o,
                                        const laci_sparse_part *part) {
  int64_t tile = part->tile_first;
  if (p->values == LACI_SPARSE_S8) {
    LACI_VARIANT(laci_sparse_multiply_int8x4)(p, o, part);
    return;
  }
  if (p->values == LACI_SPARSE_BF16) {
    LACI_VARIANT(laci_sparse_multiply_bf16)(p, o, part);
    return;
  }
  for (; tile + TILES <= part->tile_last; tile += TILES) multiply_tiles(p, o, part, tile, TILES);
  for (; tile < part->tile_last; tile++) multiply_tiles(p, o, part, tile, 1);
}

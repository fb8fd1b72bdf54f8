/* SPDX-License-Identifier: Apache-2.0
 * A part of a product by AMX (amx.h). */
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel/amx.h"
#include "kernel/sparse/amx.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/int8x4_results_in.h"

enum {
  LANES = LACI_SPARSE_LANES,
  ROWS = LACI_AMX_ROWS,
  DEEP = LACI_AMX_INT8X4,
  LINE = 64,           /* bytes of a row of a register */
  BLOCK_ROWS = 2 * 16, /* rows and tiles of a block */
  BLOCK_TILES = 2,
  SUMS = ROWS * LANES, /* number of sums in a register */
};

/* ---- Blocks ---- */

/* The operands of a block, each n_deep registers. Those of weights follow each other. */
typedef struct block {
  const int8_t *weight[2]; /* those of the first and of the second 16 rows */
  const float *x[BLOCK_TILES];
  const int64_t *register_at; /* [n_deep] offset of each register in x, in floats */
  int64_t stride;             /* bytes from one int8x4 of a register to the next in x */
  int64_t n_deep;
} block;

/* Computes the sums of 32 rows and two tiles in registers 0 to 3: register 2 * h + t has those of
 * rows 16 * h and after, and tile t. bias: [32][16]. */
static void multiply_block(const block *b, const int32_t *bias) {
  _tile_loadd(0, bias, LINE);
  _tile_loadd(1, bias, LINE);
  _tile_loadd(2, bias + SUMS, LINE);
  _tile_loadd(3, bias + SUMS, LINE);
  for (int64_t deep = 0; deep < b->n_deep; deep++) {
    const int64_t at = deep * LACI_AMX_BYTES, x_at = b->register_at[deep];
    _tile_loadd(4, b->weight[0] + at, LINE);
    _tile_loadd(6, b->x[0] + x_at, b->stride);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(7, b->x[1] + x_at, b->stride);
    _tile_dpbsud(1, 4, 7);
    _tile_loadd(5, b->weight[1] + at, LINE);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
}

/* Computes the sums of 16 rows and two tiles in registers 0 and 1. */
static void multiply_half_block(const block *b, const int32_t *bias) {
  _tile_loadd(0, bias, LINE);
  _tile_loadd(1, bias, LINE);
  for (int64_t deep = 0; deep < b->n_deep; deep++) {
    const int64_t x_at = b->register_at[deep];
    _tile_loadd(4, b->weight[0] + deep * LACI_AMX_BYTES, LINE);
    _tile_loadd(6, b->x[0] + x_at, b->stride);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(7, b->x[1] + x_at, b->stride);
    _tile_dpbsud(1, 4, 7);
  }
}

/* ---- Results ---- */

#include "kernel/sparse/int8x4_amx_results.def"

/* ---- Parts of a product ---- */

/* Converts the sums of one tile, [row][16], to results. */
static void finish_sums_of_tile(const laci_sparse_operands *o, int64_t row_stride,
                                const rounding *r, const laci_sparse_part *one, int32_t *sums) {
  if (can_store_bytes(o, r)) store_bytes(o, row_stride, r, one, sums);
  else laci_sparse_finish_avx512(o, row_stride, LACI_SPARSE_S8, one, (float *)(void *)sums);
}

/* Copies the int8x4 of a part's tiles into registers, [tile][n_deep]. */
static void copy_int8x4(const laci_amx_weights *w, const laci_sparse_operands *o,
                        const laci_sparse_part *part, const int64_t *int8x4_at, float *to) {
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const float *x = o->x + part->tiles[t].in;
    for (int64_t at = 0; at < w->n_deep * DEEP; at++, to += LANES) {
      const __m512i int8x4 =
          at < w->int8x4_each ? _mm512_loadu_si512(x + int8x4_at[at]) : _mm512_setzero_si512();
      _mm512_store_si512(to, int8x4);
    }
  }
}

/* What does not change within a part. */
typedef struct part_work {
  const laci_amx_weights *w;
  const laci_sparse_operands *o;
  const int64_t *register_at; /* those of the part's group */
  const float *copy;          /* x as registers; NULL: registers are loaded from x itself */
  rounding rounding;
} part_work;

static const float *address_of_tile(const part_work *p, const laci_sparse_part *part,
                                    int64_t tile) {
  const int64_t floats = p->w->n_deep * LACI_AMX_BYTES / (int64_t)sizeof(float);
  if (p->copy) return p->copy + (tile - part->tile_first) * floats;
  return p->o->x + part->tiles[tile].in;
}

/* Sets [32][16] sums to the biases of a part's rows. */
static void set_sums_to_biases(const part_work *p, const laci_sparse_part *part, int32_t *bias) {
  const int64_t n_rows = part->row_last - part->row_first;
  for (int64_t row = 0; row < BLOCK_ROWS; row++) {
    const int32_t of_row = row < n_rows ? p->o->quantized->bias[part->row_first + row] : 0;
    _mm512_store_si512(bias + row * LANES, _mm512_set1_epi32(of_row));
  }
}

/* The sums of a block of at most 32 rows that have been stored, and where they belong. */
typedef struct stored_block {
  int64_t tile, n_tiles; /* index of the first tile; 0, 1 or 2 tiles */
  int32_t sums[BLOCK_TILES][BLOCK_ROWS * LANES] __attribute__((aligned(LINE)));
} stored_block;

/* Stores the registers of a block. whole: it has more than 16 rows. */
static void store_block(bool whole, int64_t tile, int64_t n_tiles, stored_block *to) {
  _tile_stored(0, to->sums[0], LINE);
  _tile_stored(1, to->sums[1], LINE);
  if (whole) {
    _tile_stored(2, to->sums[0] + SUMS, LINE);
    _tile_stored(3, to->sums[1] + SUMS, LINE);
  }
  to->tile = tile;
  to->n_tiles = n_tiles;
}

/* Converts the sums of a stored block to results. rows: a part with the block's rows. */
static void finish_block(const part_work *p, const laci_sparse_part *rows, stored_block *s) {
  for (int64_t at = 0; at < s->n_tiles; at++) {
    const int64_t tile = s->tile + at;
    const laci_sparse_part one = {rows->tiles, tile, tile + 1, rows->row_first, rows->row_last};
    finish_sums_of_tile(p->o, p->w->row_stride, &p->rounding, &one, s->sums[at]);
  }
}

/* Computes at most 32 rows of a part, two tiles at a time. A last single tile is computed twice.
 * The sums of a block become results while the products of the next block are computed. */
static void multiply_rows(const part_work *p, const laci_sparse_part *part, const int8_t *weight) {
  const int64_t stride = p->copy ? LANES : p->w->int8x4_stride;
  const bool whole = part->row_last - part->row_first > ROWS;
  int32_t bias[BLOCK_ROWS * LANES] __attribute__((aligned(LINE)));
  stored_block s;
  block b = {.weight = {weight, weight + p->w->n_deep * LACI_AMX_BYTES},
             .register_at = p->register_at,
             .stride = stride * (int64_t)sizeof(float),
             .n_deep = p->w->n_deep};
  set_sums_to_biases(p, part, bias);
  s.n_tiles = 0;
  for (int64_t tile = part->tile_first; tile < part->tile_last; tile += BLOCK_TILES) {
    const int64_t left = part->tile_last - tile, n = left < BLOCK_TILES ? left : BLOCK_TILES;
    b.x[0] = address_of_tile(p, part, tile);
    b.x[1] = address_of_tile(p, part, tile + n - 1);
    if (whole) multiply_block(&b, bias);
    else multiply_half_block(&b, bias);
    finish_block(p, part, &s);
    store_block(whole, tile, n, &s);
  }
  finish_block(p, part, &s);
}

void laci_amx_multiply(const laci_amx_weights *w, const laci_sparse_operands *o,
                       const laci_sparse_part *part, void *scratch) {
  const int64_t group = part->row_first / w->rows_each;
  const int64_t blocks = (w->rows_each + ROWS - 1) / ROWS;
  const int64_t first = part->row_first % w->rows_each / ROWS;
  const int8_t *weight = w->weight + (group * blocks + first) * w->n_deep * LACI_AMX_BYTES;
  part_work p = {w, o, w->register_at + group * w->n_deep, NULL,
                 prepare_rounding(o->quantized, part)};
  laci_amx_configure_registers((int)w->deep);
  if (w->int8x4_stride == 0) {
    copy_int8x4(w, o, part, w->int8x4_at + group * w->int8x4_each, scratch);
    p.copy = scratch;
  }
  laci_sparse_part rows = *part;
  for (; rows.row_first < part->row_last; rows.row_first += BLOCK_ROWS) {
    const int64_t left = part->row_last - rows.row_first;
    rows.row_last = rows.row_first + (left < BLOCK_ROWS ? left : BLOCK_ROWS);
    multiply_rows(&p, &rows, weight);
    weight += (BLOCK_ROWS / ROWS) * w->n_deep * LACI_AMX_BYTES;
  }
  _tile_release();
}

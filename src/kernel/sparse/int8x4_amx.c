/* SPDX-License-Identifier: Apache-2.0
 * A part of a product by AMX (amx.h), and what follows its sums. */
#include <immintrin.h>
#include <stddef.h>

#include "kernel/amx.h"
#include "kernel/sparse/amx.h"
#include "kernel/sparse/int8x4.h"

enum {
  LANES = LACI_SPARSE_LANES,
  INT8X4 = LACI_INT8X4_CHANNELS,
  ROWS = LACI_AMX_ROWS,
  DEEP = LACI_AMX_INT8X4,
  LINE = 64,           /* bytes of a row of a register */
  BLOCK_ROWS = 2 * 16, /* rows and tiles of a block */
  BLOCK_TILES = 2,
  SUMS = ROWS * LANES, /* number of sums in a register */
};

/* ---- Blocks ---- */

/* The operands of a block, each n_deep registers that follow each other. */
typedef struct block {
  const int8_t *weight[2]; /* those of the first and of the second 16 rows */
  const char *x[BLOCK_TILES];
  int64_t n_deep;
} block;

/* Computes the sums of 32 rows and two tiles. bias: [32][16]. sums: [tile][row][16] of n_rows rows;
 * what exceeds a tile's rows is overwritten by the next tile. */
static void multiply_block(const block *b, const int32_t *bias, int64_t n_rows, int32_t *sums) {
  _tile_loadd(0, bias, LINE);
  _tile_loadd(1, bias, LINE);
  _tile_loadd(2, bias + SUMS, LINE);
  _tile_loadd(3, bias + SUMS, LINE);
  for (int64_t at = 0; at < b->n_deep * LACI_AMX_BYTES; at += LACI_AMX_BYTES) {
    _tile_loadd(4, b->weight[0] + at, LINE);
    _tile_loadd(6, b->x[0] + at, LINE);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(7, b->x[1] + at, LINE);
    _tile_dpbsud(1, 4, 7);
    _tile_loadd(5, b->weight[1] + at, LINE);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(2, sums + SUMS, LINE);
  _tile_stored(1, sums + n_rows * LANES, LINE);
  _tile_stored(3, sums + n_rows * LANES + SUMS, LINE);
}

/* Computes the sums of 16 rows and two tiles. */
static void multiply_half_block(const block *b, const int32_t *bias, int64_t n_rows,
                                int32_t *sums) {
  _tile_loadd(0, bias, LINE);
  _tile_loadd(1, bias, LINE);
  for (int64_t at = 0; at < b->n_deep * LACI_AMX_BYTES; at += LACI_AMX_BYTES) {
    _tile_loadd(4, b->weight[0] + at, LINE);
    _tile_loadd(6, b->x[0] + at, LINE);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(7, b->x[1] + at, LINE);
    _tile_dpbsud(1, 4, 7);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(1, sums + n_rows * LANES, LINE);
}

/* ---- Results ---- */

/* What the results of all rows need to become bytes. */
typedef struct rounding {
  __m512i order;     /* brings the bytes of four rows together, lane by lane */
  __m512i zero;      /* the zero point, as 16-bit words */
  __m512i low, high; /* bounds of the bytes */
  __m512 most;       /* a number above it would exceed 32 bits as an integer */
  __m512i one_byte;  /* a word with the lowest byte set */
  __m512i residual_zero;
  __m512 residual_scale;
} rounding;

static rounding prepare_rounding(const laci_sparse_quantized *q) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (rounding){.order = _mm512_broadcast_i32x4(order),
                    .zero = _mm512_set1_epi16((short)q->zero),
                    .low = _mm512_set1_epi8((char)q->low),
                    .high = _mm512_set1_epi8((char)q->high),
                    .most = _mm512_set1_ps((float)(q->high - q->zero)),
                    .one_byte = _mm512_set1_epi32(UINT8_MAX),
                    .residual_zero = _mm512_set1_epi32(q->residual_zero),
                    .residual_scale = _mm512_set1_ps(q->residual_scale)};
}

/* Returns the rounded results of a row, without the zero point. residual: the four rows' bytes;
 * shift: the number of bits above which this row's byte is. */
static __m512i round_row(const rounding *r, const int32_t *sums, float scale,
                         const __m512i *residual, unsigned shift) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums)), _mm512_set1_ps(scale));
  if (residual) {
    const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(*residual, shift), r->one_byte);
    const __m512 value = _mm512_cvtepi32_ps(_mm512_sub_epi32(byte, r->residual_zero));
    v = _mm512_fmadd_ps(value, r->residual_scale, v);
  }
  return _mm512_cvtps_epi32(_mm512_min_ps(r->most, v)); /* a NaN stays, and becomes the lowest */
}

/* Converts the sums of n rows, one to four, to bytes. */
static __m512i round_four_rows(const rounding *r, const int32_t *sums, const float *scale,
                               int64_t n, const __m512i *residual) {
  enum { BYTE_BITS = 8 };
  __m512i rows[INT8X4];
  for (int row = 0; row < INT8X4; row++) {
    rows[row] = row < n ? round_row(r, sums + (ptrdiff_t)row * LANES, scale[row], residual,
                                    (unsigned)row * BYTE_BITS)
                        : _mm512_setzero_si512();
  }
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(rows[0], rows[1]), r->zero);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(rows[2], rows[3]), r->zero);
  const __m512i bytes = _mm512_packus_epi16(first, second);
  const __m512i clipped = _mm512_min_epu8(_mm512_max_epu8(bytes, r->low), r->high);
  return _mm512_shuffle_epi8(clipped, r->order);
}

/* Stores the results of one tile as bytes: what laci_sparse_finish does where only a residual and
 * bounds follow the sums. */
static void store_tile_bytes(const laci_sparse_operands *o, int64_t row_stride, const rounding *r,
                             const laci_sparse_part *part, const int32_t *sums) {
  const laci_sparse_tile *tile = &part->tiles[part->tile_first];
  const __mmask16 lanes = (__mmask16)(tile->lanes & LACI_SPARSE_ALL_LANES);
  for (int64_t row = part->row_first; row < part->row_last; row += INT8X4) {
    const int64_t at = tile->out + row / INT8X4 * row_stride, left = part->row_last - row;
    const float *scale = o->quantized->scale + row;
    __m512i bytes;
    if (o->residual) {
      const __m512i residual = _mm512_maskz_loadu_epi32(lanes, o->residual + at);
      bytes = round_four_rows(r, sums, scale, left, &residual);
    } else {
      bytes = round_four_rows(r, sums, scale, left, NULL);
    }
    _mm512_mask_storeu_epi32(o->y + at, lanes, bytes);
    sums += (ptrdiff_t)INT8X4 * LANES;
  }
}

/* Converts the sums of a part, [tile][row][16], to results. */
static void finish_sums(const laci_sparse_operands *o, int64_t row_stride, const rounding *r,
                        laci_sparse_part part, int32_t *sums) {
  if (o->quantized->floats || !laci_sparse_is_only_clipped(o)) {
    laci_sparse_finish_avx512(o, row_stride, LACI_SPARSE_S8, &part, (float *)(void *)sums);
    return;
  }
  const int64_t last = part.tile_last, n_rows = part.row_last - part.row_first;
  for (; part.tile_first < last; part.tile_first++, sums += n_rows * LANES) {
    store_tile_bytes(o, row_stride, r, &part, sums);
  }
}

/* ---- A part ---- */

/* Copies the int8x4 of a part's tiles into registers, [tile][n_deep]. */
static void copy_int8x4(const laci_amx_weights *w, const laci_sparse_operands *o,
                        const laci_sparse_part *part, const int64_t *int8x4_at, char *to) {
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const float *x = o->x + part->tiles[t].in;
    for (int64_t at = 0; at < w->n_deep * DEEP; at++, to += LINE) {
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
  const int64_t *int8x4_at; /* those of the part's group */
  const char *copy;         /* x as registers; NULL: x as it is stored */
  rounding rounding;
} part_work;

static const char *find_tile_registers(const part_work *p, const laci_sparse_part *part,
                                       int64_t tile) {
  if (p->copy) return p->copy + (tile - part->tile_first) * p->w->n_deep * LACI_AMX_BYTES;
  return (const char *)(p->o->x + part->tiles[tile].in + p->int8x4_at[0]);
}

/* Computes at most 32 rows of a part, two tiles at a time. A last single tile is computed twice. */
static void multiply_rows(const part_work *p, const laci_sparse_part *part, const int8_t *weight) {
  const int64_t n_rows = part->row_last - part->row_first;
  int32_t bias[BLOCK_ROWS * LANES] __attribute__((aligned(LINE)));
  int32_t sums[BLOCK_TILES * BLOCK_ROWS * LANES] __attribute__((aligned(LINE)));
  block b = {.weight = {weight, weight + p->w->n_deep * LACI_AMX_BYTES}, .n_deep = p->w->n_deep};
  for (int64_t row = 0; row < BLOCK_ROWS; row++) {
    const int32_t of_row = row < n_rows ? p->o->quantized->bias[part->row_first + row] : 0;
    _mm512_store_si512(bias + row * LANES, _mm512_set1_epi32(of_row));
  }
  for (int64_t tile = part->tile_first; tile < part->tile_last; tile += BLOCK_TILES) {
    const int64_t left = part->tile_last - tile, n = left < BLOCK_TILES ? left : BLOCK_TILES;
    b.x[0] = find_tile_registers(p, part, tile);
    b.x[1] = find_tile_registers(p, part, tile + n - 1);
    if (n_rows > ROWS) multiply_block(&b, bias, n_rows, sums);
    else multiply_half_block(&b, bias, n_rows, sums);
    const laci_sparse_part done = {part->tiles, tile, tile + n, part->row_first, part->row_last};
    finish_sums(p->o, p->w->row_stride, &p->rounding, done, sums);
  }
}

void laci_amx_multiply(const laci_amx_weights *w, const laci_sparse_operands *o,
                       const laci_sparse_part *part, void *scratch) {
  const int64_t group = part->row_first / w->rows_each;
  const int64_t blocks = (w->rows_each + ROWS - 1) / ROWS;
  const int64_t first = part->row_first % w->rows_each / ROWS;
  const int8_t *weight = w->weight + (group * blocks + first) * w->n_deep * LACI_AMX_BYTES;
  part_work p = {w, o, w->int8x4_at + group * w->int8x4_each, NULL, prepare_rounding(o->quantized)};
  laci_amx_configure_registers();
  if (!w->as_stored) {
    copy_int8x4(w, o, part, p.int8x4_at, scratch);
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

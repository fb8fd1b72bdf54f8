/* SPDX-License-Identifier: Apache-2.0
 * A part of a product by AMX (amx.h), and what follows its sums. */
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
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

/* What the results of all rows need to become bytes. */
typedef struct rounding {
  __m512i order;     /* brings the bytes of four rows together, lane by lane */
  __m512i zero;      /* the zero point, as 16-bit words */
  __m512i low, high; /* bounds of the bytes */
  __m512 most;       /* a number above it would exceed 32 bits as an integer */
  __m512i one_byte;  /* a word with the lowest byte set */
  __m512i residual_zero;
  __m512 residual_scale;
  __m512i middle_low, middle_high; /* bounds of quantized sums, without their zero point */
  __m512 middle_scale;
  bool fits;  /* no result exceeds 32 bits */
  bool clips; /* results are clipped to other bounds than those of a byte */
} rounding;

/* How a residual is added to the sums. */
typedef enum addition {
  NO_RESIDUAL,
  ADD_RESIDUAL,         /* to the sum */
  ADD_RESIDUAL_TO_BYTE, /* to the quantized sum (laci_sparse_middle) */
  ADD_BYTE_TO_RESIDUAL, /* laci_sparse_middle.last */
} addition;

/* What is known of the results where the code that rounds them is compiled. */
typedef struct known {
  bool fits; /* that of rounding */
  addition adding;
} known;

/* Are the results of all rows, before they are rounded, below 2^31? */
static bool fit_32_bits(const laci_sparse_quantized *q, const laci_sparse_part *part) {
  const float most = 1 << 20; /* 255 times it are below 2^30 */
  bool fits = q->residual_scale < most && (!q->middle || q->middle->scale < most);
  for (int64_t row = part->row_first; row < part->row_last; row++)
    fits &= fabsf(q->scale[row]) < 0.5F;
  return fits;
}

static rounding prepare_rounding(const laci_sparse_quantized *q, const laci_sparse_part *part) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const laci_sparse_middle none = {.scale = 1}, *middle = q->middle ? q->middle : &none;
  return (rounding){.order = _mm512_broadcast_i32x4(order),
                    .zero = _mm512_set1_epi16((short)q->zero),
                    .low = _mm512_set1_epi8((char)q->low),
                    .high = _mm512_set1_epi8((char)q->high),
                    .most = _mm512_set1_ps((float)(q->high - q->zero)),
                    .one_byte = _mm512_set1_epi32(UINT8_MAX),
                    .residual_zero = _mm512_set1_epi32(q->residual_zero),
                    .residual_scale = _mm512_set1_ps(q->residual_scale),
                    .middle_low = _mm512_set1_epi32(middle->low - middle->zero),
                    .middle_high = _mm512_set1_epi32(middle->high - middle->zero),
                    .middle_scale = _mm512_set1_ps(middle->scale),
                    .fits = fit_32_bits(q, part),
                    .clips = q->low != 0 || q->high != UINT8_MAX};
}

/* Adds a row's bytes of a residual to its results v. residual: the four rows' bytes; shift: the
 * number of bits above which this row's byte is. */
static inline __attribute__((always_inline)) __m512 add_residual(const rounding *r, addition adding,
                                                                 __m512 v, __m512i residual,
                                                                 unsigned shift) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(residual, shift), r->one_byte);
  const __m512 value = _mm512_cvtepi32_ps(_mm512_sub_epi32(byte, r->residual_zero));
  if (adding == ADD_RESIDUAL) return _mm512_fmadd_ps(value, r->residual_scale, v);
  const __m512i whole = _mm512_max_epi32(r->middle_low, _mm512_cvtps_epi32(v));
  const __m512 sum = _mm512_cvtepi32_ps(_mm512_min_epi32(r->middle_high, whole));
  if (adding == ADD_BYTE_TO_RESIDUAL)
    return _mm512_fmadd_ps(sum, r->middle_scale, _mm512_mul_ps(value, r->residual_scale));
  return _mm512_fmadd_ps(value, r->residual_scale, _mm512_mul_ps(sum, r->middle_scale));
}

/* Returns the rounded results of a row, without the zero point. */
static inline __attribute__((always_inline)) __m512i round_row(const rounding *r, known k,
                                                               const int32_t *sums, float scale,
                                                               __m512i residual, unsigned shift) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums)), _mm512_set1_ps(scale));
  if (k.adding != NO_RESIDUAL) v = add_residual(r, k.adding, v, residual, shift);
  if (!k.fits) v = _mm512_min_ps(r->most, v); /* a NaN stays, and becomes the lowest */
  return _mm512_cvtps_epi32(v);
}

/* Converts the sums of n rows, one to four, to bytes. */
static inline __attribute__((always_inline)) __m512i round_four_rows(const rounding *r, known k,
                                                                     const int32_t *sums,
                                                                     const float *scale, int64_t n,
                                                                     __m512i residual) {
  enum { BYTE_BITS = 8 };
  __m512i rows[INT8X4];
  for (int row = 0; row < INT8X4; row++) {
    rows[row] = row < n ? round_row(r, k, sums + (ptrdiff_t)row * LANES, scale[row], residual,
                                    (unsigned)row * BYTE_BITS)
                        : _mm512_setzero_si512();
  }
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(rows[0], rows[1]), r->zero);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(rows[2], rows[3]), r->zero);
  __m512i bytes = _mm512_packus_epi16(first, second);
  if (r->clips) bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, r->low), r->high);
  return _mm512_shuffle_epi8(bytes, r->order);
}

/* Stores the results of one tile as bytes: what laci_sparse_finish does where only a residual and
 * bounds follow the sums. */
static inline __attribute__((always_inline)) void store_tile_bytes(const laci_sparse_operands *o,
                                                                   int64_t row_stride,
                                                                   const rounding *r, known k,
                                                                   const laci_sparse_part *part,
                                                                   const int32_t *sums) {
  const rounding c = *r; /* in registers, as y might be where r is */
  const laci_sparse_tile *tile = &part->tiles[part->tile_first];
  const __mmask16 lanes = (__mmask16)(tile->lanes & LACI_SPARSE_ALL_LANES);
  const float *scale = o->quantized->scale;
  __m512i residual = _mm512_setzero_si512();
  int64_t row = part->row_first, at = tile->out + row / INT8X4 * row_stride;
  for (; row + INT8X4 <= part->row_last; row += INT8X4, at += row_stride) {
    if (k.adding != NO_RESIDUAL) residual = _mm512_maskz_loadu_epi32(lanes, o->residual + at);
    const __m512i bytes = round_four_rows(&c, k, sums, scale + row, INT8X4, residual);
    _mm512_mask_storeu_epi32(o->y + at, lanes, bytes);
    sums += (ptrdiff_t)INT8X4 * LANES;
  }
  if (row == part->row_last) return;
  if (k.adding != NO_RESIDUAL) residual = _mm512_maskz_loadu_epi32(lanes, o->residual + at);
  const __m512i bytes = round_four_rows(&c, k, sums, scale + row, part->row_last - row, residual);
  _mm512_mask_storeu_epi32(o->y + at, lanes, bytes);
}

static addition find_addition(const laci_sparse_operands *o) {
  const laci_sparse_middle *middle = o->quantized->middle;
  if (!o->residual) return NO_RESIDUAL;
  return !middle ? ADD_RESIDUAL : middle->last ? ADD_BYTE_TO_RESIDUAL : ADD_RESIDUAL_TO_BYTE;
}

/* Are these results that store_bytes can compute? */
static bool can_store_bytes(const laci_sparse_operands *o, const rounding *r) {
  if (o->quantized->middle) return o->n_functions == 0 && !o->residual_last && r->fits;
  return !o->quantized->floats && laci_sparse_is_only_clipped(o);
}

static void store_bytes(const laci_sparse_operands *o, int64_t row_stride, const rounding *r,
                        const laci_sparse_part *part, const int32_t *sums) {
#define STORE(fits, adding) store_tile_bytes(o, row_stride, r, (known){fits, adding}, part, sums)
  if (!r->fits && !o->residual) STORE(false, NO_RESIDUAL);
  else if (!r->fits) STORE(false, ADD_RESIDUAL);
  else switch (find_addition(o)) {
      case NO_RESIDUAL: STORE(true, NO_RESIDUAL); break;
      case ADD_RESIDUAL: STORE(true, ADD_RESIDUAL); break;
      case ADD_RESIDUAL_TO_BYTE: STORE(true, ADD_RESIDUAL_TO_BYTE); break;
      case ADD_BYTE_TO_RESIDUAL: STORE(true, ADD_BYTE_TO_RESIDUAL); break;
    }
#undef STORE
}

/* Converts the sums of one tile, [row][16], to results. */
static void finish_sums(const laci_sparse_operands *o, int64_t row_stride, const rounding *r,
                        const laci_sparse_part *one, int32_t *sums) {
  if (can_store_bytes(o, r)) store_bytes(o, row_stride, r, one, sums);
  else laci_sparse_finish_avx512(o, row_stride, LACI_SPARSE_S8, one, (float *)(void *)sums);
}

/* ---- A part ---- */

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

static const float *find_tile(const part_work *p, const laci_sparse_part *part, int64_t tile) {
  const int64_t floats = p->w->n_deep * LACI_AMX_BYTES / (int64_t)sizeof(float);
  if (p->copy) return p->copy + (tile - part->tile_first) * floats;
  return p->o->x + part->tiles[tile].in;
}

/* Sets [32][16] sums to the biases of a part's rows. */
static void spread_biases(const part_work *p, const laci_sparse_part *part, int32_t *bias) {
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
    finish_sums(p->o, p->w->row_stride, &p->rounding, &one, s->sums[at]);
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
  spread_biases(p, part, bias);
  s.n_tiles = 0;
  for (int64_t tile = part->tile_first; tile < part->tile_last; tile += BLOCK_TILES) {
    const int64_t left = part->tile_last - tile, n = left < BLOCK_TILES ? left : BLOCK_TILES;
    b.x[0] = find_tile(p, part, tile);
    b.x[1] = find_tile(p, part, tile + n - 1);
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

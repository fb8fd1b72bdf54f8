/* SPDX-License-Identifier: Apache-2.0
 * How the sums of int8x4_amx.c become bytes: scaled, with a residual, rounded, clipped. The bytes
 * of four rows of a tile are brought together. */
#ifndef LACI_KERNEL_SPARSE_INT8X4_AMX_IN_H
#define LACI_KERNEL_SPARSE_INT8X4_AMX_IN_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/int8x4.h"

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
static inline bool fit_32_bits(const laci_sparse_quantized *q, const laci_sparse_part *part) {
  const float most = 1 << 20; /* 255 times it are below 2^30 */
  bool fits = q->residual_scale < most && (!q->middle || q->middle->scale < most);
  for (int64_t row = part->row_first; row < part->row_last; row++)
    fits &= fabsf(q->scale[row]) < 0.5F;
  return fits;
}

static inline rounding prepare_rounding(const laci_sparse_quantized *q,
                                        const laci_sparse_part *part) {
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
  __m512i rows[LACI_INT8X4_CHANNELS];
  for (int row = 0; row < LACI_INT8X4_CHANNELS; row++) {
    rows[row] = row < n ? round_row(r, k, sums + (ptrdiff_t)row * LACI_SPARSE_LANES, scale[row],
                                    residual, (unsigned)row * BYTE_BITS)
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
  int64_t row = part->row_first, at = tile->out + row / LACI_INT8X4_CHANNELS * row_stride;
  for (; row + LACI_INT8X4_CHANNELS <= part->row_last;
       row += LACI_INT8X4_CHANNELS, at += row_stride) {
    if (k.adding != NO_RESIDUAL) residual = _mm512_maskz_loadu_epi32(lanes, o->residual + at);
    const __m512i bytes = round_four_rows(&c, k, sums, scale + row, LACI_INT8X4_CHANNELS, residual);
    _mm512_mask_storeu_epi32(o->y + at, lanes, bytes);
    sums += (ptrdiff_t)LACI_INT8X4_CHANNELS * LACI_SPARSE_LANES;
  }
  if (row == part->row_last) return;
  if (k.adding != NO_RESIDUAL) residual = _mm512_maskz_loadu_epi32(lanes, o->residual + at);
  const __m512i bytes = round_four_rows(&c, k, sums, scale + row, part->row_last - row, residual);
  _mm512_mask_storeu_epi32(o->y + at, lanes, bytes);
}

static inline addition find_addition(const laci_sparse_operands *o) {
  const laci_sparse_middle *middle = o->quantized->middle;
  if (!o->residual) return NO_RESIDUAL;
  return !middle ? ADD_RESIDUAL : middle->last ? ADD_BYTE_TO_RESIDUAL : ADD_RESIDUAL_TO_BYTE;
}

/* Are these results that store_bytes can compute? */
static inline bool can_store_bytes(const laci_sparse_operands *o, const rounding *r) {
  if (o->quantized->middle) return o->n_functions == 0 && !o->residual_last && r->fits;
  return !o->quantized->floats && laci_sparse_is_only_clipped(o);
}

static inline void store_bytes(const laci_sparse_operands *o, int64_t row_stride, const rounding *r,
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

#endif

/* SPDX-License-Identifier: Apache-2.0
 * byte_product.h for every instruction set: the build compiles this once for each (variants.h). A
 * tile of rows and blocks is computed at a time, its sums in registers. */
#include "kernel/linear/byte_product_in.h"

#define INLINE static inline __attribute__((always_inline))

enum { COLUMNS = LACI_BYTE_COLUMNS, GROUP = LACI_BYTE_GROUP, VECTOR = COLUMNS * GROUP };

/* The operands of a tile: rows of x, and blocks of 16 columns of the matrix. */
typedef struct operands {
  const uint8_t *x;
  const int8_t *w;
  int64_t stride, block_bytes, n_groups;
} operands;

#if defined(__AVX512VNNI__)
#include <immintrin.h>
enum { ROWS = 6, MANY = 4 };

/* sums[row][block][16] = sum of x * w. `rows` and `blocks` are constants where this is inlined. */
INLINE void sum_products_of_tile(const operands *o, const int rows, const int blocks,
                                 int32_t *sums) {
  const uint8_t *x = o->x;
  const int8_t *w = o->w;
  __m512i sum[ROWS][MANY];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < blocks; v++) sum[r][v] = _mm512_setzero_si512();
  }
  for (int64_t k = 0; k < o->n_groups; k++, x += GROUP, w += VECTOR) {
    __m512i b[MANY];
#pragma GCC unroll 4
    for (int v = 0; v < blocks; v++) b[v] = _mm512_load_si512(w + v * o->block_bytes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, x + r * o->stride, sizeof four);
      const __m512i every = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < blocks; v++) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], every, b[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < blocks; v++)
      _mm512_storeu_si512(sums + (r * blocks + v) * COLUMNS, sum[r][v]);
  }
}

#elif defined(__AVX2__)
#include <immintrin.h>
enum { ROWS = 3, MANY = 1, QUARTERS = 4 };

/* Returns the sums of 8 columns, each of which is two numbers next to each other, of four columns
 * in each operand. */
INLINE __m256i add_neighbouring_sums(__m256i first, __m256i second) {
  enum { LANES_0_2_1_3 = 0xD8 };
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(first, second), LANES_0_2_1_3);
}

/* Computes sums as the first variant of this function does, for one block of columns. Bytes become
 * 16 bits, whose products are added in pairs: bytes themselves would be added in 16 bits, and
 * saturate. */
INLINE void sum_products_of_tile(const operands *o, const int rows, const int blocks,
                                 int32_t *sums) {
  const uint8_t *x = o->x;
  const int8_t *w = o->w;
  __m256i sum[ROWS][QUARTERS];
  (void)blocks;
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < QUARTERS; v++) sum[r][v] = _mm256_setzero_si256();
  }
  for (int64_t k = 0; k < o->n_groups; k++, x += GROUP, w += VECTOR) {
    __m256i every[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, x + r * o->stride, sizeof four);
      every[r] = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
    }
#pragma GCC unroll 4
    for (int v = 0; v < QUARTERS; v++) {
      const __m256i b = _mm256_cvtepi8_epi16(
          _mm_load_si128((const __m128i *)(const void *)(w + v * (int)sizeof(__m128i))));
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++)
        sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(every[r], b));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    __m256i *to = (__m256i *)(void *)(sums + r * COLUMNS);
    _mm256_storeu_si256(to, add_neighbouring_sums(sum[r][0], sum[r][1]));
    _mm256_storeu_si256(to + 1, add_neighbouring_sums(sum[r][2], sum[r][3]));
  }
}

#elif defined(LACI_ISA_NEON)
#include <arm_neon.h>
enum { ROWS = 1, MANY = 1, HALF = 8 };

/* Computes sums as the first variant of this function does, for one row and block, by halves: four
 * sums for each column, one for each byte of a group. */
INLINE void sum_products_of_tile(const operands *o, const int rows, const int blocks,
                                 int32_t *sums) {
  (void)rows;
  (void)blocks;
  for (int first = 0; first < COLUMNS; first += HALF) {
    const int8_t *w = o->w + first * GROUP;
    const uint8_t *x = o->x;
    int32x4_t sum[HALF];
    for (int c = 0; c < HALF; c++) sum[c] = vdupq_n_s32(0);
    for (int64_t k = 0; k < o->n_groups; k++, x += GROUP, w += VECTOR) {
      uint32_t four;
      memcpy(&four, x, sizeof four);
      const int16x4_t every =
          vget_low_s16(vreinterpretq_s16_u16(vmovl_u8(vcreate_u8((uint64_t)four))));
#pragma GCC unroll 4
      for (int c = 0; c < HALF; c += 2) {
        const int16x8_t b = vmovl_s8(vld1_s8(w + c * GROUP));
        sum[c] = vmlal_s16(sum[c], every, vget_low_s16(b));
        sum[c + 1] = vmlal_s16(sum[c + 1], every, vget_high_s16(b));
      }
    }
    for (int c = 0; c < HALF; c++) sums[first + c] = vaddvq_s32(sum[c]);
  }
}

#else
enum { ROWS = 1, MANY = 1 };

/* The reference in plain C, for any number of rows and blocks. */
INLINE void sum_products_of_tile(const operands *o, const int rows, const int blocks,
                                 int32_t *sums) {
  (void)rows;
  (void)blocks;
  for (int c = 0; c < COLUMNS; c++) sums[c] = 0;
  for (int64_t k = 0; k < o->n_groups; k++) {
    const uint8_t *x = o->x + k * GROUP;
    const int8_t *w = o->w + k * VECTOR;
    for (int c = 0; c < COLUMNS; c++, w += GROUP)
      sums[c] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
  }
}
#endif

/* Computes a tile of y: some rows of some blocks of 16 columns. */
INLINE void multiply_tile(const laci_byte_product *p, int64_t row, int64_t block, const int rows,
                          const int blocks) {
  const int64_t stride = p->rows.stride, bytes = laci_byte_block_bytes(p->matrix.depth);
  const operands o = {.x = p->rows.x + row * stride,
                      .w = p->matrix.w + block * bytes,
                      .stride = stride,
                      .block_bytes = bytes,
                      .n_groups = (p->matrix.depth + GROUP - 1) / GROUP};
  int32_t sums[ROWS * MANY * COLUMNS];
  sum_products_of_tile(&o, rows, blocks, sums);
  for (int v = 0; v < blocks; v++) {
    byte_block b;
    prepare_byte_block(p, block + v, &b);
    for (int r = 0; r < rows; r++)
      finish_byte_sums(p, row + r, block + v, &b, sums + (r * blocks + v) * COLUMNS);
  }
}

/* Computes `rows` rows of `blocks` blocks, fewer than MANY. */
INLINE void multiply_few_column_blocks(const laci_byte_product *p, int64_t row, int64_t block,
                                       const int rows, int64_t blocks) {
  for (int64_t at = 0; at < blocks; at++) multiply_tile(p, row, block + at, rows, 1);
}

INLINE void multiply_row_by_column_blocks(const laci_byte_product *p, int64_t row, int64_t block,
                                          const int rows, int64_t blocks) {
  if (blocks == MANY) multiply_tile(p, row, block, rows, MANY);
  else multiply_few_column_blocks(p, row, block, rows, blocks);
}

/* Computes rows [row, row_end) for some blocks of columns, which stay in the cache while all rows
 * are multiplied by them. */
static void multiply_column_blocks(const laci_byte_product *p, int64_t row, int64_t row_end,
                                   int64_t block, int64_t blocks) {
  for (; row + ROWS <= row_end; row += ROWS)
    multiply_row_by_column_blocks(p, row, block, ROWS, blocks);
  switch (row_end - row) {
    case 5: multiply_row_by_column_blocks(p, row, block, ROWS > 5 ? 5 : ROWS, blocks); break;
    case 4: multiply_row_by_column_blocks(p, row, block, ROWS > 4 ? 4 : ROWS, blocks); break;
    case 3: multiply_row_by_column_blocks(p, row, block, ROWS > 3 ? 3 : ROWS, blocks); break;
    case 2: multiply_row_by_column_blocks(p, row, block, ROWS > 2 ? 2 : ROWS, blocks); break;
    case 1: multiply_row_by_column_blocks(p, row, block, 1, blocks); break;
    default: break;
  }
}

void LACI_VARIANT(laci_multiply_bytes)(const laci_byte_product *p, const laci_byte_part *part) {
  for (int64_t block = part->block; block < part->block_end; block += MANY) {
    const int64_t left = part->block_end - block;
    multiply_column_blocks(p, part->row, part->row_end, block, left < MANY ? left : MANY);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Rows of unsigned bytes times a constant matrix of signed bytes, as floats:
 *
 *     y[row][column] = s * (x_scale * scale[column]) + bias[column]
 *     s              = sum over k of (x[row][k] - zero) * (w[k][column] + offset[column])
 *
 * The sum s is an exact integer of 32 bits, which becomes a float. Each operation on floats is
 * rounded as IEEE 754 says. So every variant gives the same bits, and so does every division among
 * threads. byte_product_isa.c is the common source of the variants, whose plain C is the reference;
 * byte_product_amx.c uses matrix registers (AMX).
 *
 * The matrix is stored in blocks of 16 columns, [block][depth / 4][16][4]: one vector has four
 * bytes of each column of a block, and four bytes of a row are multiplied by it at once. Depth is
 * filled up with zeros to a multiple of 64, and so is the last block. */
#ifndef LACI_KERNEL_LINEAR_BYTE_PRODUCT_H
#define LACI_KERNEL_LINEAR_BYTE_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"
#include "lacuna/status.h"

enum {
  LACI_BYTE_COLUMNS = 16,         /* columns of a block */
  LACI_BYTE_GROUP = 4,            /* bytes of a column that follow each other */
  LACI_BYTE_LINE = 64,            /* rows of x begin at multiples of this, in bytes */
  LACI_BYTE_TILE = 16,            /* rows of a matrix register */
  LACI_BYTE_MOST_DEPTH = 1 << 15, /* largest depth for which every s has 32 bits */
};

/** The constant matrix. Lists have one element for each column, columns of the last block
 * included. */
typedef struct laci_byte_matrix {
  int64_t depth, columns;
  const int8_t *w;        /* laci_byte_matrix_bytes(), aligned to 64 */
  const int32_t *sums;    /* sum over k of w[k][column] */
  const int32_t *offsets; /* added to each byte of a column; NULL: all are 0 */
  const float *scale, *bias;
  const struct laci_byte_pairs_weights *pairs; /* w arranged for AVX2; NULL: w is read */
} laci_byte_matrix;

/** The rows. */
typedef struct laci_byte_rows {
  const uint8_t *x;    /* aligned to 64; bytes of a row from depth to the stride may be any */
  int64_t stride;      /* bytes from a row to the next, laci_byte_row_stride() */
  const int32_t *sums; /* sum of the bytes of each row; not read if the matrix has no offsets */
  int32_t zero;        /* 0 to 255 */
  float scale;
} laci_byte_rows;

typedef struct laci_byte_product {
  laci_byte_matrix matrix;
  laci_byte_rows rows;
  float *y;         /* rows of `columns` floats */
  int64_t y_stride; /* floats from a row to the next */
} laci_byte_product;

/** Returns the bytes from one row of x to the next. */
static inline int64_t laci_byte_row_stride(int64_t depth) {
  return (depth + LACI_BYTE_LINE - 1) / LACI_BYTE_LINE * LACI_BYTE_LINE;
}
/** Returns how many blocks hold `columns` columns. */
static inline int64_t laci_byte_blocks(int64_t columns) {
  return (columns + LACI_BYTE_COLUMNS - 1) / LACI_BYTE_COLUMNS;
}
/** Returns the bytes of a block of a matrix. */
static inline int64_t laci_byte_block_bytes(int64_t depth) {
  return laci_byte_row_stride(depth) * LACI_BYTE_COLUMNS;
}
/** Returns the bytes of a matrix. */
static inline size_t laci_byte_matrix_bytes(int64_t depth, int64_t columns) {
  return (size_t)(laci_byte_blocks(columns) * laci_byte_block_bytes(depth));
}
/** Returns the index of the byte w[k][column] in its block. */
static inline int64_t laci_byte_index(int64_t k, int64_t column) {
  return (k / LACI_BYTE_GROUP * LACI_BYTE_COLUMNS + column % LACI_BYTE_COLUMNS) * LACI_BYTE_GROUP +
         k % LACI_BYTE_GROUP;
}

/** The rows and blocks of columns that a call computes. */
typedef struct laci_byte_part {
  int64_t row, row_end, block, block_end;
} laci_byte_part;

/** Computes a part of y. Callable from any thread. */
typedef void laci_multiply_bytes(const laci_byte_product *p, const laci_byte_part *part);

#define LACI_BYTE_PRODUCT_DECLARE(name, level) laci_multiply_bytes laci_multiply_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_BYTE_PRODUCT_DECLARE)
#undef LACI_BYTE_PRODUCT_DECLARE
/** By matrix registers, for parts of at least LACI_BYTE_TILE rows; only where
 * laci_cpu_has_int8_tiles(). */
laci_multiply_bytes laci_multiply_bytes_amx;

/** By steps of AVX2 that are arranged for the matrix (sparse/byte_pairs.h), which skip zeros where
 * columns keep two of four; only where laci_byte_pairs_can_run(), and for a matrix with `pairs`. */
laci_multiply_bytes laci_multiply_bytes_arranged;
/** Arranges the bytes of a matrix, which needs only depth, columns and w. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_byte_matrix_arrange(const laci_byte_matrix *matrix,
                                                   struct laci_byte_pairs_weights *pairs,
                                                   lac_error *err);

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_multiply_bytes *laci_multiply_bytes_variant(void);
/** Returns the fastest function for parts of n_rows rows. *name: its name in the text of a plan. */
laci_multiply_bytes *laci_multiply_bytes_fastest(int64_t n_rows, const char **name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Products of int8 (int8x4.h) by AVX2, which cannot add four products of bytes to a sum at once.
 *
 * Its VPMADDUBSW adds two products of neighbouring bytes, as integers of 16 bits, and saturates.
 * The lanes of a vector are eight rows, and each step multiplies them by an int8x4 of one pixel, or
 * by more. Weights are arranged so that no sum of 16 bits can saturate: all positive weights of a
 * lane are at most 128 together, and so are the negative ones without their sign. These are the
 * kinds of steps:
 *
 *   selected  the columns that each row keeps of eight, at most four: a shuffle of bytes chooses
 *             them. So a row that keeps two of four costs half. It needs a copy of x in which the
 *             eight columns are side by side
 *   widened   the columns that each row keeps of four, at most two, as words of 16 bits, which
 *             VPMADDWD multiplies. Weights may be of any size
 *   double    two int8x4 whose weights are small enough for a common sum of 16 bits
 *   single    one int8x4
 *   whole     one int8x4 as words of 16 bits, from a copy of x that has such words
 *
 * Where the weights of a lane are too large even for a single step, what is too much is moved to
 * one more step. A product whose weights are mostly too large has whole steps alone. Sums are
 * exact, so results have the bits of product_int8x4_scalar.c. */
#ifndef LACI_KERNEL_SPARSE_BYTE_PAIRS_H
#define LACI_KERNEL_SPARSE_BYTE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"

enum {
  LACI_BYTE_PAIRS_ROWS = 8,   /* number of rows of a block */
  LACI_BYTE_PAIRS_BYTES = 32, /* bytes of a vector */
  LACI_BYTE_PAIRS_COPY = 8,   /* bytes of the copy for each float (int8x4) of x */
};

/** Eight rows of a group, or fewer at its end. The steps of each kind follow each other, in the
 * order of the fields. A step has one offset, and a double step two. A selected or widened step has
 * a vector that is an order, and one of weights; a double or whole step has two of weights, a
 * single step one. */
typedef struct laci_byte_pairs_block {
  int64_t offset_first, vector_first; /* indices of its first offset and of its first vector */
  int64_t n_selected, n_widened, n_doubles, n_singles, n_whole;
} laci_byte_pairs_block;

/** What the copy of x has for each float (int8x4) of it, eight bytes. */
typedef enum laci_byte_pairs_copy {
  LACI_BYTE_PAIRS_NO_COPY,
  LACI_BYTE_PAIRS_NEIGHBOURS, /* that int8x4 and the one pair_stride after it */
  LACI_BYTE_PAIRS_WORDS,      /* bytes 0, 2, 1 and 3 of that int8x4, as words of 16 bits */
} laci_byte_pairs_copy;

/** The weights of a product. A group is rows that read the same columns. */
typedef struct laci_byte_pairs_weights {
  int64_t row_stride;                       /* that of the product */
  int64_t n_groups, rows_each, blocks_each; /* number of groups, of a group's rows and blocks */
  int64_t int8x4_each;                      /* number of int8x4 that each row of a group reads */
  laci_byte_pairs_copy copy;
  int64_t pair_stride; /* with NEIGHBOURS: distance in x of two int8x4 that are side by side in the
                          copy, in floats */
  const laci_byte_pairs_block *blocks; /* [n_groups * blocks_each] */
  const int64_t *offset;               /* offset of each step's int8x4 in x, in floats */
  const int8_t *vectors;               /* vectors of weights and orders, aligned to 32 bytes */
  void *memory;
  size_t bytes; /* bytes of all arrays together */
} laci_byte_pairs_weights;

/** Arranges the weights of an int8 product, [n_kept]. with_words: whole steps are allowed. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_byte_pairs_init(const laci_sparse_product *p, const float *weight,
                                               bool with_words, laci_byte_pairs_weights *w,
                                               lac_error *err);
void laci_byte_pairs_clear(laci_byte_pairs_weights *w);

/** Returns the bytes of the copy of x, which has n floats; 0: x is not copied. */
size_t laci_byte_pairs_copy_bytes(const laci_byte_pairs_weights *w, int64_t n);
/** Copies the floats [begin, end) of x, of n in all. A neighbour that x does not have is zero.
 * Parts of the copy may be made at the same time. */
void laci_byte_pairs_copy_x(const laci_byte_pairs_weights *w, const float *x, int64_t n,
                            int64_t begin, int64_t end, void *copy);

/** Computes a part of the product. It begins at a multiple of eight rows of a group, and ends at
 * one or at the group's last row. copy: that of all of x, if w has one. Only where
 * laci_byte_pairs_can_run(). */
void laci_byte_pairs_multiply(const laci_byte_pairs_weights *w, const laci_sparse_operands *o,
                              const laci_sparse_part *part, const void *copy);
bool laci_byte_pairs_can_run(void);

/** Rows of bytes of x: row r has its columns at x + r * stride, one after the other. */
typedef struct laci_byte_pairs_lines {
  const uint8_t *x;
  int64_t stride; /* in bytes */
  int n;          /* number of rows, one to eight */
} laci_byte_pairs_lines;

/** Computes the sums, [n][8], of a block for some rows of x, without a bias. The offset of column k
 * must be k / 4, and whole steps not allowed: no copy is read. Sums of eight rows are written,
 * whatever n. */
void laci_byte_pairs_sum_lines(const laci_byte_pairs_weights *w, int64_t block,
                               const laci_byte_pairs_lines *lines, int32_t *sums);
/** Moves the arrays to `to`, of w->bytes, which is aligned to 32 bytes and outlives *w. */
void laci_byte_pairs_move(laci_byte_pairs_weights *w, void *to);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Multiplies a sparse matrix by one to four vectors. Most of the time is spent on reading the
 * matrix.
 *
 *     y[v][row] = bias[row] + sum over k of weight[row][k] * x[v][k]
 *
 * A row is stored in chunks of 512 columns: a bit for every column (64 bytes, fewer in the last
 * chunk), then the kept weights. Any pattern is possible; 2:4 is marked (`pairs`), since the kernel
 * then does not have to count bits. Rows are read as eight long streams: row i is computed together
 * with rows i + S, i + 2 S, ..., where S is an eighth of the rows. So the processor's prefetcher
 * sees eight addresses that ascend steadily.
 *
 *   values  what is kept                    x    sums
 *   F32     f32                             f32  f32
 *   BF16    bf16                            f32  f32 (a bf16 x is widened before: it is short)
 *   S8      int8, a scale for each row      u8   int32, exact; then f32
 *
 * S8 is what ONNX quantizes to. Weights are symmetric, with a scale for each row (QuantizeLinear).
 * x has one scale and one zero point (DynamicQuantizeLinear's u8; an s8 x is a u8 one whose zero
 * point is 128 higher). Its rows have at most 65536 columns.
 *
 * Sums of floats have 16 lanes, which begin at +0. Lane k % 16 adds weight * x of its columns in
 * ascending order, one fused multiply-add each. Weights that are not kept are +0, and so is x
 * beyond the last column, up to a multiple of 64. Then lanes 8..15 are added to 0..7, 4..7 to 0..3,
 * 2..3 to 0..1, 1 to 0, and that to the bias. So every variant gives the same bits. vector_scalar.c
 * is the reference, vector_isa.c the common source of the other variants; vector.c packs
 * matrices. */
#ifndef LACI_KERNEL_SPARSE_VECTOR_H
#define LACI_KERNEL_SPARSE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/sparse/product.h"
#include "kernel/variants.h"

enum {
  LACI_SPARSE_ROWS_CHUNK = 512, /* number of columns in a chunk */
  LACI_SPARSE_MASK = 64, /* number of columns whose bits form a word. x counts as zero from its last
                            column up to a multiple of this */
  LACI_SPARSE_STREAMS = 8,
  LACI_SPARSE_VECTORS = 4,     /* maximum number of vectors that are multiplied at once */
  LACI_SPARSE_ROWS_SUMS = 16,  /* number of lanes in a sum */
  LACI_SPARSE_READ_AHEAD = 64, /* up to this many bytes after the last value may be read */
};

/** A packed matrix. The caller owns its memory; vector.c's functions return the sizes. */
typedef struct laci_sparse_rows {
  laci_sparse_values values;
  int64_t n_rows, n_columns;
  bool pairs; /* before packing: the caller allows pairs. After packing: every four columns store
                 exactly two weights, with zeros if fewer are kept */
  uint64_t *chunk_at; /* [laci_sparse_rows_n_chunks() + 1] offset in `bytes` of each chunk's
                         beginning, row after row */
  uint8_t *bytes;     /* [laci_sparse_rows_set_chunk_offsets()] all chunks: bits, then kept
                         weights */
  int32_t *row_sum;   /* [n_rows] sum of the weights of each row, for S8; NULL for floats */
} laci_sparse_rows;

/** The vectors x and the results y. x: [n_x][n_columns], elements as in the table above, with the
 * alignment of an element. y: [n_x][n_rows]. */
typedef struct laci_sparse_vectors {
  const void *x;
  float *y;
  int n_x;                    /* number of vectors, 1 to 4 */
  int64_t x_stride, y_stride; /* number of elements of x, and of y, from one vector to the next */
  const float *bias;          /* [n_rows] bias of each row; NULL: zeros */
  const float *scale;         /* [n_rows] factor of each row, for S8: y = bias + scale[row] * sum of
                                 weight * (x - x_zero) */
  int32_t x_zero;             /* zero point of x, for S8 */
} laci_sparse_vectors;

/** Returns S, the number of rows in each of the eight streams. Place i means the rows i, i + S, i +
 * 2 S, ..., which are computed together. */
static inline int64_t laci_sparse_rows_n_places(const laci_sparse_rows *w) {
  return (w->n_rows + LACI_SPARSE_STREAMS - 1) / LACI_SPARSE_STREAMS;
}

/** Computes the rows of places [first, last): rows i, i + S, i + 2 S, ... for each place i
 * (laci_sparse_rows_n_places). Ranges of places may be computed at the same time. */
typedef void laci_sparse_rows_multiply(const laci_sparse_rows *w, const laci_sparse_vectors *v,
                                       int64_t first, int64_t last);

#define LACI_SPARSE_ROWS_DECLARE(name, level) \
  laci_sparse_rows_multiply laci_sparse_rows_multiply_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_ROWS_DECLARE)
#undef LACI_SPARSE_ROWS_DECLARE
#if defined(__x86_64__)
laci_sparse_rows_multiply laci_sparse_rows_multiply_avx512f; /* AVX-512 without VNNI */
laci_sparse_rows_multiply
    laci_sparse_rows_multiply_avx512vbmi2; /* uses VBMI2, which expands bytes and words */
#endif

/** Returns the fastest variant for this processor within the SIMD level in force (cpu/cpu.h). */
laci_sparse_rows_multiply *laci_sparse_rows_multiply_variant(void);

/* ---- Packing: count the kept weights of all parts, then set offsets, then fill all parts ---- */

/** A part of the dense matrix. Its nonzero weights are kept. column_first is a multiple of 64. With
 * S8, weights are integers from -127 to 127. */
typedef struct laci_sparse_rows_part {
  const float *weight; /* address of the weight in row row_first, column column_first */
  int64_t row_first, n_rows, column_first, n_columns;
  int64_t row_stride, column_stride;
} laci_sparse_rows_part;

/** Returns the number of chunks in all rows together. */
int64_t laci_sparse_rows_n_chunks(const laci_sparse_rows *w);
/** Counts the kept weights of a part in w->chunk_at, which must be zeros before the first part. */
void laci_sparse_rows_count_kept(laci_sparse_rows *w, const laci_sparse_rows_part *part);
/** Converts the counts in w->chunk_at to offsets of chunks; all parts must have been counted.
 * Returns the size of w->bytes, which the caller allocates and fills with zeros. Large pages
 * (base/memory.h) make the product faster. */
size_t laci_sparse_rows_set_chunk_offsets(laci_sparse_rows *w);
/** Packs the weights of a part. The parts of a row must come in ascending order of columns; the
 * result does not depend on how rows are divided into parts. Parts of different rows may be filled
 * at the same time. */
void laci_sparse_rows_fill_chunks(laci_sparse_rows *w, const laci_sparse_rows_part *part);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A sparse matrix times a dense one whose columns are cut into tiles of 16 lanes:
 *
 *     y[row] = f(clip(bias[row] + sum over kept k of weight[k] * x[column[k]] + residual[row]))
 *
 * for 16 pixels, or 16 images, at once, of floats, bf16 or int8. A convolution is one of these: its
 * columns are (channel, tap of the window), and the distance from a tile's beginning to a column's
 * value is the same for all tiles (window.h). Any pattern of kept weights will do; 2:4 is what
 * kernels are tuned for.
 *
 * Every sum begins at the bias and goes through the kept columns in ascending order, one fused
 * multiply-add each, so that all that computes it gives the same bits: generated code
 * (jit/sparse_code.h), csr.h, grouped_rows.h. product_scalar.c is the definition. No variants of it
 * are compiled for vectors: nothing chose them, since they took up to 85 times as long.
 *
 * With bf16, x and y are bf16 pairs: two neighbouring channels share the four bytes that a float
 * takes elsewhere, and two rows share those of a result, the even one the lower half. Everything
 * that counts floats counts bf16 pairs then. Columns are in blocks of four, which are two pairs
 * each; a column that is not there is not kept. Weights are rounded to bf16, sums are f32 and add
 * up two columns at a time, as bf16_pairs.h says; results are rounded at the end, to the nearest.
 *
 * With int8, four channels and four rows share four bytes: see int8x4.h. */
#ifndef LACI_KERNEL_SPARSE_PRODUCT_H
#define LACI_KERNEL_SPARSE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"
#include "kernel/variants.h"

typedef struct laci_pointwise laci_pointwise;
typedef struct laci_sparse_quantized laci_sparse_quantized;

enum { LACI_SPARSE_LANES = 16 };

/** What is multiplied. */
typedef enum laci_sparse_values {
  LACI_SPARSE_F32,
  LACI_SPARSE_BF16,
  LACI_SPARSE_S8, /* weights; x is u8 */
} laci_sparse_values;

/** How many values share four bytes of a native layout. */
static inline int laci_sparse_each(laci_sparse_values values) { return 1 << (int)values; }

/** Which pixel a column reads for a lane: the lane's own, which is always there, or the one before
 * or after it in its row, which the first or the last pixel of a row lacks. */
typedef enum laci_sparse_neighbour {
  LACI_SPARSE_ITSELF,
  LACI_SPARSE_BEFORE,
  LACI_SPARSE_AFTER,
} laci_sparse_neighbour;

/** Borrowed arrays. What is kept of row r are k of [row_begin[r], row_begin[r + 1]). */
typedef struct laci_sparse_product {
  int64_t n_rows, n_columns;
  int64_t rows_together;    /* so many consecutive rows read the same columns: those of a
                               convolution's group; it divides n_rows */
  const int64_t *row_begin; /* [n_rows + 1] */
  const int32_t *column;    /* [n_kept], ascending in a row */
  const int64_t *column_at; /* [n_columns]: floats of x from a tile's beginning; of bf16: to the
                               pair that the column is in */
  const uint8_t
      *neighbour;     /* [n_columns]: one of laci_sparse_neighbour, where rows of pixels have no
                                zeros between them, of floats; NULL: they do */
  int64_t row_stride; /* floats of y from a row to the next, or from two to the next two */
  laci_sparse_values values; /* BF16: rows_together is even, or all rows; n_columns fours */
} laci_sparse_product;

/** How many columns the rows of a group have. */
static inline int64_t laci_sparse_columns_together(const laci_sparse_product *p) {
  return p->n_columns / (p->n_rows / p->rows_together);
}
/** For kernels that read all lanes of all columns at distances of 32 bits. Fails LAC_UNSUPPORTED.
 */
LAC_MUST_CHECK lac_status laci_sparse_check_columns(const laci_sparse_product *p, lac_error *err);
/** Where a strip begins of n tiles, or others, cut as evenly as can be. */
static inline int64_t laci_sparse_strip_begin(int64_t n, int64_t n_strips, int64_t strip) {
  return n * strip / n_strips;
}

/** Where a weight's elements are that fill places of a product or of its code. */
typedef struct laci_sparse_places {
  int32_t *at; /* [n] */
  int64_t n;
} laci_sparse_places;
/** In place of an element's index: the place is filled with zero. */
enum { LACI_SPARSE_NOWHERE = -1 };

/** Sixteen results of a row. A column of ITSELF reads all 16 floats of x from lane 0 on, whichever
 * are used; one of BEFORE or AFTER reads those of lanes that have such a pixel, and others count as
 * zero. */
typedef struct laci_sparse_tile {
  int64_t in, out;        /* floats from the beginnings of x and y to lane 0 */
  uint64_t lanes;         /* bit i: lane i is a result; others of y are left alone */
  uint16_t before, after; /* bit i: lane i is a result with a pixel before it, or after it */
} laci_sparse_tile;
/** Lanes of which a column's values are read, the others being zero. */
static inline uint64_t laci_sparse_lanes_of(const laci_sparse_tile *tile, uint8_t neighbour) {
  return neighbour == LACI_SPARSE_BEFORE  ? tile->before
         : neighbour == LACI_SPARSE_AFTER ? tile->after
                                          : UINT64_MAX;
}
enum {
  LACI_SPARSE_ALL_LANES = (1 << LACI_SPARSE_LANES) - 1,
  /** One more bit of a tile's lanes: those that are no results are zeros in y, which no other tile
   * has. Who would rather write whole vectors may write zeros there. */
  LACI_SPARSE_ZEROS_AROUND = 1 << LACI_SPARSE_LANES,
};

/** What products of int8 have in place of a bias and of `low` and `high` (int8x4.h). */
struct laci_sparse_quantized {
  const int32_t *bias; /* [n_rows] */
  const float *scale;  /* [n_rows] */
  float residual_scale;
  int32_t residual_zero, zero; /* 0 to 255 */
  uint8_t low, high;           /* 0 and 255: no clip */
  bool floats; /* results are floats, each row's by itself, and `low`, `high` those of operands */
};

/** x and y do not overlap. residual: NULL, or laid out as y; it may be y itself unless
 * residual_last. */
typedef struct laci_sparse_operands {
  const float *weight; /* [n_kept] */
  const float *bias;   /* [n_rows] */
  const float *x, *residual;
  float *y;
  float low, high; /* v becomes low > v ? low : v, then high < v ? high : v: a NaN stays */
  const laci_pointwise *functions; /* [n_functions]: what follows, one after the other */
  int n_functions;
  bool residual_last;                     /* it is added after the functions, not before the clip */
  const laci_sparse_quantized *quantized; /* of int8; NULL: of others */
} laci_sparse_operands;

/** Are sums results but for the clip, and a residual before it? */
static inline bool laci_sparse_only_clips(const laci_sparse_operands *o) {
  return o->n_functions == 0 && !(o->residual && o->residual_last);
}

/** What is done at once; the last ones are not in it. */
typedef struct laci_sparse_part {
  const laci_sparse_tile *tiles;
  int64_t tile_first, tile_last, row_first, row_last;
} laci_sparse_part;

/** Any alignment of floats. With bf16, a part begins at an even row and ends at one or with the
 * last row. Parts that share no result are independent of each other. */
typedef void laci_sparse_multiply(const laci_sparse_product *p, const laci_sparse_operands *o,
                                  const laci_sparse_part *part);

/** Makes results of the sums of a part, [tile][row][16], which are overwritten. Of tiles with
 * LACI_SPARSE_ZEROS_AROUND, all lanes are written. finish_isa.c */
typedef void laci_sparse_finish(const laci_sparse_operands *o, int64_t row_stride,
                                laci_sparse_values values, const laci_sparse_part *part,
                                float *sums);

#define LACI_SPARSE_DECLARE(name, level) laci_sparse_finish laci_sparse_finish_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_DECLARE)
#undef LACI_SPARSE_DECLARE

/** The definition, and what computes products that nothing faster is for. */
laci_sparse_multiply laci_sparse_multiply_scalar;
/** The variant by the level in force (cpu/cpu.h). */
laci_sparse_finish *laci_sparse_finish_now(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A sparse matrix times a dense one whose columns are cut into tiles of 16 lanes:
 *
 *     y[row] = f(clip(bias[row] + sum over kept k of weight[k] * x[column[k]] + residual[row]))
 *
 * for 16 pixels, or 16 images, at once, of floats, bf16 or int8. A convolution is such a product:
 * its columns are (channel, tap of the window), and the distance from a tile's beginning to a
 * column's value is the same for all tiles (window.h). Any pattern of kept weights is possible; 2:4
 * is what kernels are tuned for.
 *
 * Every sum begins at the bias and goes through the kept columns in ascending order, one fused
 * multiply-add each, so that all implementations give the same bits. These are generated code
 * (jit/sparse_code.h), csr.h and grouped_rows.h. product_scalar.c is the reference. It has no
 * vector variants: they took up to 85 times as long as the other implementations, so nothing chose
 * them.
 *
 * With bf16, x and y are bf16 pairs: two neighbouring channels share the four bytes that a float
 * takes elsewhere, and two rows of a result share four bytes, with the even row in the lower half.
 * All counts of floats are then counts of bf16 pairs. Columns are in blocks of four, which are two
 * pairs each; the last block may contain columns that do not exist, which no row keeps. Weights are
 * rounded to bf16, sums are f32 and add two columns at a time, as bf16_pairs.h says; results are
 * rounded to the nearest at the end.
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

/** The type of x and of the weights. */
typedef enum laci_sparse_values {
  LACI_SPARSE_F32,
  LACI_SPARSE_BF16,
  LACI_SPARSE_S8, /* weights are int8, x is u8 (int8x4.h) */
} laci_sparse_values;

/** Returns how many values share four bytes of a native layout. */
static inline int laci_sparse_values_per_word(laci_sparse_values values) {
  return 1 << (int)values;
}

/** Which pixel a column reads for a lane: the lane's own pixel, or the pixel before or after it in
 * its row. The first pixel of a row has none before it, and the last pixel none after it. */
typedef enum laci_sparse_neighbour {
  LACI_SPARSE_ITSELF,
  LACI_SPARSE_BEFORE,
  LACI_SPARSE_AFTER,
} laci_sparse_neighbour;

/** A sparse product; arrays are borrowed. Row r has the kept weights k in [row_begin[r],
 * row_begin[r + 1]). */
typedef struct laci_sparse_product {
  int64_t n_rows, n_columns;
  int64_t rows_together;     /* number of consecutive rows that read the same columns, such as those
                                of a convolution's group; it divides n_rows */
  const int64_t *row_begin;  /* [n_rows + 1] index of each row's first kept weight */
  const int32_t *column;     /* [n_kept] column of each kept weight, ascending within a row */
  const int64_t *column_at;  /* [n_columns] offset of each column in x, in floats from a tile's
                                beginning. With bf16: offset of the pair that holds the column */
  const uint8_t *neighbour;  /* [n_columns] laci_sparse_neighbour of each column. Only for floats,
                                in a layout without zeros between rows of pixels; NULL: rows have
                                zeros between them */
  int64_t row_stride;        /* number of floats of y from one row's results to the next row's. With
                                bf16, two rows share four bytes, with int8 four rows; it is then the
                                distance from such a group of rows to the next */
  laci_sparse_values values; /* type of x and of the weights. With LACI_SPARSE_BF16, n_columns is a
                                multiple of 4, and rows_together is even or equal to n_rows */
} laci_sparse_product;

/** Returns how many columns each row of p can read. Each group of rows_together rows has an equal
 * part of all columns. */
static inline int64_t laci_sparse_columns_per_group(const laci_sparse_product *p) {
  return p->n_columns / (p->n_rows / p->rows_together);
}
/** Fails with LAC_UNSUPPORTED if p has p->neighbour, or an offset of a column beyond 32 bits. For
 * kernels that support neither. */
LAC_MUST_CHECK lac_status laci_sparse_check_columns(const laci_sparse_product *p, lac_error *err);
/** n tiles (or other units) are divided into n_strips strips, as equal as possible. Returns the
 * index of the first tile of a strip. */
static inline int64_t laci_sparse_strip_begin(int64_t n, int64_t n_strips, int64_t strip) {
  return n * strip / n_strips;
}

/** A map for copying weights. at[i] is the index in the caller's weight of the element that goes to
 * position i, in a product's weights or in the weights of its generated code. */
typedef struct laci_sparse_places {
  int32_t *at; /* [n] index in the caller's weight, or LACI_SPARSE_NO_SOURCE */
  int64_t n;
} laci_sparse_places;
/** A value of laci_sparse_places.at: no element of the caller's weight goes to this position, which
 * is filled with zero. */
enum { LACI_SPARSE_NO_SOURCE = -1 };

/** A tile: sixteen results of a row. A column with neighbour ITSELF reads all 16 floats of x from
 * lane 0 on, even for lanes that are not results. A column with BEFORE or AFTER reads x only for
 * lanes that have that neighbouring pixel; for the others the value is zero. */
typedef struct laci_sparse_tile {
  int64_t in, out;        /* offsets of lane 0: `in` from the beginning of x, `out` from that of y,
                             in floats */
  uint64_t lanes;         /* bit i is set if lane i is a result. Other lanes of y are not written */
  uint16_t before, after; /* bit i of `before`: lane i is a result, and has a pixel before it in its
                             row. bit i of `after`: it has a pixel after it */
} laci_sparse_tile;
/** Returns the lanes of a tile for which a column with this neighbour reads x. For the other lanes
 * the value is zero. */
static inline uint64_t laci_sparse_lanes_read(const laci_sparse_tile *tile, uint8_t neighbour) {
  return neighbour == LACI_SPARSE_BEFORE  ? tile->before
         : neighbour == LACI_SPARSE_AFTER ? tile->after
                                          : UINT64_MAX;
}
enum {
  LACI_SPARSE_ALL_LANES = (1 << LACI_SPARSE_LANES) - 1,
  /** One more bit of laci_sparse_tile.lanes. It says that the lanes which are not results hold
   * zeros in y, and belong to no other tile. So a kernel may write zeros there, and store whole
   * vectors. */
  LACI_SPARSE_ZEROS_AROUND = 1 << LACI_SPARSE_LANES,
};

/** The quantization of sums before a residual is added to them, where a network adds two quantized
 * values (int8x4.h). */
typedef struct laci_sparse_middle {
  float scale;       /* scale of a quantized sum, divided by that of y */
  int32_t zero;      /* zero point of a quantized sum */
  uint8_t low, high; /* its bounds */
  bool last;         /* true: the quantized sum is added to the residual, not the reverse. Results
                        may differ in the last bit before they are rounded */
} laci_sparse_middle;

/** Parameters of products of int8 (int8x4.h). They replace bias, low and high of
 * laci_sparse_operands. */
struct laci_sparse_quantized {
  const int32_t *bias; /* [n_rows] bias of each row, added to its integer sum */
  const float *scale;  /* [n_rows] factor that converts each row's integer sum to a float */
  const float *rest; /* [n_rows] what is added to each row's product of sum and factor: the part of
                          a bias that is no integer times the factor; NULL: nothing */
  float residual_scale;
  int32_t residual_zero, zero; /* zero points of the residual and of y, 0 to 255 */
  uint8_t low, high;           /* lower and upper bound of y; 0 and 255: results are not clipped */
  bool floats; /* true: results are floats, and are clipped to the bounds of laci_sparse_operands */
  const laci_sparse_middle *middle; /* NULL: sums are not quantized before the residual is added */
};

/** The operands of a product. x and y do not overlap. residual has the layout of y, or is NULL; it
 * may be y itself, unless residual_last is true. */
typedef struct laci_sparse_operands {
  const float *weight; /* [n_kept] value of each kept weight */
  const float *bias;   /* [n_rows] bias of each row */
  const float *x, *residual;
  float *y;
  float low, high; /* bounds of the results: a sum v becomes low > v ? low : v, then high < v ? high
                      : v; a NaN stays */
  const laci_pointwise *functions; /* [n_functions] functions that are applied after the clip, one
                                      after the other */
  int n_functions;
  bool residual_last; /* true: the residual is added after the functions; false: before the clip */
  const laci_sparse_quantized *quantized; /* parameters of int8; NULL: x is not int8 */
} laci_sparse_operands;

/** Is a clip, perhaps with a residual added before it, all that follows the sums? */
static inline bool laci_sparse_is_only_clipped(const laci_sparse_operands *o) {
  const bool middle = o->quantized && o->quantized->middle;
  return o->n_functions == 0 && !middle && !(o->residual && o->residual_last);
}

/** A part of the work: the tiles [tile_first, tile_last) and the rows [row_first, row_last). */
typedef struct laci_sparse_part {
  const laci_sparse_tile *tiles;
  int64_t tile_first, tile_last, row_first, row_last;
} laci_sparse_part;

/** Computes a part. Arrays need only the alignment of floats. With bf16, a part begins at an even
 * row, and ends before an even row or at the last row. Parts that share no result may be computed
 * at the same time. */
typedef void laci_sparse_multiply(const laci_sparse_product *p, const laci_sparse_operands *o,
                                  const laci_sparse_part *part);

/** Converts the sums of a part, [tile][row][16], to results in o->y: residual, clip and functions.
 * The sums are overwritten. In tiles with LACI_SPARSE_ZEROS_AROUND, all lanes are written. Defined
 * in finish_isa.c. */
typedef void laci_sparse_finish(const laci_sparse_operands *o, int64_t row_stride,
                                laci_sparse_values values, const laci_sparse_part *part,
                                float *sums);

#define LACI_SPARSE_DECLARE(name, level) laci_sparse_finish laci_sparse_finish_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_DECLARE)
#undef LACI_SPARSE_DECLARE

/** The reference kernel. It also computes products that no faster implementation supports. */
laci_sparse_multiply laci_sparse_multiply_scalar;
/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_sparse_finish *laci_sparse_finish_variant(void);

#endif

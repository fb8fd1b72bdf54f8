/* SPDX-License-Identifier: Apache-2.0
 * A weight that holds N:M, without its zeros: the kept elements, and the column of each in its
 * block.
 *
 * Layout "rows1". A row is all that one output sums over at one kernel position: row o * inner + i
 * of the view holds the elements (o, c, i), c = 0 .. columns - 1. Every row keeps the same number
 * of elements, min(n, b) of each block of b columns (b == m but for the last block of a run), so
 * that everything has a place which can be computed:
 *
 *     values  [n_rows, row_values]  elements of the weight's own type, blocks in order, columns
 *                                   ascending inside a block
 *     index   [n_rows, index_words] 32-bit little-endian words; value v's column inside its block
 *                                   in bits [v * index_bits, (v + 1) * index_bits) of its row,
 *                                   lowest bit first; 2 bits for 2:4
 *     signs   [n_rows, sign_words]  only where an element that is left out is -0.0: one bit an
 *                                   element left out, in order, 1 = -0.0
 *
 * Unpacking gives back every bit. Next: pack/packfile.h (these arrays in a file). */
#ifndef LACI_SPARSE_PACK_H
#define LACI_SPARSE_PACK_H

#include <stddef.h>

#include "sparse/weight_view.h"

/** What follows from a weight's geometry and a pattern; a value, nothing to free. */
typedef struct laci_packing {
  const char *name; /* of the weight, for messages; a view */
  lac_dtype dtype;
  laci_pattern pattern;
  int64_t outer, columns, inner, run; /* as in laci_weight_view, all >= 1 */
  uint64_t fill;                      /* bits of an element that is left out */
  uint64_t negative; /* the same or, where fill is a float's 0, those of -0.0: left out, too */
  size_t element_bytes;
  int index_bits; /* ceil(log2 m) */
  int64_t n_rows, row_values, index_words, sign_words;
  size_t dense_bytes, values_bytes, index_bytes, signs_bytes;
} laci_packing;

/** Fills *packing from the view's name, type and geometry (nothing else of it is looked at).
 * fill: bits of the element that is not stored, 0 or an integer weight's zero point. Fails
 * LAC_BAD_ARGUMENT (pattern), LAC_BAD_SHAPE, LAC_UNSUPPORTED (element type), naming the weight. */
LAC_MUST_CHECK lac_status laci_packing_init(laci_packing *packing, const laci_weight_view *shape,
                                            laci_pattern pattern, uint64_t fill, lac_error *err);

/** Whether every block of `dense` has at most n elements that have to be stored, and whether an
 * element that is left out needs its sign. */
typedef struct laci_pack_survey {
  bool holds;
  bool needs_signs; /* meaningful where it holds */
} laci_pack_survey;
laci_pack_survey laci_pack_look(const laci_packing *packing, const uint8_t *dense);

/** The packed arrays. signs NULL: no element that is left out is -0.0. Any alignment of values. */
typedef struct laci_packed {
  uint8_t *values;
  uint32_t *index, *signs;
} laci_packed;
typedef struct laci_packed_view {
  const uint8_t *values;
  const uint32_t *index, *signs;
} laci_packed_view;

/** dense (whose survey holds) -> arrays of the sizes that packing says, zeroed by the caller. Where
 * a block has fewer than n elements to store, other columns fill its places with the bits that they
 * have: those with -0.0 first, the lowest first. The same bytes for the same weight. */
void laci_pack(const laci_packing *packing, const uint8_t *dense, const laci_packed *packed);

/** The columns of the kept elements of one packed row: column[row_values], ascending. index: the
 * row's words. False where the columns of a block do not ascend or leave the block. */
bool laci_packed_columns(const laci_packing *packing, const uint32_t *index, int32_t *column);

/** The inverse; writes each of dense_bytes. Fails LAC_BAD_FILE where the columns of a block do not
 * ascend or leave the block; dense then holds anything. */
LAC_MUST_CHECK lac_status laci_unpack(const laci_packing *packing, const laci_packed_view *packed,
                                      uint8_t *dense, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Packs a weight that holds N:M: its packed form has the kept elements, and the column of each in
 * its block.
 *
 * Layout "rows1". A row holds the elements that one output channel sums over at one kernel
 * position: row o * inner + i of the view holds the elements (o, c, i), c = 0 .. columns - 1. Every
 * row keeps the same number of elements: min(n, b) of each block of b columns (b == m but for the
 * last block of a run). So the position of everything can be computed:
 *
 *     values  [n_rows, row_values]  elements of the weight's own type, blocks in order, columns
 *                                   ascending inside a block
 *     index   [n_rows, index_words] 32-bit little-endian words; value v's column inside its block
 *                                   in bits [v * index_bits, (v + 1) * index_bits) of its row,
 *                                   lowest bit first; 2 bits for 2:4
 *     signs   [n_rows, sign_words]  only where an element that is not kept is -0.0: one bit for
 *                                   each element not kept, in order, 1 = -0.0
 *
 * Unpacking restores every bit of the weight. Next: pack/packfile.h (these arrays in a file). */
#ifndef LACI_SPARSE_PACK_H
#define LACI_SPARSE_PACK_H

#include <stddef.h>

#include "sparse/weight_view.h"

/** Sizes of the packed arrays, computed from a weight's geometry and a pattern. It owns no memory.
 */
typedef struct laci_packing {
  const char *name; /* name of the weight, for messages; borrowed */
  lac_dtype dtype;
  laci_pattern pattern;
  int64_t outer, columns, inner, run; /* sizes of the weight as in laci_weight_view, all at least
                                         1 */
  uint64_t fill;                      /* bits of the elements that are not stored */
  uint64_t negative; /* bits of -0.0 if `fill` is a float's 0, else `fill`. Elements with these bits
                        need not be stored, either */
  size_t element_bytes;
  int index_bits; /* number of bits that give an element's column in its block: ceil(log2 m) */
  int64_t n_rows, row_values, index_words, sign_words;
  size_t dense_bytes, values_bytes, index_bytes, signs_bytes;
} laci_packing;

/** Computes the sizes of *packing. shape: a view whose name, type and geometry are read, nothing
 * else. fill: bits of the elements that are not stored: 0, or an integer weight's zero point. Fails
 * with LAC_BAD_ARGUMENT (pattern), LAC_BAD_SHAPE or LAC_UNSUPPORTED (element type); the text names
 * the weight. */
LAC_MUST_CHECK lac_status laci_packing_init(laci_packing *packing, const laci_weight_view *shape,
                                            laci_pattern pattern, uint64_t fill, lac_error *err);

/** The result of laci_pack_check_weight. */
typedef struct laci_pack_check {
  bool holds;       /* every block of the weight has at most n elements that must be stored */
  bool needs_signs; /* some element that is not stored is -0.0, and needs its sign; valid only if
                       `holds` is true */
} laci_pack_check;
laci_pack_check laci_pack_check_weight(const laci_packing *packing, const uint8_t *dense);

/** The packed arrays. signs is NULL if no element that is not stored is -0.0. values may have any
 * alignment. */
typedef struct laci_packed {
  uint8_t *values;
  uint32_t *index, *signs;
} laci_packed;
typedef struct laci_packed_view {
  const uint8_t *values;
  const uint32_t *index, *signs;
} laci_packed_view;

/** Packs the weight `dense`, for which laci_pack_check_weight must hold. The arrays have the sizes
 * in *packing, and the caller has set them to zero. If a block has fewer than n elements that must
 * be stored, others are stored, too: first those that are -0.0, then the others, each from the
 * lowest column on. The same weight gives the same bytes. */
void laci_pack_weight(const laci_packing *packing, const uint8_t *dense, const laci_packed *packed);

/** Decodes the columns of the stored elements of one packed row into column[row_values], ascending.
 * index: the row's index words. Returns false if the columns of a block do not ascend or leave the
 * block. */
bool laci_packed_decode_columns(const laci_packing *packing, const uint32_t *index,
                                int32_t *column);

/** Unpacks a weight: the inverse of laci_pack_weight. Writes all dense_bytes of `dense`. Fails with
 * LAC_BAD_FILE if the columns of a block do not ascend or leave the block, and with LAC_NO_MEMORY;
 * dense is then undefined. */
LAC_MUST_CHECK lac_status laci_unpack_weight(const laci_packing *packing,
                                             const laci_packed_view *packed, uint8_t *dense,
                                             lac_error *err);

#endif

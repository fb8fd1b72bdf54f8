/* SPDX-License-Identifier: Apache-2.0
 * The shapes of tensors, with symbols for sizes that are known only when the network runs. */
#ifndef LACI_TENSOR_SHAPE_H
#define LACI_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"

enum { LACI_MAX_RANK = 8 };

/** The sizes of a tensor's axes. rank -1: nothing is known. A size >= 0 is known. A size -k (k >=
 * 1) is symbol k, which stands for a size that is not known; equal symbols are equal sizes. */
typedef struct laci_shape {
  int rank;
  int64_t dims[LACI_MAX_RANK];
} laci_shape;

typedef struct laci_type {
  lac_dtype dtype; /* element type; LAC_DTYPE_NONE: it is not known */
  laci_shape shape;
} laci_type;

/** Returns the number of bits of an element as files have it: 4 or 2 for types of which several
 * elements share a byte. 0: the type has no fixed size. */
int laci_dtype_bits(lac_dtype dtype);

/** Marks a size that is not known, in code that otherwise stores a size or a symbol; it is neither
 * of them. */
#define LACI_SIZE_UNKNOWN INT64_MIN

/** Shape arithmetic uses integer tensors whose contents are partly known. In these, symbol k is the
 * element LACI_SYMBOL_BASE + k. Operators that move data copy symbols like other elements;
 * arithmetic must test laci_is_symbol first. */
#define LACI_SYMBOL_BASE (INT64_MIN / 2)
static inline bool laci_is_symbol(int64_t element) {
  return element > LACI_SYMBOL_BASE && element <= LACI_SYMBOL_BASE + INT32_MAX;
}
static inline int64_t laci_size_from_element(
    int64_t element) { /* converts an element of a shape tensor to a size */
  return laci_is_symbol(element) ? -(element - LACI_SYMBOL_BASE) : element;
}
static inline int64_t laci_element_from_size(int64_t size) {
  return size < 0 ? LACI_SYMBOL_BASE - size : size;
}

laci_shape laci_shape_unknown(void);
laci_shape laci_shape_of(int rank, const int64_t *dims);
bool laci_shape_is_known(const laci_shape *shape); /* Are the rank and all sizes known? */
bool laci_shape_equal(const laci_shape *a, const laci_shape *b);

/** laci_shape_count_range: returns the product of the sizes of axes [from, to); -1 if one of them
 * is not known or the product overflows int64. laci_shape_count: the same for all axes, which is
 * the number of elements. */
int64_t laci_shape_count_range(const laci_shape *shape, int from, int to);
int64_t laci_shape_count(const laci_shape *shape);

/** Writes a shape as text, "[64, 3, 7, 7]", with symbols as "?", and returns text. */
const char *laci_shape_text(const laci_shape *shape, char *text, size_t size_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Shapes, with symbols for sizes that are known only when the network runs. */
#ifndef LACI_TENSOR_SHAPE_H
#define LACI_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"

enum { LACI_MAX_RANK = 8 };

/** rank -1: nothing is known. A size >= 0 is known; -k (k >= 1) is symbol k: equal symbols are
 * equal sizes. */
typedef struct laci_shape {
  int rank;
  int64_t dims[LACI_MAX_RANK];
} laci_shape;

typedef struct laci_type {
  lac_dtype dtype; /* LAC_DTYPE_NONE: unknown */
  laci_shape shape;
} laci_type;

/** Bits of an element: 4 and 2 where files pack several into a byte; 0: of no fixed size. */
int laci_dtype_bits(lac_dtype dtype);

/** Inside integer tensors whose contents are partly known (shape arithmetic), symbol k is the
 * element LACI_SYMBOL_BASE + k: moving data moves symbols along, arithmetic asks laci_is_symbol
 * first. */
#define LACI_SYMBOL_BASE (INT64_MIN / 2)
static inline bool laci_is_symbol(int64_t element) {
  return element > LACI_SYMBOL_BASE && element <= LACI_SYMBOL_BASE + INT32_MAX;
}
static inline int64_t laci_size_from_element(
    int64_t element) { /* element of a shape tensor -> size */
  return laci_is_symbol(element) ? -(element - LACI_SYMBOL_BASE) : element;
}
static inline int64_t laci_element_from_size(int64_t size) {
  return size < 0 ? LACI_SYMBOL_BASE - size : size;
}

laci_shape laci_shape_unknown(void);
laci_shape laci_shape_of(int rank, const int64_t *dims);
bool laci_shape_known(const laci_shape *shape); /* rank and every size */
bool laci_shape_equal(const laci_shape *a, const laci_shape *b);

/** Product of the sizes [from, to); -1 where one is unknown or the product overflows int64. */
int64_t laci_shape_count_range(const laci_shape *shape, int from, int to);
int64_t laci_shape_count(const laci_shape *shape);

/** "[64, 3, 7, 7]", symbols as "?"; returns text. */
const char *laci_shape_text(const laci_shape *shape, char *text, size_t size_bytes);

#endif

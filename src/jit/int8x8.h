/* SPDX-License-Identifier: Apache-2.0
 * How a row's terms take the columns of int8 (kernel/sparse/int8x4.h): eight at once, an int8x8.
 *
 * An int8x8 is two int8x4 of columns, A and B. A term multiplies four bytes of a register that may
 * hold bytes of both: A's in one of four orders, B's in one of two, and one of six masks that says
 * which two come from B. These 48 registers cover all 36 pairs of 2:4 patterns, and each is one
 * blend. Rows that keep nothing of one int8x4 take the other as it is. Rows that no register fits
 * have two terms, all of A and all of B, with zeros where nothing is kept. */
#ifndef LACI_JIT_INT8X8_H
#define LACI_JIT_INT8X8_H

#include <stdbool.h>
#include <stdint.h>

enum {
  LACI_INT8X8_COLUMNS = 8,
  LACI_SPARSE_ORDERS_A = 4,
  LACI_SPARSE_ORDERS_B = 2,
  LACI_INT8X8_MASKS = 6,
  LACI_SPARSE_ALL_A = 0, /* registers: the int8x4 as they are, then blends */
  LACI_SPARSE_ALL_B = 1,
  LACI_SPARSE_BLENDS = 2,
  LACI_INT8X8_REGISTERS =
      LACI_SPARSE_BLENDS + LACI_SPARSE_ORDERS_A * LACI_SPARSE_ORDERS_B * LACI_INT8X8_MASKS,
};

/** Which channel of its int8x4 each byte is. */
extern const uint8_t laci_sparse_order_a[LACI_SPARSE_ORDERS_A][4];
extern const uint8_t laci_sparse_order_b[LACI_SPARSE_ORDERS_B][4];
/** Bit i: byte i comes from B. */
extern const uint8_t laci_int8x8_masks[LACI_INT8X8_MASKS];

/** Of a register from BLENDS on. */
typedef struct laci_sparse_blend {
  int a, b, mask; /* numbers of the orders and of the mask */
} laci_sparse_blend;
laci_sparse_blend laci_sparse_blend_of(int number);

/** For every set of kept columns (A's are bits 0 to 3) a register that holds them all, or
 * LACI_INT8X8_REGISTERS: there are two terms. */
typedef struct laci_int8x8 {
  uint8_t number[1 << LACI_INT8X8_COLUMNS];
} laci_int8x8;
void laci_int8x8_init(laci_int8x8 *int8x8);

/** Of each register the rows that have a term of it; kept: of each column the rows that keep it. A
 * bit is a row. */
void laci_int8x8_find(const laci_int8x8 *int8x8, const uint32_t *kept,
                      uint32_t rows[LACI_INT8X8_REGISTERS]);
/** Which column of the int8x8 each of a register's four bytes is. */
void laci_int8x8_columns(int number, uint8_t columns[4]);

#endif

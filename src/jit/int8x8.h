/* SPDX-License-Identifier: Apache-2.0
 * How an int8 product (kernel/sparse/int8x4.h) multiplies the columns of a row: eight at a time, an
 * int8x8.
 *
 * An int8x8 is two int8x4 of columns, A and B. A term multiplies the four bytes of one register by
 * four weights. That register is A, or B, or a blend of both: A's bytes in one of four orders, B's
 * in one of two, and one of six masks that says which two bytes come from B. These 48 blends cover
 * all 36 pairs of 2:4 patterns, and each takes one instruction. A row that keeps no column of A
 * uses B as it is, and the reverse. A row that no blend fits has two terms, one of A and one of B,
 * with zero weights for columns that it does not keep. */
#ifndef LACI_JIT_INT8X8_H
#define LACI_JIT_INT8X8_H

#include <stdbool.h>
#include <stdint.h>

enum {
  LACI_INT8X8_COLUMNS = 8,
  LACI_SPARSE_ORDERS_A = 4,
  LACI_SPARSE_ORDERS_B = 2,
  LACI_INT8X8_MASKS = 6,
  /* numbers of registers: 0 is A, 1 is B, the others are blends of both */
  LACI_SPARSE_ALL_A = 0,
  LACI_SPARSE_ALL_B = 1,
  LACI_SPARSE_BLENDS = 2,
  LACI_INT8X8_REGISTERS =
      LACI_SPARSE_BLENDS + LACI_SPARSE_ORDERS_A * LACI_SPARSE_ORDERS_B * LACI_INT8X8_MASKS,
};

/** For each order of bytes: which channel of A, or of B, each of the four bytes is. */
extern const uint8_t laci_sparse_order_a[LACI_SPARSE_ORDERS_A][4];
extern const uint8_t laci_sparse_order_b[LACI_SPARSE_ORDERS_B][4];
/** For each mask: bit i is set where byte i comes from B. */
extern const uint8_t laci_int8x8_masks[LACI_INT8X8_MASKS];

/** How register `number` (from LACI_SPARSE_BLENDS on) is made. */
typedef struct laci_sparse_blend {
  int a, b, mask; /* indices into laci_sparse_order_a, laci_sparse_order_b and laci_int8x8_masks */
} laci_sparse_blend;
laci_sparse_blend laci_sparse_blend_of_register(int number);

/** For each set of columns that a row may keep: number[set] is the number of the register that
 * holds all of them, or LACI_INT8X8_REGISTERS if the row needs two terms. Bit c of a set stands
 * for column c; columns 0 to 3 are those of A. */
typedef struct laci_int8x8 {
  uint8_t number[1 << LACI_INT8X8_COLUMNS];
} laci_int8x8;
void laci_int8x8_init(laci_int8x8 *int8x8);

/** Finds the terms of up to 32 rows. kept[column]: bit r is set where row r keeps the column. Sets
 * rows[register]: bit r is set where row r has a term with that register. */
void laci_int8x8_find_rows(const laci_int8x8 *int8x8, const uint32_t *kept,
                           uint32_t rows[LACI_INT8X8_REGISTERS]);
/** Sets columns[byte] to the column of the int8x8, 0 to 7, that each byte of register `number`
 * holds. */
void laci_int8x8_columns_of_register(int number, uint8_t columns[4]);

#endif

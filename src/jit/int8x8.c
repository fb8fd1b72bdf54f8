/* SPDX-License-Identifier: Apache-2.0
 * The registers of int8x8.h: which bytes each of them holds, and which rows use it. */
#include "jit/int8x8.h"

#include <string.h>

enum { INT8X4 = LACI_INT8X8_COLUMNS / 2, ALL_OF_A = (1 << INT8X4) - 1 };

const uint8_t laci_sparse_order_a[LACI_SPARSE_ORDERS_A][4] = {
    {0, 1, 2, 3}, {0, 1, 3, 2}, {3, 0, 2, 1}, {2, 3, 0, 1}};
const uint8_t laci_sparse_order_b[LACI_SPARSE_ORDERS_B][4] = {{0, 1, 2, 3}, {1, 2, 3, 0}};
const uint8_t laci_int8x8_masks[LACI_INT8X8_MASKS] = {3, 5, 9, 6, 10, 12};

laci_sparse_blend laci_sparse_blend_of_register(int number) {
  const int at = number - LACI_SPARSE_BLENDS, orders = at / LACI_INT8X8_MASKS;
  return (laci_sparse_blend){orders / LACI_SPARSE_ORDERS_B, orders % LACI_SPARSE_ORDERS_B,
                             at % LACI_INT8X8_MASKS};
}

void laci_int8x8_columns_of_register(int number, uint8_t columns[4]) {
  if (number < LACI_SPARSE_BLENDS) {
    for (int at = 0; at < INT8X4; at++) columns[at] = (uint8_t)(number * INT8X4 + at);
    return;
  }
  const laci_sparse_blend blend = laci_sparse_blend_of_register(number);
  for (int at = 0; at < INT8X4; at++) {
    const bool from_b = laci_int8x8_masks[blend.mask] >> at & 1;
    columns[at] = from_b ? (uint8_t)(INT8X4 + laci_sparse_order_b[blend.b][at])
                         : laci_sparse_order_a[blend.a][at];
  }
}

static uint8_t find_register_holding(unsigned kept) {
  if (!(kept >> INT8X4)) return LACI_SPARSE_ALL_A;
  if (!(kept & ALL_OF_A)) return LACI_SPARSE_ALL_B;
  for (int number = LACI_SPARSE_BLENDS; number < LACI_INT8X8_REGISTERS; number++) {
    uint8_t columns[INT8X4];
    unsigned held = 0;
    laci_int8x8_columns_of_register(number, columns);
    for (int at = 0; at < INT8X4; at++) held |= 1U << columns[at];
    if (!(kept & ~held)) return (uint8_t)number;
  }
  return LACI_INT8X8_REGISTERS;
}

void laci_int8x8_init(laci_int8x8 *int8x8) {
  for (unsigned kept = 0; kept < 1U << LACI_INT8X8_COLUMNS; kept++) {
    int8x8->number[kept] = find_register_holding(kept);
  }
}

void laci_int8x8_find_rows(const laci_int8x8 *int8x8, const uint32_t *kept,
                           uint32_t rows[LACI_INT8X8_REGISTERS]) {
  uint32_t any = 0;
  for (int column = 0; column < LACI_INT8X8_COLUMNS; column++) any |= kept[column];
  memset(rows, 0, LACI_INT8X8_REGISTERS * sizeof *rows);
  for (; any; any &= any - 1) {
    const int row = __builtin_ctz(any);
    unsigned pattern = 0;
    for (int column = 0; column < LACI_INT8X8_COLUMNS; column++) {
      pattern |= (kept[column] >> row & 1U) << column;
    }
    const int number = int8x8->number[pattern];
    if (number < LACI_INT8X8_REGISTERS) {
      rows[number] |= 1U << row;
    } else {
      rows[LACI_SPARSE_ALL_A] |= 1U << row;
      rows[LACI_SPARSE_ALL_B] |= 1U << row;
    }
  }
}

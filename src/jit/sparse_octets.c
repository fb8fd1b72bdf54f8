/* SPDX-License-Identifier: Apache-2.0
 * Registers of sparse_octets.h. */
#include "jit/sparse_octets.h"

#include <string.h>

enum { QUAD = LACI_SPARSE_OCTET / 2, ALL_OF_A = (1 << QUAD) - 1 };

const uint8_t laci_sparse_order_a[LACI_SPARSE_ORDERS_A][4] = {
    {0, 1, 2, 3}, {0, 1, 3, 2}, {3, 0, 2, 1}, {2, 3, 0, 1}};
const uint8_t laci_sparse_order_b[LACI_SPARSE_ORDERS_B][4] = {{0, 1, 2, 3}, {1, 2, 3, 0}};
const uint8_t laci_sparse_octet_masks[LACI_SPARSE_OCTET_MASKS] = {3, 5, 9, 6, 10, 12};

laci_sparse_blend laci_sparse_blend_of(int number) {
  const int at = number - LACI_SPARSE_BLENDS, orders = at / LACI_SPARSE_OCTET_MASKS;
  return (laci_sparse_blend){orders / LACI_SPARSE_ORDERS_B, orders % LACI_SPARSE_ORDERS_B,
                             at % LACI_SPARSE_OCTET_MASKS};
}

void laci_sparse_octet_columns(int number, uint8_t columns[4]) {
  if (number < LACI_SPARSE_BLENDS) {
    for (int at = 0; at < QUAD; at++) columns[at] = (uint8_t)(number * QUAD + at);
    return;
  }
  const laci_sparse_blend blend = laci_sparse_blend_of(number);
  for (int at = 0; at < QUAD; at++) {
    const bool from_b = laci_sparse_octet_masks[blend.mask] >> at & 1;
    columns[at] = from_b ? (uint8_t)(QUAD + laci_sparse_order_b[blend.b][at])
                         : laci_sparse_order_a[blend.a][at];
  }
}

static uint8_t number_of(unsigned kept) {
  if (!(kept >> QUAD)) return LACI_SPARSE_ALL_A;
  if (!(kept & ALL_OF_A)) return LACI_SPARSE_ALL_B;
  for (int number = LACI_SPARSE_BLENDS; number < LACI_SPARSE_OCTET_REGISTERS; number++) {
    uint8_t columns[QUAD];
    unsigned held = 0;
    laci_sparse_octet_columns(number, columns);
    for (int at = 0; at < QUAD; at++) held |= 1U << columns[at];
    if (!(kept & ~held)) return (uint8_t)number;
  }
  return LACI_SPARSE_OCTET_REGISTERS;
}

void laci_sparse_octets_init(laci_sparse_octets *octets) {
  for (unsigned kept = 0; kept < 1U << LACI_SPARSE_OCTET; kept++) {
    octets->number[kept] = number_of(kept);
  }
}

void laci_sparse_find_octets(const laci_sparse_octets *octets, const uint32_t *kept,
                             uint32_t rows[LACI_SPARSE_OCTET_REGISTERS]) {
  uint32_t any = 0;
  for (int column = 0; column < LACI_SPARSE_OCTET; column++) any |= kept[column];
  memset(rows, 0, LACI_SPARSE_OCTET_REGISTERS * sizeof *rows);
  for (; any; any &= any - 1) {
    const int row = __builtin_ctz(any);
    unsigned pattern = 0;
    for (int column = 0; column < LACI_SPARSE_OCTET; column++) {
      pattern |= (kept[column] >> row & 1U) << column;
    }
    const int number = octets->number[pattern];
    if (number < LACI_SPARSE_OCTET_REGISTERS) {
      rows[number] |= 1U << row;
    } else {
      rows[LACI_SPARSE_ALL_A] |= 1U << row;
      rows[LACI_SPARSE_ALL_B] |= 1U << row;
    }
  }
}

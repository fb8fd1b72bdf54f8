/* SPDX-License-Identifier: Apache-2.0
 * The shape of AMX's matrix registers, for kernels that are compiled for AMX. */
#ifndef LACI_KERNEL_AMX_H
#define LACI_KERNEL_AMX_H

#include <immintrin.h>
#include <stdint.h>

/** The operand of LDTILECFG: the number of rows of each register, and of bytes in a row. */
typedef struct laci_amx_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} laci_amx_configuration;

/** Gives the eight registers their shapes, for the calling thread, until it calls _tile_release.
 * Registers 0 to 3, of sums, have 16 rows of 64 bytes. Registers 4 and 5, of weights, have 16 rows
 * of `deep` int8x4; registers 6 and 7, of x, have `deep` rows of 64 bytes. deep: 1 to 16. */
static inline void laci_amx_configure_registers(int deep) {
  enum { REGISTERS = 8, WEIGHTS = 4, X = 6, ROWS = 16, BYTES = 64, INT8X4 = 4 };
  laci_amx_configuration c = {.palette = 1};
  for (int at = 0; at < REGISTERS; at++) {
    c.row_bytes[at] = (uint16_t)(at >= WEIGHTS && at < X ? deep * INT8X4 : BYTES);
    c.rows[at] = (uint8_t)(at >= X ? deep : ROWS);
  }
  _tile_loadconfig(&c);
}

#endif

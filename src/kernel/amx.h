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

/** Gives all eight registers 16 rows of 64 bytes, for the calling thread, until it calls
 * _tile_release. */
static inline void laci_amx_configure_registers(void) {
  enum { REGISTERS = 8, ROWS = 16, BYTES = 64 };
  laci_amx_configuration c = {.palette = 1};
  for (int at = 0; at < REGISTERS; at++) {
    c.row_bytes[at] = BYTES;
    c.rows[at] = ROWS;
  }
  _tile_loadconfig(&c);
}

#endif

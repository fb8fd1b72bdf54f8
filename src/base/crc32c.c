/* SPDX-License-Identifier: Apache-2.0
 * Processes eight bytes at a time with eight tables ("slicing-by-8": Kounavis and Berry, "A
 * systematic approach to building high performance software-based CRC generators", ISCC 2005).
 * Table k holds the change of the checksum by a byte that is followed by k more bytes. */
#include "base/crc32c.h"

#include <pthread.h>

enum { SLICES = 8, BITS = 8 };

static uint32_t tables[SLICES][UINT8_MAX + 1];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_crc_tables(void) {
  for (uint32_t byte = 0; byte <= UINT8_MAX; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < BITS; bit++) { crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0); }
    tables[0][byte] = crc;
  }
  for (int k = 1; k < SLICES; k++) {
    for (int byte = 0; byte <= UINT8_MAX; byte++) {
      uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & UINT8_MAX];
    }
  }
}

static uint32_t load_word(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t laci_crc32c(const void *bytes, size_t n) {
  const uint8_t *at = bytes;
  uint32_t crc = UINT32_MAX;
  (void)pthread_once(&tables_made, make_crc_tables);
  for (; n >= SLICES; n -= SLICES, at += SLICES) {
    uint32_t low = load_word(at) ^ crc, high = load_word(at + 4);
    crc = 0;
    for (int k = 0; k < 4; k++) {
      crc ^= tables[7 - k][low >> 8 * k & UINT8_MAX] ^ tables[3 - k][high >> 8 * k & UINT8_MAX];
    }
  }
  for (; n > 0; n--, at++) crc = crc >> 8 ^ tables[0][(crc ^ *at) & UINT8_MAX];
  return ~crc;
}

uint32_t laci_crc32c_masked(const void *bytes, size_t n) {
  uint32_t crc = laci_crc32c(bytes, n);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

/* SPDX-License-Identifier: Apache-2.0
 * Numbers as protobuf writes them: seven bits a byte, the lowest first; the highest bit of a byte
 * says that another follows. */
#ifndef LACI_BASE_VARINT_H
#define LACI_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

enum { LACI_VARINT_BYTES = 10 }; /* the most bytes of a number */

/** Reads a number from the n bytes at `bytes`; bits beyond 64 are left out. Returns how many bytes
 * it takes; 0: it has no end among them. */
static inline size_t laci_varint_read(const uint8_t *bytes, size_t n, uint64_t *value) {
  *value = 0;
  for (size_t k = 0; k < n && k < LACI_VARINT_BYTES; k++) {
    *value |= (uint64_t)(bytes[k] & 0x7F) << (7 * k);
    if (bytes[k] < 0x80) return k + 1;
  }
  return 0;
}

/** Returns how many bytes a number takes. */
static inline size_t laci_varint_size(uint64_t value) {
  size_t n = 1;
  while (value >>= 7) n++;
  return n;
}

/** Writes a number and returns the place after it. */
static inline uint8_t *laci_varint_write(uint8_t *at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = (uint8_t)(value | 0x80);
  *at++ = (uint8_t)value;
  return at;
}

#endif

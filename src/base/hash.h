/* SPDX-License-Identifier: Apache-2.0
 * Hashes of bytes (XXH3): the same on every machine for the same bytes, fast, and no protection
 * against malice. */
#ifndef LACI_BASE_HASH_H
#define LACI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct laci_hash128 {
  uint64_t high, low;
} laci_hash128;

/** Hash of size_bytes bytes. To hash several pieces in a row, give the hash of those before as the
 * seed. */
uint64_t laci_hash64(const void *bytes, size_t size_bytes, uint64_t seed);
laci_hash128 laci_hash128_of(const void *bytes, size_t size_bytes, uint64_t seed);

/** Writes 32 hexadecimal digits and the final zero to text; returns text. */
const char *laci_hash128_text(laci_hash128 hash, char text[33]);

#endif

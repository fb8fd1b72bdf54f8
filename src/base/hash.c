/* SPDX-License-Identifier: Apache-2.0
 * Hashes of bytes, by libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>

uint64_t laci_hash64(const void *bytes, size_t size_bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size_bytes, seed);
}

laci_hash128 laci_hash128_of(const void *bytes, size_t size_bytes, uint64_t seed) {
  XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size_bytes, seed);
  return (laci_hash128){.high = hash.high64, .low = hash.low64};
}

const char *laci_hash128_text(laci_hash128 hash, char text[33]) {
  (void)snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
  return text;
}

/* SPDX-License-Identifier: Apache-2.0
 * Hashes of bytes, by libxxhash. */
#include "base/hash.h"

#include "base/memory.h"

#define XXH_STATIC_LINKING_ONLY /* declares XXH3_state_t as a complete type */
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>

uint64_t laci_hash64(const void *bytes, size_t size_bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size_bytes, seed);
}

struct laci_hash_stream {
  XXH3_state_t state; /* must be 64-byte aligned, as memory of laci_alloc is */
};

laci_hash_stream *laci_hash_stream_create(void) {
  laci_hash_stream *stream = laci_alloc(1, sizeof *stream);
  if (stream) laci_hash_stream_begin(stream, 0);
  return stream;
}

void laci_hash_stream_begin(laci_hash_stream *stream, uint64_t seed) {
  (void)XXH3_64bits_reset_withSeed(&stream->state, seed);
}

void laci_hash_stream_add(laci_hash_stream *stream, const void *bytes, size_t size_bytes) {
  (void)XXH3_64bits_update(&stream->state, bytes, size_bytes);
}

uint64_t laci_hash_stream_result(const laci_hash_stream *stream) {
  return XXH3_64bits_digest(&stream->state);
}

void laci_hash_stream_destroy(laci_hash_stream *stream) { laci_free(stream); }

laci_hash128 laci_hash128_of(const void *bytes, size_t size_bytes, uint64_t seed) {
  XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size_bytes, seed);
  return (laci_hash128){.high = hash.high64, .low = hash.low64};
}

const char *laci_hash128_text(laci_hash128 hash, char text[33]) {
  (void)snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
  return text;
}

/* SPDX-License-Identifier: Apache-2.0
 * Hashes of bytes (XXH3): fast and equal on every machine, but not secure against deliberate
 * collisions. */
#ifndef LACI_BASE_HASH_H
#define LACI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct laci_hash128 {
  uint64_t high, low;
} laci_hash128;

/** Returns the hash of size_bytes bytes. To hash several parts in a row, pass the hash of the parts
 * before as the seed. */
uint64_t laci_hash64(const void *bytes, size_t size_bytes, uint64_t seed);

/** Computes the hash of bytes that are added part by part; the result is that of laci_hash64 for
 * all of them at once. */
typedef struct laci_hash_stream laci_hash_stream;
/** Creates an empty stream; NULL: no memory. */
laci_hash_stream *laci_hash_stream_create(void);
void laci_hash_stream_begin(laci_hash_stream *stream, uint64_t seed);
void laci_hash_stream_add(laci_hash_stream *stream, const void *bytes, size_t size_bytes);
uint64_t laci_hash_stream_result(const laci_hash_stream *stream);
/** Frees the stream; NULL is fine. */
void laci_hash_stream_destroy(laci_hash_stream *stream);

laci_hash128 laci_hash128_of(const void *bytes, size_t size_bytes, uint64_t seed);

/** Writes 32 hexadecimal digits and the final zero to text; returns text. */
const char *laci_hash128_text(laci_hash128 hash, char text[33]);

#endif

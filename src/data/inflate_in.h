/* SPDX-License-Identifier: Apache-2.0
 * Decompresses the bytes of a deflated zip member, from its beginning on or from a saved state. */
#ifndef LACI_DATA_INFLATE_IN_H
#define LACI_DATA_INFLATE_IN_H

#include <zlib.h>

#include "data/zip.h"

enum { LACI_INFLATE_BLOCK = 1 << 16 };

/** A member that is decompressed from left to right. */
typedef struct laci_inflater {
  z_stream stream;
  laci_reader *reader;
  const laci_zip_member *member;
  size_t taken; /* number of compressed bytes read so far */
  bool end;     /* the stream has ended, is damaged, or has no more bytes */
  uint8_t block[LACI_INFLATE_BLOCK];
} laci_inflater;

/** A saved state: zlib's, with the last 32 KiB before it. */
typedef struct laci_inflate_state {
  z_stream stream;
  size_t taken; /* number of compressed bytes decompressed so far */
} laci_inflate_state;

/** Begins to decompress a member of the archive. Both must outlive the inflater. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_inflater_create(const laci_zip *zip, const laci_zip_member *member,
                                               laci_inflater **inflater, lac_error *err);
/** Goes on from a saved state, which stays as it is. Fails LAC_NO_MEMORY. Any thread. */
LAC_MUST_CHECK lac_status laci_inflater_resume(const laci_zip *zip, const laci_zip_member *member,
                                               const laci_inflate_state *state,
                                               laci_inflater **inflater, lac_error *err);
void laci_inflater_destroy(laci_inflater *inflater); /* NULL is fine */

/** Decompresses the next n bytes. *got: how many there are; fewer than n only at the end of the
 * stream, or where it is damaged. Fails as the reader does. */
LAC_MUST_CHECK lac_status laci_inflater_read(laci_inflater *from, uint8_t *to, size_t n,
                                             size_t *got, lac_error *err);

/** Saves the state; laci_inflate_state_clear frees it. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_inflater_save(const laci_inflater *from, laci_inflate_state *state,
                                             lac_error *err);
void laci_inflate_state_clear(laci_inflate_state *state); /* a zero-initialized one is fine */

/** Extends the checksum `crc` by n more bytes and returns the result. */
uint32_t laci_extend_checksum(uint32_t crc, const uint8_t *bytes, size_t n);

#endif

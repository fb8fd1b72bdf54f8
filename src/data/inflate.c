/* SPDX-License-Identifier: Apache-2.0 */
#include "data/inflate_in.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"

static lac_status alloc_inflater(const laci_zip *zip, const laci_zip_member *member,
                                 laci_inflater **inflater, lac_error *err) {
  laci_inflater *f = laci_alloc(1, sizeof *f);
  *inflater = f;
  if (!f) return laci_fail_memory(err, zip->name);
  f->reader = zip->reader;
  f->member = member;
  return LAC_OK;
}

lac_status laci_inflater_create(const laci_zip *zip, const laci_zip_member *member,
                                laci_inflater **inflater, lac_error *err) {
  lac_status st = alloc_inflater(zip, member, inflater, err);
  if (st || inflateInit2(&(*inflater)->stream, -MAX_WBITS) == Z_OK) return st;
  laci_free(*inflater);
  *inflater = NULL;
  return laci_fail_memory(err, zip->name);
}

/* zlib only reads the state that it copies, though its parameter is not const. */
static bool copy_stream(z_stream *to, const z_stream *from) {
  return inflateCopy(to, (z_stream *)(uintptr_t)from) == Z_OK;
}

lac_status laci_inflater_resume(const laci_zip *zip, const laci_zip_member *member,
                                const laci_inflate_state *state, laci_inflater **inflater,
                                lac_error *err) {
  lac_status st = alloc_inflater(zip, member, inflater, err);
  if (st) return st;
  if (!copy_stream(&(*inflater)->stream, &state->stream)) {
    laci_free(*inflater);
    *inflater = NULL;
    return laci_fail_memory(err, zip->name);
  }
  (*inflater)->stream.avail_in = 0;
  (*inflater)->taken = state->taken;
  return LAC_OK;
}

void laci_inflater_destroy(laci_inflater *inflater) {
  if (!inflater) return;
  (void)inflateEnd(&inflater->stream);
  laci_free(inflater);
}

lac_status laci_inflater_save(const laci_inflater *f, laci_inflate_state *state, lac_error *err) {
  if (!copy_stream(&state->stream, &f->stream)) {
    *state = (laci_inflate_state){.taken = 0};
    return laci_fail_memory(err, f->member->name);
  }
  state->taken = f->taken - f->stream.avail_in;
  return LAC_OK;
}

void laci_inflate_state_clear(laci_inflate_state *state) {
  if (state->stream.state) (void)inflateEnd(&state->stream);
  *state = (laci_inflate_state){.taken = 0};
}

static lac_status read_next_block(laci_inflater *f, lac_error *err) {
  const size_t left = f->member->packed_size - f->taken;
  const size_t n = left < LACI_INFLATE_BLOCK ? left : LACI_INFLATE_BLOCK;
  if (n == 0) return LAC_OK;
  lac_status st = laci_reader_copy_range(f->reader, f->member->offset + f->taken, n, f->block, err);
  if (st) return st;
  f->taken += n;
  f->stream.next_in = f->block;
  f->stream.avail_in = (uInt)n;
  return LAC_OK;
}

lac_status laci_inflater_read(laci_inflater *f, uint8_t *to, size_t n, size_t *got,
                              lac_error *err) {
  f->stream.next_out = to;
  for (*got = 0; *got < n && !f->end;) {
    const size_t step = n - *got < LACI_INFLATE_BLOCK ? n - *got : LACI_INFLATE_BLOCK;
    if (f->stream.avail_in == 0) {
      lac_status st = read_next_block(f, err);
      if (st) return st;
    }
    f->stream.avail_out = (uInt)step;
    f->end = inflate(&f->stream, Z_NO_FLUSH) != Z_OK;
    *got += step - f->stream.avail_out;
  }
  return LAC_OK;
}

/* Works in steps, since zlib's sizes have 32 bits. */
uint32_t laci_extend_checksum(uint32_t crc, const uint8_t *bytes, size_t n) {
  while (n > 0) {
    uInt step = n < (1u << 30) ? (uInt)n : 1u << 30;
    crc = (uint32_t)crc32(crc, bytes, step);
    bytes += step;
    n -= step;
  }
  return crc;
}

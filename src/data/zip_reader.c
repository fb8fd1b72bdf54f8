/* SPDX-License-Identifier: Apache-2.0
 * Reads parts of a deflated member, in any order and from any thread, without holding the whole.
 * States of zlib are kept at equal distances. A part is decompressed from the last state before
 * it. */
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/inflate_in.h"

enum {
  LEAST_DISTANCE = 1 << 20, /* minimum number of bytes between two states */
  MOST_STATES = 1024,
  STATE_BYTES = 48 << 10, /* memory of a state: 32 KiB of the bytes before it, and zlib's tables */
};

typedef struct member_reader {
  laci_zip zip;
  laci_zip_member member;
  size_t distance; /* number of bytes from one state to the next */
  size_t n_states;
  laci_inflate_state *states; /* [n_states] state k is at byte k * distance; never moved, since zlib
                                 keeps their addresses */
} member_reader;

static size_t distance_of_states(const laci_zip_member *m) {
  const size_t equal = m->size_bytes / MOST_STATES + 1;
  return equal < LEAST_DISTANCE ? LEAST_DISTANCE : equal;
}

static size_t count_states(const laci_zip_member *m) {
  return m->size_bytes / distance_of_states(m) + 1;
}

uint64_t laci_zip_member_reader_bytes(const laci_zip_member *m) {
  return (uint64_t)count_states(m) * STATE_BYTES;
}

static lac_status fail_member(const member_reader *r, const char *why, lac_error *err) {
  return laci_fail(err, LAC_BAD_FILE, "%s: %s %s", r->zip.name, r->member.name, why);
}

/* Decompresses the next n bytes only to get past them; extends *crc by them (NULL: no
 * checksum). *got: how many there were. */
static lac_status skip_bytes(laci_inflater *f, size_t n, uint8_t *block, uint32_t *crc, size_t *got,
                             lac_error *err) {
  lac_status st = LAC_OK;
  *got = 0;
  while (*got < n && !f->end && !st) {
    const size_t left = n - *got, step = left < LACI_INFLATE_BLOCK ? left : LACI_INFLATE_BLOCK;
    size_t there = 0;
    st = laci_inflater_read(f, block, step, &there, err);
    if (crc) *crc = laci_extend_checksum(*crc, block, there);
    *got += there;
  }
  return st;
}

/* Decompresses the member once: saves the states, and checks size and checksum. */
static lac_status save_states(member_reader *r, lac_error *err) {
  laci_inflater *f = NULL;
  uint8_t *block = laci_alloc(LACI_INFLATE_BLOCK, 1);
  size_t n = 0, got = 0;
  uint32_t crc = 0;
  lac_status st = block ? laci_inflater_create(&r->zip, &r->member, &f, err)
                        : laci_fail_memory(err, r->zip.name);
  for (; !st && !f->end && r->n_states < count_states(&r->member); r->n_states++) {
    st = laci_inflater_save(f, &r->states[r->n_states], err);
    if (st) break;
    st = skip_bytes(f, r->distance, block, &crc, &got, err);
    n += got;
  }
  if (!st && !f->end) { /* nothing may follow */
    st = skip_bytes(f, 1, block, NULL, &got, err);
    n += got;
  }
  laci_inflater_destroy(f);
  laci_free(block);
  if (!st && n != r->member.size_bytes) st = fail_member(r, "is damaged or cut off", err);
  if (!st && crc != r->member.crc) st = fail_member(r, "has another checksum than its bytes", err);
  return st;
}

static lac_status fetch_part(void *context, size_t offset, size_t size_bytes, void *to,
                             lac_error *err) {
  const member_reader *r = context;
  const size_t state = offset / r->distance;
  laci_inflater *f = NULL;
  size_t got = 0;
  if (size_bytes == 0) return LAC_OK;
  uint8_t *block = laci_alloc(LACI_INFLATE_BLOCK, 1);
  if (!block) return laci_fail_memory(err, r->zip.name);
  lac_status st = laci_inflater_resume(&r->zip, &r->member, &r->states[state], &f, err);
  if (!st) st = skip_bytes(f, offset - state * r->distance, block, NULL, &got, err);
  if (!st) st = laci_inflater_read(f, to, size_bytes, &got, err);
  laci_inflater_destroy(f);
  laci_free(block);
  if (!st && got != size_bytes) st = fail_member(r, "is damaged or cut off", err);
  return st;
}

static void close_member(void *context) {
  member_reader *r = context;
  for (size_t k = 0; k < r->n_states; k++) laci_inflate_state_clear(&r->states[k]);
  laci_free(r->states);
  laci_free(r);
}

lac_status laci_zip_open_member(const laci_zip *zip, const laci_zip_member *m, laci_reader **reader,
                                lac_error *err) {
  *reader = NULL;
  member_reader *r = laci_alloc(1, sizeof *r);
  if (!r) return laci_fail_memory(err, zip->name);
  *r = (member_reader){.zip = *zip, .member = *m, .distance = distance_of_states(m)};
  r->states = laci_alloc(count_states(m), sizeof *r->states);
  lac_status st = r->states ? save_states(r, err) : laci_fail_memory(err, zip->name);
  const laci_origin origin = {.name = zip->name,
                              .size_bytes = m->size_bytes,
                              .fetch = fetch_part,
                              .close = close_member,
                              .context = r};
  if (!st) st = laci_reader_open_callbacks(&origin, reader, err);
  if (st) close_member(r);
  return st;
}

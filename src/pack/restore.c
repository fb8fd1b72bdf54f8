/* SPDX-License-Identifier: Apache-2.0
 * Restores the files of a pack: writes their parts in order, and unpacks one weight at a time. The
 * checksum of the original file is checked at the end. */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "pack/format_in.h"
#include "pack/open_in.h"

enum {
  STEP_BYTES = 1 << 20
}; /* parts that are plain bytes, not packed weights, are copied in steps of this many bytes */

/* Returns the number of bytes that the file's largest weight needs when it is unpacked. A packed
 * weight is at least 1/64 of its dense form, so a small pack cannot require much memory. */
static size_t count_scratch_bytes(const laci_packfile *pack, const laci_packfile_entry *entry) {
  size_t most = STEP_BYTES, tensor = entry->first_tensor;
  for (size_t at = 0; at < entry->n_parts; at++) {
    if (pack->parts[entry->first_part + at] != PACK_PART_TENSOR) continue;
    size_t n = pack->tensors[tensor++].packing.dense_bytes;
    if (n > most) most = n;
  }
  return most;
}

/** The state of restoring a file. */
typedef struct restoring {
  const laci_packfile *pack;
  laci_packfile_sink *sink;
  void *context;
  uint8_t *buffer;
  laci_hash_stream *hash;
} restoring;

static lac_status pass_bytes_to_sink(const restoring *r, size_t n, lac_error *err) {
  laci_hash_stream_add(r->hash, r->buffer, n);
  return r->sink(r->buffer, n, r->context, err);
}

static lac_status restore_unpacked_part(const restoring *r, const laci_packfile_rest *rest,
                                        lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < rest->size_bytes && !st;) {
    size_t left = rest->size_bytes - at, n = left < STEP_BYTES ? left : STEP_BYTES;
    st = laci_packfile_read_bytes(r->pack, rest->bytes + at, n, r->buffer, err);
    if (!st) st = pass_bytes_to_sink(r, n, err);
    at += n;
  }
  return st;
}

static lac_status restore_all_parts(const restoring *r, const laci_packfile_entry *entry,
                                    lac_error *err) {
  size_t rest = entry->first_rest, tensor = entry->first_tensor;
  uint64_t hash = 0;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < entry->n_parts && !st; at++) {
    laci_hash_stream_begin(r->hash, hash);
    if (r->pack->parts[entry->first_part + at] == PACK_PART_REST) {
      st = restore_unpacked_part(r, &r->pack->rests[rest++], err);
    } else {
      const laci_packfile_tensor *t = &r->pack->tensors[tensor++];
      st = laci_packfile_unpack_weight(r->pack, t, 0, t->packing.outer, r->buffer, err);
      if (!st) st = pass_bytes_to_sink(r, t->packing.dense_bytes, err);
    }
    hash = laci_hash_stream_result(r->hash);
  }
  if (st || hash == entry->hash) return st;
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: unpacked, it is not what was packed");
}

lac_status laci_packfile_restore_file(const laci_packfile *pack, size_t file,
                                      laci_packfile_sink *sink, void *context, lac_error *err) {
  const laci_packfile_entry *entry = &pack->files[file];
  restoring r = {.pack = pack,
                 .sink = sink,
                 .context = context,
                 .buffer = laci_alloc(count_scratch_bytes(pack, entry), 1),
                 .hash = laci_hash_stream_create()};
  lac_status st = r.buffer && r.hash ? restore_all_parts(&r, entry, err)
                                     : laci_fail_memory(err, "an unpacked weight");
  laci_hash_stream_destroy(r.hash);
  laci_free(r.buffer);
  return st;
}

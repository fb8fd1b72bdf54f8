/* SPDX-License-Identifier: Apache-2.0
 * The files of a pack again: its pieces in order, weights unpacked one at a time, checked by the
 * checksum of what was packed. */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "pack/open_in.h"

/* Room for the largest weight of the file. A packed weight is at least 1/64 of its dense form, so
 * that a small pack cannot ask for much. */
static size_t scratch_bytes(const laci_packfile *pack, const laci_packfile_entry *entry) {
  size_t most = 0, tensor = entry->first_tensor;
  for (size_t at = 0; at < entry->n_pieces; at++) {
    if (pack->pieces[entry->first_piece + at] != PACK_PIECE_TENSOR) continue;
    size_t n = pack->tensors[tensor++].packing.dense_bytes;
    if (n > most) most = n;
  }
  return most;
}

lac_status laci_packfile_restore(const laci_packfile *pack, size_t file, laci_packfile_sink *sink,
                                 void *context, lac_error *err) {
  const laci_packfile_entry *entry = &pack->files[file];
  size_t rest = entry->first_rest, tensor = entry->first_tensor;
  uint64_t hash = 0;
  uint8_t *dense = laci_alloc(scratch_bytes(pack, entry), 1);
  if (!dense) return laci_fail_memory(err, "an unpacked weight");
  lac_status st = LAC_OK;
  for (size_t at = 0; at < entry->n_pieces && !st; at++) {
    laci_packfile_rest piece;
    if (pack->pieces[entry->first_piece + at] == PACK_PIECE_REST) {
      piece = pack->rests[rest++];
    } else {
      const laci_packfile_tensor *t = &pack->tensors[tensor++];
      piece = (laci_packfile_rest){dense, t->packing.dense_bytes};
      st = laci_unpack(&t->packing, &t->packed, dense, err);
    }
    if (!st) hash = laci_hash64(piece.bytes, piece.size_bytes, hash);
    if (!st) st = sink(piece.bytes, piece.size_bytes, context, err);
  }
  if (!st && hash != entry->hash) {
    st = laci_fail(err, LAC_BAD_FILE, "a damaged pack: unpacked, it is not what was packed");
  }
  laci_free(dense);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Opens a pack where it is: a file of its own, or what the one node of an ONNX model holds
 * (context.c). */
#include "api/pack/pack_in.h"
#include "base/error.h"
#include "base/reader.h"
#include "onnx/onnx.h"
#include "pack/packfile.h"

enum { HEAD_BYTES = 16 };

/** The bytes of a pack in another file, which it owns. */
typedef struct inner {
  laci_reader *outer;
  size_t offset;
} inner;

static lac_status fetch_pack_bytes(void *context, size_t offset, size_t size_bytes, void *to,
                                   lac_error *err) {
  const inner *from = context;
  return laci_reader_copy_range(from->outer, from->offset + offset, size_bytes, to, err);
}

static void close_outer_reader(void *context) {
  inner *from = context;
  laci_reader_close(from->outer);
  laci_free(from);
}

/** Opens the bytes [offset, offset + size_bytes) of `outer` as a reader of their own. On success,
 * closing the new reader also closes `outer`. */
static lac_status open_reader_part(laci_reader *outer, size_t offset, size_t size_bytes,
                                   laci_reader **reader, lac_error *err) {
  const laci_file_id *id = laci_reader_id(outer);
  inner *from = laci_alloc(1, sizeof *from);
  if (!from) return laci_fail_memory(err, "the pack");
  *from = (inner){outer, offset};
  const laci_origin origin = {.name = "the pack",
                              .size_bytes = size_bytes,
                              .id = id ? *id : (laci_file_id){0},
                              .fetch = fetch_pack_bytes,
                              .close = close_outer_reader,
                              .context = from};
  lac_status st = laci_reader_open_callbacks(&origin, reader, err);
  if (st) laci_free(from);
  return st;
}

static bool begins_as_pack(laci_reader *reader) {
  uint8_t head[HEAD_BYTES];
  size_t n = laci_reader_size(reader) < sizeof head ? laci_reader_size(reader) : sizeof head;
  return !laci_reader_copy_range(reader, 0, n, head, NULL) && laci_packfile_has_signature(head, n);
}

lac_status laci_pack_find_in_reader(laci_reader *reader, const char *name, bool whole,
                                    laci_packfile **pack, lac_error *err) {
  size_t offset = 0, n = 0;
  laci_reader *of = reader;
  lac_status st = LAC_OK;
  *pack = NULL;
  if (!begins_as_pack(reader)) {
    if (!laci_onnx_find_ep_context(reader, &offset, &n)) return LAC_OK;
    st = open_reader_part(reader, offset, n, &of, err);
  }
  if (!st && whole) st = laci_reader_materialise_range(of, 0, laci_reader_size(of), err);
  if (!st) return laci_packfile_open_reader(of, name, pack, err);
  laci_reader_close(of);
  return st;
}

lac_status laci_pack_find_in_file(const char *path, bool whole, laci_packfile **pack,
                                  lac_error *err) {
  laci_reader *reader = NULL;
  *pack = NULL;
  lac_status st = laci_reader_open(path, &reader, err);
  /* The file is read as ONNX next, which then reports the failure. */
  if (st) return st == LAC_NO_MEMORY ? st : LAC_OK;
  st = laci_pack_find_in_reader(reader, path, whole, pack, err);
  if (!st && !*pack) laci_reader_close(reader);
  return st;
}

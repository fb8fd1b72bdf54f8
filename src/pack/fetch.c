/* SPDX-License-Identifier: Apache-2.0
 * Reads a range of an original file from a pack, without reading the rest of the pack.
 *
 * An original file is a sequence of parts: plain bytes and packed weights. A range is copied from
 * the parts that it touches. Of a packed weight, only the outer indices that the range touches are
 * unpacked. Their rows are consecutive in each of the three packed arrays, so they form a packed
 * weight, too. Next: open.c, sparse/pack.h. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "pack/format_in.h"
#include "pack/open_in.h"

/** A part of an original file, and its position in that file. */
typedef struct part {
  const laci_packfile *pack;
  uint64_t offset, end; /* range of the part in the original file */
  uint8_t *to;
} part;

lac_status laci_packfile_read_bytes(const laci_packfile *pack, const void *bytes, size_t n,
                                    void *to, lac_error *err) {
  size_t offset = (size_t)((const uint8_t *)bytes - laci_reader_bytes(pack->reader));
  return laci_reader_copy_range(pack->reader, offset, n, to, err);
}

lac_status laci_packfile_read_rows(const laci_packfile *pack, size_t tensor, int64_t first,
                                   int64_t n, const laci_packed *to, lac_error *err) {
  const laci_packfile_tensor *t = &pack->tensors[tensor];
  const size_t rows = (size_t)t->packing.n_rows, before = (size_t)first, some = (size_t)n;
  const size_t values = t->packing.values_bytes / rows, index = t->packing.index_bytes / rows;
  lac_status st = laci_packfile_read_bytes(pack, t->packed.values + before * values, some * values,
                                           to->values, err);
  if (st) return st;
  return laci_packfile_read_bytes(pack, (const uint8_t *)t->packed.index + before * index,
                                  some * index, to->index, err);
}

/** Returns a description of n outer indices of a weight, as if they were the whole weight. */
static laci_packing make_packing_of_rows(const laci_packing *p, int64_t n) {
  laci_packing some = *p;
  size_t all = (size_t)p->outer, few = (size_t)n;
  some.outer = n;
  some.n_rows = n * p->inner;
  some.dense_bytes = p->dense_bytes / all * few;
  some.values_bytes = p->values_bytes / all * few;
  some.index_bytes = p->index_bytes / all * few;
  some.signs_bytes = p->signs_bytes / all * few;
  return some;
}

lac_status laci_packfile_unpack_weight(const laci_packfile *pack, const laci_packfile_tensor *t,
                                       int64_t first, int64_t n, uint8_t *dense, lac_error *err) {
  const laci_packing before = make_packing_of_rows(&t->packing, first),
                     some = make_packing_of_rows(&t->packing, n);
  const uint8_t *index = (const uint8_t *)t->packed.index,
                *signs = (const uint8_t *)t->packed.signs;
  size_t n_signs = signs ? some.signs_bytes : 0;
  uint32_t *words = laci_alloc(some.index_bytes + n_signs, 1);
  uint8_t *values = laci_alloc(some.values_bytes, 1);
  lac_status st = words && values ? LAC_OK : laci_fail_memory(err, some.name);
  laci_packed_view view = {.values = values, .index = words};
  if (!st)
    st = laci_packfile_read_bytes(pack, t->packed.values + before.values_bytes, some.values_bytes,
                                  values, err);
  if (!st)
    st = laci_packfile_read_bytes(pack, index + before.index_bytes, some.index_bytes, words, err);
  if (!st && signs) {
    view.signs = words + some.index_bytes / sizeof *words;
    st = laci_packfile_read_bytes(pack, signs + before.signs_bytes, n_signs,
                                  words + some.index_bytes / sizeof *words, err);
  }
  if (!st) st = laci_unpack_weight(&some, &view, dense, err);
  laci_free(values);
  laci_free(words);
  return st;
}

/** Copies n bytes of the dense weight, beginning at byte `from`. Only the rows that they touch are
 * unpacked. */
static lac_status unpack_weight_range(const part *p, const laci_packfile_tensor *t, size_t from,
                                      size_t n, uint8_t *to, lac_error *err) {
  size_t each = t->packing.dense_bytes / (size_t)t->packing.outer; /* number of bytes of the dense
                                                                      weight for each outer index */
  size_t first = from / each, last = (from + n - 1) / each;
  int64_t n_outer = (int64_t)(last - first + 1);
  if (from % each == 0 && n % each == 0) {
    return laci_packfile_unpack_weight(p->pack, t, (int64_t)first, n_outer, to, err);
  }
  uint8_t *dense = laci_alloc((size_t)n_outer, each);
  if (!dense) return laci_fail_memory(err, t->packing.name);
  lac_status st = laci_packfile_unpack_weight(p->pack, t, (int64_t)first, n_outer, dense, err);
  if (!st) memcpy(to, dense + (from - first * each), n);
  laci_free(dense);
  return st;
}

lac_status laci_packfile_read_file_range(const laci_packfile *pack, size_t file, size_t offset,
                                         size_t size_bytes, void *to, lac_error *err) {
  const laci_packfile_entry *entry = &pack->files[file];
  const part p = {.pack = pack, .offset = offset, .end = offset + size_bytes, .to = to};
  size_t rest = entry->first_rest, tensor = entry->first_tensor;
  uint64_t begin = 0;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < entry->n_parts && begin < p.end && !st; at++) {
    bool plain = pack->parts[entry->first_part + at] == PACK_PART_REST;
    const laci_packfile_rest *r = plain ? &pack->rests[rest++] : NULL;
    const laci_packfile_tensor *t = plain ? NULL : &pack->tensors[tensor++];
    uint64_t end = begin + (plain ? r->size_bytes : t->packing.dense_bytes);
    uint64_t from = p.offset > begin ? p.offset : begin, until = p.end < end ? p.end : end;
    if (from < until) {
      uint8_t *out = p.to + (from - p.offset);
      size_t skip = (size_t)(from - begin), n = (size_t)(until - from);
      st = plain ? laci_packfile_read_bytes(pack, r->bytes + skip, n, out, err)
                 : unpack_weight_range(&p, t, skip, n, out, err);
    }
    begin = end;
  }
  return st;
}

lac_status laci_packfile_copy_unpacked_parts(const laci_packfile *pack, size_t file, uint8_t *to,
                                             lac_error *err) {
  const laci_packfile_entry *entry = &pack->files[file];
  size_t rest = entry->first_rest, tensor = entry->first_tensor;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < entry->n_parts && !st; at++) {
    if (pack->parts[entry->first_part + at] == PACK_PART_REST) {
      const laci_packfile_rest *r = &pack->rests[rest++];
      st = laci_packfile_read_bytes(pack, r->bytes, r->size_bytes, to, err);
      to += r->size_bytes;
    } else {
      to += pack->tensors[tensor++].packing.dense_bytes;
    }
  }
  return st;
}

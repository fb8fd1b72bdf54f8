/* SPDX-License-Identifier: Apache-2.0
 * Writes a pack from its first byte to its last, in one pass: the parts of the files in order, then
 * the small tables that describe them, the directory and the tail.
 *
 * It needs no total before it begins, and has at most one weight in memory at a time. */
#include "pack/packfile.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "pack/format_in.h"

typedef struct packer {
  const laci_packfile_input *input;
  const char *path;
  laci_writer *writer;
  uint64_t at; /* number of bytes of the pack that are written so far */
  pack_section *sections;
  size_t n_sections, section_capacity;
  uint8_t *names, *parts;
  size_t n_names, n_parts;
  pack_file *files;
  pack_tensor *tensors;
} packer;

static pack_word make_padded_word(const char *text) {
  pack_word word = {{0}};
  for (size_t i = 0; i < sizeof word.text && text[i]; i++) word.text[i] = text[i];
  return word;
}

static lac_status append_bytes(packer *k, const void *bytes, size_t size_bytes, lac_error *err) {
  k->at += size_bytes;
  return laci_writer_append(k->writer, bytes, size_bytes, err);
}

static lac_status align_output(packer *k, lac_error *err) {
  static const uint8_t zeros[PACK_ALIGNMENT];
  return append_bytes(k, zeros, (size_t)(-k->at % PACK_ALIGNMENT), err);
}

static lac_status add_section(packer *k, const char *kind, const void *bytes, size_t size_bytes,
                              lac_error *err) {
  void *array = k->sections;
  if (!laci_grow(&array, k->n_sections, &k->section_capacity, sizeof *k->sections)) {
    return laci_fail_memory(err, k->path);
  }
  k->sections = array;
  k->sections[k->n_sections++] = (pack_section){.kind = make_padded_word(kind),
                                                .offset = k->at,
                                                .size_bytes = size_bytes,
                                                .hash = laci_hash64(bytes, size_bytes, 0)};
  lac_status st = append_bytes(k, bytes, size_bytes, err);
  return st ? st : align_output(k, err);
}

static uint64_t add_name(packer *k, const char *name) {
  size_t at = k->n_names, n = strlen(name) + 1;
  memcpy(k->names + at, name, n);
  k->n_names += n;
  return at;
}

/* ---- Parts ---- */

/* Checks that unpacking gives the weight again, bit by bit. */
static lac_status check_unpacks_to_weight(const laci_packfile_weight *weight, const uint8_t *dense,
                                          const laci_packed *packed, lac_error *err) {
  const laci_packing *p = &weight->packing;
  const laci_packed_view view = {packed->values, packed->index, packed->signs};
  uint8_t *again = laci_alloc(p->dense_bytes, 1);
  if (!again) return laci_fail_memory(err, p->name);
  lac_status st = laci_unpack_weight(p, &view, again, err);
  if (!st && memcmp(dense, again, p->dense_bytes) != 0) {
    st = laci_fail(err, LAC_INTERNAL, "%s: unpacked it would not be what it was", p->name);
  }
  laci_free(again);
  return st;
}

static lac_status add_weight(packer *k, const laci_packfile_weight *weight, lac_error *err) {
  const laci_packing *p = &weight->packing;
  const uint8_t *dense = k->input->files[weight->file].bytes + weight->offset;
  const laci_packed packed = {
      .values = laci_alloc(p->values_bytes, 1),
      .index = laci_alloc(p->index_bytes, 1),
      .signs = weight->needs_signs ? laci_alloc(p->signs_bytes, 1) : NULL,
  };
  lac_status st = LAC_OK;
  if (!packed.values || !packed.index || (weight->needs_signs && !packed.signs)) {
    st = laci_fail_memory(err, p->name);
    goto out;
  }
  laci_pack_weight(p, dense, &packed);
  st = check_unpacks_to_weight(weight, dense, &packed, err);
  if (!st) st = add_section(k, "values", packed.values, p->values_bytes, err);
  if (!st) st = add_section(k, "index", packed.index, p->index_bytes, err);
  if (!st && packed.signs) st = add_section(k, "signs", packed.signs, p->signs_bytes, err);
  if (st) goto out;
  k->tensors[weight - k->input->weights] =
      (pack_tensor){.name = add_name(k, p->name),
                    .dtype = make_padded_word(pack_dtype_word(p->dtype)),
                    .layout = make_padded_word(PACK_LAYOUT),
                    .n = (uint32_t)p->pattern.n,
                    .m = (uint32_t)p->pattern.m,
                    .outer = p->outer,
                    .columns = p->columns,
                    .inner = p->inner,
                    .run = p->run,
                    .fill = p->fill};
out:
  laci_free(packed.values);
  laci_free(packed.index);
  laci_free(packed.signs);
  return st;
}

static void append_part_record(packer *k, pack_file *file, char kind, const uint8_t *bytes,
                               size_t n) {
  k->parts[k->n_parts++] = (uint8_t)kind;
  file->n_parts++;
  file->hash = laci_hash64(bytes, n, file->hash);
}

/* Writes the parts of one file. *next is the index of its first weight in k->input->weights; it is
 * set to that of the next file's first weight. */
static lac_status add_file(packer *k, size_t id, size_t *next, lac_error *err) {
  const laci_packfile_part *part = &k->input->files[id];
  pack_file *file = &k->files[id];
  size_t done = 0;
  lac_status st = LAC_OK;
  *file = (pack_file){.name = add_name(k, part->name), .size_bytes = part->size_bytes};
  while (done < part->size_bytes && !st) {
    bool is_last = *next == k->input->n_weights || k->input->weights[*next].file != id;
    const laci_packfile_weight *weight = is_last ? NULL : &k->input->weights[*next];
    size_t n = (weight ? weight->offset : part->size_bytes) - done;
    if (n) {
      append_part_record(k, file, PACK_PART_REST, part->bytes + done, n);
      st = add_section(k, "rest", part->bytes + done, n, err);
      done += n;
    }
    if (st || !weight) continue;
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    append_part_record(k, file, PACK_PART_TENSOR, part->bytes + done, weight->packing.dense_bytes);
    st = add_weight(k, weight, err);
    done += weight->packing.dense_bytes;
    ++*next;
  }
  return st;
}

/* ---- Writing the whole file ---- */

static lac_status begin_pack(packer *k, lac_error *err) {
  const laci_packfile_input *input = k->input;
  size_t n_names = 0;
  for (size_t at = 0; at < input->n_files; at++) n_names += strlen(input->files[at].name) + 1;
  for (size_t at = 0; at < input->n_weights; at++) {
    n_names += strlen(input->weights[at].packing.name) + 1;
  }
  k->names = laci_alloc(n_names, 1);
  k->parts = laci_alloc(input->n_files + 2 * input->n_weights, 1);
  k->files = laci_alloc(input->n_files, sizeof *k->files);
  k->tensors = laci_alloc(input->n_weights, sizeof *k->tensors);
  if (!k->names || !k->parts || !k->files || !k->tensors) return laci_fail_memory(err, k->path);
  pack_head head = {.version = PACK_VERSION, .alignment = PACK_ALIGNMENT};
  memcpy(head.magic.text, PACK_HEAD_MAGIC, sizeof head.magic);
  head.hash = laci_hash64(&head, offsetof(pack_head, hash), 0);
  return append_bytes(k, &head, sizeof head, err);
}

static lac_status end_pack(packer *k, lac_error *err) {
  const laci_packfile_input *input = k->input;
  lac_status st = add_section(k, "names", k->names, k->n_names, err);
  if (!st) st = add_section(k, "files", k->files, input->n_files * sizeof *k->files, err);
  if (!st) st = add_section(k, "pieces", k->parts, k->n_parts, err);
  if (!st) st = add_section(k, "tensors", k->tensors, input->n_weights * sizeof *k->tensors, err);
  if (st) return st;
  size_t directory_bytes = k->n_sections * sizeof *k->sections;
  pack_tail tail = {.directory_at = k->at,
                    .n_sections = k->n_sections,
                    .directory_hash = laci_hash64(k->sections, directory_bytes, 0)};
  st = append_bytes(k, k->sections, directory_bytes, err);
  if (!st) st = align_output(k, err);
  tail.file_bytes = k->at + sizeof tail;
  memcpy(tail.magic.text, PACK_TAIL_MAGIC, sizeof tail.magic);
  tail.hash = laci_hash64(&tail, offsetof(pack_tail, hash), 0);
  return st ? st : append_bytes(k, &tail, sizeof tail, err);
}

lac_status laci_packfile_write(const laci_packfile_input *input, const char *path,
                               const laci_write_options *options, uint64_t *size_bytes,
                               lac_error *err) {
  packer k = {.input = input, .path = path};
  size_t next = 0;
  lac_status st = laci_writer_open(path, options, &k.writer, err);
  if (!st) st = begin_pack(&k, err);
  for (size_t id = 0; id < input->n_files && !st; id++) st = add_file(&k, id, &next, err);
  if (!st) st = end_pack(&k, err);
  if (!st) st = laci_writer_finish(k.writer, err);
  if (!st) st = laci_writer_commit(k.writer, err);
  *size_bytes = k.at;
  laci_writer_destroy(k.writer);
  laci_free(k.sections);
  laci_free(k.names);
  laci_free(k.parts);
  laci_free(k.files);
  laci_free(k.tensors);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Opens a pack and checks all of it, so that nothing must be checked later.
 *
 * It checks from the outside in: head and tail, the directory, each section's offset and checksum,
 * the zeros between sections, the order of sections, and last the consistency of the records. A
 * change of any byte of a pack is detected. Tables are copied to memory once; whatever is read
 * again later is compared with what was read here (laci_reader_watch_for_changes).
 * Next: restore.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "pack/format_in.h"
#include "pack/open_in.h"

/* ---- Head and tail of the file ---- */

static bool is_word_equal(const pack_word *word, const char *text) {
  return strncmp(word->text, text, sizeof word->text) == 0;
}

static bool are_zeros(const uint8_t *bytes, uint64_t n) {
  uint8_t any = 0;
  for (uint64_t at = 0; at < n; at++) any |= bytes[at];
  return any == 0;
}

static uint64_t align_offset(uint64_t at) {
  return (at + PACK_ALIGNMENT - 1) / PACK_ALIGNMENT * PACK_ALIGNMENT;
}

static lac_status check_file_head(const laci_packfile *pack, lac_error *err) {
  pack_head head = {0};
  if (laci_reader_size(pack->reader) >= sizeof head) {
    lac_status st = laci_reader_copy_range(pack->reader, 0, sizeof head, &head, err);
    if (st) return st;
  }
  if (memcmp(head.magic.text, PACK_HEAD_MAGIC, sizeof head.magic) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "not a pack: it does not start as one");
  }
  if (head.hash != laci_hash64(&head, offsetof(pack_head, hash), 0)) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: its head does not fit its checksum");
  }
  if (head.version != PACK_VERSION || head.alignment != PACK_ALIGNMENT) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a pack of version %" PRIu32 " with sections at multiples of %" PRIu32
                     "; wanted version %d and %d",
                     head.version, head.alignment, PACK_VERSION, PACK_ALIGNMENT);
  }
  if (are_zeros(head.zero, sizeof head.zero)) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: its head holds what it should not");
}

static lac_status check_file_tail(const laci_packfile *pack, pack_tail *tail, lac_error *err) {
  uint64_t size = laci_reader_size(pack->reader);
  if (size < sizeof(pack_head) + sizeof *tail) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: %" PRIu64 " bytes, cut short", size);
  }
  lac_status st =
      laci_reader_copy_range(pack->reader, size - sizeof *tail, sizeof *tail, tail, err);
  if (st) return st;
  if (memcmp(tail->magic.text, PACK_TAIL_MAGIC, sizeof tail->magic) != 0 ||
      tail->hash != laci_hash64(tail, offsetof(pack_tail, hash), 0)) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: it does not end as one (cut short?)");
  }
  if (tail->file_bytes != size) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: %" PRIu64 " bytes, wanted %" PRIu64, size,
                     tail->file_bytes);
  }
  uint64_t capacity = size - sizeof *tail, at = tail->directory_at;
  if (at < sizeof(pack_head) || at > capacity || at % PACK_ALIGNMENT ||
      tail->n_sections > (capacity - at) / sizeof(pack_section) ||
      align_offset(at + tail->n_sections * sizeof(pack_section)) != capacity ||
      !are_zeros(tail->zero, sizeof tail->zero)) {
    return laci_fail(err, LAC_BAD_FILE,
                     "a damaged pack: a directory of %" PRIu64 " sections at %" PRIu64
                     " does not fit in %" PRIu64 " bytes",
                     tail->n_sections, at, size);
  }
  return LAC_OK;
}

/** Reads the directory, and checks it and the zeros after it, up to the tail. The caller frees
 * *directory. */
static lac_status read_directory(const laci_packfile *pack, const pack_tail *tail,
                                 uint8_t **directory, lac_error *err) {
  size_t n = (size_t)tail->n_sections * sizeof(pack_section), capacity = (size_t)align_offset(n);
  *directory = laci_alloc(capacity, 1);
  if (!*directory) return laci_fail_memory(err, "the pack's directory");
  lac_status st =
      laci_reader_copy_range(pack->reader, (size_t)tail->directory_at, capacity, *directory, err);
  if (st) return st;
  if (tail->directory_hash == laci_hash64(*directory, n, 0) &&
      are_zeros(*directory + n, capacity - n)) {
    return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: its directory does not fit its checksum");
}

/* ---- Sections ---- */

enum { STEP_BYTES = 1 << 20 }; /* sections are read in steps of this many bytes */

/** The state of reading the sections in the order of the directory. Each section is checked when it
 * is read. */
typedef struct section_reader {
  laci_packfile *pack;
  const uint8_t *directory;
  uint64_t n_left;
  uint64_t at, end;  /* at: offset where the next section must begin. end: offset where the
                        directory begins */
  uint8_t *capacity; /* [STEP_BYTES] buffer through which sections are read */
  laci_hash_stream *hash;
} section_reader;

static pack_section peek_section(const section_reader *r) {
  pack_section section = {0};
  if (r->n_left) memcpy(&section, r->directory, sizeof section);
  return section;
}

static bool is_next_section_of_kind(const section_reader *r, const char *kind) {
  const pack_section section = peek_section(r);
  return r->n_left && is_word_equal(&section.kind, kind);
}

/** Reads the next entry of the directory, *s. It must be a section of this kind, and begin where
 * the last section ended. */
static lac_status advance_to_section(section_reader *r, const char *kind, pack_section *s,
                                     lac_error *err) {
  *s = peek_section(r);
  if (!is_next_section_of_kind(r, kind)) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: section '%.8s', wanted '%s'", s->kind.text,
                     kind);
  }
  if (s->offset != r->at || s->size_bytes > r->end - r->at ||
      align_offset(s->offset + s->size_bytes) > r->end) {
    return laci_fail(err, LAC_BAD_FILE,
                     "a damaged pack: section '%s' of %" PRIu64 " bytes at %" PRIu64
                     ", wanted at %" PRIu64 " and before %" PRIu64,
                     kind, s->size_bytes, s->offset, r->at, r->end);
  }
  r->at = align_offset(s->offset + s->size_bytes);
  r->directory += sizeof *s;
  r->n_left--;
  return LAC_OK;
}

/** Checks that the computed hash is the section's, and that only zeros follow up to the next
 * section. */
static lac_status check_section_hash(section_reader *r, const char *kind, const pack_section *s,
                                     uint64_t hash, lac_error *err) {
  uint8_t zeros[PACK_ALIGNMENT];
  uint64_t end = s->offset + s->size_bytes;
  size_t n = (size_t)(r->at - end);
  lac_status st = laci_reader_copy_range(r->pack->reader, (size_t)end, n, zeros, err);
  if (st || (hash == s->hash && are_zeros(zeros, n))) return st;
  return laci_fail(err, LAC_BAD_FILE,
                   "a damaged pack: section '%s' at %" PRIu64 " does not fit its checksum", kind,
                   s->offset);
}

/** Checks a section whose content stays in the file. Sets *bytes to the address that the reader
 * reserves for it, and *size_bytes to its size. */
static lac_status check_and_locate_section(section_reader *r, const char *kind,
                                           const uint8_t **bytes, uint64_t *size_bytes,
                                           lac_error *err) {
  pack_section s;
  lac_status st = advance_to_section(r, kind, &s, err);
  if (st) return st;
  *bytes = laci_reader_bytes(r->pack->reader) + s.offset;
  *size_bytes = s.size_bytes;
  laci_hash_stream_begin(r->hash, 0);
  for (uint64_t at = 0; at < s.size_bytes && !st; at += STEP_BYTES) {
    uint64_t left = s.size_bytes - at;
    size_t n = left < STEP_BYTES ? (size_t)left : STEP_BYTES;
    st = laci_reader_copy_range(r->pack->reader, (size_t)(s.offset + at), n, r->capacity, err);
    if (!st) laci_hash_stream_add(r->hash, r->capacity, n);
  }
  return st ? st : check_section_hash(r, kind, &s, laci_hash_stream_result(r->hash), err);
}

/** Reads a section that is a small table into memory: *bytes, which lives as long as the pack. */
static lac_status read_table_section(section_reader *r, const char *kind, const uint8_t **bytes,
                                     uint64_t *size_bytes, lac_error *err) {
  pack_section s;
  lac_status st = advance_to_section(r, kind, &s, err);
  if (st) return st;
  uint8_t *table = laci_arena_alloc(&r->pack->tables, (size_t)s.size_bytes, 1);
  if (!table) return laci_fail_memory(err, "the pack's tables");
  st = laci_reader_copy_range(r->pack->reader, (size_t)s.offset, (size_t)s.size_bytes, table, err);
  if (st) return st;
  *bytes = table;
  *size_bytes = s.size_bytes;
  return check_section_hash(r, kind, &s, laci_hash64(table, (size_t)s.size_bytes, 0), err);
}

/** Addresses and sizes of a packed weight's three arrays. The record of the weight comes later in
 * the file. */
typedef struct arrays {
  const uint8_t *values, *index, *signs;
  uint64_t values_bytes, index_bytes, signs_bytes;
} arrays;

typedef struct tables {
  arrays *weights; /* [n_tensors] arrays of the packed weights, in the order of the sections */
  const uint8_t *names, *files, *parts, *tensors;
  uint64_t names_bytes, files_bytes, parts_bytes, tensors_bytes;
} tables;

/* Checks the sections of all parts, plain bytes and packed weights. The directory's number of
 * sections is the limit for the number of each. */
static lac_status check_part_sections(section_reader *r, tables *t, lac_error *err) {
  laci_packfile *pack = r->pack;
  pack->rests = laci_alloc((size_t)r->n_left, sizeof *pack->rests);
  t->weights = laci_alloc((size_t)r->n_left, sizeof *t->weights);
  if (!pack->rests || !t->weights) return laci_fail_memory(err, "the pack's directory");
  lac_status st = LAC_OK;
  while (!st && r->n_left && !is_next_section_of_kind(r, "names")) {
    if (is_next_section_of_kind(r, "rest")) {
      uint64_t size;
      laci_packfile_rest *rest = &pack->rests[pack->n_rests++];
      st = check_and_locate_section(r, "rest", &rest->bytes, &size, err);
      if (!st) rest->size_bytes = (size_t)size;
      continue;
    }
    arrays *a = &t->weights[pack->n_tensors++];
    st = check_and_locate_section(r, "values", &a->values, &a->values_bytes, err);
    if (!st) st = check_and_locate_section(r, "index", &a->index, &a->index_bytes, err);
    if (!st && is_next_section_of_kind(r, "signs"))
      st = check_and_locate_section(r, "signs", &a->signs, &a->signs_bytes, err);
  }
  return st;
}

static lac_status read_all_tables(section_reader *r, tables *t, lac_error *err) {
  lac_status st = check_part_sections(r, t, err);
  if (!st) st = read_table_section(r, "names", &t->names, &t->names_bytes, err);
  if (!st) st = read_table_section(r, "files", &t->files, &t->files_bytes, err);
  if (!st) st = read_table_section(r, "pieces", &t->parts, &t->parts_bytes, err);
  if (!st) st = read_table_section(r, "tensors", &t->tensors, &t->tensors_bytes, err);
  if (st) return st;
  if (r->n_left || r->at != r->end || t->files_bytes % sizeof(pack_file) || t->files_bytes == 0 ||
      t->tensors_bytes != r->pack->n_tensors * sizeof(pack_tensor)) {
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: its tables do not describe its sections");
  }
  if (t->names_bytes && t->names[t->names_bytes - 1] == 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: a name without end");
}

/* ---- Records ---- */

static lac_status read_record_name(const tables *t, uint64_t at, const char **name,
                                   lac_error *err) {
  if (at >= t->names_bytes)
    return laci_fail(err, LAC_BAD_FILE, "a damaged pack: a name is missing");
  *name = (const char *)t->names + at;
  return LAC_OK;
}

static lac_status find_record_dtype(const pack_tensor *record, const char *name, lac_dtype *dtype,
                                    lac_error *err) {
  for (int code = 1; code < LAC_DTYPE_COUNT; code++) {
    if (!is_word_equal(&record->dtype, pack_dtype_word((lac_dtype)code))) continue;
    *dtype = (lac_dtype)code;
    return LAC_OK;
  }
  return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type '%.8s'", name, record->dtype.text);
}

static lac_status read_tensor_record(laci_packfile *pack, const tables *t, size_t at,
                                     lac_error *err) {
  const arrays *a = &t->weights[at];
  laci_packfile_tensor *made = &pack->tensors[at];
  laci_weight_view shape = {0};
  pack_tensor record;
  memcpy(&record, t->tensors + at * sizeof record, sizeof record);
  lac_status st = read_record_name(t, record.name, &shape.name, err);
  if (!st) st = find_record_dtype(&record, shape.name, &shape.dtype, err);
  if (!st && !is_word_equal(&record.layout, PACK_LAYOUT)) {
    st = laci_fail(err, LAC_UNSUPPORTED, "%s: layout '%.8s', wanted '%s'", shape.name,
                   record.layout.text, PACK_LAYOUT);
  }
  if (st) return st;
  shape.outer = record.outer;
  shape.columns = record.columns;
  shape.inner = record.inner;
  shape.run = record.run;
  laci_pattern pattern = {record.n > 64 ? 0 : (int)record.n, record.m > 64 ? 0 : (int)record.m};
  st = laci_packing_init(&made->packing, &shape, pattern, record.fill, err);
  if (st) return laci_fail_with_prefix(err, LAC_BAD_FILE, "a damaged pack");
  const laci_packing *p = &made->packing;
  if (a->values_bytes != p->values_bytes || a->index_bytes != p->index_bytes ||
      (a->signs && a->signs_bytes != p->signs_bytes)) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: %" PRIu64 " bytes of values and %" PRIu64
                     " of places, wanted %zu and %zu",
                     shape.name, a->values_bytes, a->index_bytes, p->values_bytes, p->index_bytes);
  }
  made->packed = (laci_packed_view){.values = a->values,
                                    .index = (const uint32_t *)(const void *)a->index,
                                    .signs = (const uint32_t *)(const void *)a->signs};
  return LAC_OK;
}

/* Checks the name of data file number `at`, which is restored into the folder of the first file. It
 * must be a plain name without a folder. Names must ascend, so that none occurs twice. */
static lac_status check_file_name(const laci_packfile *pack, size_t at, lac_error *err) {
  const char *name = pack->files[at].name;
  bool good = (at == 0) == (name[0] == '\0') && !strchr(name, '/') && strcmp(name, ".") != 0 &&
              strcmp(name, "..") != 0 && strlen(name) < 256;
  if (at > 1) good = good && strcmp(pack->files[at - 1].name, name) < 0;
  if (good) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: '%.256s' cannot be the name of its file %zu",
                   name, at);
}

/** Numbers of parts, of plain byte ranges ("rests") and of packed weights that belong to the files
 * read so far. */
typedef struct progress {
  size_t part, rest, tensor;
} progress;

/* Checks that all parts of the file exist, and that their sizes add up to the file's size. */
static lac_status check_parts_of_file(laci_packfile *pack, laci_packfile_entry *file,
                                      uint64_t n_parts, progress *done, lac_error *err) {
  uint64_t size = 0;
  bool good = n_parts <= pack->n_parts - done->part;
  file->first_part = done->part;
  file->first_rest = done->rest;
  file->first_tensor = done->tensor;
  file->n_parts = good ? (size_t)n_parts : 0;
  for (size_t at = 0; at < file->n_parts && good; at++) {
    uint8_t kind = pack->parts[done->part++];
    uint64_t more = 0;
    if (kind == PACK_PART_REST && done->rest < pack->n_rests) {
      more = pack->rests[done->rest++].size_bytes;
    } else if (kind == PACK_PART_TENSOR && done->tensor < pack->n_tensors) {
      more = pack->tensors[done->tensor++].packing.dense_bytes;
    } else {
      good = false;
    }
    good = good && !__builtin_add_overflow(size, more, &size) && size <= SIZE_MAX / 2;
  }
  if (good && size == file->size_bytes) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: its parts do not make up its files");
}

static lac_status read_file_and_tensor_records(laci_packfile *pack, const tables *t,
                                               lac_error *err) {
  progress done = {0};
  pack->n_files = (size_t)t->files_bytes / sizeof(pack_file);
  pack->parts = t->parts;
  pack->n_parts = (size_t)t->parts_bytes;
  pack->files = laci_alloc(pack->n_files, sizeof *pack->files);
  pack->tensors = laci_alloc(pack->n_tensors, sizeof *pack->tensors);
  if (!pack->files || !pack->tensors) return laci_fail_memory(err, "the pack's tables");
  lac_status st = LAC_OK;
  for (size_t at = 0; at < pack->n_tensors && !st; at++) st = read_tensor_record(pack, t, at, err);
  for (size_t at = 0; at < pack->n_files && !st; at++) {
    laci_packfile_entry *file = &pack->files[at];
    pack_file record;
    memcpy(&record, t->files + at * sizeof record, sizeof record);
    file->size_bytes = record.size_bytes;
    file->hash = record.hash;
    st = read_record_name(t, record.name, &file->name, err);
    if (!st) st = check_file_name(pack, at, err);
    if (!st) st = check_parts_of_file(pack, file, record.n_parts, &done, err);
  }
  if (st || (done.part == pack->n_parts && done.rest == pack->n_rests &&
             done.tensor == pack->n_tensors)) {
    return st;
  }
  return laci_fail(err, LAC_BAD_FILE, "a damaged pack: it holds parts of no file");
}

/* ---- Opening ---- */

static lac_status read_and_check_pack(laci_packfile *pack, lac_error *err) {
  pack_tail tail;
  tables t = {0};
  uint8_t *directory = NULL;
  lac_status st = check_file_head(pack, err);
  if (!st) st = check_file_tail(pack, &tail, err);
  if (!st) st = read_directory(pack, &tail, &directory, err);
  if (st) {
    laci_free(directory);
    return st;
  }
  section_reader r = {.pack = pack,
                      .directory = directory,
                      .n_left = tail.n_sections,
                      .at = sizeof(pack_head),
                      .end = tail.directory_at,
                      .capacity = laci_alloc(STEP_BYTES, 1),
                      .hash = laci_hash_stream_create()};
  if (!r.capacity || !r.hash) st = laci_fail_memory(err, "the pack");
  if (!st) st = read_all_tables(&r, &t, err);
  if (!st) st = read_file_and_tensor_records(pack, &t, err);
  laci_free(t.weights);
  laci_free(r.capacity);
  laci_hash_stream_destroy(r.hash);
  laci_free(directory);
  return st;
}

bool laci_packfile_has_signature(const void *first, size_t n) {
  const size_t n_magic = sizeof(pack_word);
  return n >= n_magic && memcmp(first, PACK_HEAD_MAGIC, n_magic) == 0;
}

/** Opens a pack from a reader, and takes ownership of the reader, even on failure. path: for
 * messages, or NULL. */
static lac_status open_owned_reader(laci_reader *file, const char *path, laci_packfile **pack,
                                    lac_error *err) {
  laci_packfile *made = laci_alloc(1, sizeof *made);
  if (!made) {
    laci_reader_close(file);
    return laci_fail_memory(err, "the pack");
  }
  made->reader = file;
  lac_status st = read_and_check_pack(made, err);
  if (st && path) st = laci_fail_with_prefix(err, st, "%s", path);
  if (st) laci_packfile_close(made);
  else *pack = made;
  return st;
}

/** Opens a pack from a file. whole: all of it is kept in memory. Otherwise, what is read again
 * later is compared with the first read. */
static lac_status open_file(const char *path, bool whole, laci_packfile **pack, lac_error *err) {
  laci_reader *file;
  *pack = NULL;
  lac_status st = laci_reader_open(path, &file, err);
  if (st) return st;
  st = whole ? laci_reader_materialise_range(file, 0, laci_reader_size(file), err)
             : laci_reader_watch_for_changes(file, err);
  if (!st) return open_owned_reader(file, path, pack, err);
  laci_reader_close(file);
  return st;
}

lac_status laci_packfile_open_reader(laci_reader *reader, const char *name, laci_packfile **pack,
                                     lac_error *err) {
  *pack = NULL;
  lac_status st = laci_reader_watch_for_changes(reader, err);
  if (!st) return open_owned_reader(reader, name, pack, err);
  laci_reader_close(reader);
  return st;
}

lac_status laci_packfile_open(const char *path, laci_packfile **pack, lac_error *err) {
  return open_file(path, false, pack, err);
}

lac_status laci_packfile_open_whole(const char *path, laci_packfile **pack, lac_error *err) {
  return open_file(path, true, pack, err);
}

lac_status laci_packfile_open_memory(const void *bytes, size_t size_bytes, laci_packfile **pack,
                                     lac_error *err) {
  laci_reader *file;
  *pack = NULL;
  lac_status st = laci_reader_open_memory("the pack", bytes, size_bytes, &file, err);
  return st ? st : open_owned_reader(file, NULL, pack, err);
}

void laci_packfile_close(laci_packfile *pack) {
  if (!pack) return;
  laci_reader_close(pack->reader);
  laci_arena_clear(&pack->tables);
  laci_free(pack->files);
  laci_free(pack->rests);
  laci_free(pack->tensors);
  laci_free(pack);
}

laci_file_id laci_packfile_id(const laci_packfile *pack) {
  const laci_file_id *id = laci_reader_id(pack->reader);
  return id ? *id : (laci_file_id){0};
}

uint64_t laci_packfile_size(const laci_packfile *pack) { return laci_reader_size(pack->reader); }

size_t laci_packfile_n_files(const laci_packfile *pack) { return pack->n_files; }

const char *laci_packfile_file_name(const laci_packfile *pack, size_t file) {
  return pack->files[file].name;
}

uint64_t laci_packfile_file_size(const laci_packfile *pack, size_t file) {
  return pack->files[file].size_bytes;
}

size_t laci_packfile_n_tensors(const laci_packfile *pack) { return pack->n_tensors; }

const laci_packfile_tensor *laci_packfile_tensor_at(const laci_packfile *pack, size_t at) {
  return &pack->tensors[at];
}

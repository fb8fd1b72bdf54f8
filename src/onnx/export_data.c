/* SPDX-License-Identifier: Apache-2.0
 * Writes the data files of a model: copies of the old ones, with changed tensors at their old
 * offsets.
 *
 * Tensors may share bytes of a data file (tied weights). A changed tensor keeps its offset only if
 * all other tensors in these bytes have the same new content; else it moves to the end of the file.
 * Files are copied chunk by chunk, so they need not fit into memory. */
#include "onnx/export_in.h"

#include "base/error.h"
#include "base/reader.h"
#include "base/spill.h"
#include "base/writer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
  MOVED_ALIGNMENT = 4096, /* a tensor that gets a new offset begins at a multiple of this, so that
                             readers can map it by itself */
  CHUNK_BYTES = 1 << 20,
};

/* ---- Names ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/** Is the output written to the folder of the old data files? If this cannot be told, returns
 * true. */
static bool is_output_in_source_folder(laci_export *x) {
  char resolved[PATH_MAX];
  size_t n = laci_path_folder_length(x->path);
  if (x->file->open_data) return false; /* the model's data files were not read from a folder */
  const char *folder = n ? laci_arena_text_n(&x->arena, x->path, n) : ".";
  if (!folder || !x->file->data_dir || !realpath(folder, resolved)) return true;
  return strcmp(resolved, x->file->data_dir) == 0;
}

/** Can the data files keep their names? They can in another folder, unless a name contains a folder
 * or is the output's name. */
static bool can_keep_data_file_names(laci_export *x) {
  if (is_output_in_source_folder(x)) return false;
  for (size_t at = 0; at < x->file->n_data_files; at++) {
    const char *name = x->file->data_files[at].location;
    if (strchr(name, '/') || strcmp(name, base_name(x->path)) == 0) return false;
  }
  return true;
}

/** Builds the name of data file number `at`: the output's name with .data (then .1.data, .2.data
 * ...) in place of .onnx. */
static char *make_data_file_name(laci_export *x, size_t at) {
  const char *base = base_name(x->path);
  const char *dot = strrchr(base, '.');
  int n_stem = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  char *name = laci_arena_alloc(&x->arena, (size_t)n_stem + 40, 1);
  if (!name) return NULL;
  /* if the output is called model.data, its data file needs another ending */
  const char *ending = dot && strcmp(dot, ".data") == 0 ? "external.data" : "data";
  if (at == 0) (void)snprintf(name, (size_t)n_stem + 40, "%.*s.%s", n_stem, base, ending);
  else (void)snprintf(name, (size_t)n_stem + 40, "%.*s.%zu.%s", n_stem, base, at, ending);
  return name;
}

/** Returns the path of a new data file, in the folder of the output. */
static const char *path_in_output_folder(laci_export *x, const char *name) {
  size_t n = (size_t)(base_name(x->path) - x->path), n_name = strlen(name);
  char *path = laci_arena_alloc(&x->arena, n + n_name + 1, 1);
  if (!path) return NULL;
  if (n) memcpy(path, x->path, n);
  memcpy(path + n, name, n_name);
  return path;
}

/* ---- Offsets ---- */

static int compare_spans(const void *a, const void *b) {
  const laci_external *left = *(laci_external *const *)a, *right = *(laci_external *const *)b;
  if (left->file != right->file) return left->file < right->file ? -1 : 1;
  if (left->offset != right->offset) return left->offset < right->offset ? -1 : 1;
  if (left->length != right->length) return left->length < right->length ? -1 : 1;
  /* equal offsets are ordered by tensor number and not by address, which differs from run to run */
  return left->order < right->order ? -1 : 1;
}

static const uint8_t *current_bytes_of_tensor(const laci_export *x, const laci_external *e) {
  return e->fresh ? e->fresh : laci_reader_bytes(x->file->data_files[e->file].reader) + e->offset;
}

/** Finds whether two tensors have the same bytes where their ranges of the file overlap: *same. */
static lac_status check_shared_bytes_agree(const laci_export *x, const laci_external *a,
                                           const laci_external *b, bool *same, lac_error *err) {
  const laci_byte_source from = laci_onnx_byte_source(x->file);
  lac_status st = LAC_OK;
  *same = a->offset == b->offset && a->length == b->length;
  for (uint64_t at = 0; *same && at < a->length && !st; at += CHUNK_BYTES) {
    laci_acquired_bytes left = {0}, right = {0};
    size_t n = a->length - at < CHUNK_BYTES ? (size_t)(a->length - at) : CHUNK_BYTES;
    st = laci_bytes_acquire(&from, current_bytes_of_tensor(x, a) + at, n, x->path, &left, err);
    if (!st)
      st = laci_bytes_acquire(&from, current_bytes_of_tensor(x, b) + at, n, x->path, &right, err);
    *same = !st && memcmp(left.bytes, right.bytes, n) == 0;
    laci_bytes_release(&left);
    laci_bytes_release(&right);
  }
  return st;
}

/** spans: n tensors of one data file, sorted by offset. Marks the changed tensors that cannot keep
 * their offsets. */
static lac_status mark_tensors_to_move(const laci_export *x, laci_external **spans, size_t n,
                                       lac_error *err) {
  size_t run = 0; /* spans[run] and the spans after it may overlap spans[at] */
  uint64_t reach = 0;
  for (size_t at = 0; at < n; at++) {
    if (spans[at]->offset >= reach) run = at;
    uint64_t end = spans[at]->offset + spans[at]->length;
    if (end > reach) reach = end;
    if (!spans[at]->length) continue;
    for (size_t before = run; before < at; before++) {
      laci_external *a = spans[before], *b = spans[at];
      if (!a->length || a->offset + a->length <= b->offset || (!a->fresh && !b->fresh)) continue;
      bool same;
      lac_status st = check_shared_bytes_agree(x, a, b, &same, err);
      if (st) return st;
      if (same) continue;
      a->has_new_offset |= a->fresh != NULL;
      b->has_new_offset |= b->fresh != NULL;
    }
  }
  return LAC_OK;
}

/* ---- Contents ---- */

static lac_status append_zeros(laci_writer *writer, uint64_t n, lac_error *err) {
  static const uint8_t zeros[MOVED_ALIGNMENT];
  return laci_writer_append(writer, zeros, (size_t)n, err);
}

/** Appends bytes [from, to) of the old file. */
static lac_status append_bytes_of_old_file(laci_writer *writer, laci_reader *old, uint64_t from,
                                           uint64_t to, lac_error *err) {
  lac_status st = LAC_OK;
  if (from == to) return LAC_OK;
  uint8_t *chunk = laci_alloc(CHUNK_BYTES, 1);
  if (!chunk) return laci_fail_memory(err, "old data");
  while (from < to && !st) {
    size_t n = to - from < CHUNK_BYTES ? (size_t)(to - from) : CHUNK_BYTES;
    st = laci_reader_copy_range(old, (size_t)from, n, chunk, err);
    if (!st) st = laci_writer_append(writer, chunk, n, err);
    from += n;
  }
  laci_free(chunk);
  return st;
}

static lac_status append_changed_tensor(laci_writer *writer, const laci_external *e,
                                        lac_error *err) {
  lac_status st = laci_writer_append(writer, e->fresh, e->length, err);
  if (e->spilled) laci_spill_release_view(e->fresh, e->length);
  return st;
}

static lac_status write_data_at_old_offsets(laci_external **spans, size_t n, laci_writer *writer,
                                            laci_reader *old, lac_error *err) {
  uint64_t done = 0, end = laci_reader_size(old);
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n && !st; at++) {
    const laci_external *e = spans[at];
    if (!e->fresh || e->has_new_offset || e->offset < done)
      continue; /* the bytes were already written, for another tensor with the same content */
    st = append_bytes_of_old_file(writer, old, done, e->offset, err);
    if (!st) st = append_changed_tensor(writer, e, err);
    done = e->offset + e->length;
  }
  if (!st) st = append_bytes_of_old_file(writer, old, done, end, err);
  for (size_t at = 0; at < n && !st; at++) {
    laci_external *e = spans[at];
    if (!e->has_new_offset) continue;
    e->new_offset = (end + MOVED_ALIGNMENT - 1) / MOVED_ALIGNMENT * MOVED_ALIGNMENT;
    st = append_zeros(writer, e->new_offset - end, err);
    if (!st) st = append_changed_tensor(writer, e, err);
    end = e->new_offset + e->length;
  }
  return st ? st : laci_writer_finish(writer, err);
}

/** Writes the tensors one after the other, without gaps but for their old alignment. Tensors with
 * equal offsets are written once. */
static lac_status write_data_compactly(const laci_export *x, laci_external **spans, size_t n,
                                       laci_writer *writer, laci_reader *old, lac_error *err) {
  uint64_t end = 0;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n && !st; at++) {
    laci_external *e = spans[at], *before = at ? spans[at - 1] : NULL;
    bool same = false;
    e->has_new_offset = true;
    if (before) st = check_shared_bytes_agree(x, before, e, &same, err);
    if (st || same) {
      e->new_offset = before->new_offset;
      continue;
    }
    uint64_t alignment = MOVED_ALIGNMENT;
    while (alignment > 1 && e->offset % alignment) alignment /= 2;
    e->new_offset = (end + alignment - 1) / alignment * alignment;
    st = append_zeros(writer, e->new_offset - end, err);
    if (!st && e->fresh) st = append_changed_tensor(writer, e, err);
    else if (!st) st = append_bytes_of_old_file(writer, old, e->offset, e->offset + e->length, err);
    end = e->new_offset + e->length;
  }
  return st ? st : laci_writer_finish(writer, err);
}

/* ---- References ---- */

static Onnx__StringStringEntryProto *create_string_entry(laci_export *x, const char *key,
                                                         char *value) {
  Onnx__StringStringEntryProto *entry = laci_arena_alloc(&x->arena, 1, sizeof *entry);
  if (!entry) return NULL;
  *entry = (Onnx__StringStringEntryProto)ONNX__STRING_STRING_ENTRY_PROTO__INIT;
  entry->key = laci_arena_text(&x->arena, key);
  entry->value = value;
  return entry->key ? entry : NULL;
}

/** Sets the new location and offset in the tensor's external_data. If the data file changed, its
 * checksum is removed. */
static lac_status set_location_and_offset(laci_export *x, const laci_external *e, bool file_changed,
                                          lac_error *err) {
  Onnx__TensorProto *tensor = e->tensor;
  Onnx__StringStringEntryProto **entries =
      laci_arena_alloc(&x->arena, tensor->n_external_data + 2, sizeof *entries);
  char *offset = laci_arena_alloc(&x->arena, 24, 1);
  if (!entries || !offset) return laci_fail_memory(err, x->path);
  (void)snprintf(offset, 24, "%" PRIu64, e->new_offset);
  Onnx__StringStringEntryProto *location = x->locations[e->file];
  Onnx__StringStringEntryProto *moved = create_string_entry(x, "offset", offset);
  if (!location || !moved) return laci_fail_memory(err, x->path);
  size_t n = 0;
  bool has_offset = false;
  for (size_t at = 0; at < tensor->n_external_data; at++) {
    Onnx__StringStringEntryProto *old = tensor->external_data[at];
    const char *key = laci_onnx_text_or_empty(old->key);
    bool is_offset = e->has_new_offset && strcmp(key, "offset") == 0;
    if (file_changed && strcmp(key, "checksum") == 0) continue;
    has_offset |= is_offset;
    entries[n++] = strcmp(key, "location") == 0 ? location : is_offset ? moved : old;
  }
  if (e->has_new_offset && !has_offset) entries[n++] = moved;
  lac_status st = laci_export_patch_bytes(x, &tensor->external_data, &entries, sizeof entries, err);
  return st ? st : laci_export_patch_bytes(x, &tensor->n_external_data, &n, sizeof n, err);
}

/* ---- One file after the other ---- */

/** Writes data file number `file`. spans: its n tensors, sorted by offset. */
static lac_status write_data_file(laci_export *x, int file, laci_external **spans, size_t n,
                                  lac_error *err) {
  laci_write_options options = {
      .force = x->force, .holes = true, .keep = x->inputs, .n_keep = x->n_inputs};
  const char *path = path_in_output_folder(x, x->names[file]);
  if (!path) return laci_fail_memory(err, x->path);
  x->locations[file] = create_string_entry(x, "location", x->names[file]);
  lac_status st = mark_tensors_to_move(x, spans, n, err);
  if (!st) st = laci_writer_open(path, &options, &x->writers[file], err);
  laci_reader *old = x->file->data_files[file].reader;
  bool changed = x->file->data_files[file].is_compact;
  if (!st && changed) st = write_data_compactly(x, spans, n, x->writers[file], old, err);
  else if (!st) st = write_data_at_old_offsets(spans, n, x->writers[file], old, err);
  for (size_t at = 0; at < n; at++) changed |= spans[at]->fresh != NULL;
  for (size_t at = 0; at < n && !st; at++) st = set_location_and_offset(x, spans[at], changed, err);
  return st;
}

lac_status laci_export_write_data(laci_export *x, lac_error *err) {
  laci_onnx *file = x->file;
  bool keep_names = can_keep_data_file_names(x);
  laci_external **spans = laci_arena_alloc(&x->arena, file->n_externals, sizeof(laci_external *));
  if (!spans) return laci_fail_memory(err, x->path);
  for (size_t at = 0; at < file->n_externals; at++) spans[at] = &file->externals[at];
  if (file->n_externals) qsort(spans, file->n_externals, sizeof *spans, compare_spans);
  for (size_t at = 0; at < file->n_data_files; at++) {
    x->names[at] = keep_names ? laci_arena_text(&x->arena, file->data_files[at].location)
                              : make_data_file_name(x, at);
    if (!x->names[at]) return laci_fail_memory(err, x->path);
  }
  lac_status st = LAC_OK;
  for (size_t first = 0, next; first < file->n_externals && !st; first = next) {
    int id = spans[first]->file;
    for (next = first; next < file->n_externals && spans[next]->file == id;) next++;
    st = write_data_file(x, id, spans + first, next - first, err);
  }
  return st;
}

/* ---- Replacing an existing model ---- */

static bool path_exists(const char *path) {
  struct stat found;
  return path && lstat(path, &found) == 0;
}

/** Makes the model refer to the data files by second names. *wanted becomes false if there are no
 * such names, or none is needed. */
static lac_status use_second_names_of_data_files(laci_export *x, char **seconds, bool *wanted,
                                                 lac_error *err) {
  lac_status st = LAC_OK;
  bool all = true;
  *wanted = false;
  for (size_t at = 0; at < x->file->n_data_files && !st; at++) {
    if (!x->writers[at] || !path_exists(path_in_output_folder(x, x->names[at]))) continue;
    st = laci_writer_second_name(x->writers[at], &seconds[at], err);
    all &= seconds[at] != NULL;
    if (seconds[at]) x->locations[at]->value = seconds[at];
    *wanted = true;
  }
  *wanted &= all;
  return st;
}

lac_status laci_export_commit_first_version(laci_export *x, lac_error *err) {
  const laci_write_options options = {.force = true, .keep = x->inputs, .n_keep = x->n_inputs};
  laci_writer *model = NULL;
  bool wanted = false;
  if (!x->force || !path_exists(x->path)) return LAC_OK;
  size_t n = x->file->n_data_files;
  char **seconds = laci_arena_alloc(&x->arena, n, sizeof *seconds);
  if (!seconds) return laci_fail_memory(err, x->path);
  lac_status st = use_second_names_of_data_files(x, seconds, &wanted, err);
  if (!st && wanted) {
    st = laci_writer_open(x->path, &options, &model, err);
    if (!st) st = laci_export_write_message(x, model, err);
    if (!st) st = laci_writer_commit(model, err);
    laci_writer_destroy(model);
  }
  for (size_t at = 0; at < n; at++) {
    if (!seconds[at]) continue;
    x->locations[at]->value = x->names[at];
    laci_free(seconds[at]);
  }
  return st;
}

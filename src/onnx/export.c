/* SPDX-License-Identifier: Apache-2.0
 * Writes a model: the decoded file, in which changed tensors replace the old ones.
 *
 * While the decoded file is written, it is patched: pointers to arrays are replaced, not the
 * arrays, so that nothing large is copied. Afterwards it is restored. A tensor is written in the
 * kind of field that it was read from. Next: export_data.c. */
#include "onnx/export_in.h"

#include "base/error.h"
#include "base/file_set.h"
#include "base/reader.h"
#include "base/writer.h"
#include "graph/graph.h"
#include "onnx/metadata_in.h"

#include <string.h>
#include <sys/stat.h>

/** The file's array has wider elements than the tensor (float16 in int32_data, for example). Makes
 * a copy of it with the changed elements, *widened. Unchanged elements keep all their bits, since
 * writers differ in the unused ones. Signed elements are sign-extended. */
static lac_status widen_elements(laci_export *x, const laci_stored *stored, const uint8_t *bytes,
                                 size_t size_bytes, void **widened, lac_error *err) {
  const laci_source *source = stored->source;
  size_t narrow = source->narrow_bytes, wide = source->wide_bytes;
  size_t n = size_bytes / narrow;
  bool is_signed = stored->dtype == LAC_DTYPE_I8 || stored->dtype == LAC_DTYPE_I16;
  uint8_t *to = laci_arena_alloc(&x->arena, n, wide);
  if (!to) return laci_fail_memory(err, stored->name);
  memcpy(to, *source->array, n * wide);
  for (size_t at = 0; at < n; at++) {
    const uint8_t *element = bytes + at * narrow;
    if (memcmp(to + at * wide, element, narrow) == 0) continue;
    memcpy(to + at * wide, element, narrow);
    memset(to + at * wide + narrow, is_signed && element[narrow - 1] >> 7 ? 0xff : 0,
           wide - narrow);
  }
  *widened = to;
  return LAC_OK;
}

static lac_status patch_stored_tensor(laci_export *x, const laci_stored *stored, lac_error *err) {
  const laci_source *source = stored->source;
  void *bytes = stored->owned;
  uint64_t n = stored->size_bytes;
  if (!bytes || n == 0) return LAC_OK;
  if (source->per_byte) {
    bytes = laci_onnx_pack_elements(&x->arena, stored->dtype, bytes, n);
    if (!bytes) return laci_fail_memory(err, stored->name);
    (void)laci_onnx_count_packed_bytes(stored->dtype, (int64_t)n, &n);
  }
  switch (source->kind) {
    case LACI_SOURCE_ARRAY:
      return laci_export_patch_bytes(x, source->array, &bytes, sizeof bytes, err);
    case LACI_SOURCE_SCALAR: return laci_export_patch_bytes(x, source->scalar, bytes, n, err);
    case LACI_SOURCE_WIDENED: {
      lac_status st = widen_elements(x, stored, bytes, n, &bytes, err);
      return st ? st : laci_export_patch_bytes(x, source->array, &bytes, sizeof bytes, err);
    }
    case LACI_SOURCE_EXTERNAL:
      source->external->fresh = bytes;
      source->external->spilled = stored->spilled && !source->per_byte;
      return LAC_OK;
    case LACI_SOURCE_NONE: break;
  }
  return laci_fail(err, LAC_UNSUPPORTED, "tensor '%s': its place in the file cannot be changed",
                   stored->name);
}

/* If training set or removed the names of classes, puts the new names into the metadata. */
static lac_status patch_metadata(laci_export *x, const laci_graph *graph, lac_error *err) {
  Onnx__ModelProto *model = x->file->model;
  Onnx__StringStringEntryProto **entries;
  size_t n;
  if (!laci_metadata_has_other_class_names(model, graph)) return LAC_OK;
  lac_status st = laci_metadata_build_with_class_names(&x->arena, model, graph, &entries, &n, err);
  if (!st) st = laci_export_patch_bytes(x, &model->metadata_props, &entries, sizeof entries, err);
  return st ? st : laci_export_patch_bytes(x, &model->n_metadata_props, &n, sizeof n, err);
}

/* ---- Writing ---- */

/** Commits the data files (gives them their names) before the model, so that a model on disk always
 * has its data. */
static lac_status commit_files(laci_export *x, laci_writer *model, lac_error *err) {
  lac_status st = laci_export_commit_first_version(x, err);
  for (size_t at = 0; at < x->file->n_data_files && !st; at++) {
    /* a data file without a writer has no tensor any more */
    if (x->writers[at]) st = laci_writer_commit(x->writers[at], err);
  }
  return st ? st : laci_writer_commit(model, err);
}

/** Lists the files that the model was read from. Saving must never replace them, even under another
 * path. */
static lac_status list_source_files(laci_export *x, lac_error *err) {
  const laci_onnx *file = x->file;
  x->inputs = laci_arena_alloc(&x->arena, file->n_data_files + 1, sizeof *x->inputs);
  x->names = laci_arena_alloc(&x->arena, file->n_data_files, sizeof *x->names);
  x->locations = laci_arena_alloc(&x->arena, file->n_data_files, sizeof *x->locations);
  x->writers = laci_arena_alloc(&x->arena, file->n_data_files, sizeof *x->writers);
  if (!x->inputs || !x->names || !x->locations || !x->writers)
    return laci_fail_memory(err, x->path);
  const laci_file_id *id = laci_reader_id(file->reader);
  if (id) x->inputs[x->n_inputs++] = *id;
  for (size_t at = 0; at < file->n_data_files; at++) {
    x->inputs[x->n_inputs++] = *laci_reader_id(file->data_files[at].reader);
  }
  return LAC_OK;
}

static bool is_reader_of_file(const laci_reader *reader, const struct stat *found) {
  const laci_file_id *id = laci_reader_id(reader);
  return id && id->device == found->st_dev && id->inode == found->st_ino;
}

bool laci_onnx_is_source_file(const laci_onnx *file, const char *path) {
  struct stat found;
  if (stat(path, &found) != 0) return false;
  bool reads = is_reader_of_file(file->reader, &found);
  for (size_t at = 0; at < file->n_data_files; at++) {
    reads |= is_reader_of_file(file->data_files[at].reader, &found);
  }
  return reads;
}

const char *laci_onnx_data_file_location(const laci_onnx *file, int at) {
  return at >= 0 && (size_t)at < file->n_data_files ? file->data_files[at].location : NULL;
}

static void clear_save_marks(laci_onnx *file) {
  for (size_t at = 0; at < file->n_externals; at++) {
    file->externals[at].fresh = NULL;
    file->externals[at].has_new_offset = file->externals[at].spilled = false;
  }
}

lac_status laci_onnx_save(laci_onnx *file, const laci_graph *graph, const char *path, bool force,
                          lac_error *err) {
  laci_export x = {.file = file, .path = path, .force = force};
  laci_writer *model = NULL;
  laci_file_set set;
  laci_file_set_begin(&set);
  lac_status st = list_source_files(&x, err);
  if (!st) {
    laci_write_options options = {.force = force, .keep = x.inputs, .n_keep = x.n_inputs};
    st = laci_writer_open(path, &options, &model, err);
  }
  for (int at = 0; at < graph->n_stored && !st; at++) {
    st = patch_stored_tensor(&x, &graph->stored[at], err);
  }
  if (!st) st = patch_metadata(&x, graph, err);
  if (!st) st = laci_export_write_data(&x, err);
  if (!st) st = laci_export_write_message(&x, model, err);
  if (!st) st = commit_files(&x, model, err);
  laci_export_undo_patches(&x);
  clear_save_marks(file);
  for (size_t at = 0; x.writers && at < file->n_data_files; at++)
    laci_writer_destroy(x.writers[at]);
  laci_writer_destroy(model);
  laci_free(x.patches);
  laci_arena_clear(&x.arena);
  return laci_file_set_end(&set, st, err);
}

lac_status laci_onnx_save_stream(laci_onnx *file, const laci_graph *graph, lac_write_bytes *put,
                                 void *context, lac_error *err) {
  laci_export x = {.file = file, .path = "the model"};
  if (file->n_externals) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "the model has external data, which needs a file of its own");
  }
  const laci_onnx_message message = {&file->model->base, laci_onnx_byte_source(file), x.path};
  lac_status st = LAC_OK;
  for (int at = 0; at < graph->n_stored && !st; at++) {
    st = patch_stored_tensor(&x, &graph->stored[at], err);
  }
  if (!st) st = laci_onnx_serialize(&message, put, context, err);
  laci_export_undo_patches(&x);
  laci_free(x.patches);
  laci_arena_clear(&x.arena);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * The files of a model that is packed, and the offsets of its stored tensors in them.
 *
 * The pack keeps the bytes of the files unchanged. So stored tensors are found in the model's file
 * by their content: any range of tensor bytes that equals a weight can be packed as this weight. */
#include <stdlib.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/pack/save_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "graph/graph.h"
#include "lacuna/model.h"
#include "onnx/spans.h"
#include "pack/packfile.h"

/* Is this a name without folders? Data files are restored next to the model's file. */
static bool is_file_name_only(const char *name) {
  return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
         strlen(name) < 256;
}

bool laci_pack_is_model_unchanged(const lac_model *model) {
  if (model->packed || !lac_model_reads(model, model->path)) return false;
  for (size_t at = 0; at < laci_onnx_n_data_files(model->file); at++) {
    if (!is_file_name_only(laci_onnx_data_file_at(model->file, at).location)) return false;
  }
  for (int s = 0; s < model->graph->n_stored; s++) {
    if (model->graph->stored[s].owned) return false;
  }
  return true;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const laci_packfile_part *)a)->name, ((const laci_packfile_part *)b)->name);
}

/** Adds a file with all of its bytes, which stay in the reader's memory. */
static lac_status add_part(laci_packer *k, size_t at, const char *name, laci_reader *reader,
                           lac_error *err) {
  size_t n = laci_reader_size(reader);
  k->files[at] = (laci_packfile_part){name, laci_reader_bytes(reader), n};
  return laci_reader_materialise_range(reader, 0, n, err);
}

lac_status laci_pack_list_files(laci_packer *k, lac_error *err) {
  const laci_onnx *file = k->model->file;
  size_t n_data = laci_onnx_n_data_files(file);
  k->n_files = n_data + 1;
  k->files = laci_alloc(k->n_files, sizeof *k->files);
  k->file_of_data = laci_alloc(n_data, sizeof *k->file_of_data);
  if (!k->files || !k->file_of_data) return laci_fail_memory(err, "the model's files");
  lac_status st = add_part(k, 0, "", laci_onnx_reader(file), err);
  for (size_t at = 0; at < n_data && !st; at++) {
    laci_onnx_data data = laci_onnx_data_file_at(file, at);
    st = add_part(k, at + 1, data.location, data.reader, err);
  }
  if (st) return st;
  k->bytes = k->files[0].bytes;
  k->id = laci_reader_id(laci_onnx_reader(file));
  qsort(k->files + 1, n_data, sizeof *k->files, compare_names);
  for (size_t at = 0; at < n_data; at++) {
    const laci_packfile_part key = {.name = laci_onnx_data_file_at(file, at).location};
    const laci_packfile_part *found =
        bsearch(&key, k->files + 1, n_data, sizeof key, compare_names);
    k->file_of_data[at] = (size_t)(found - k->files);
  }
  st = laci_onnx_find_element_ranges(k->bytes, k->files[0].size_bytes, &k->spans, &k->n_spans, err);
  return st ? laci_fail_with_prefix(err, st, "%s", k->model->path) : LAC_OK;
}

bool laci_pack_find_tensor_bytes(laci_packer *k, const laci_stored *stored,
                                 laci_packfile_weight *weight) {
  size_t data;
  if (laci_onnx_find_data_file_of_stored(stored, &data, &weight->offset)) {
    weight->file = k->file_of_data[data];
    return true;
  }
  for (size_t at = 0; at < k->n_spans; at++) {
    const laci_onnx_span *span = &k->spans[at];
    if (k->claimed[at] || span->size_bytes != stored->size_bytes ||
        memcmp(k->bytes + span->offset, stored->bytes, stored->size_bytes) != 0) {
      continue;
    }
    k->claimed[at] = true;
    weight->file = 0;
    weight->offset = span->offset;
    return true;
  }
  return false;
}

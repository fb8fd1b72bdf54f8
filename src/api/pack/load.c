/* SPDX-License-Identifier: Apache-2.0
 * Reads a pack: as a model in memory, as the files that it was made of, or as packed weights in
 * memory. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/pack/pack_in.h"
#include "base/error.h"
#include "engine/engine.h"
#include "base/file_set.h"
#include "base/log.h"
#include "graph/graph.h"
#include "lacuna/pack.h"
#include "onnx/onnx.h"
#include "pack/packfile.h"

/* ---- Files ---- */

static lac_status append_to_writer(const void *bytes, size_t size_bytes, void *context,
                                   lac_error *err) {
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return laci_writer_append(context, bytes, size_bytes, err);
}

/** Writes one of the pack's files completely under a temporary name. */
static lac_status restore_file(const laci_packfile *pack, size_t file, const char *path,
                               const laci_write_options *options, laci_writer **writer,
                               lac_error *err) {
  lac_status st = laci_writer_open(path, options, writer, err);
  if (!st) st = laci_packfile_restore_file(pack, file, append_to_writer, *writer, err);
  return st ? st : laci_writer_finish(*writer, err);
}

/** Writes the path of the data file `name` next to out. */
static lac_status make_path_next_to(const char *out, const char *name, char path[PATH_MAX],
                                    lac_error *err) {
  const char *slash = strrchr(out, '/'), *base = slash ? slash + 1 : out;
  if (strcmp(base, name) == 0) {
    return laci_fail(err, LAC_EXISTS, "%s: this name is kept for the data of the model", out);
  }
  int n = snprintf(path, PATH_MAX, "%.*s%s", (int)(base - out), out, name);
  if (n > 0 && n < PATH_MAX) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: the name of its data is too long", out);
}

static lac_status restore_all(const laci_packfile *pack, const char *out,
                              const laci_write_options *options, laci_writer **writers,
                              lac_error *err) {
  size_t n = laci_packfile_n_files(pack);
  char data_path[PATH_MAX];
  lac_status st = restore_file(pack, 0, out, options, &writers[0], err);
  for (size_t at = 1; at < n && !st; at++) {
    st = make_path_next_to(out, laci_packfile_file_name(pack, at), data_path, err);
    if (!st) st = restore_file(pack, at, data_path, options, &writers[at], err);
  }
  /* Data files are placed first, so that a model that exists always has its data. An existing model
   * is hidden before, since its data files may have the same names. */
  if (n > 1 && options->force && !st) st = laci_file_set_hide_old_file(out, err);
  for (size_t at = n; at-- > 0 && !st;) st = laci_writer_commit(writers[at], err);
  return st;
}

static lac_status restore_pack(const char *path, const char *out, bool force, lac_error *err) {
  laci_packfile *pack = NULL;
  laci_writer **writers = NULL;
  laci_file_set set;
  lac_status st = laci_pack_find_in_file(path, false, &pack, err);
  /* This fails, with an error that says what the file is instead of a pack. */
  if (!st && !pack) st = laci_packfile_open(path, &pack, err);
  if (st) return st;
  const laci_file_id id = laci_packfile_id(pack);
  const laci_write_options options = {.force = force, .keep = &id, .n_keep = 1};
  laci_file_set_begin(&set);
  writers = laci_alloc(laci_packfile_n_files(pack), sizeof *writers);
  if (writers) st = restore_all(pack, out, &options, writers, err);
  else st = laci_fail_memory(err, out);
  for (size_t at = 0; writers && at < laci_packfile_n_files(pack); at++) {
    laci_writer_destroy(writers[at]);
  }
  laci_free(writers);
  laci_packfile_close(pack);
  return laci_file_set_end(&set, st, err);
}

lac_status lac_pack_restore(const char *path, const char *out, bool force, lac_context *context,
                            lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"out", out});
  if (st) return st;
  lac_context *before = laci_call_enter_context(context);
  st = restore_pack(path, out, force, err);
  laci_call_leave_context(before);
  return st;
}

/* ---- A model ---- */

/** One of the pack's files as the origin of a reader. */
typedef struct packed_file {
  laci_packfile *pack;
  size_t file; /* index of the file; file 0, the model, owns the pack and is closed last */
} packed_file;

static lac_status fetch_bytes(void *context, size_t offset, size_t size_bytes, void *to,
                              lac_error *err) {
  const packed_file *from = context;
  return laci_packfile_read_file_range(from->pack, from->file, offset, size_bytes, to, err);
}

static lac_status copy_unpacked_bytes(void *context, uint8_t *to, lac_error *err) {
  const packed_file *from = context;
  return laci_packfile_copy_unpacked_parts(from->pack, from->file, to, err);
}

/** The place in a buffer where the next bytes are written. */
typedef struct buffer {
  uint8_t *at;
} buffer;

static lac_status append_to_buffer(const void *bytes, size_t size_bytes, void *context,
                                   lac_error *err) {
  buffer *b = context;
  (void)err;
  memcpy(b->at, bytes, size_bytes);
  b->at += size_bytes;
  return LAC_OK;
}

static lac_status restore_whole_file(void *context, uint8_t *to, lac_error *err) {
  const packed_file *from = context;
  buffer b = {to};
  return laci_packfile_restore_file(from->pack, from->file, append_to_buffer, &b, err);
}

static void close_file(void *context) {
  packed_file *from = context;
  if (from->file == 0) laci_packfile_close(from->pack);
  laci_free(from);
}

static lac_status open_packed_file(laci_packfile *pack, size_t file, laci_reader **reader,
                                   lac_error *err) {
  packed_file *from = laci_alloc(1, sizeof *from);
  if (!from) return laci_fail_memory(err, "the pack");
  *from = (packed_file){pack, file};
  const laci_origin origin = {.name = file ? laci_packfile_file_name(pack, file) : "the pack",
                              .size_bytes = (size_t)laci_packfile_file_size(pack, file),
                              .id = laci_packfile_id(pack),
                              .fetch = fetch_bytes,
                              .outline = copy_unpacked_bytes,
                              .write_all = restore_whole_file,
                              .close = close_file,
                              .context = from};
  lac_status st = laci_reader_open_callbacks(&origin, reader, err);
  if (st) laci_free(from);
  return st;
}

/** Opens external data by its name in the pack. */
static lac_status open_data(void *context, const char *location, laci_reader **reader,
                            lac_error *err) {
  laci_packfile *pack = context;
  for (size_t at = 1; at < laci_packfile_n_files(pack); at++) {
    if (strcmp(laci_packfile_file_name(pack, at), location) != 0) continue;
    return open_packed_file(pack, at, reader, err);
  }
  return laci_fail(err, LAC_NOT_FOUND, "the pack has no external data '%s'", location);
}

/** A packed weight of a pack, which the model's reader owns. */
struct laci_pack_rows {
  const laci_packfile *pack;
  size_t tensor;
};

static lac_status fetch_rows(void *context, int64_t first, int64_t n, const laci_packed *to,
                             lac_error *err) {
  const laci_pack_rows *from = context;
  return laci_packfile_read_rows(from->pack, from->tensor, first, n, to, err);
}

/** Lists in the model the weights that the pack has in packed form. */
static lac_status list_packed_weights(const laci_packfile *pack, lac_model *model, lac_error *err) {
  size_t n = laci_packfile_n_tensors(pack);
  model->weights = laci_alloc(n, sizeof *model->weights);
  model->packings = laci_alloc(n, sizeof *model->packings);
  model->rows = laci_alloc(n, sizeof *model->rows);
  if (!model->weights || !model->packings || !model->rows) {
    return laci_fail_memory(err, "the pack's weights");
  }
  for (size_t at = 0; at < n; at++) {
    laci_packing *packing = &model->packings[model->n_weights];
    *packing = laci_packfile_tensor_at(pack, at)->packing;
    int value = laci_graph_find_value(model->graph, packing->name);
    int stored = value >= 0 ? model->graph->values[value].stored : -1;
    if (stored < 0) continue; /* a packed weight can only belong to a stored tensor */
    packing->name = model->graph->stored[stored].name;
    laci_pack_rows *rows = &model->rows[model->n_weights];
    *rows = (laci_pack_rows){pack, at};
    model->weights[model->n_weights++] = (laci_engine_weight){
        .value = value, .packing = packing, .rows = fetch_rows, .rows_context = rows};
  }
  return LAC_OK;
}

static lac_status load_pack(laci_packfile **pack, lac_model *model, lac_error *err) {
  laci_reader *reader;
  laci_packfile *from = *pack;
  if (laci_packfile_file_size(from, 0) == 0) {
    return laci_fail(err, LAC_BAD_FILE, "a pack of an empty file");
  }
  lac_status st = open_packed_file(from, 0, &reader, err);
  if (st) return st;
  *pack = NULL; /* the reader owns it now */
  const laci_onnx_outside data = {.open = open_data, .context = from};
  st = laci_onnx_load_readers(reader, &data, &model->file, &model->graph, err);
  return st ? st : list_packed_weights(from, model, err);
}

lac_status laci_pack_load(const char *name, laci_packfile *pack, lac_model **model,
                          lac_error *err) {
  lac_model *made = NULL;
  *model = NULL;
  lac_status st = laci_model_create_empty(name, &made, err);
  if (!st) made->packed = true;
  if (!st) st = load_pack(&pack, made, err);
  if (st) st = laci_fail_with_prefix(err, st, "%s", name);
  if (st) lac_model_destroy(made);
  else *model = made;
  laci_packfile_close(pack);
  return st;
}

/* ---- lac_pack: reading packed weights in place ---- */

struct lac_pack {
  laci_packfile *file;
};

lac_status lac_pack_open(const char *path, lac_pack **pack, lac_error *err) {
  if (pack) *pack = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"pack", pack});
  if (st) return st;
  lac_pack *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, path);
  st = laci_pack_find_in_file(path, true, &made->file, err);
  if (!st && !made->file) st = laci_packfile_open_whole(path, &made->file, err);
  if (st) laci_free(made);
  else *pack = made;
  return st;
}

void lac_pack_close(lac_pack *pack) {
  if (!pack) return;
  laci_packfile_close(pack->file);
  laci_free(pack);
}

uint64_t lac_pack_dense_bytes(const lac_pack *pack) {
  uint64_t sum = 0;
  for (size_t at = 0; pack && at < laci_packfile_n_files(pack->file); at++) {
    sum += laci_packfile_file_size(pack->file, at);
  }
  return sum;
}

uint64_t lac_pack_packed_bytes(const lac_pack *pack) {
  return pack ? laci_packfile_size(pack->file) : 0;
}

int lac_pack_tensor_count(const lac_pack *pack) {
  return pack ? (int)laci_packfile_n_tensors(pack->file) : 0;
}

lac_status lac_pack_tensor(const lac_pack *pack, int index, lac_packed_tensor *tensor,
                           lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"pack", pack}, {"tensor", tensor});
  if (!st) st = laci_check_struct_packed_tensor(tensor, err);
  if (st) return st;
  const int n = lac_pack_tensor_count(pack);
  if (index < 0 || index >= n) {
    return laci_fail(err, LAC_NOT_FOUND, "packed tensor %d, and there are %d", index, n);
  }
  const laci_packfile_tensor *t = laci_packfile_tensor_at(pack->file, (size_t)index);
  const laci_packing *p = &t->packing;
  const lac_packed_tensor own = {.size = sizeof own,
                                 .name = p->name,
                                 .dtype = p->dtype,
                                 .n = p->pattern.n,
                                 .m = p->pattern.m,
                                 .outer = p->outer,
                                 .columns = p->columns,
                                 .inner = p->inner,
                                 .run = p->run,
                                 .n_rows = p->n_rows,
                                 .row_values = p->row_values,
                                 .index_words = p->index_words,
                                 .sign_words = t->packed.signs ? p->sign_words : 0,
                                 .index_bits = p->index_bits,
                                 .fill = p->fill,
                                 .values = t->packed.values,
                                 .index = t->packed.index,
                                 .signs = t->packed.signs};
  laci_give_packed_tensor(&own, tensor);
  return LAC_OK;
}

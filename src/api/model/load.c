/* SPDX-License-Identifier: Apache-2.0
 * Loads a network, an ONNX model or a pack, from a file, from memory or from a caller's function.
 * Next: caller_files.c. */
#include "api/model/caller_files.h"
#include "api/model/foreign.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/pack/pack_in.h"
#include "base/error.h"
#include "base/reader.h"
#include "graph/typing.h"
#include "lacuna/model.h"
#include "onnx/onnx.h"

enum { HEAD_BYTES = 1024 };

void lac_load_options_init(lac_load_options *options, size_t size) {
  const lac_load_options usual = {.size = sizeof usual};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

static lac_status load_from_path(const char *path, lac_model **made, lac_error *err) {
  laci_packfile *pack = NULL;
  lac_status st = laci_pack_find_in_file(path, false, &pack, err);
  if (st) return st;
  if (pack) return laci_pack_load(path, pack, made, err);
  st = laci_model_create_empty(path, made, err);
  if (!st) st = laci_onnx_load(path, &(*made)->file, &(*made)->graph, err);
  return st ? laci_foreign_explain_file(path, st, err) : st;
}

/* Opens a reader of the model's bytes. *data: how its external data are opened. */
static lac_status open_reader(const lac_load_options *options, laci_reader **reader,
                              laci_onnx_outside *data, lac_error *err) {
  laci_caller_files *files = NULL;
  *data = (laci_onnx_outside){.folder = options->data_dir};
  if (options->bytes) {
    return laci_reader_open_memory("the model", options->bytes, (size_t)options->size_bytes, reader,
                                   err);
  }
  lac_status st = laci_caller_files_open(options, &files, reader, err);
  data->open = laci_caller_files_open_data;
  data->context = files;
  return st;
}

/* The first bytes of a model tell its format. */
typedef struct file_head {
  size_t n;
  uint8_t bytes[HEAD_BYTES];
} file_head;

/* Loads an ONNX model or a pack from a reader, which it owns. */
static lac_status load_from_reader(laci_reader *reader, const laci_onnx_outside *data,
                                   const file_head *head, lac_model **made, lac_error *err) {
  const char *name = data->context ? "(function)" : "(memory)";
  laci_packfile *pack = NULL;
  lac_status st = laci_pack_find_in_reader(reader, name, false, &pack, err);
  if (st) return st;
  if (pack) return laci_pack_load(name, pack, made, err);
  st = laci_model_create_empty(name, made, err);
  if (st) {
    laci_reader_close(reader);
    return st;
  }
  st = laci_onnx_load_readers(reader, data, &(*made)->file, &(*made)->graph, err);
  return st == LAC_BAD_FILE ? laci_foreign_explain_bytes(NULL, head->bytes, head->n, st, err) : st;
}

static lac_status load_from_options(const lac_load_options *options, lac_model **made,
                                    lac_error *err) {
  laci_reader *reader = NULL;
  laci_onnx_outside data;
  file_head head;
  lac_status st = open_reader(options, &reader, &data, err);
  if (st) return st;
  const size_t size = laci_reader_size(reader);
  head.n = size < HEAD_BYTES ? size : HEAD_BYTES;
  st = laci_reader_copy_range(reader, 0, head.n, head.bytes, err);
  if (!st) return load_from_reader(reader, &data, &head, made, err);
  laci_reader_close(reader);
  return st;
}

/* Checks that exactly one source is given. */
static lac_status check_one_source(const char *path, const lac_load_options *o, lac_error *err) {
  const int n = (path != NULL) + (o->bytes != NULL) + (o->read != NULL);
  if (n != 1) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "lac_model_load: %s of path, options.bytes and options.read: wanted one",
                     n == 0   ? "none"
                     : n == 2 ? "two"
                              : "all three");
  }
  if (!path || (!o->data_dir && o->size_bytes == 0)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "lac_model_load: path and options.%s, which belongs to options.bytes and "
                   "options.read",
                   o->data_dir ? "data_dir" : "size_bytes");
}

lac_status lac_model_load(const char *path, const lac_load_options *options, lac_model **model,
                          lac_error *err) {
  lac_load_options own;
  lac_model *made = NULL;
  if (model) *model = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model});
  if (!st) st = laci_take_load_options(options, &own, err);
  if (!st) st = check_one_source(path, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.context);
  st = path ? load_from_path(path, &made, err) : load_from_options(&own, &made, err);
  if (!st) {
    st = laci_graph_check_attr_and_weight_types(made->graph, own.lenient, err);
    if (st && path) st = laci_fail_with_prefix(err, st, "%s", path);
  }
  laci_call_leave_context(before);
  if (st) lac_model_destroy(made);
  else *model = made;
  return st;
}

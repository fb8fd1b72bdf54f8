/* SPDX-License-Identifier: Apache-2.0
 * Loads a network from a file or from memory: ONNX, or a pack. */
#include "api/model/foreign.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/pack/pack_in.h"
#include "base/error.h"
#include "graph/typing.h"
#include "lacuna/model.h"
#include "lacuna/pack.h"
#include "onnx/onnx.h"
#include "pack/packfile.h"

void lac_load_options_init(lac_load_options *options, size_t size) {
  const lac_load_options usual = {.size = sizeof usual};
  laci_struct_init(&usual, sizeof usual, options, size);
}

/* The last step of loading: sets *model to `made`, or after a failure destroys made. */
static lac_status finish_load(lac_status st, lac_model *made, const lac_load_options *options,
                              const char *path, lac_model **model, lac_error *err) {
  if (!st) {
    st = laci_graph_check_typing(made->graph, options && options->lenient, err);
    if (st && path) st = laci_fail_with_prefix(err, st, "%s", path);
  }
  if (st) lac_model_destroy(made);
  else *model = made;
  return st;
}

static lac_status load_from_path(const char *path, const lac_load_options *options,
                                 lac_model **model, lac_error *err) {
  lac_status st = LAC_OK;
  lac_model *made = NULL;
  if (laci_packfile_is_pack(path)) {
    st = laci_pack_load(path, &made, err);
  } else {
    st = laci_model_new(path, &made, err);
    if (!st) st = laci_onnx_load(path, &made->file, &made->graph, err);
    if (st) st = laci_foreign_explain_file(path, st, err);
  }
  return finish_load(st, made, options, path, model, err);
}

lac_status lac_model_load_with(const char *path, const lac_load_options *options, lac_model **model,
                               lac_error *err) {
  if (model) *model = NULL;
  lac_load_options own;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"model", model});
  if (!st) st = laci_take_load_options(options, &own, err);
  return st ? st : load_from_path(path, &own, model, err);
}

lac_status lac_model_load(const char *path, lac_model **model, lac_error *err) {
  if (model) *model = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"model", model});
  return st ? st : load_from_path(path, NULL, model, err);
}

lac_status lac_pack_load(const char *path, lac_model **model, lac_error *err) {
  if (model) *model = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"model", model});
  lac_model *made = NULL;
  if (!st) st = laci_pack_load(path, &made, err);
  return st ? st : finish_load(st, made, NULL, path, model, err);
}

static lac_status load_from_memory(const void *bytes, size_t size_bytes,
                                   const lac_load_options *options, lac_model **model,
                                   lac_error *err) {
  lac_model *made;
  const char *data_dir = options ? options->data_dir : NULL;
  lac_status st = laci_model_new("(memory)", &made, err);
  if (!st) st = laci_onnx_load_memory(bytes, size_bytes, data_dir, &made->file, &made->graph, err);
  if (st == LAC_BAD_FILE) st = laci_foreign_explain(NULL, bytes, size_bytes, st, err);
  return finish_load(st, made, options, NULL, model, err);
}

lac_status lac_model_load_memory_with(const void *bytes, size_t size_bytes,
                                      const lac_load_options *options, lac_model **model,
                                      lac_error *err) {
  if (model) *model = NULL;
  lac_load_options own;
  lac_status st = LACI_CHECK_GIVEN(err, {"bytes", bytes}, {"model", model});
  if (!st) st = laci_take_load_options(options, &own, err);
  return st ? st : load_from_memory(bytes, size_bytes, &own, model, err);
}

lac_status lac_model_load_memory(const void *bytes, size_t size_bytes, const char *data_dir,
                                 lac_model **model, lac_error *err) {
  if (model) *model = NULL;
  const lac_load_options options = {.size = sizeof(lac_load_options), .data_dir = data_dir};
  lac_status st = LACI_CHECK_GIVEN(err, {"bytes", bytes}, {"model", model});
  return st ? st : load_from_memory(bytes, size_bytes, &options, model, err);
}

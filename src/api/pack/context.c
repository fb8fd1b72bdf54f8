/* SPDX-License-Identifier: Apache-2.0
 * lac_pack_save_context: a pack inside an ONNX model of one node. It is packed to a temporary
 * folder, read from there, and becomes an attribute. Next: pack.c, onnx/context.c. */
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/pack/scratch.h"
#include "api/prune/options_in.h"
#include "base/error.h"
#include "base/file_set.h"
#include "base/reader.h"
#include "base/writer.h"
#include "lacuna/model.h"
#include "lacuna/pack.h"
#include "onnx/onnx.h"

/** Writes the model around the pack. */
static lac_status write_model_around_pack(const char *pack, const char *path, bool force,
                                          uint64_t *size_bytes, lac_error *err) {
  lac_model *packed = NULL;
  laci_file_bytes bytes = {0};
  lac_load_options lenient = lac_load_options_default();
  lenient.lenient = true; /* the model was checked before it was packed */
  lac_status st = laci_file_bytes_read(pack, &bytes, err);
  if (!st) st = lac_model_load(pack, &lenient, &packed, err);
  if (!st) {
    const laci_onnx_context context = {bytes.bytes, bytes.size_bytes};
    const laci_write_options how = {.force = force};
    st = laci_onnx_write_ep_context(packed->file, &context, path, &how, size_bytes, err);
  }
  lac_model_destroy(packed);
  laci_file_bytes_clear(&bytes);
  return st;
}

lac_status lac_pack_save_context(lac_model *model, const char *path, const lac_options *options,
                                 bool force, lac_pack_report **out, lac_error *err) {
  char pack[PATH_MAX];
  laci_scratch scratch = {.folder = ""};
  lac_pack_report *report = NULL;
  laci_file_set set;
  laci_own_options own;
  if (out) *out = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path}, {"options", options});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  if (lac_model_reads(model, path)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: is an input file, which is never overwritten",
                     path);
  }
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_scratch_create(&scratch, err);
  if (!st) st = laci_scratch_path(&scratch, "model.pack", pack, err);
  laci_file_set_begin_separate(&set); /* the pack is read before the output files get their final
                                         names */
  if (!st) st = lac_pack_save(model, pack, &own.options, false, &report, err);
  st = laci_file_set_end(&set, st, err);
  if (!st) st = write_model_around_pack(pack, path, force, &report->packed_bytes, err);
  if (st) laci_scratch_hide_paths(&scratch, err);
  laci_scratch_remove(&scratch);
  laci_call_leave_context(before);
  if (!st && out) *out = report;
  else lac_pack_report_destroy(report);
  return st;
}

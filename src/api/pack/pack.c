/* SPDX-License-Identifier: Apache-2.0
 * lac_pack_save. A model that is not in a file as it is in memory is saved to a temporary folder
 * first and packed from there. Next: files.c, layers.c, pack/packfile.h; load.c reads
 * packs. */
#include <stdlib.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/pack/pack_in.h"
#include "api/prune/options_in.h"
#include "api/pack/save_in.h"
#include "api/pack/scratch.h"
#include "base/error.h"
#include "base/file_set.h"
#include "base/memory.h"
#include "base/writer.h"
#include "lacuna/model.h"
#include "lacuna/pack.h"
#include "pack/packfile.h"

static int compare_weight_offsets(const void *a, const void *b) {
  const laci_packfile_weight *left = a, *right = b;
  if (left->file != right->file) return left->file < right->file ? -1 : 1;
  return (left->offset > right->offset) - (left->offset < right->offset);
}

static lac_status write_packed_files(laci_packer *k, const lac_options *options, const char *path,
                                     bool force, lac_error *err) {
  lac_pack_report *report = &k->report->pub;
  lac_status st = laci_job_open(k->model, options, &k->job, err);
  if (!st) st = laci_job_materialise(&k->job, k->model, err);
  if (!st) st = laci_pack_list_files(k, err);
  if (!st) st = laci_pack_choose_weights(k, err);
  if (st) return st;
  qsort(k->weights, k->n_weights, sizeof *k->weights, compare_weight_offsets);
  const laci_packfile_input input = {k->files, k->n_files, k->weights, k->n_weights};
  const laci_write_options how = {.force = force, .keep = k->id, .n_keep = 1};
  st = laci_packfile_write(&input, path, &how, &report->packed_bytes, err);
  report->n_packed = (int)k->n_weights;
  for (size_t at = 0; at < k->n_files; at++) report->dense_bytes += k->files[at].size_bytes;
  return st;
}

/** Packs a model whose files contain it unchanged. */
static lac_status pack_unchanged_model(const lac_model *model, const lac_options *options,
                                       const char *path, bool force, laci_pack_report *report,
                                       lac_error *err) {
  laci_packer k = {.model = model, .pattern = {options->n, options->m}, .report = report};
  lac_status st = write_packed_files(&k, options, path, force, err);
  laci_job_close(&k.job);
  laci_free(k.files);
  laci_free(k.file_of_data);
  laci_free(k.spans);
  laci_free(k.claimed);
  laci_free(k.layer_of);
  laci_free(k.weights);
  return st;
}

/** Saves a changed model to a temporary folder, and packs it from there. */
static lac_status pack_changed_model(lac_model *model, const lac_options *options, const char *path,
                                     bool force, laci_pack_report *report, lac_error *err) {
  char saved_path[PATH_MAX];
  laci_scratch scratch = {.folder = ""};
  lac_model *saved = NULL;
  laci_file_set set;
  lac_status st = laci_scratch_create(&scratch, err);
  if (!st) st = laci_scratch_path(&scratch, "model.onnx", saved_path, err);
  laci_file_set_begin_separate(&set); /* the saved file is read before the output files get their
                                         final names */
  if (!st) st = lac_model_save(model, saved_path, false, err);
  st = laci_file_set_end(&set, st, err);
  lac_load_options lenient = lac_load_options_default();
  lenient.lenient = true; /* the model was checked before it was saved */
  if (!st) st = lac_model_load(saved_path, &lenient, &saved, err);
  if (!st) st = pack_unchanged_model(saved, options, path, force, report, err);
  lac_model_destroy(saved);
  if (st) laci_scratch_hide_paths(&scratch, err);
  laci_scratch_remove(&scratch);
  return st;
}

static lac_status create_pack_report(const lac_model *model, const lac_options *options,
                                     laci_pack_report **report, lac_error *err) {
  laci_pack_report *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the report");
  made->pub.pattern_n = options->n;
  made->pub.pattern_m = options->m;
  made->pub.model = laci_arena_text(&made->arena, model->path);
  if (made->pub.model) {
    *report = made;
    return LAC_OK;
  }
  lac_pack_report_destroy(&made->pub);
  return laci_fail_memory(err, "the report");
}

lac_status lac_pack_save(lac_model *model, const char *path, const lac_options *options, bool force,
                         lac_pack_report **out, lac_error *err) {
  laci_pack_report *report = NULL;
  if (out) *out = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path}, {"options", options});
  laci_own_options own;
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  options = &own.options;
  if (lac_model_reads(model, path)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: is an input file, which is never overwritten",
                     path);
  }
  st = create_pack_report(model, options, &report, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(options->context);
  if (laci_pack_is_model_unchanged(model))
    st = pack_unchanged_model(model, options, path, force, report, err);
  else st = pack_changed_model(model, options, path, force, report, err);
  laci_call_leave_context(before);
  if (!st && out) *out = &report->pub;
  else lac_pack_report_destroy(&report->pub);
  return st;
}

void lac_pack_report_destroy(lac_pack_report *report) {
  if (!report) return;
  laci_pack_report *made = (laci_pack_report *)report;
  laci_arena_clear(&made->arena);
  laci_free(made);
}

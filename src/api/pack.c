/* SPDX-License-Identifier: Apache-2.0
 * lac_pack_save: which weights are packed, and where they lie in the model's files.
 *
 * The pack keeps the bytes of the files as they are, so stored tensors are found in the model's own
 * file by their content: a stretch of tensor bytes that equals a weight is a place for it, whatever
 * the message around it says. A model that is not in a file as
 * it is in memory is saved to a temporary folder first and packed from there. Next:
 * pack/packfile.h; pack_load.c is the way back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/model_in.h"
#include "api/pack_in.h"
#include "api/scratch.h"
#include "base/error.h"
#include "base/file_set.h"
#include "base/log.h"
#include "onnx/spans.h"
#include "pack/packfile.h"
#include "report/json.h"
#include "tensor/buf.h"

/** Packing one model. Files: the model's, then its data files by name. */
typedef struct packer {
  const lac_model *model;
  laci_pattern pattern;
  laci_pack_report *report;
  laci_job job;
  const uint8_t *bytes; /* of the model's file */
  laci_packfile_part *files;
  size_t n_files;
  size_t *file_of_data; /* [n_files - 1] data file as the model counts -> its place in files */
  laci_onnx_span *spans;
  size_t n_spans;
  bool *claimed;                 /* [n_spans] */
  int *layer_of;                 /* [n_stored] layer whose weight it is packed as, + 1 */
  laci_packfile_weight *weights; /* room for one a layer */
  size_t n_weights;
} packer;

/* ---- Files ---- */

/* Data files come back beside the model's, so that their names must be names. */
static bool is_plain_name(const char *name) {
  return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
         strlen(name) < 256;
}

/** Whether the files that the model was read from hold it as it is. */
static bool is_as_in_files(const lac_model *model) {
  if (model->packed || !lac_model_reads(model, model->path)) return false;
  for (size_t at = 0; at < laci_onnx_n_data(model->file); at++) {
    if (!is_plain_name(laci_onnx_data_at(model->file, at).location)) return false;
  }
  for (int s = 0; s < model->graph->n_stored; s++) {
    if (model->graph->stored[s].owned) return false;
  }
  return true;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const laci_packfile_part *)a)->name, ((const laci_packfile_part *)b)->name);
}

/** All bytes of a file, where the reader has them. */
static lac_status add_part(packer *k, size_t at, const char *name, laci_reader *reader,
                           lac_error *err) {
  size_t n = laci_reader_size(reader);
  k->files[at] = (laci_packfile_part){name, laci_reader_bytes(reader), n};
  return laci_reader_materialise(reader, 0, n, err);
}

static lac_status list_files(packer *k, lac_error *err) {
  const laci_onnx *file = k->model->file;
  size_t n_data = laci_onnx_n_data(file);
  k->n_files = n_data + 1;
  k->files = laci_alloc(k->n_files, sizeof *k->files);
  k->file_of_data = laci_alloc(n_data, sizeof *k->file_of_data);
  if (!k->files || !k->file_of_data) return laci_fail_memory(err, "the model's files");
  lac_status st = add_part(k, 0, "", laci_onnx_reader(file), err);
  for (size_t at = 0; at < n_data && !st; at++) {
    laci_onnx_data data = laci_onnx_data_at(file, at);
    st = add_part(k, at + 1, data.location, data.reader, err);
  }
  if (st) return st;
  k->bytes = k->files[0].bytes;
  qsort(k->files + 1, n_data, sizeof *k->files, compare_names);
  for (size_t at = 0; at < n_data; at++) {
    const laci_packfile_part key = {.name = laci_onnx_data_at(file, at).location};
    const laci_packfile_part *found =
        bsearch(&key, k->files + 1, n_data, sizeof key, compare_names);
    k->file_of_data[at] = (size_t)(found - k->files);
  }
  st = laci_onnx_find_spans(k->bytes, k->files[0].size_bytes, &k->spans, &k->n_spans, err);
  return st ? laci_fail_in(err, st, "%s", k->model->path) : LAC_OK;
}

/** The place of a stored tensor's bytes; false: they do not lie there as they are in memory. */
static bool find_place(packer *k, const laci_stored *stored, laci_packfile_weight *weight) {
  size_t data;
  if (laci_onnx_data_span(stored, &data, &weight->offset)) {
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

/* ---- Layers ---- */

/* What a quantised weight has in the place of 0. False: that differs from channel to channel. */
static bool find_fill(const laci_weight_view *view, uint64_t *fill) {
  *fill = 0;
  if (!view->n_scales || !view->zero) return true;
  for (int64_t k = 1; k < view->n_scales; k++) {
    if (view->zero[k] != view->zero[0]) return false;
  }
  if (!laci_dtype_is_float(view->dtype)) *fill = (uint64_t)laci_int_from_f(view->zero[0]);
  return true;
}

static bool overlaps(const packer *k, const laci_packfile_weight *weight) {
  size_t begin = weight->offset, end = begin + weight->packing.dense_bytes;
  for (size_t at = 0; at < k->n_weights; at++) {
    const laci_packfile_weight *other = &k->weights[at];
    if (other->file == weight->file && begin < other->offset + other->packing.dense_bytes &&
        other->offset < end) {
      return true;
    }
  }
  return false;
}

/** Takes the layer's weight into the list; NULL, or why it stays dense. */
static const char *try_layer(packer *k, const laci_layer *layer, lac_pack_layer *row) {
  static const char *const unlike = "its elements do not lie in the file as they are in memory";
  const laci_stored *stored = &k->job.analysis->graph->stored[layer->stored];
  laci_packfile_weight weight = {0};
  uint64_t fill;
  if (!find_fill(&layer->view, &fill)) return "its zero points differ from channel to channel";
  if (laci_packing_init(&weight.packing, &layer->view, k->pattern, fill, NULL) ||
      weight.packing.dense_bytes != stored->size_bytes) {
    return "elements of this type are not packed";
  }
  const laci_packing *p = &weight.packing;
  laci_pack_survey survey = laci_pack_look(p, stored->bytes);
  if (!survey.holds) return "";
  uint64_t packed = p->values_bytes + p->index_bytes + (survey.needs_signs ? p->signs_bytes : 0);
  if (packed >= p->dense_bytes) return "packed, it would take more";
  weight.needs_signs = survey.needs_signs;
  if (!find_place(k, stored, &weight)) return unlike;
  if (overlaps(k, &weight)) return "its bytes are another weight's, too";
  k->weights[k->n_weights++] = weight;
  row->packed = true;
  row->packed_bytes = packed;
  return NULL;
}

static lac_status say(packer *k, lac_pack_layer *row, const char *text, const char *name,
                      lac_error *err) {
  size_t n = strlen(text) + strlen(name) + 1;
  char *joined = laci_arena_alloc(&k->report->arena, n, 1);
  if (!joined) return laci_fail_memory(err, "the report");
  (void)snprintf(joined, n, "%s%s", text, name);
  row->reason = joined;
  return LAC_OK;
}

static lac_status name_layer(packer *k, const laci_layer *layer, lac_pack_layer *row,
                             lac_error *err) {
  const laci_graph *graph = k->job.analysis->graph;
  const laci_stored *stored = &graph->stored[layer->stored];
  laci_arena *arena = &k->report->arena;
  *row = (lac_pack_layer){.name = laci_arena_text(arena, graph->nodes[layer->node].name),
                          .op = laci_arena_text(arena, graph->nodes[layer->node].type),
                          .weight = laci_arena_text(arena, stored->name),
                          .dtype = stored->dtype,
                          .rank = stored->shape.rank,
                          .dense_bytes = stored->size_bytes,
                          .packed_bytes = stored->size_bytes};
  for (int axis = 0; axis < stored->shape.rank; axis++) row->shape[axis] = stored->shape.dims[axis];
  return row->name && row->op && row->weight ? LAC_OK : laci_fail_memory(err, "the report");
}

static lac_status choose_weights(packer *k, lac_error *err) {
  const laci_analysis *a = k->job.analysis;
  laci_pack_report *report = k->report;
  report->layers = laci_arena_alloc(&report->arena, (size_t)a->n_layers, sizeof *report->layers);
  k->weights = laci_alloc((size_t)a->n_layers, sizeof *k->weights);
  k->layer_of = laci_alloc((size_t)a->graph->n_stored, sizeof *k->layer_of);
  k->claimed = laci_alloc(k->n_spans, sizeof *k->claimed);
  if (!report->layers || !k->weights || !k->layer_of || !k->claimed) {
    return laci_fail_memory(err, "the weights");
  }
  report->pub.layers = report->layers;
  report->pub.n_layers = a->n_layers;
  lac_status st = LAC_OK;
  for (int l = 0; l < a->n_layers && !st; l++) {
    const laci_layer *layer = &a->layers[l];
    lac_pack_layer *row = &report->layers[l];
    int *first = &k->layer_of[layer->stored];
    st = name_layer(k, layer, row, err);
    if (!st && *first) {
      row->packed = true;
      row->packed_bytes = report->layers[*first - 1].packed_bytes;
      st = say(k, row, "the weight of ", report->layers[*first - 1].name, err);
      continue;
    }
    const char *why = st ? NULL : try_layer(k, layer, row);
    if (!st && why && why[0]) st = say(k, row, why, "", err);
    if (row->packed) *first = l + 1;
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  return st;
}

static int compare_spans(const void *a, const void *b) {
  const laci_packfile_weight *left = a, *right = b;
  if (left->file != right->file) return left->file < right->file ? -1 : 1;
  return (left->offset > right->offset) - (left->offset < right->offset);
}

/* ---- The way ---- */

static lac_status pack_files(packer *k, const lac_options *options, const char *path, bool force,
                             lac_error *err) {
  lac_pack_report *report = &k->report->pub;
  lac_status st = laci_job_open(k->model, options, &k->job, err);
  if (!st) st = list_files(k, err);
  if (!st) st = choose_weights(k, err);
  if (st) return st;
  qsort(k->weights, k->n_weights, sizeof *k->weights, compare_spans);
  const laci_packfile_input input = {k->files, k->n_files, k->weights, k->n_weights};
  const laci_write_options how = {
      .force = force, .keep = laci_reader_id(laci_onnx_reader(k->model->file)), .n_keep = 1};
  st = laci_packfile_write(&input, path, &how, &report->packed_bytes, err);
  report->n_packed = (int)k->n_weights;
  for (size_t at = 0; at < k->n_files; at++) report->dense_bytes += k->files[at].size_bytes;
  return st;
}

/** Packs a model that is in its files as it is. */
static lac_status pack_model(const lac_model *model, const lac_options *options, const char *path,
                             bool force, laci_pack_report *report, lac_error *err) {
  packer k = {.model = model, .pattern = {options->n, options->m}, .report = report};
  lac_status st = pack_files(&k, options, path, force, err);
  laci_job_close(&k.job);
  laci_free(k.files);
  laci_free(k.file_of_data);
  laci_free(k.spans);
  laci_free(k.claimed);
  laci_free(k.layer_of);
  laci_free(k.weights);
  return st;
}

/** The same by way of a temporary folder. */
static lac_status save_and_pack(lac_model *model, const lac_options *options, const char *path,
                                bool force, laci_pack_report *report, lac_error *err) {
  char saved_path[PATH_MAX];
  laci_scratch scratch = {.folder = ""};
  lac_model *saved = NULL;
  laci_file_set set;
  lac_status st = laci_scratch_create(&scratch, err);
  if (!st) st = laci_scratch_path(&scratch, "model.onnx", saved_path, err);
  laci_file_set_begin_apart(&set); /* it is read at once */
  if (!st) st = lac_model_save(model, saved_path, false, err);
  st = laci_file_set_end(&set, st, err);
  const lac_load_options lenient = {.lenient = true}; /* it was read already */
  if (!st) st = lac_model_load_with(saved_path, &lenient, &saved, err);
  if (!st) st = pack_model(saved, options, path, force, report, err);
  lac_model_destroy(saved);
  if (st) laci_scratch_report(&scratch, err);
  laci_scratch_remove(&scratch);
  return st;
}

static lac_status new_report(const lac_model *model, const lac_options *options,
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
  if (st) return st;
  if (lac_model_reads(model, path)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: is an input file, which is never overwritten",
                     path);
  }
  st = new_report(model, options, &report, err);
  if (st) return st;
  if (is_as_in_files(model)) st = pack_model(model, options, path, force, report, err);
  else st = save_and_pack(model, options, path, force, report, err);
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

lac_status lac_pack_report_json(const lac_pack_report *report, char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"report", report}, {"text", text});
  return st ? st : laci_pack_json(report, text, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * Synthetic images as an array in memory or in a file. */
#include "lacuna/data.h"

#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/prune/job_in.h"
#include "api/prune/synthetic_in.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/writer.h"
#include "data/npy.h"
#include "data/prepare.h"
#include "graph/graph.h"
#include "lacuna/prune.h"

enum { IMAGES_AT_A_TIME = 16 };

void lac_synthetic_options_init(lac_synthetic_options *options, size_t size) {
  const laci_preprocessing images = laci_preprocessing_default();
  lac_synthetic_options usual = {.size = sizeof usual, .samples = 512};
  memcpy(usual.mean, images.mean, sizeof usual.mean);
  memcpy(usual.std, images.std, sizeof usual.std);
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

/* The state of drawing synthetic images. */
typedef struct drawing {
  laci_job job;
  laci_samples *samples;
  laci_type type; /* type of the array of all images: f32 or u8 */
  void *batch;    /* buffer for IMAGES_AT_A_TIME images as f32 or i64 */
  int64_t width;  /* number of elements of an image */
} drawing;

static lac_status check_options(const lac_synthetic_options *o, lac_error *err) {
  if (o->samples < 1 || o->samples > INT32_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%lld synthetic images, wanted 1 to %d",
                     (long long)o->samples, INT32_MAX);
  }
  if (o->crop < 0 || o->crop > LACI_PREPROCESSING_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "crop %d: wanted 0 to %d pixels", o->crop,
                     LACI_PREPROCESSING_MAX);
  }
  return laci_scale_check_mean_and_std(o->mean, o->std, err);
}

static lac_status open_image_samples(drawing *d, const laci_graph *graph,
                                     const lac_synthetic_options *options, lac_error *err) {
  const laci_value *value = &graph->values[graph->inputs[0]];
  const laci_sample_input input = {value->name, value->type};
  const bool scaled = laci_synthetic_has_own_scale(options->mean, options->std);
  const laci_synthetic_options how = {.crop = options->crop,
                                      .mean = scaled ? options->mean : NULL,
                                      .std = scaled ? options->std : NULL,
                                      .seed = options->seed,
                                      .pool = d->job.pool};
  laci_synthetic_input images;
  lac_status st = laci_synthetic_find_input(graph, &how, &images, err);
  if (st) return st;
  const laci_samples_options from = {.n = options->samples,
                                     .seed = options->seed,
                                     .inputs = &input,
                                     .n_inputs = 1,
                                     .synthetic = &images,
                                     .pool = d->job.pool};
  st = laci_samples_open("synthetic", &from, &d->samples, err);
  if (st) return st;
  const laci_type *one = laci_samples_type(d->samples, 0);
  d->type = (laci_type){one->dtype == LAC_DTYPE_F32 ? LAC_DTYPE_F32 : LAC_DTYPE_U8, one->shape};
  d->type.shape.dims[0] = options->samples;
  d->width = (int64_t)images.height * images.width * images.channels;
  d->batch = laci_alloc((size_t)d->width * IMAGES_AT_A_TIME, sizeof(int64_t));
  return d->batch ? LAC_OK : laci_fail_memory(err, "synthetic images");
}

static void close_synthetic_images(drawing *d) {
  laci_samples_close(d->samples);
  laci_free(d->batch);
  laci_job_close(&d->job);
}

static lac_status open_synthetic_images(const lac_model *model,
                                        const lac_synthetic_options *options, drawing *d,
                                        lac_error *err) {
  lac_options how = lac_options_default();
  *d = (drawing){.samples = NULL};
  how.threads = options->threads;
  lac_status st = laci_job_open(model, &how, &d->job, err);
  if (st) return st;
  st = laci_job_materialise(&d->job, model, err);
  if (!st) st = open_image_samples(d, model->graph, options, err);
  if (st) close_synthetic_images(d);
  return st;
}

/* Draws images [first, first + n) into d->batch, and narrows integers to bytes there. */
static lac_status draw_batch(drawing *d, int64_t first, int64_t n, lac_error *err) {
  lac_status st = laci_samples_read_batch(d->samples, first, n, &d->batch, err);
  if (st || d->type.dtype == LAC_DTYPE_F32) return st;
  const int64_t *wide = d->batch;
  uint8_t *narrow = d->batch;
  for (int64_t at = 0; at < n * d->width; at++) narrow[at] = (uint8_t)wide[at];
  return LAC_OK;
}

static int64_t count_images_in_batch(const drawing *d, int64_t first) {
  const int64_t left = d->type.shape.dims[0] - first;
  return left < IMAGES_AT_A_TIME ? left : IMAGES_AT_A_TIME;
}

static lac_status draw_to_memory(const lac_model *model, const lac_synthetic_options *options,
                                 lac_array *images, lac_error *err) {
  drawing d;
  lac_status st = open_synthetic_images(model, options, &d, err);
  if (st) return st;
  const size_t width = (size_t)d.width * lac_dtype_size(d.type.dtype);
  laci_budget budget = d.job.budget;
  uint8_t *data = NULL;
  laci_budget_add(&budget, (uint64_t)d.type.shape.dims[0] * width, "synthetic images");
  st = laci_budget_check(&budget, "drawing them", err);
  if (!st) {
    data = laci_alloc((size_t)d.type.shape.dims[0], width);
    if (!data) st = laci_fail_memory(err, "synthetic images");
  }
  for (int64_t first = 0; first < d.type.shape.dims[0] && !st; first += IMAGES_AT_A_TIME) {
    const int64_t n = count_images_in_batch(&d, first);
    st = draw_batch(&d, first, n, err);
    if (!st) memcpy(data + (size_t)first * width, d.batch, (size_t)n * width);
  }
  if (!st) {
    *images = (lac_array){.dtype = d.type.dtype,
                          .rank = d.type.shape.rank,
                          .data = data,
                          .size_bytes = (size_t)d.type.shape.dims[0] * width,
                          .owned = true};
    memcpy(images->shape, d.type.shape.dims, sizeof images->shape);
  } else {
    laci_free(data);
  }
  close_synthetic_images(&d);
  return st;
}

static lac_status draw_to_file(const lac_model *model, const char *path,
                               const lac_synthetic_options *options, bool force, lac_error *err) {
  const laci_write_options how = {.force = force};
  laci_writer *writer = NULL;
  drawing d;
  lac_status st = open_synthetic_images(model, options, &d, err);
  if (st) return st;
  const size_t width = (size_t)d.width * lac_dtype_size(d.type.dtype);
  st = laci_writer_open(path, &how, &writer, err);
  if (!st) st = laci_npy_append_header(writer, &d.type, err);
  for (int64_t first = 0; first < d.type.shape.dims[0] && !st; first += IMAGES_AT_A_TIME) {
    const int64_t n = count_images_in_batch(&d, first);
    st = draw_batch(&d, first, n, err);
    if (!st) st = laci_writer_append(writer, d.batch, (size_t)n * width, err);
  }
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  close_synthetic_images(&d);
  return st;
}

static lac_status copy_checked_options(const lac_synthetic_options *options,
                                       lac_synthetic_options *own, lac_error *err) {
  lac_status st = laci_take_synthetic_options(options, own, err);
  return st ? st : check_options(own, err);
}

lac_status lac_synthetic_images(const lac_model *model, const lac_synthetic_options *options,
                                lac_array *images, lac_error *err) {
  lac_synthetic_options own;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"images", images});
  if (!st) st = copy_checked_options(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.context);
  st = draw_to_memory(model, &own, images, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_synthetic_save(const lac_model *model, const char *path,
                              const lac_synthetic_options *options, bool force, lac_error *err) {
  lac_synthetic_options own;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path});
  if (!st) st = copy_checked_options(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.context);
  st = draw_to_file(model, path, &own, force, err);
  laci_call_leave_context(before);
  return st;
}

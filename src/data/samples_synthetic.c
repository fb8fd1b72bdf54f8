/* SPDX-License-Identifier: Apache-2.0
 * Samples that are synthetic images (synthetic/leaves.h), for a network whose only input is images.
 * A batch is divided into as many parts as there are threads. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cpu/pool.h"
#include "data/samples_in.h"
#include "synthetic/leaves.h"

enum { COLOURS = 3, GREEN = 1 };

typedef struct synthetic_samples {
  laci_synthetic_input input;
  laci_leaves *leaves;
  int64_t *chosen; /* [input.n_chosen] copy of input.chosen, or NULL */
  uint8_t *fitted; /* copy of input.fitted, or NULL */
  int64_t *slot;   /* [n_slots] for each of the first samples, the index of the image of `fitted`
                      that it is; -1: it is none of them. NULL: no images are fitted */
  int64_t n_slots;
  int n_parts;
  float *scratch; /* [n_parts, COLOURS + 1, height * width] a drawn image and one more plane, for
                     each part of a batch */
} synthetic_samples;

typedef struct batch_work {
  const laci_samples *samples;
  int64_t first, n;
  void *to;
} batch_work;

static size_t count_pixels_per_image(const laci_synthetic_input *input) {
  return (size_t)input->height * (size_t)input->width;
}

/* Scales an image and writes it as image `at` of the batch, in the input's layout and type. rgb:
 * the image's colours, 0..1; a grey input takes the green ones. levels: grey levels to use instead;
 * NULL: rgb is used. */
static void write_image(const laci_synthetic_input *input, const float *rgb, const uint8_t *levels,
                        void *batch, int64_t at) {
  const size_t plane = count_pixels_per_image(input), sample = plane * (size_t)input->channels;
  const size_t begin = (size_t)at * sample;
  for (int c = 0; c < input->channels; c++) {
    const float *from = rgb + (size_t)(input->channels == 1 ? GREEN : c) * plane;
    const size_t step = input->channels_last ? (size_t)input->channels : 1;
    const size_t start = begin + (size_t)c * (input->channels_last ? 1 : plane);
    for (size_t p = 0; p < plane; p++) {
      const float grey = levels ? (float)levels[(size_t)c * plane + p] : from[p] * 255;
      const float value = (grey - input->mean[c]) / input->std[c];
      if (input->integers) ((int64_t *)batch)[start + p * step] = (int64_t)lrintf(value);
      else ((float *)batch)[start + p * step] = value;
    }
  }
}

/* Returns the number (seed) of the synthetic image that is the sample with index `at`. */
static uint64_t image_number_of_sample(const synthetic_samples *own, int64_t at) {
  if (!own->chosen) return (uint64_t)at;
  const laci_synthetic_input *in = &own->input;
  return (uint64_t)(at < in->n_chosen ? own->chosen[at] : in->candidates + at - in->n_chosen);
}

static void draw_part_of_batch(int64_t begin, int64_t end, void *context) {
  const batch_work *work = context;
  const synthetic_samples *own = work->samples->own;
  const size_t plane = count_pixels_per_image(&own->input);
  for (int64_t part = begin; part < end; part++) {
    float *rgb = own->scratch + (size_t)part * (COLOURS + 1) * plane;
    const int64_t last = work->n * (part + 1) / own->n_parts;
    for (int64_t k = work->n * part / own->n_parts; k < last && !laci_interrupted(); k++) {
      int copy;
      const int64_t at = laci_samples_data_index_and_copy(work->samples, work->first + k, &copy);
      const int64_t slot = at < own->n_slots ? own->slot[at] : -1;
      const uint8_t *levels =
          slot < 0 ? NULL : own->fitted + (size_t)slot * plane * (size_t)own->input.channels;
      if (!levels)
        laci_leaves_draw(own->leaves, image_number_of_sample(own, at), rgb, rgb + COLOURS * plane);
      write_image(&own->input, rgb, levels, work->to, k);
    }
  }
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const synthetic_samples *own = s->own;
  batch_work work = {.samples = s, .first = first, .n = n, .to = to[0]};
  laci_pool_for(s->options.pool, own->n_parts, 1, draw_part_of_batch, &work);
  return laci_interrupted() ? laci_fail(err, LAC_INTERRUPTED, "interrupted") : LAC_OK;
}

static void close_synthetic(laci_samples *s) {
  synthetic_samples *own = s->own;
  if (!own) return;
  laci_leaves_destroy(own->leaves);
  laci_free(own->chosen);
  laci_free(own->fitted);
  laci_free(own->slot);
  laci_free(own->scratch);
  laci_free(own);
}

/* Copies the fitted images, and records which samples they are. False: no memory. */
static bool copy_fitted_images(synthetic_samples *own) {
  const laci_synthetic_input *in = &own->input;
  const size_t bytes = (size_t)in->n_fitted * count_pixels_per_image(in) * (size_t)in->channels;
  if (!in->fitted || in->n_fitted < 1) return true;
  for (int64_t k = 0; k < in->n_fitted; k++)
    if (in->fitted_at[k] >= own->n_slots) own->n_slots = in->fitted_at[k] + 1;
  own->fitted = laci_alloc(bytes, 1);
  own->slot = laci_alloc((size_t)own->n_slots, sizeof *own->slot);
  if (!own->fitted || !own->slot) return false;
  memcpy(own->fitted, in->fitted, bytes);
  for (int64_t at = 0; at < own->n_slots; at++) own->slot[at] = -1;
  for (int64_t k = 0; k < in->n_fitted; k++) own->slot[in->fitted_at[k]] = k;
  return true;
}

static lac_status open_synthetic(laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  synthetic_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  if (o->copies > 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: changed copies of synthetic images; wanted more samples instead",
                     s->path);
  }
  own->input = *o->synthetic;
  const laci_synthetic_input *in = &own->input;
  s->available = o->n + o->judging_most;
  s->types[0] = (laci_type){in->integers ? LAC_DTYPE_I64 : LAC_DTYPE_F32,
                            {4, {1, in->channels, in->height, in->width}}};
  if (in->channels_last)
    s->types[0].shape = (laci_shape){4, {1, in->height, in->width, in->channels}};
  if (in->chosen) {
    own->chosen = laci_alloc((size_t)in->n_chosen, sizeof *own->chosen);
    if (!own->chosen) return laci_fail_memory(err, s->path);
    memcpy(own->chosen, in->chosen, (size_t)in->n_chosen * sizeof *own->chosen);
  }
  if (!copy_fitted_images(own)) return laci_fail_memory(err, s->path);
  own->n_parts = laci_pool_threads(o->pool);
  own->scratch =
      laci_alloc((size_t)own->n_parts * (COLOURS + 1) * count_pixels_per_image(in), sizeof(float));
  if (!own->scratch) return laci_fail_memory(err, s->path);
  return laci_leaves_create(o->seed, in->height, in->width, &own->leaves, err);
}

const laci_samples_kind laci_samples_synthetic = {.open = open_synthetic,
                                                  .label = NULL,
                                                  .read = read_batch,
                                                  .close = close_synthetic,
                                                  .noun = NULL};

/* SPDX-License-Identifier: Apache-2.0
 * Samples that are images of a data set. A batch is divided into as many parts as there are
 * threads; each part has its own preparer. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cpu/pool.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/parts.h"
#include "data/samples_in.h"

typedef struct part_scratch {
  laci_preparer *preparer;
  laci_image images[2];
  lac_status status;
  int64_t failed_at;
  lac_error error;
} part_scratch;

typedef struct image_samples {
  laci_dataset *set;
  laci_preprocessing preprocessing;
  int n_parts;
  part_scratch *parts; /* [n_parts] scratch of each part of a batch */
} image_samples;

typedef struct batch_work {
  laci_samples *samples;
  int64_t first, n;
  float *to;
} batch_work;

/* ---- A batch ---- */

static lac_status read_image(const laci_samples *s, int64_t place, part_scratch *scratch, float *to,
                             lac_error *err) {
  const image_samples *own = s->own;
  int copy = 0;
  int64_t at = laci_samples_data_index_and_copy(s, place, &copy);
  if (copy == 0)
    return laci_dataset_read_sample(own->set, at, scratch->preparer, &scratch->images[0], to, err);
  laci_sample_change change = {.image = at,
                               .augment = laci_dataset_augment(own->set),
                               .seed = s->options.seed,
                               .sample = (uint64_t)place};
  return laci_dataset_read_changed_sample(own->set, &change, scratch->preparer, scratch->images, to,
                                          err);
}

static void read_part_of_batch(int64_t begin, int64_t end, void *context) {
  const batch_work *work = context;
  const image_samples *own = work->samples->own;
  size_t sample = laci_preprocessing_sample_size(&own->preprocessing);
  for (int64_t part = begin; part < end; part++) {
    part_scratch *scratch = &own->parts[part];
    scratch->status = LAC_OK;
    scratch->error = (lac_error){0};
    int64_t last = work->n * (part + 1) / own->n_parts;
    for (int64_t k = work->n * part / own->n_parts; k < last && !scratch->status; k++) {
      scratch->status = read_image(work->samples, work->first + k, scratch,
                                   work->to + (size_t)k * sample, &scratch->error);
    }
  }
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const image_samples *own = s->own;
  batch_work work = {.samples = s, .first = first, .n = n, .to = to[0]};
  laci_pool_for(s->options.pool, own->n_parts, 1, read_part_of_batch, &work);
  for (int part = 0; part < own->n_parts; part++) {
    if (!own->parts[part].status) continue;
    if (err) *err = own->parts[part].error;
    return own->parts[part].status;
  }
  return laci_interrupted() ? laci_fail(err, LAC_INTERRUPTED, "interrupted") : LAC_OK;
}

static void close_images(laci_samples *s) {
  image_samples *own = s->own;
  if (!own) return;
  for (int part = 0; own->parts && part < own->n_parts; part++) {
    laci_preparer_destroy(own->parts[part].preparer);
    for (int k = 0; k < 2; k++) laci_image_clear(&own->parts[part].images[k]);
  }
  laci_free(own->parts);
  laci_dataset_close(own->set);
  laci_free(own);
}

/* ---- Opening ---- */

/* Opens the training part of the data, or the evaluation part if there is no other. */
static lac_status open_image_dataset(const char *path, const char *known, laci_dataset **set,
                                     lac_error *err) {
  const laci_dataset_options options = {
      .part = LACI_PART_TRAIN, .known = known, .may_be_new = true};
  laci_parts *parts = laci_alloc(1, sizeof *parts);
  if (!parts) return laci_fail_memory(err, path);
  lac_status st = laci_parts_find(path, LACI_PARTS_TRAIN, parts, err);
  if (st == LAC_NOT_FOUND) {
    st = laci_parts_find(path, LACI_PARTS_TEST, parts, err);
    if (!st && err) *err = (lac_error){0};
    if (!st) st = laci_dataset_open(parts->test, &options, set, err);
  } else if (!st) {
    st = laci_dataset_open(parts->train, &options, set, err);
  }
  laci_free(parts);
  return st;
}

static lac_status set_preprocessing(const laci_samples *s, image_samples *own, lac_error *err) {
  const laci_samples_options *o = &s->options;
  laci_preprocessing *p = &own->preprocessing;
  *p = laci_dataset_preprocessing(own->set);
  if (o->resize) p->resize = o->resize;
  if (o->crop) p->height = p->width = o->crop;
  if ((o->mean || o->std) && p->is_grey) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: mean and std are for images in colour, but these are grey, with a scale "
                     "of their own",
                     s->path);
  }
  if (o->mean) memcpy(p->mean, o->mean, sizeof p->mean);
  if (o->std) memcpy(p->std, o->std, sizeof p->std);
  return laci_preprocessing_check(p, err);
}

static lac_status open_image_samples(laci_samples *s, lac_error *err) {
  image_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  lac_status st = open_image_dataset(s->path, s->options.known, &own->set, err);
  if (!st) st = set_preprocessing(s, own, err);
  if (st) return st;
  s->available = laci_dataset_count(own->set);
  for (int k = 0; k < s->options.n_inputs; k++) {
    s->types[k] = (laci_type){LAC_DTYPE_F32,
                              {4,
                               {1, laci_preprocessing_channels(&own->preprocessing),
                                own->preprocessing.height, own->preprocessing.width}}};
  }
  own->n_parts = laci_pool_threads(s->options.pool);
  own->parts = laci_alloc((size_t)own->n_parts, sizeof *own->parts);
  if (!own->parts) return laci_fail_memory(err, s->path);
  for (int part = 0; part < own->n_parts && !st; part++)
    st = laci_preparer_create(&own->preprocessing, &own->parts[part].preparer, err);
  return st;
}

/* Are the labels indices of the network's outputs? They are not if the class folders are others
 * than those that the network was trained on. */
static bool are_labels_network_outputs(const laci_samples *s, const laci_dataset *set) {
  const laci_numbering by = laci_dataset_numbering(set);
  return !s->options.known || by == LACI_NUMBERED_BY_NETWORK || by == LACI_NUMBERED_BY_DATA;
}

static lac_status set_image_labels(laci_samples *s, lac_error *err) {
  const image_samples *own = s->own;
  if (!are_labels_network_outputs(s, own->set)) {
    if (s->options.copies == 0)
      laci_log(LAC_LOG_INFO,
               "%s: its folders are not all classes that the network was trained on: its images "
               "have no labels, and the network's own answers count",
               s->path);
    return LAC_OK;
  }
  s->labels = laci_alloc((size_t)(s->count + s->judging), sizeof *s->labels);
  if (!s->labels) return laci_fail_memory(err, s->path);
  for (int64_t place = 0; place < s->count + s->judging; place++) {
    int copy;
    s->labels[place] =
        laci_dataset_label(own->set, laci_samples_data_index_and_copy(s, place, &copy));
  }
  return LAC_OK;
}

const laci_dataset *laci_samples_image_set(const laci_samples *s,
                                           laci_preprocessing *preprocessing) {
  const image_samples *own = s->own;
  if (s->kind != &laci_samples_of_images) return NULL;
  if (preprocessing) *preprocessing = own->preprocessing;
  return own->set;
}

const laci_samples_kind laci_samples_of_images = {.open = open_image_samples,
                                                  .label = set_image_labels,
                                                  .read = read_batch,
                                                  .close = close_images,
                                                  .noun = "images of"};

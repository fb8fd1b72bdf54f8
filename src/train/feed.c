/* SPDX-License-Identifier: Apache-2.0
 * Provides the batches of a training (feed.h) with two buffers: the loader fills one while the
 * training uses the other. */
#include "train/feed.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/loader.h"
#include "data/cut.h"
#include "data/mix.h"
#include "tensor/shape.h"

enum { DEPTH = 2, READERS = 1 };

struct laci_feed {
  laci_feed_options options;
  laci_training_order order;
  laci_loader *loader;
  size_t sample; /* number of floats in an image */
  float *pixels[DEPTH];
  int32_t *labels[DEPTH];
  float *rows;      /* [batch][n_classes] labels as rows of probabilities */
  laci_batch shown; /* batch that the caller uses; its n is 0 at first */
};

static lac_status allocate_batch_buffers(laci_feed *f, lac_error *err) {
  const size_t batch = (size_t)f->options.batch;
  f->rows = laci_alloc(batch * (size_t)f->options.n_classes, sizeof *f->rows);
  bool whole = f->rows != NULL;
  for (int k = 0; k < DEPTH; k++) {
    f->pixels[k] = laci_alloc(batch * f->sample, sizeof *f->pixels[k]);
    f->labels[k] = laci_alloc(batch, sizeof *f->labels[k]);
    whole = whole && f->pixels[k] && f->labels[k];
  }
  return whole ? LAC_OK : laci_fail_memory(err, "batches of images");
}

static lac_status start_loader(laci_feed *f, const laci_dataset *set, lac_error *err) {
  laci_loader_options o = laci_loader_options_default(set);
  o.preprocessing = f->options.preprocessing;
  o.batch = f->options.batch;
  o.threads = READERS; /* reading takes little time compared with a step, whose threads need the
                          cores */
  o.depth = DEPTH;
  o.training = &f->order;
  lac_status st = laci_loader_create(set, &o, &f->loader, err);
  for (int k = 0; k < DEPTH && !st; k++) {
    st = laci_loader_queue_batch(f->loader, f->pixels[k], f->labels[k], err);
  }
  return st;
}

lac_status laci_feed_create(const laci_dataset *set, const laci_feed_options *options,
                            int64_t first, laci_feed **feed, lac_error *err) {
  *feed = NULL;
  laci_feed *f = laci_alloc(1, sizeof *f);
  if (!f) return laci_fail_memory(err, "the batches");
  f->options = *options;
  f->order = (laci_training_order){.first_step = first,
                                   .stride = options->stride,
                                   .seed = options->seed,
                                   .shuffle = options->shuffle,
                                   .augmented = options->augmented,
                                   .augment = options->augment};
  f->sample = laci_preprocessing_sample_size(&options->preprocessing);
  lac_status st = allocate_batch_buffers(f, err);
  if (!st) st = start_loader(f, set, err);
  if (st) laci_feed_destroy(f);
  else *feed = f;
  return st;
}

void laci_feed_destroy(laci_feed *f) {
  if (!f) return;
  laci_loader_destroy(f->loader); /* the loader must go before the buffers, since its threads write
                                     to them */
  for (int k = 0; k < DEPTH; k++) {
    laci_free(f->pixels[k]);
    laci_free(f->labels[k]);
  }
  laci_free(f->rows);
  laci_free(f);
}

/** Erases parts of the batch's images, and mixes pairs of images (MixUp, CutMix), as the options
 * say. */
static void erase_and_mix_batch(laci_feed *f) {
  const laci_feed_options *o = &f->options;
  const laci_shape shape = laci_preprocessing_sample_shape(&o->preprocessing);
  const laci_plane_sizes sizes = {(int)shape.dims[0], (int)shape.dims[1], (int)shape.dims[2]};
  const uint64_t step = (uint64_t)(f->shown.first / o->batch);
  const size_t n_classes = (size_t)o->n_classes;
  const bool is_image = shape.rank == 3;
  for (int k = 0; k < f->shown.n && o->erasing > 0 && is_image; k++) {
    laci_erase_random_rectangle(o->seed, (uint64_t)f->shown.first + (uint64_t)k, o->erasing, sizes,
                                f->shown.pixels + (size_t)k * f->sample);
  }
  if (is_image && laci_cutmix_is_chosen(o->seed, step, o->mixup, o->cutmix)) {
    const laci_rectangle cut =
        laci_cutmix_draw_rectangle(o->seed, step, o->cutmix, sizes.height, sizes.width);
    laci_cutmix_swap_rectangles(&cut, sizes, f->shown.pixels, f->shown.n);
    laci_mixup_blend_items(cut.share, f->rows, f->shown.n, n_classes);
  } else if (o->mixup > 0) {
    const double share = laci_mixup_draw_weight(o->seed, step, o->mixup);
    laci_mixup_blend_items(share, f->shown.pixels, f->shown.n, f->sample);
    laci_mixup_blend_items(share, f->rows, f->shown.n, n_classes);
  }
}

lac_status laci_feed_take_batch(laci_feed *f, const float **images, const float **labels,
                                lac_error *err) {
  const laci_feed_options *o = &f->options;
  const size_t n_classes = (size_t)o->n_classes;
  lac_status st = LAC_OK;
  if (f->shown.n) st = laci_loader_queue_batch(f->loader, f->shown.pixels, f->shown.labels, err);
  f->shown = (laci_batch){0};
  if (!st) st = laci_loader_take_batch(f->loader, &f->shown, err);
  if (!st) {
    st =
        laci_labels_smooth(f->shown.labels, f->shown.n, (int)n_classes, o->smoothing, f->rows, err);
  }
  if (st) return st;
  erase_and_mix_batch(f);
  *images = f->shown.pixels;
  *labels = f->rows;
  return LAC_OK;
}

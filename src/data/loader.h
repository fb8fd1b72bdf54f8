/* SPDX-License-Identifier: Apache-2.0
 * Batches of prepared images, which the loader's threads decode ahead of time.
 *
 * The caller queues buffers and takes them back filled, in the same order. The threads work ahead
 * by as many batches as buffers are queued. Nothing is copied and nothing allocated meanwhile. The
 * content of a batch depends on its number only, never on the threads.
 *
 *     queue(a); queue(b);                 a and b are filled while the network runs
 *     while (!take(&batch) && batch.n) { run(batch); queue(batch.pixels, batch.labels); } */
#ifndef LACI_DATA_LOADER_H
#define LACI_DATA_LOADER_H

#include "data/augment.h"
#include "data/prepare.h"

typedef struct laci_dataset laci_dataset;

typedef struct laci_loader laci_loader;

typedef struct laci_loader_options {
  laci_preprocessing preprocessing;
  int batch;           /* number of images in a batch, >= 1; the last batch may be smaller */
  int threads;         /* number of decoding threads (the caller helps them while it waits for a
                          batch); <= 0: as many as cores */
  int depth;           /* limit of the buffers that are queued and not yet taken, 1..64 */
  int64_t limit;       /* number of images to load; <= 0: all of the set */
  int64_t first_batch; /* number of batches to skip at the start */
  const struct laci_training_order *training; /* the order of batches for training, in which limit,
                                                 first_batch and order are ignored; NULL: one pass
                                                 over the set */
  const int64_t *order; /* [limit] indices of the images in the order in which they are loaded, to
                           shuffle or repeat images; NULL: 0, 1, 2 ... up to the set's count.
                           Borrowed; must live as long as the loader */
} laci_loader_options;

/** An endless sequence of batches for training: epoch after epoch, each in a different order. Every
 * batch is full; images left over at the end of an epoch are skipped. A batch depends only on the
 * number of its step, so a loader that starts at step k gives the same batches from there on as one
 * that started before. */
typedef struct laci_training_order {
  int64_t first_step; /* step of this loader's first batch, counted from the start of training */
  int stride;         /* number of steps from one batch of this loader to its next, since other
                         processes load the batches in between; 0 means 1 */
  uint64_t seed;
  bool shuffle;   /* false: images are in the order of the set */
  bool augmented; /* images are changed as `augment` says */
  laci_augment augment;
} laci_training_order;
/** Returns the number of steps in an epoch, one for each full batch of images; 0: the set is
 * smaller than a batch. */
int64_t laci_training_steps_per_epoch(const laci_dataset *set, int batch);

/** Returns options with a batch of one image, two buffers, all cores, and
 * laci_dataset_preprocessing. */
laci_loader_options laci_loader_options_default(const laci_dataset *set);

typedef struct laci_batch {
  int64_t first;   /* place of the batch's first image in the order of loading; in training, step *
                      batch */
  int n;           /* number of images in the batch; 0: there are no more */
  float *pixels;   /* [n, channels, height, width], the buffer passed to laci_loader_queue_batch */
  int32_t *labels; /* [n], the buffer passed to laci_loader_queue_batch */
} laci_batch;

/** Creates a loader and starts its threads. The set must outlive the loader and must not change.
 * Fails LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_loader_create(const laci_dataset *set,
                                             const laci_loader_options *options,
                                             laci_loader **loader, lac_error *err);
/** Destroys the loader. Waits for images that are being decoded, but not for queued ones;
 * afterwards no thread uses a buffer any more. NULL is fine. */
void laci_loader_destroy(laci_loader *loader);

/** Returns how many images will be loaded; in training INT64_MAX. */
int64_t laci_loader_count(const laci_loader *loader);

/** Queues buffers for the next batch: pixels [batch, channels, height, width], labels [batch]. They
 * belong to the loader until taken. Fails LAC_BAD_ARGUMENT when `depth` buffers are queued
 * already. */
LAC_MUST_CHECK lac_status laci_loader_queue_batch(laci_loader *loader, float *pixels,
                                                  int32_t *labels, lac_error *err);

/** Waits for the oldest queued buffer, and helps to fill it. If an image in it cannot be read,
 * fails with the error of the first such image in loading order. Even then *batch is set, the
 * buffer belongs to the caller again (with undefined content), and later batches can still be
 * taken. Fails LAC_BAD_ARGUMENT when no buffer is queued (*batch is then empty). Only one thread at
 * a time may queue and take. */
LAC_MUST_CHECK lac_status laci_loader_take_batch(laci_loader *loader, laci_batch *batch,
                                                 lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Batches of prepared images, decoded ahead of time by threads of their own.
 *
 * The caller hands over buffers and takes them back filled, first in, first out. However many
 * buffers it has out is how far ahead the threads may work; nothing is copied and nothing allocated
 * meanwhile. What a batch holds depends on its number only, never on the threads.
 *
 *     put(a); put(b);                                  the two are filled while the network runs
 *     while (!take(&batch) && batch.n) { run(batch); put(batch.pixels, batch.labels); }        */
#ifndef LACI_DATA_LOADER_H
#define LACI_DATA_LOADER_H

#include "data/augment.h"
#include "data/prepare.h"

typedef struct laci_dataset laci_dataset;

typedef struct laci_loader laci_loader;

typedef struct laci_loader_options {
  laci_preprocessing preprocessing;
  int batch;           /* images, >= 1; the last batch may be smaller */
  int threads;         /* that decode, besides the one that waits in take; <= 0: as many as cores */
  int depth;           /* buffers that may be out at a time, 1..64 */
  int64_t limit;       /* images in all; <= 0: as many as there are */
  int64_t first_batch; /* batches before it are left out; 0: none */
  const struct laci_training_order *training; /* NULL: once through the set; else see below, and
                                                 limit, first_batch and order do not count */
  const int64_t *order; /* [limit]: which image comes when, for shuffling and for the repetition of
                           images; NULL: 0, 1, 2 ... up to the set's count. The caller's; it must
                           live as long as the loader */
} laci_loader_options;

/** Batches without end for training: epoch after epoch, each in an order of its own, every batch
 * full (what is left over at the end of an epoch waits for another one). All follows from the
 * number of the step, so that a loader that starts at step k gives what another gives there. */
typedef struct laci_training_order {
  int64_t first_step; /* of this loader's first batch, counted from the start of training */
  int stride;         /* its next batch is so many steps further, others take those between;
                         0: 1 */
  uint64_t seed;
  bool shuffle;   /* else the set's own order */
  bool augmented; /* changes images as `augment` says */
  laci_augment augment;
} laci_training_order;
/** Steps of an epoch: whole batches in the set; 0: it has less than one. */
int64_t laci_training_steps(const laci_dataset *set, int batch);

/** One batch of the set, two buffers, all cores, laci_dataset_preprocessing. */
laci_loader_options laci_loader_options_default(const laci_dataset *set);

typedef struct laci_batch {
  int64_t first;   /* number of its first image in the order of loading; in training since the
                      start of training, step * batch */
  int n;           /* images in it; 0: the end was reached before */
  float *pixels;   /* [n, channels, height, width], the buffer that was put */
  int32_t *labels; /* [n], too */
} laci_batch;

/** Starts the threads. The set must outlive the loader and stay as it is. Fails LAC_BAD_ARGUMENT,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_loader_create(const laci_dataset *set,
                                             const laci_loader_options *options,
                                             laci_loader **loader, lac_error *err);
/** Waits for the images that are being decoded at this moment, not for those that are queued; then
 * no thread touches a buffer any more. NULL is fine. */
void laci_loader_destroy(laci_loader *loader);

/** How many images will come; in training: INT64_MAX. */
int64_t laci_loader_count(const laci_loader *loader);

/** Hands over buffers for the next batch: pixels [batch, channels, height, width], labels [batch].
 * They belong to the loader until taken. Fails LAC_BAD_ARGUMENT when `depth` buffers are out
 * already. */
LAC_MUST_CHECK lac_status laci_loader_put(laci_loader *loader, float *pixels, int32_t *labels,
                                          lac_error *err);

/** Waits for the oldest buffer that was put, and helps to fill it. When an image of it cannot be
 * had, fails with the error of the first such image in loading order; *batch is set all the same,
 * the buffer is back (its contents are undefined), and later batches can still be taken. Fails
 * LAC_BAD_ARGUMENT when no buffer is out (*batch is then empty). put and take are for one thread at
 * a time. */
LAC_MUST_CHECK lac_status laci_loader_take(laci_loader *loader, laci_batch *batch, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Provides batches for training steps: images from the loader, and labels as rows of probabilities,
 * smoothed and mixed.
 *
 * The content of a batch depends on its number alone. So a feed that starts at batch k gives the
 * same batches from there on as one that started earlier. Next: data/loader.h, data/mix.h. */
#ifndef LACI_TRAIN_FEED_H
#define LACI_TRAIN_FEED_H

#include "data/augment.h"
#include "data/prepare.h"

typedef struct laci_dataset laci_dataset;

typedef struct laci_feed laci_feed;

typedef struct laci_feed_options {
  laci_preprocessing preprocessing;
  int batch;         /* number of images in a batch, from 1 to the number of images in the set */
  int stride;        /* difference between the numbers of two batches in succession; 0 means 1 */
  int64_t n_classes; /* number of classes of the network, which is the number of columns of the
                        labels */
  uint64_t seed;
  bool shuffle, augmented;
  laci_augment augment;
  double smoothing, mixup; /* smoothing: smoothing of the labels, 0 to 1. mixup: parameter alpha of
                              MixUp; 0: no MixUp */
  double cutmix, erasing;  /* cutmix: parameter alpha of CutMix; 0: no CutMix. erasing: share of the
                              images in which a rectangle is erased */
} laci_feed_options;

/** Creates a feed that starts with batch number `first`. set must outlive the feed. Fails as
 * laci_loader_create. */
LAC_MUST_CHECK lac_status laci_feed_create(const laci_dataset *set,
                                           const laci_feed_options *options, int64_t first,
                                           laci_feed **feed, lac_error *err);
void laci_feed_destroy(laci_feed *feed); /* feed may be NULL */

/** Returns the next batch: images [batch][channels][height][width] and labels [batch][n_classes],
 * valid until the next call. Fails as laci_loader_take_batch. */
LAC_MUST_CHECK lac_status laci_feed_take_batch(laci_feed *feed, const float **images,
                                               const float **labels, lac_error *err);

#endif

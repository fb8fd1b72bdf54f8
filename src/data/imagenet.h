/* SPDX-License-Identifier: Apache-2.0
 * ImageNet to TFRecords: from raw.h's images to the shards that records.c reads,
 *
 *     train-00000-of-01024 ...   validation-00000-of-00128 ...
 *
 * The order of each part is a seeded permutation of all its images, so that a shard holds every
 * class. Shards are made by several threads, one each; which and how many changes no byte. */
#ifndef LACI_DATA_IMAGENET_H
#define LACI_DATA_IMAGENET_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_imagenet_options {
  int threads;            /* <= 0: as many as cores */
  int shards, val_shards; /* 1..99999 */
  uint64_t seed;
  bool force; /* a conversion of something else in the folder goes first */
} laci_imagenet_options;

typedef struct laci_imagenet_part {
  int64_t images, broken; /* written; left out */
  int shards, kept;       /* in all; of them there before */
} laci_imagenet_part;

/** Converts RAW into the folder, which is made. Broken images are logged and left out; they are
 * listed in folder/broken.txt. A run that ended early, however, goes on where it was: the shards
 * are those of a run that did not. Memory: names, and for each thread an image and what is decoded
 * of it.
 *
 * Fails as laci_raw_open does, LAC_NOT_FOUND for a RAW without images, LAC_EXISTS for a folder with
 * shards of something else or in use, LAC_INTERRUPTED, LAC_IO, LAC_NO_MEMORY. Finished shards
 * stay. */
LAC_MUST_CHECK lac_status laci_imagenet_convert(const char *raw, const char *folder,
                                                const laci_imagenet_options *options,
                                                laci_imagenet_part parts[2], lac_error *err);

#endif

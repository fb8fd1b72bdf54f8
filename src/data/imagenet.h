/* SPDX-License-Identifier: Apache-2.0
 * Converts ImageNet from the original images (raw.h) to TFRecords, which records.c reads:
 *
 *     train-00000-of-01024 ...   validation-00000-of-00128 ...
 *
 * The order of each part is a seeded permutation of all its images, so that each shard has images
 * of every class. Several threads write one shard each; their number does not change any byte. */
#ifndef LACI_DATA_IMAGENET_H
#define LACI_DATA_IMAGENET_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_imagenet_options {
  int threads;            /* number of threads; <= 0: as many as cores */
  int shards, val_shards; /* number of shards of the training images, and of the validation images;
                             1..99999 */
  uint64_t seed;
  bool force; /* true: removes the files of another conversion from the folder */
} laci_imagenet_options;

typedef struct laci_imagenet_part {
  int64_t images, broken; /* number of images that were written; and number of broken images, which
                             were left out */
  int shards, kept;       /* number of shards; and number of those that an earlier run had
                             written */
} laci_imagenet_part;

/** Converts the original images in the folder `raw` to TFRecords in `folder`, which is created.
 * Broken images are logged, left out, and listed in folder/broken.txt. A run continues an earlier
 * one, however that was ended, with the same resulting shards. Memory: names, and for each thread
 * an image and its decoded pixels.
 *
 * Fails as laci_raw_part_open, LAC_NOT_FOUND if `raw` has no images, LAC_EXISTS if the folder has
 * shards of something else or is in use. Fails LAC_UNSUPPORTED if this build cannot encode JPEGs,
 * LAC_BAD_ARGUMENT, LAC_INTERRUPTED, LAC_IO, LAC_NO_MEMORY. Finished shards stay. */
LAC_MUST_CHECK lac_status laci_imagenet_convert(const char *raw, const char *folder,
                                                const laci_imagenet_options *options,
                                                laci_imagenet_part parts[2], lac_error *err);

#endif

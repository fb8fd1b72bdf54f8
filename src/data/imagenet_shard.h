/* SPDX-License-Identifier: Apache-2.0
 * Writes one shard of the conversion of ImageNet to TFRecords. */
#ifndef LACI_DATA_IMAGENET_SHARD_H
#define LACI_DATA_IMAGENET_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "data/raw.h"

enum { LACI_SHARD_NAME = 48 };

typedef struct laci_imagenet_shard {
  const laci_raw_part *raw;
  const char *const *texts; /* [LACI_IMAGENET_CLASSES] readable names of the classes */
  const char *folder;
  char name[LACI_SHARD_NAME];
  uint64_t seed;
  int part;           /* part of the shard; 0: training, 1: validation */
  int64_t first, end; /* the shard's images: the range [first, end) of the (shuffled) order of the
                         part's images */
  /* results of laci_imagenet_shard_write; images: number of images written, broken: number left
   * out */
  int64_t images, broken;
  char *broken_lines; /* a line "NAME<TAB>why\n" for each broken image; freed by
                         laci_imagenet_shard_clear */
  size_t n_broken_bytes;
} laci_imagenet_shard;

/** A function that is called after each image; it returns false to end the conversion. */
typedef bool laci_imagenet_counter(void *context);

/** Writes the shard to folder/name atomically and sets the results. Images that cannot be decoded
 * are logged and left out. Fails LAC_INTERRUPTED, LAC_IO, LAC_NOT_FOUND for an image that was
 * removed meanwhile, LAC_NO_MEMORY; then there is no file. Any thread. */
LAC_MUST_CHECK lac_status laci_imagenet_shard_write(laci_imagenet_shard *shard,
                                                    laci_imagenet_counter *counter, void *context,
                                                    lac_error *err);
void laci_imagenet_shard_clear(laci_imagenet_shard *shard);

#endif

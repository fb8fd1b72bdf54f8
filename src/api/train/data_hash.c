/* SPDX-License-Identifier: Apache-2.0
 * A hash that tells whether two runs had the same data. It covers all labels, and some images as
 * they are prepared for the network. */
#include "api/train/plan_in.h"
#include "api/train/record_in.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/image.h"

enum { HASHED_IMAGES = 16 };

/** Adds some prepared images, spread over all the data, to the hash. Their number is small, so that
 * it takes only a moment. */
static lac_status hash_images(const laci_train_plan *p, uint64_t *hash, lac_error *err) {
  const int64_t n = laci_dataset_count(p->set), most = n < HASHED_IMAGES ? n : HASHED_IMAGES;
  const size_t size = laci_preprocessing_sample_size(&p->prepare);
  float *sample = laci_alloc(size, sizeof *sample);
  laci_preparer *preparer = NULL;
  laci_image image = {0};
  lac_status st = sample ? LAC_OK : laci_fail_memory(err, "an image");
  if (!st) st = laci_preparer_create(&p->prepare, &preparer, err);
  for (int64_t k = 0; k < most && !st; k++) {
    st = laci_dataset_read_sample(p->set, k * (n / most), preparer, &image, sample, err);
    if (!st) *hash = laci_hash64(sample, size * sizeof *sample, *hash);
  }
  laci_image_clear(&image);
  laci_preparer_destroy(preparer);
  laci_free(sample);
  return st;
}

uint64_t laci_train_hash_data(const laci_train_plan *p) {
  uint64_t hash = 0, with_images;
  const int64_t n = laci_dataset_count(p->set);
  for (int64_t k = 0; k < n; k++) {
    const int label = laci_dataset_label(p->set, k);
    hash = laci_hash64(&label, sizeof label, hash);
  }
  with_images = hash;
  return hash_images(p, &with_images, NULL) ? hash : with_images;
}

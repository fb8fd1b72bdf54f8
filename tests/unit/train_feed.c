/* SPDX-License-Identifier: Apache-2.0
 * Feeds that share a training: each takes every so many-th batch, and together they give, to the
 * byte, what one feed gives: whatever is shuffled, changed, smoothed and mixed, over the ends of
 * epochs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "train/feed.h"
#include "unit/data_folder.h"

enum { IMAGES = 23, CLASSES = 10, BATCH = 4, BATCHES = 12, SIDE = 16, SAMPLE = 3 * 32 * 32 };

/* ---- Images ---- */

static laci_dataset *open_set(const folder *f) {
  const laci_dataset_options options = {.part = LACI_PART_TRAIN};
  lac_error err = {0};
  laci_dataset *set;
  if (laci_dataset_open(f->path, &options, &set, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_dataset_count(set), IMAGES);
  return set;
}

static laci_dataset *open_cifar(folder *f) {
  *f = make_folder();
  add_cifar(f, "data_batch_1.bin", 1, IMAGES, 0, CLASSES);
  return open_set(f);
}

/* One photograph under many names, of which every step sees another part. */
static laci_dataset *open_pictures(folder *f) {
  *f = make_folder();
  for (int k = 0; k < IMAGES; k++) {
    char name[64], path[FOLDER_PATH];
    (void)snprintf(name, sizeof name, "class_%d", k % CLASSES);
    path_in(path, f, name);
    assert_true(k >= CLASSES || mkdir(path, 0777) == 0);
    (void)snprintf(name, sizeof name, "class_%d/%d.jpg", k % CLASSES, k);
    add_picture(f, name);
  }
  return open_set(f);
}

static laci_feed_options options_of(const laci_dataset *set, bool is_plain) {
  laci_feed_options o = {.preprocessing = laci_dataset_preprocessing(set),
                         .batch = BATCH,
                         .n_classes = CLASSES,
                         .seed = 77};
  if (o.preprocessing.width > 32) {
    o.preprocessing.resize = SIDE + 4;
    o.preprocessing.width = o.preprocessing.height = SIDE;
  }
  if (is_plain) return o;
  o.shuffle = o.augmented = true;
  o.augment = laci_dataset_augment(set);
  o.smoothing = 0.1;
  o.mixup = 0.2;
  return o;
}

/* ---- Feeds ---- */

typedef struct batches {
  float images[BATCHES][BATCH * SAMPLE];
  float labels[BATCHES][BATCH * CLASSES];
} batches;

/** Batches that a feed gives from `first` on, `at`, at + stride ... of those. */
static void read(const laci_dataset *set, laci_feed_options o, int64_t first, int at, batches *to) {
  const size_t sample = laci_preprocessing_sample_size(&o.preprocessing);
  const int stride = o.stride ? o.stride : 1;
  lac_error err = {0};
  laci_feed *feed;
  if (laci_feed_create(set, &o, first + at, &feed, &err)) fail_msg("%s", err.text);
  for (int k = at; k < BATCHES; k += stride) {
    const float *images, *labels;
    if (laci_feed_take_batch(feed, &images, &labels, &err)) fail_msg("%s", err.text);
    memcpy(to->images[k], images, BATCH * sample * sizeof *images);
    memcpy(to->labels[k], labels, sizeof to->labels[k]);
  }
  laci_feed_destroy(feed);
}

static void check(const laci_dataset *set, bool is_plain) {
  batches *one = laci_alloc(1, sizeof *one), *many = laci_alloc(1, sizeof *many);
  laci_feed_options o = options_of(set, is_plain);
  for (int64_t first = 0; first < 12; first += 11) {
    o.stride = 0;
    read(set, o, first, 0, one);
    assert_memory_not_equal(one->images[0], one->images[1], sizeof one->images[0]);
    for (int n = 1; n <= 5; n++) {
      memset(many, 0, sizeof *many);
      o.stride = n;
      for (int at = n - 1; at >= 0; at--) read(set, o, first, at, many);
      assert_memory_equal(one, many, sizeof *one);
    }
  }
  laci_free(one);
  laci_free(many);
}

/* ---- Tests ---- */

static void feeds_together_are_one(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = open_cifar(&f);
  check(set, true);
  check(set, false);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void feeds_of_photographs_together_are_one(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = open_pictures(&f);
  check(set, false);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void strides_out_of_bounds_are_refused(void **state) {
  (void)state;
  static const int bad[] = {-1, 1 << 21};
  folder f;
  laci_dataset *set = open_cifar(&f);
  laci_feed_options o = options_of(set, true);
  for (int k = 0; k < 2; k++) {
    lac_error err = {0};
    laci_feed *feed;
    o.stride = bad[k];
    assert_int_equal(laci_feed_create(set, &o, 0, &feed, &err), LAC_BAD_ARGUMENT);
    assert_null(feed);
    assert_non_null(strstr(err.text, "every batch number"));
  }
  laci_dataset_close(set);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(feeds_together_are_one),
      cmocka_unit_test(feeds_of_photographs_together_are_one),
      cmocka_unit_test(strides_out_of_bounds_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

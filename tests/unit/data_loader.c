/* SPDX-License-Identifier: Apache-2.0
 * data: the loader gives the same batches for any number of threads, batch size and depth; errors
 * come out in order; it stops at any moment. Runs under the thread sanitizer too. */
#include "data/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/image.h"
#include "unit/data_folder.h"

enum { N = 53, SAMPLE = 3 * 32 * 32, MOST_BATCH = 64, MOST_DEPTH = 6 };

typedef struct target {
  float *pixels[MOST_DEPTH];
  int32_t *labels[MOST_DEPTH];
} target;

static target make_target(int sample) {
  target r;
  for (int k = 0; k < MOST_DEPTH; k++) {
    r.pixels[k] = malloc(MOST_BATCH * (size_t)sample * sizeof(float));
    r.labels[k] = malloc(MOST_BATCH * sizeof(int32_t));
    assert_true(r.pixels[k] && r.labels[k]);
  }
  return r;
}

static void free_target(target *r) {
  for (int k = 0; k < MOST_DEPTH; k++) {
    free(r->pixels[k]);
    free(r->labels[k]);
  }
}

static laci_dataset *cifar(folder *f) {
  laci_dataset *set = NULL;
  *f = make_folder();
  add_cifar(f, "test_batch.bin", 1, N, 0, 10);
  assert_int_equal(laci_dataset_open(f->path, &(laci_dataset_options){0}, &set, NULL), LAC_OK);
  return set;
}

/** Image `at` of the set, alone. */
static void expect_image(const laci_dataset *set, const laci_preprocessing *preprocessing,
                         int64_t at, const float *pixels, int32_t label) {
  laci_preparer *preparer = NULL;
  laci_image image = {0};
  float want[SAMPLE];
  assert_int_equal(laci_preparer_create(preprocessing, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_dataset_read_sample(set, at, preparer, &image, want, NULL), LAC_OK);
  assert_memory_equal(pixels, want, sizeof want);
  assert_int_equal(label, laci_dataset_label(set, at));
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
}

/** Runs through all batches; each must hold the images of the order. */
static void expect_all(const laci_dataset *set, const laci_loader_options *options) {
  laci_loader *loader = NULL;
  target r = make_target(SAMPLE);
  const int64_t left_out = options->first_batch * options->batch;
  assert_int_equal(laci_loader_create(set, options, &loader, NULL), LAC_OK);
  const int64_t end =
      options->limit > 0 && (options->order || options->limit < N) ? options->limit : N;
  int64_t seen = left_out < end ? left_out : end;
  assert_int_equal(laci_loader_count(loader), end - seen);
  for (int k = 0; k < options->depth; k++) {
    assert_int_equal(laci_loader_queue_batch(loader, r.pixels[k], r.labels[k], NULL), LAC_OK);
  }
  for (;;) {
    laci_batch batch;
    assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_OK);
    assert_int_equal(batch.first, seen);
    if (batch.n == 0) break;
    for (int k = 0; k < batch.n; k++) {
      int64_t at = options->order ? options->order[seen + k] : seen + k;
      expect_image(set, &options->preprocessing, at, batch.pixels + (size_t)k * SAMPLE,
                   batch.labels[k]);
    }
    seen += batch.n;
    bool full = batch.n == options->batch || seen == end;
    assert_true(full);
    assert_int_equal(laci_loader_queue_batch(loader, batch.pixels, batch.labels, NULL), LAC_OK);
  }
  assert_int_equal(seen, end);
  laci_loader_destroy(loader);
  free_target(&r);
}

static void batches_do_not_depend_on_threads_or_depth(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = cifar(&f);
  for (int threads = 1; threads <= 5; threads += 2) {
    static const int batches[] = {1, 8, N, 64};
    for (int k = 0; k < 4; k++) {
      for (int depth = 1; depth <= MOST_DEPTH; depth += 2) {
        laci_loader_options options = laci_loader_options_default(set);
        options.batch = batches[k];
        options.threads = threads;
        options.depth = depth;
        expect_all(set, &options);
      }
    }
  }
  laci_dataset_close(set);
  remove_folder(&f);
}

static void limit_and_order_choose_the_images(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = cifar(&f);
  int64_t order[2 * N];
  for (int k = 0; k < 2 * N; k++) order[k] = (k * 17) % N;
  laci_loader_options options = laci_loader_options_default(set);
  options.batch = 10;
  options.threads = 3;
  options.limit = 25;
  expect_all(set, &options);
  options.limit = 1000; /* there are fewer */
  expect_all(set, &options);
  options.order = order;
  options.limit = 2 * N;
  expect_all(set, &options);
  for (options.first_batch = 1; options.first_batch < 12; options.first_batch += 3) {
    expect_all(set, &options);
  }
  laci_dataset_close(set);
  remove_folder(&f);
}

static void the_first_error_of_a_batch_comes_out_and_the_rest_goes_on(void **state) {
  (void)state;
  folder f = make_folder();
  laci_dataset *set = NULL;
  for (int k = 0; k < 12; k++) {
    char name[64];
    (void)snprintf(name, sizeof name, "cat/%02d.jpg", k);
    if (k == 4 || k == 6 || k == 7) add_text(&f, name, "broken");
    else add_picture(&f, name);
  }
  assert_int_equal(laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, NULL), LAC_OK);
  laci_loader_options options = laci_loader_options_default(set);
  options.preprocessing.resize = options.preprocessing.height = options.preprocessing.width = 32;
  options.batch = 3;
  static const char *const broken[4] = {NULL, "04.jpg", "06.jpg", NULL}; /* in batches 0 to 3 */
  for (int round = 0; round < 30; round++) {
    laci_loader *loader = NULL;
    target r = make_target(SAMPLE);
    options.threads = 1 + round % 4;
    assert_int_equal(laci_loader_create(set, &options, &loader, NULL), LAC_OK);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(laci_loader_queue_batch(loader, r.pixels[k], r.labels[k], NULL), LAC_OK);
    }
    for (int k = 0; k < 4; k++) {
      laci_batch batch;
      lac_error err = {0};
      lac_status st = laci_loader_take_batch(loader, &batch, &err);
      assert_int_equal(st, broken[k] ? LAC_BAD_FILE : LAC_OK);
      if (broken[k]) assert_non_null(strstr(err.text, broken[k]));
      assert_int_equal(batch.n, 3);
      assert_ptr_equal(batch.pixels, r.pixels[k % 2]);
      assert_int_equal(laci_loader_queue_batch(loader, batch.pixels, batch.labels, NULL), LAC_OK);
    }
    laci_loader_destroy(loader);
    free_target(&r);
  }
  laci_dataset_close(set);
  remove_folder(&f);
}

static void it_stops_at_any_moment(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = cifar(&f);
  for (int round = 0; round < 60; round++) {
    laci_loader_options options = laci_loader_options_default(set);
    laci_loader *loader = NULL;
    laci_batch batch;
    target r = make_target(SAMPLE);
    options.threads = 1 + round % 4;
    options.batch = 20;
    assert_int_equal(laci_loader_create(set, &options, &loader, NULL), LAC_OK);
    for (int k = 0; k < round % 3; k++) {
      assert_int_equal(laci_loader_queue_batch(loader, r.pixels[k], r.labels[k], NULL), LAC_OK);
    }
    if (round % 3 == 2) assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_OK);
    laci_loader_destroy(loader);
    free_target(&r); /* no thread writes there any more: the sanitizers look */
  }
  laci_loader_destroy(NULL);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void misuse_is_refused(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = cifar(&f);
  laci_loader_options good = laci_loader_options_default(set);
  laci_loader *loader = NULL;
  laci_batch batch;
  target r = make_target(SAMPLE);
  int64_t order[2] = {0, N};
  laci_loader_options bad[7] = {good, good, good, good, good, good, good};
  bad[0].batch = 0;
  bad[1].depth = 0;
  bad[2].depth = 65;
  bad[3].order = order; /* without a limit */
  bad[4].order = order; /* image N does not exist */
  bad[4].limit = 2;
  bad[5].preprocessing.std[0] = 0;
  bad[6].first_batch = -1;
  for (int k = 0; k < 7; k++) {
    lac_error err = {0};
    assert_int_equal(laci_loader_create(set, &bad[k], &loader, &err), LAC_BAD_ARGUMENT);
    assert_null(loader);
    assert_int_not_equal(err.text[0], 0);
  }
  assert_int_equal(laci_loader_create(set, &good, &loader, NULL), LAC_OK);
  assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(batch.n, 0);
  assert_int_equal(laci_loader_queue_batch(loader, r.pixels[0], r.labels[0], NULL), LAC_OK);
  assert_int_equal(laci_loader_queue_batch(loader, r.pixels[1], r.labels[1], NULL), LAC_OK);
  assert_int_equal(laci_loader_queue_batch(loader, r.pixels[2], r.labels[2], NULL),
                   LAC_BAD_ARGUMENT);
  laci_loader_destroy(loader);
  free_target(&r);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void without_memory_it_fails_or_works_with_fewer_threads(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = cifar(&f);
  int n_failed = 0, n_worked = 0;
  for (long n = 1; n < 20; n++) {
    laci_loader_options options = laci_loader_options_default(set);
    laci_loader *loader = NULL;
    target r = make_target(SAMPLE);
    laci_batch batch;
    options.threads = 3;
    options.batch = 4;
    laci_memory_fail_from(n);
    lac_status st = laci_loader_create(set, &options, &loader, NULL);
    laci_memory_fail_from(0);
    if (st) {
      assert_int_equal(st, LAC_NO_MEMORY);
      assert_null(loader);
      n_failed++;
    } else {
      assert_int_equal(laci_loader_queue_batch(loader, r.pixels[0], r.labels[0], NULL), LAC_OK);
      assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_OK);
      expect_image(set, &options.preprocessing, 3, batch.pixels + (size_t)3 * SAMPLE,
                   batch.labels[3]);
      n_worked++;
    }
    laci_loader_destroy(loader);
    free_target(&r);
  }
  assert_true(n_failed > 0 && n_worked > 0);
  laci_dataset_close(set);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batches_do_not_depend_on_threads_or_depth),
      cmocka_unit_test(limit_and_order_choose_the_images),
      cmocka_unit_test(the_first_error_of_a_batch_comes_out_and_the_rest_goes_on),
      cmocka_unit_test(it_stops_at_any_moment),
      cmocka_unit_test(misuse_is_refused),
      cmocka_unit_test(without_memory_it_fails_or_works_with_fewer_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

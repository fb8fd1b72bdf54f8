/* SPDX-License-Identifier: Apache-2.0
 * data: what training needs: permutations, changed images, rows of labels, MixUp, digits, and
 * batches that follow from the step alone. Runs under the thread sanitizer too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/loader.h"
#include "data/mix.h"
#include "data/shuffle.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"
enum { N = 53, SAMPLE = 3 * 32 * 32 };

/* ---- Shuffling ---- */

static void shuffling_is_a_permutation(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 64, 1000, 50000};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    int64_t n = sizes[k], n_moved = 0;
    char *seen = calloc((size_t)n, 1);
    assert_non_null(seen);
    for (int64_t at = 0; at < n; at++) {
      int64_t to = laci_shuffled_index(3, 1, n, at);
      assert_true(to >= 0 && to < n && !seen[to]);
      seen[to] = 1;
      n_moved += to != laci_shuffled_index(3, 2, n, at);
    }
    if (n >= 64) assert_true(n_moved > n * 9 / 10); /* another epoch, another order */
    free(seen);
  }
}

static void no_place_is_preferred(void **state) {
  (void)state;
  enum { SMALL = 10, DRAWS = 20000 };
  int count[SMALL][SMALL] = {{0}};
  for (uint64_t epoch = 0; epoch < DRAWS; epoch++) {
    for (int at = 0; at < SMALL; at++) count[at][laci_shuffled_index(1, epoch, SMALL, at)]++;
  }
  double off = 0, mean = (double)DRAWS / SMALL; /* chi squared of 81 degrees of freedom */
  for (int k = 0; k < SMALL * SMALL; k++) {
    double d = count[k / SMALL][k % SMALL] - mean;
    off += d * d / mean;
  }
  assert_true(off < 140);
}

/* ---- Changed images ---- */

static laci_image ramp(int width, int height) {
  laci_image image = {0};
  assert_int_equal(laci_image_set_size(&image, "ramp", width, height, NULL), LAC_OK);
  for (int k = 0; k < width * height * 3; k++) image.rgb[k] = (uint8_t)(k * 7 + 1);
  return image;
}

static void images_are_padded_cropped_and_flipped(void **state) {
  (void)state;
  enum { W = 9, H = 6, PAD = 4 };
  laci_augment augment = {.pad = PAD, .flip = true};
  laci_image old = ramp(W, H), spare = {0};
  for (int k = 0; k < 2 * 9 * 9; k++) {
    laci_augment_draw draw = {k / 18, k / 2 % 9, k % 2};
    laci_image image = ramp(W, H);
    assert_int_equal(laci_augment_apply(&augment, &draw, "x", &image, &spare, NULL), LAC_OK);
    for (int y = 0; y < H; y++) {
      for (int x = 0; x < W; x++) {
        int from_x = (draw.flipped ? W - 1 - x : x) + draw.left - PAD, from_y = y + draw.top - PAD;
        bool inside = from_x >= 0 && from_x < W && from_y >= 0 && from_y < H;
        for (int c = 0; c < 3; c++) {
          int want = inside ? old.rgb[(from_y * W + from_x) * 3 + c] : 0;
          assert_int_equal(image.rgb[(y * W + x) * 3 + c], want);
        }
      }
    }
    laci_image_clear(&image);
  }
  laci_image_clear(&old);
  laci_image_clear(&spare);
}

static void every_corner_and_both_sides_are_drawn(void **state) {
  (void)state;
  laci_augment augment = {.pad = 4, .flip = true}, still = {0};
  int seen[9][9][2] = {{{0}}};
  for (uint64_t k = 0; k < 20000; k++) {
    laci_augment_draw draw = laci_augment_draw_change(&augment, 5, k);
    seen[draw.top][draw.left][draw.flipped]++;
    draw = laci_augment_draw_change(&still, 5, k);
    assert_true(draw.top == 0 && draw.left == 0 && !draw.flipped);
  }
  for (int k = 0; k < 162; k++) assert_in_range(seen[k / 18][k / 2 % 9][k % 2], 60, 200);
}

/* ---- Labels and MixUp ---- */

static void smoothed_labels_are_probabilities(void **state) {
  (void)state;
  static const int32_t labels[3] = {0, 4, 2}, bad[1] = {5};
  float rows[15];
  assert_int_equal(laci_labels_smooth(labels, 3, 5, 0.1, rows, NULL), LAC_OK);
  for (int i = 0; i < 3; i++) {
    for (int c = 0; c < 5; c++) {
      float want = c == labels[i] ? 0.92F : 0.02F;
      assert_true(fabsf(rows[i * 5 + c] - want) < 1e-7F);
    }
  }
  assert_int_equal(laci_labels_smooth(labels, 3, 5, 0, rows, NULL), LAC_OK);
  for (int k = 0; k < 15; k++) assert_true(rows[k] == (k % 5 == labels[k / 5] ? 1.0F : 0.0F));
  assert_int_equal(laci_labels_smooth(bad, 1, 5, 0, rows, NULL), LAC_BAD_VALUE);
  assert_int_equal(laci_labels_smooth(labels, 3, 5, 1.5, rows, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_labels_smooth(labels, 3, 5, (double)NAN, rows, NULL), LAC_BAD_ARGUMENT);
}

static void shares_are_drawn_from_beta(void **state) {
  (void)state;
  static const double alphas[] = {0.2, 1, 4};
  enum { DRAWS = 20000 };
  for (int a = 0; a < 3; a++) {
    double sum = 0, squares = 0, alpha = alphas[a];
    for (uint64_t k = 0; k < DRAWS; k++) {
      double share = laci_mixup_draw_weight(9, k, alpha);
      assert_true(share >= 0 && share <= 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    double variance = 1 / (4 * (2 * alpha + 1));
    assert_true(fabs(sum / DRAWS - 0.5) < 4 * sqrt(variance / DRAWS));
    assert_true(fabs(squares / DRAWS / variance - 1) < 0.05);
  }
  assert_true(laci_mixup_draw_weight(9, 1, 0) == 1);
  for (uint64_t k = 0; k < 100; k++) { /* nothing but 0 and 1, and no NaN */
    double share = laci_mixup_draw_weight(9, k, 1e-4);
    assert_true(share < 1e-3 || share > 1 - 1e-3);
  }
}

static void items_are_blended_with_their_mirror_images(void **state) {
  (void)state;
  float items[10], old[10];
  for (int k = 0; k < 10; k++) old[k] = items[k] = (float)(k * k);
  laci_mixup_blend_items(0.75, items, 5, 2);
  for (int k = 0; k < 10; k++) {
    float other = old[(4 - k / 2) * 2 + k % 2];
    float want = k / 2 == 2 ? old[k] : 0.75F * old[k] + 0.25F * other;
    assert_true(items[k] == want);
  }
}

/* ---- Digits ---- */

static void digits_come_in_two_parts(void **state) {
  (void)state;
  laci_dataset *set = NULL;
  static const int64_t counts[2] = {360, 1437};
  for (int part = 0; part < 2; part++) {
    laci_dataset_options options = {.part = (laci_dataset_part)part};
    assert_int_equal(laci_dataset_open(DIGITS, &options, &set, NULL), LAC_OK);
    assert_int_equal(laci_dataset_count(set), counts[part]);
    assert_int_equal(laci_dataset_count_classes(set), 10);
    laci_preprocessing preprocessing = laci_dataset_preprocessing(set);
    laci_preparer *preparer = NULL;
    laci_image image = {0};
    float out[64];
    assert_int_equal(laci_preprocessing_sample_size(&preprocessing), 64);
    assert_int_equal(laci_preparer_create(&preprocessing, &preparer, NULL), LAC_OK);
    assert_int_equal(laci_dataset_read_sample(set, 0, preparer, &image, out, NULL), LAC_OK);
    for (int k = 0; k < 64; k++) assert_true(out[k] * 16 == (float)image.rgb[k * 3]);
    if (part == LACI_PART_TRAIN) { /* the file's first line: 0,0,5,13,9,1,0,0 ... 0 */
      assert_int_equal(laci_dataset_label(set, 0), 0);
      assert_true(out[2] == 5.0F / 16 && out[3] == 13.0F / 16);
    }
    laci_preparer_destroy(preparer);
    laci_image_clear(&image);
    laci_dataset_close(set);
  }
}

static void damaged_digits_are_refused(void **state) {
  (void)state;
  laci_file_bytes map;
  laci_dataset *set = NULL;
  assert_int_equal(laci_file_bytes_read(DIGITS "/digits.csv.gz", &map, NULL), LAC_OK);
  uint8_t *bytes = malloc(map.size_bytes);
  assert_non_null(bytes);
  memcpy(bytes, map.bytes, map.size_bytes);
  for (size_t n = 0; n < map.size_bytes; n += 997) { /* cut off */
    assert_int_equal(laci_dataset_open_digits("d", bytes, n, LACI_PART_TRAIN, &set, NULL),
                     LAC_BAD_FILE);
    assert_null(set);
  }
  for (size_t at = 64; at < map.size_bytes; at += 61) { /* the checksum finds every change */
    bytes[at] ^= 0x10;
    assert_int_not_equal(
        laci_dataset_open_digits("d", bytes, map.size_bytes, LACI_PART_TRAIN, &set, NULL), LAC_OK);
    bytes[at] ^= 0x10;
  }
  assert_int_equal(
      laci_dataset_open_digits("d", bytes, map.size_bytes, LACI_PART_TRAIN, &set, NULL), LAC_OK);
  laci_dataset_close(set);
  free(bytes);
  laci_file_bytes_clear(&map);
}

/* ---- Batches ---- */

typedef struct trace {
  float pixels[8][8 * SAMPLE];
  int32_t labels[8][8];
} trace;

/** Batches first .. first + 7 of 8 images. */
static void read_batches(const laci_dataset *set, laci_training_order order, int64_t first,
                         int threads, int depth, trace *t) {
  laci_loader_options options = laci_loader_options_default(set);
  laci_loader *loader = NULL;
  order.first_step = first;
  options.batch = 8;
  options.threads = threads;
  options.depth = depth;
  options.training = &order;
  assert_int_equal(laci_loader_create(set, &options, &loader, NULL), LAC_OK);
  int n_put = 0;
  for (int k = 0; k < 8; k++) {
    laci_batch batch;
    for (; n_put < 8 && n_put < k + depth; n_put++) {
      assert_int_equal(laci_loader_queue_batch(loader, t->pixels[n_put], t->labels[n_put], NULL),
                       LAC_OK);
    }
    assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_OK);
    assert_int_equal(batch.n, 8);
    assert_int_equal(batch.first, (first + k) * 8);
  }
  laci_loader_destroy(loader);
}

static laci_dataset *open_cifar(folder *f) {
  laci_dataset *set = NULL;
  *f = make_folder();
  add_cifar(f, "data_batch_1.bin", 1, N, 0, 10);
  laci_dataset_options options = {.part = LACI_PART_TRAIN};
  assert_int_equal(laci_dataset_open(f->path, &options, &set, NULL), LAC_OK);
  return set;
}

static void batches_follow_from_the_step_alone(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = open_cifar(&f);
  assert_int_equal(laci_training_steps_per_epoch(set, 8), 6);
  laci_training_order order = {.seed = 4, .shuffle = true, .augmented = true};
  order.augment = laci_dataset_augment(set);
  trace *want = malloc(sizeof *want), *found = malloc(sizeof *found);
  assert_true(want && found);
  for (int64_t first = 0; first < 14; first += 5) { /* over the ends of epochs */
    read_batches(set, order, first, 1, 1, want);
    for (int threads = 1; threads <= 4; threads++) {
      read_batches(set, order, first, threads, threads, found);
      assert_memory_equal(found, want, sizeof *want);
    }
    read_batches(set, order, first + 3, 2, 3, found); /* goes on as if it had never stopped */
    assert_memory_equal(found->pixels[0], want->pixels[3], 5 * sizeof want->pixels[0]);
    assert_memory_equal(found->labels[0], want->labels[3], 5 * sizeof want->labels[0]);
  }
  order.seed = 5;
  read_batches(set, order, 0, 1, 1, found);
  assert_memory_not_equal(found->labels, want->labels, sizeof want->labels);
  free(want);
  free(found);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void plain_training_is_the_sets_own_order(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = open_cifar(&f);
  trace *t = malloc(sizeof *t);
  assert_non_null(t);
  read_batches(set, (laci_training_order){.seed = 1}, 0, 2, 2, t);
  for (int k = 0; k < 64; k++) {
    assert_int_equal(t->labels[k / 8][k % 8], laci_dataset_label(set, k % 48));
  }
  free(t);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void an_epoch_has_every_image_at_most_once(void **state) {
  (void)state;
  laci_dataset *set = NULL;
  laci_dataset_options part = {.part = LACI_PART_TRAIN};
  assert_int_equal(laci_dataset_open(DIGITS, &part, &set, NULL), LAC_OK);
  laci_training_order order = {.seed = 1, .shuffle = true};
  laci_loader_options options = laci_loader_options_default(set);
  laci_loader *loader = NULL;
  float pixels[64 * 64];
  int32_t labels[64], count[10] = {0};
  options.batch = 64;
  options.threads = 2;
  options.depth = 1;
  options.training = &order;
  assert_int_equal(laci_loader_create(set, &options, &loader, NULL), LAC_OK);
  for (int k = 0; k < laci_training_steps_per_epoch(set, 64); k++) {
    laci_batch batch;
    assert_int_equal(laci_loader_queue_batch(loader, pixels, labels, NULL), LAC_OK);
    assert_int_equal(laci_loader_take_batch(loader, &batch, NULL), LAC_OK);
    for (int i = 0; i < 64; i++) count[labels[i]]++;
  }
  for (int c = 0; c < 10; c++) { /* 1408 of 1437: at most 29 of a class are missing */
    int all = 0;
    for (int64_t at = 0; at < laci_dataset_count(set); at++)
      all += laci_dataset_label(set, at) == c;
    assert_in_range(count[c], (uintmax_t)(all - 29), (uintmax_t)all);
  }
  laci_loader_destroy(loader);
  laci_dataset_close(set);
}

static void bad_training_is_refused(void **state) {
  (void)state;
  folder f;
  laci_dataset *set = open_cifar(&f);
  laci_training_order good = {0}, bad[3] = {good, good, good};
  laci_loader *loader = NULL;
  bad[0].first_step = -1;
  bad[1].first_step = INT64_MAX;
  bad[2].augment.pad = -1;
  for (int k = 0; k < 4; k++) {
    laci_loader_options options = laci_loader_options_default(set);
    options.batch = k < 3 ? 4 : N + 1;
    options.training = k < 3 ? &bad[k] : &good;
    lac_error err = {0};
    assert_int_equal(laci_loader_create(set, &options, &loader, &err), LAC_BAD_ARGUMENT);
    assert_int_not_equal(err.text[0], 0);
  }
  laci_dataset_close(set);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shuffling_is_a_permutation),
      cmocka_unit_test(no_place_is_preferred),
      cmocka_unit_test(images_are_padded_cropped_and_flipped),
      cmocka_unit_test(every_corner_and_both_sides_are_drawn),
      cmocka_unit_test(smoothed_labels_are_probabilities),
      cmocka_unit_test(shares_are_drawn_from_beta),
      cmocka_unit_test(items_are_blended_with_their_mirror_images),
      cmocka_unit_test(digits_come_in_two_parts),
      cmocka_unit_test(damaged_digits_are_refused),
      cmocka_unit_test(batches_follow_from_the_step_alone),
      cmocka_unit_test(plain_training_is_the_sets_own_order),
      cmocka_unit_test(an_epoch_has_every_image_at_most_once),
      cmocka_unit_test(bad_training_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * data: changes of RandAugment and TrivialAugment, against what torchvision made of the same bytes
 * (tests/fixtures/train/policy.txt); what is drawn is the same every time, and all of it is drawn.
 */
#include "data/policy.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/augment.h"
#include "data/image.h"
#include "data/prepare.h"
#include "lacuna/status.h"

enum { WIDTH = 19, HEIGHT = 13, BYTES = WIDTH * HEIGHT * 3 };

static void make_image(int width, int height, laci_image *image) {
  assert_int_equal(laci_image_set_size(image, "test", width, height, NULL), LAC_OK);
  for (int k = 0; k < width * height * 3; k++) {
    image->rgb[k] = (uint8_t)((k * k + 7 * k) % 251 / 2 + 40);
  }
}

static uint64_t add_bytes(uint64_t hash, const uint8_t *bytes, int n) {
  for (int k = 0; k < n; k++) hash = (hash ^ bytes[k]) * 0x100000001B3U;
  return hash;
}

static uint64_t hash_changes(laci_policy_kind kind, laci_pixel_change change, int width,
                             int height) {
  laci_image image = {0}, spare = {0};
  uint64_t hash = 0xCBF29CE484222325U;
  for (int at = 0; at < 2 * LACI_POLICY_BINS; at++) {
    double magnitude = laci_policy_magnitude(kind, change, at / 2, width, height);
    if (at % 2 && laci_policy_has_sign(change)) magnitude = -magnitude;
    make_image(width, height, &image);
    assert_int_equal(laci_pixels_change(change, magnitude, "test", &image, &spare, NULL), LAC_OK);
    assert_true(image.width == width && image.height == height);
    hash = add_bytes(hash, image.rgb, width * height * 3);
  }
  laci_image_clear(&image);
  laci_image_clear(&spare);
  return hash;
}

static void changes_are_those_of_torchvision(void **state) {
  (void)state;
  char line[128], name[32];
  int n = 0;
  FILE *file = fopen(LAC_SOURCE_DIR "/tests/fixtures/train/policy.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    int width, height, change;
    uint64_t want;
    laci_policy_kind kind;
    assert_int_equal(sscanf(line, "%31s %d %d %d: %" SCNx64, name, &width, &height, &change, &want),
                     5);
    assert_true(laci_policy_find(name, &kind));
    const uint64_t got = hash_changes(kind, (laci_pixel_change)change, width, height);
    if (got != want) fail_msg("got %016" PRIx64 " for %s", got, line);
    n++;
  }
  (void)fclose(file);
  assert_int_equal(n, 2 * 2 * LACI_PIXELS_CHANGES);
}

/** Applies the policy to the image of that number; the hash of its bytes. */
static uint64_t hash_sample(const laci_policy *policy, uint64_t seed, uint64_t sample) {
  const laci_sample_change change = {.augment.policy = *policy, .seed = seed, .sample = sample};
  laci_image image = {0}, spare = {0};
  make_image(WIDTH, HEIGHT, &image);
  assert_int_equal(laci_policy_apply(&change, "test", &image, &spare, NULL), LAC_OK);
  const uint64_t hash = add_bytes(0, image.rgb, BYTES);
  laci_image_clear(&image);
  laci_image_clear(&spare);
  return hash;
}

/** Fills in what each change with each sign makes of the image. */
static void hash_all(laci_policy_kind kind, int bin, uint64_t hashes[2 * LACI_PIXELS_CHANGES]) {
  laci_image image = {0}, spare = {0};
  for (int at = 0; at < 2 * LACI_PIXELS_CHANGES; at++) {
    const laci_pixel_change change = (laci_pixel_change)(at / 2);
    double magnitude = laci_policy_magnitude(kind, change, bin, WIDTH, HEIGHT);
    if (at % 2 && laci_policy_has_sign(change)) magnitude = -magnitude;
    make_image(WIDTH, HEIGHT, &image);
    assert_int_equal(laci_pixels_change(change, magnitude, "test", &image, &spare, NULL), LAC_OK);
    hashes[at] = add_bytes(0, image.rgb, BYTES);
  }
  laci_image_clear(&image);
  laci_image_clear(&spare);
}

static void samples_draw_every_change_and_no_other(void **state) {
  (void)state;
  enum { N = 600, BIN = 11 };
  uint64_t hashes[2 * LACI_PIXELS_CHANGES];
  int n_seen[2 * LACI_PIXELS_CHANGES] = {0}, n_equal = 0;
  const laci_policy policy = {LACI_POLICY_RANDAUGMENT, 1, BIN};
  hash_all(policy.kind, BIN, hashes);
  for (uint64_t sample = 0; sample < N; sample++) {
    const uint64_t hash = hash_sample(&policy, 7, sample);
    int n = 0;
    for (int at = 0; at < 2 * LACI_PIXELS_CHANGES; at++) {
      n += hash == hashes[at];
      n_seen[at] += hash == hashes[at];
    }
    assert_true(n > 0);
    n_equal += hash == hash_sample(&policy, 8, sample);
  }
  for (int at = 0; at < 2 * LACI_PIXELS_CHANGES; at++) assert_true(n_seen[at] > 0);
  if (!(n_equal < N / 4)) fail_msg("%d samples of two seeds are equal", n_equal);
}

static void policies_repeat_and_none_changes_nothing(void **state) {
  (void)state;
  const laci_policy none = {0}, two = {LACI_POLICY_RANDAUGMENT, 2, 9},
                    trivial = {.kind = LACI_POLICY_TRIVIALAUGMENT};
  laci_image image = {0};
  int n_other = 0;
  make_image(WIDTH, HEIGHT, &image);
  const uint64_t plain = add_bytes(0, image.rgb, BYTES);
  laci_image_clear(&image);
  for (uint64_t sample = 0; sample < 50; sample++) {
    assert_true(hash_sample(&none, 1, sample) == plain);
    assert_true(hash_sample(&two, 1, sample) == hash_sample(&two, 1, sample));
    assert_true(hash_sample(&trivial, 1, sample) == hash_sample(&trivial, 1, sample));
    n_other += hash_sample(&trivial, 1, sample) != hash_sample(&two, 1, sample);
  }
  assert_true(n_other > 25);
}

/* Changes by bytes give the floats of changes without them, so that a policy changes nothing else.
 */
static void parts_by_bytes_are_parts(void **state) {
  (void)state;
  enum { SIDE = 24 };
  laci_preprocessing preprocessing = laci_preprocessing_default();
  preprocessing.resize = preprocessing.height = preprocessing.width = SIDE;
  laci_preparer *preparer = NULL;
  laci_image part = {0}, resized = {0};
  float *direct = laci_alloc(2 * SIDE * SIDE * 3, sizeof *direct);
  assert_non_null(direct);
  float *by_bytes = direct + SIDE * SIDE * 3;
  make_image(WIDTH, HEIGHT, &part);
  assert_int_equal(laci_preparer_create(&preprocessing, &preparer, NULL), LAC_OK);
  for (int mirrored = 0; mirrored < 2; mirrored++) {
    assert_int_equal(laci_prepare_image_part(preparer, "t", &part, mirrored, direct, NULL), LAC_OK);
    assert_int_equal(laci_prepare_resize_part(preparer, "t", &part, &resized, NULL), LAC_OK);
    if (mirrored) laci_image_mirror(&resized);
    assert_int_equal(laci_prepare_crop(preparer, "t", &resized, by_bytes, NULL), LAC_OK);
    assert_memory_equal(direct, by_bytes, SIDE * SIDE * 3 * sizeof *direct);
  }
  laci_preparer_destroy(preparer);
  laci_image_clear(&part);
  laci_image_clear(&resized);
  laci_free(direct);
}

static void lack_of_memory_is_said(void **state) {
  (void)state;
  laci_image image = {0}, spare = {0};
  lac_error err = {0};
  make_image(WIDTH, HEIGHT, &image);
  for (int change = 0; change < LACI_PIXELS_CHANGES; change++) {
    laci_memory_fail_from(1);
    lac_status st =
        laci_pixels_change((laci_pixel_change)change, 0.5, "cat.png", &image, &spare, &err);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || (st == LAC_NO_MEMORY && strstr(err.text, "cat.png")));
    laci_image_clear(&spare);
  }
  laci_image_clear(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changes_are_those_of_torchvision),
      cmocka_unit_test(samples_draw_every_change_and_no_other),
      cmocka_unit_test(policies_repeat_and_none_changes_nothing),
      cmocka_unit_test(parts_by_bytes_are_parts),
      cmocka_unit_test(lack_of_memory_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

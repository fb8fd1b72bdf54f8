/* SPDX-License-Identifier: Apache-2.0
 * data: the part of an image that training looks at, how it is drawn, and that decoding it alone
 * gives the pixels of the whole. */
#include "data/region.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/reader.h"
#include "base/rng.h"
#include "data/image.h"
#include "data/prepare.h"
#include "support/jpeg_file.h"

#define FOLDER LAC_SOURCE_DIR "/tests/fixtures/data/"

/* ---- The draw ---- */

static void parts_have_the_area_and_aspect_that_is_wanted(void **state) {
  (void)state;
  enum { N = 20000, W = 500, H = 375 };
  double areas = 0, logs = 0, lefts = 0, tops = 0;
  for (uint64_t k = 0; k < N; k++) {
    laci_region r = laci_draw_region(3, k, W, H);
    double area = (double)r.width * r.height / (W * H), aspect = (double)r.width / r.height;
    assert_true(r.left >= 0 && r.top >= 0 && r.width > 0 && r.height > 0);
    assert_true(r.left + r.width <= W && r.top + r.height <= H);
    assert_true(area > 0.078 && area <= 1 && aspect > 0.74 && aspect < 1.35);
    areas += area;
    logs += log(aspect);
    if (r.width < W) lefts += (double)r.left / (W - r.width);
    else lefts += 0.5;
    if (r.height < H) tops += (double)r.top / (H - r.height);
    else tops += 0.5;
  }
  /* Large parts of an aspect that does not fit are drawn again: fewer of them, and wider ones. */
  assert_true(areas / N > 0.42 && areas / N < 0.54);
  assert_true(logs / N > 0.0 && logs / N < 0.1);
  assert_true(fabs(lefts / N - 0.5) < 0.02 && fabs(tops / N - 0.5) < 0.02);
}

static void a_draw_follows_from_seed_and_sample(void **state) {
  (void)state;
  laci_region a = laci_draw_region(5, 9, 300, 200), b = laci_draw_region(5, 9, 300, 200);
  laci_region other = laci_draw_region(5, 10, 300, 200), seed = laci_draw_region(6, 9, 300, 200);
  assert_memory_equal(&a, &b, sizeof a);
  assert_memory_not_equal(&a, &other, sizeof a);
  assert_memory_not_equal(&a, &seed, sizeof a);
}

static void odd_images_have_a_part(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1},    {1, 65535}, {65535, 1},  {2, 3},
                                 {1000, 2}, {3, 700},   {8000, 400}, {65535, 1024}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    for (uint64_t sample = 0; sample < 200; sample++) {
      laci_region r = laci_draw_region(1, sample, sizes[k][0], sizes[k][1]);
      assert_true(r.left >= 0 && r.top >= 0 && r.width > 0 && r.height > 0);
      assert_true(r.left + r.width <= sizes[k][0] && r.top + r.height <= sizes[k][1]);
    }
  }
  laci_region wide = laci_draw_region(1, 0, 65535, 3); /* no draw fits: the middle, 4 to 3 */
  assert_true(wide.height == 3 && wide.width == 4 && wide.left == (65535 - 4) / 2);
}

/* ---- Decoding a part ---- */

static laci_region fixed(const void *context, int width, int height) {
  (void)width, (void)height;
  return *(const laci_region *)context;
}

static void expect_part(const char *name, const laci_file_bytes *file, const laci_image *whole,
                        laci_region r, laci_image *part) {
  lac_error err = {0};
  laci_image_part wanted = {.choose = fixed, .context = &r};
  if (laci_image_decode_part(name, file->bytes, file->size_bytes, &wanted, part, &err)) {
    fail_msg("%s", err.text);
  }
  assert_int_equal(part->width, r.width);
  assert_int_equal(part->height, r.height);
  for (int y = 0; y < r.height; y++) {
    const uint8_t *want =
        whole->rgb + ((size_t)(r.top + y) * (size_t)whole->width + (size_t)r.left) * 3;
    if (memcmp(part->rgb + (size_t)y * (size_t)r.width * 3, want, (size_t)r.width * 3) == 0)
      continue;
    fail_msg("%s: row %d of %d x %d at %d, %d", name, y, r.width, r.height, r.left, r.top);
  }
}

/** Every corner and size that a small image has, or some of a large one's. */
static void try_parts(const char *name, const laci_file_bytes *file) {
  laci_image whole = {0}, part = {0};
  assert_int_equal(laci_image_decode(name, file->bytes, file->size_bytes, &whole, NULL), LAC_OK);
  for (uint64_t k = 0; k < 300; k++) {
    laci_region r;
    r.left = (int)laci_rng_integer_below(k, 1, 0, (uint64_t)whole.width);
    r.top = (int)laci_rng_integer_below(k, 1, 1, (uint64_t)whole.height);
    r.width = 1 + (int)laci_rng_integer_below(k, 1, 2, (uint64_t)(whole.width - r.left));
    r.height = 1 + (int)laci_rng_integer_below(k, 1, 3, (uint64_t)(whole.height - r.top));
    expect_part(name, file, &whole, r, &part);
  }
  expect_part(name, file, &whole, (laci_region){0, 0, whole.width, whole.height}, &part);
  laci_image_clear(&whole);
  laci_image_clear(&part);
}

static void a_part_has_the_pixels_of_the_whole(void **state) {
  (void)state;
  static const char *const kinds[] = {"colour.jpg", "subsampled.jpg", "progressive.jpg",
                                      "grey.jpg",   "cmyk.jpg",       "rotated.jpg"};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    char path[512];
    laci_file_bytes file;
    (void)snprintf(path, sizeof path, FOLDER "%s", kinds[k]);
    assert_int_equal(laci_file_bytes_read(path, &file, NULL), LAC_OK);
    try_parts(kinds[k], &file);
    laci_file_bytes_clear(&file);
  }
}

/* Larger than one stripe of the decoder, in every subsampling. */
static void parts_of_larger_images_have_them_too(void **state) {
  (void)state;
  for (int sampling = 0; sampling < JPEG_FILE_SAMPLINGS; sampling++) {
    laci_file_bytes file = jpeg_file_make(203, 157, sampling);
    try_parts("made.jpg", &file);
    jpeg_file_clear(&file);
  }
}

/* One that is much larger than it may come is decoded smaller: the result is nearly that of all of
 * its pixels. */
static void a_large_part_comes_smaller(void **state) {
  (void)state;
  enum { SIDE = 32, WIDTH = 1100, HEIGHT = 900 };
  laci_preprocessing to = {.height = SIDE, .width = SIDE, .std = {1, 1, 1}};
  laci_preparer *preparer = NULL;
  static float small[3 * SIDE * SIDE], all[3 * SIDE * SIDE];
  laci_region r = {37, 51, 1000, 800}, inside = {40, 52, 996, 796}; /* of fours */
  laci_image_part wanted = {.choose = fixed, .context = &inside};
  laci_image image = {0};
  laci_file_bytes file = jpeg_file_make(WIDTH, HEIGHT, 0);
  int n_apart = 0, n_far = 0;
  assert_int_equal(laci_preparer_create(&to, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_image_decode_part("x", file.bytes, file.size_bytes, &wanted, &image, NULL),
                   0);
  assert_int_equal(image.width, 996);
  assert_int_equal(laci_prepare_image_part(preparer, "x", &image, false, all, NULL), LAC_OK);
  wanted = (laci_image_part){fixed, &r, SIDE, SIDE};
  assert_int_equal(laci_image_decode_part("x", file.bytes, file.size_bytes, &wanted, &image, NULL),
                   0);
  assert_true(image.width == 996 / 4 && image.height == 796 / 4);
  assert_int_equal(laci_prepare_image_part(preparer, "x", &image, false, small, NULL), LAC_OK);
  for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
    float apart = fabsf(small[at] - all[at]);
    n_apart += apart > 0;
    n_far += apart > 2;
  }
  assert_true(n_apart > 0 && n_far == 0);
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
  jpeg_file_clear(&file);
}

static void the_mirrored_part_is_the_mirror(void **state) {
  (void)state;
  enum { W = 5, H = 4 };
  laci_preprocessing to = {.height = H, .width = W, .std = {1, 1, 1}};
  laci_preparer *preparer = NULL;
  laci_image image = {0};
  float plain[3 * H * W], mirrored[3 * H * W];
  assert_int_equal(laci_preparer_create(&to, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_image_set_size(&image, "x", 13, 9, NULL), LAC_OK);
  for (size_t at = 0; at < 13UL * 9 * 3; at++) image.rgb[at] = (uint8_t)laci_rng(1, 1, at);
  assert_int_equal(laci_prepare_image_part(preparer, "x", &image, false, plain, NULL), LAC_OK);
  assert_int_equal(laci_prepare_image_part(preparer, "x", &image, true, mirrored, NULL), LAC_OK);
  for (int at = 0; at < 3 * H * W; at++) {
    assert_true(mirrored[at] == plain[at / W * W + W - 1 - at % W]);
  }
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_have_the_area_and_aspect_that_is_wanted),
      cmocka_unit_test(a_draw_follows_from_seed_and_sample),
      cmocka_unit_test(odd_images_have_a_part),
      cmocka_unit_test(a_part_has_the_pixels_of_the_whole),
      cmocka_unit_test(parts_of_larger_images_have_them_too),
      cmocka_unit_test(a_large_part_comes_smaller),
      cmocka_unit_test(the_mirrored_part_is_the_mirror),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * data: resizing, cropping and scaling against the formula of prepare.h, written down once more as
 * plainly as possible. tests/interop/test_data.py asks Pillow itself. */
#include "data/prepare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "data/image.h"

static laci_image random_image(int width, int height) {
  laci_image image = {0};
  assert_int_equal(laci_image_set_size(&image, "x", width, height, NULL), LAC_OK);
  for (int at = 0; at < width * height * 3; at++) {
    image.rgb[at] = (uint8_t)laci_rng(7, (uint64_t)width, (uint64_t)at);
  }
  return image;
}

/** Grey levels come out as they are. */
static laci_preprocessing plain_preprocessing(int resize, int height, int width) {
  return (laci_preprocessing){.resize = resize, .height = height, .width = width, .std = {1, 1, 1}};
}

static float *prepare(const laci_preprocessing *preprocessing, const laci_image *image) {
  laci_preparer *preparer = NULL;
  float *out =
      calloc((size_t)preprocessing->height * (size_t)preprocessing->width * 3, sizeof *out);
  assert_non_null(out);
  assert_int_equal(laci_preparer_create(preprocessing, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_prepare_image(preparer, "x", image, out, NULL), LAC_OK);
  laci_preparer_destroy(preparer);
  return out;
}

/** Weighted mean along one axis in double: `from` has n_in values `step` apart. */
static double mean_under_triangle(const double *from, int n_in, int step, int64_t n_out,
                                  int64_t at) {
  double scale = (double)n_in / (double)n_out, reach = fmax(scale, 1);
  double centre = ((double)at + 0.5) * scale, sum = 0, weights = 0;
  for (int x = 0; x < n_in; x++) {
    double weight = fmax(0, 1 - fabs(x + 0.5 - centre) / reach);
    sum += weight * from[x * step];
    weights += weight;
  }
  return sum / weights;
}

/** The whole resized image [new_height, new_width, 3], without any rounding. */
static double *resize_plainly(const laci_image *image, int64_t new_width, int64_t new_height) {
  int width = image->width, height = image->height;
  double *in = calloc((size_t)(width * height) * 3, sizeof *in);
  double *narrow = calloc((size_t)(new_width * height) * 3, sizeof *narrow);
  double *out = calloc((size_t)(new_width * new_height) * 3, sizeof *out);
  assert_true(in && narrow && out);
  for (int at = 0; at < width * height * 3; at++) in[at] = image->rgb[at];
  for (int64_t at = 0; at < new_width * height * 3; at++) {
    int64_t y = at / 3 / new_width, x = at / 3 % new_width, c = at % 3;
    narrow[at] = mean_under_triangle(in + y * width * 3 + c, width, 3, new_width, x);
  }
  for (int64_t at = 0; at < new_width * new_height * 3; at++) {
    int64_t y = at / 3 / new_width, x = at / 3 % new_width, c = at % 3;
    out[at] = mean_under_triangle(narrow + x * 3 + c, height, (int)new_width * 3, new_height, y);
  }
  free(in);
  free(narrow);
  return out;
}

static void resizing_follows_the_formula_to_a_grey_level(void **state) {
  (void)state;
  static const struct {
    int width, height, resize, new_width, new_height;
  } cases[] = {{50, 37, 24, 32, 24},  {37, 50, 24, 24, 32}, {40, 40, 40, 40, 40},
               {9, 7, 20, 25, 20},    {300, 5, 4, 240, 4},  {64, 48, 48, 64, 48},
               {1, 30, 3, 3, 90},     {101, 97, 7, 7, 7},   {33, 35, 1, 1, 1},
               {200, 199, 13, 13, 13}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    int side = cases[k].resize, nw = cases[k].new_width, nh = cases[k].new_height;
    laci_image image = random_image(cases[k].width, cases[k].height);
    laci_preprocessing preprocessing = plain_preprocessing(side, side, side);
    float *got = prepare(&preprocessing, &image);
    double *want = resize_plainly(&image, nw, nh);
    int left = (int)lrint((nw - side) / 2.0), top = (int)lrint((nh - side) / 2.0);
    for (int at = 0; at < 3 * side * side; at++) {
      int c = at / (side * side), y = at / side % side, x = at % side;
      double w = want[((top + y) * nw + left + x) * 3 + c];
      if (!(fabs((double)got[at] - w) <= 1.001)) {
        fail_msg("case %zu, (%d, %d, %d): got %g, want %g", k, c, y, x, (double)got[at], w);
      }
    }
    free(got);
    free(want);
    laci_image_clear(&image);
  }
}

static void an_even_colour_stays_exactly_what_it_is(void **state) {
  (void)state;
  static const int sizes[][2] = {{1000, 3}, {3, 1000}, {257, 129}, {8, 8}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    for (int grey = 0; grey < 256; grey += 51) {
      laci_image image = random_image(sizes[k][0], sizes[k][1]);
      memset(image.rgb, grey, (size_t)(image.width * image.height) * 3);
      laci_preprocessing preprocessing = plain_preprocessing(16, 16, 16);
      float *out = prepare(&preprocessing, &image);
      for (int at = 0; at < 3 * 16 * 16; at++) assert_true(out[at] == (float)grey);
      free(out);
      laci_image_clear(&image);
    }
  }
}

static void the_middle_is_cut_out_and_halves_go_to_even(void **state) {
  (void)state;
  static const struct {
    int width, height, left, top;
  } cases[] = {{4, 4, 0, 0}, {5, 7, 0, 2}, {6, 8, 1, 2}, {7, 9, 2, 2}, {11, 13, 4, 4}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    laci_image image = random_image(cases[k].width, cases[k].height);
    laci_preprocessing preprocessing = plain_preprocessing(0, 4, 4);
    float *out = prepare(&preprocessing, &image);
    for (int at = 0; at < 3 * 4 * 4; at++) {
      int c = at / 16, y = at / 4 % 4 + cases[k].top, x = at % 4 + cases[k].left;
      assert_true(out[at] == (float)image.rgb[(y * image.width + x) * 3 + c]);
    }
    free(out);
    laci_image_clear(&image);
  }
}

static void each_channel_has_its_mean_and_std(void **state) {
  (void)state;
  laci_image image = random_image(5, 6);
  laci_preprocessing preprocessing = laci_preprocessing_default();
  preprocessing.resize = 0;
  preprocessing.height = 6;
  preprocessing.width = 5;
  float *out = prepare(&preprocessing, &image);
  for (int at = 0; at < 90; at++) {
    int c = at / 30;
    float want = ((float)image.rgb[at % 30 * 3 + c] - preprocessing.mean[c]) / preprocessing.std[c];
    assert_true(out[at] == want);
  }
  free(out);
  laci_image_clear(&image);
}

static void a_preparer_drops_the_last_image(void **state) {
  (void)state;
  static const int sizes[][2] = {{90, 20}, {20, 90}, {33, 47}, {600, 500}, {16, 16}};
  laci_preprocessing preprocessing = plain_preprocessing(16, 12, 14);
  laci_preparer *preparer = NULL;
  float again[3 * 12 * 14];
  assert_int_equal(laci_preparer_create(&preprocessing, &preparer, NULL), LAC_OK);
  for (int k = 0; k < 20; k++) {
    laci_image image = random_image(sizes[k % 5][0], sizes[k % 5][1]);
    float *fresh = prepare(&preprocessing, &image);
    assert_int_equal(laci_prepare_image(preparer, "x", &image, again, NULL), LAC_OK);
    assert_memory_equal(again, fresh, sizeof again);
    free(fresh);
    laci_image_clear(&image);
  }
  laci_preparer_destroy(preparer);
}

static void images_smaller_than_the_crop_are_refused(void **state) {
  (void)state;
  laci_preprocessing preprocessing = plain_preprocessing(0, 32, 32);
  laci_image image = random_image(32, 31);
  laci_preparer *preparer = NULL;
  lac_error err = {0};
  float out[1];
  assert_int_equal(laci_preparer_create(&preprocessing, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_prepare_image(preparer, "a.jpg", &image, out, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "a.jpg: 32 x 31 pixels, wanted at least 32 x 32");
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
}

static void recipes_out_of_their_limits_are_refused(void **state) {
  (void)state;
  laci_preprocessing bad[] = {plain_preprocessing(-1, 1, 1),     plain_preprocessing(20000, 1, 1),
                              plain_preprocessing(8, 9, 8),      plain_preprocessing(8, 8, 9),
                              plain_preprocessing(8, 0, 8),      plain_preprocessing(0, 8, -8),
                              plain_preprocessing(0, 20000, 10), plain_preprocessing(8, 8, 8),
                              plain_preprocessing(8, 8, 8),      plain_preprocessing(8, 8, 8)};
  bad[7].std[1] = 0;
  bad[8].mean[2] = NAN;
  bad[9].std[0] = INFINITY;
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    laci_preparer *preparer;
    lac_error err = {0};
    assert_int_equal(laci_preparer_create(&bad[k], &preparer, &err), LAC_BAD_ARGUMENT);
    assert_null(preparer);
    assert_int_not_equal(err.text[0], 0);
  }
  laci_preprocessing usual = laci_preprocessing_default();
  assert_int_equal(laci_preprocessing_check(&usual, NULL), LAC_OK);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  laci_preprocessing preprocessing = plain_preprocessing(16, 16, 16);
  laci_image image = random_image(40, 30);
  float out[3 * 16 * 16];
  int n_failed = 0;
  for (lac_status st = LAC_NO_MEMORY; st; n_failed += st != LAC_OK) {
    laci_preparer *preparer = NULL;
    laci_memory_fail_from(n_failed + 1);
    st = laci_preparer_create(&preprocessing, &preparer, NULL);
    if (!st) st = laci_prepare_image(preparer, "x", &image, out, NULL);
    laci_memory_fail_from(0);
    if (st) assert_int_equal(st, LAC_NO_MEMORY);
    laci_preparer_destroy(preparer);
  }
  assert_int_equal(n_failed, 11); /* two to create, four an axis, the rows */
  laci_image_clear(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resizing_follows_the_formula_to_a_grey_level),
      cmocka_unit_test(an_even_colour_stays_exactly_what_it_is),
      cmocka_unit_test(the_middle_is_cut_out_and_halves_go_to_even),
      cmocka_unit_test(each_channel_has_its_mean_and_std),
      cmocka_unit_test(a_preparer_drops_the_last_image),
      cmocka_unit_test(images_smaller_than_the_crop_are_refused),
      cmocka_unit_test(recipes_out_of_their_limits_are_refused),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

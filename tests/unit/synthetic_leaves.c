/* SPDX-License-Identifier: Apache-2.0
 * Synthetic images: the same picture for the same seed and number, whoever draws it; values and
 * statistics like those of photographs; any size. */
#include "synthetic/leaves.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "synthetic/random.h"

enum { SIDE = 48, PLANE = SIDE * SIDE, PICTURE = 3 * PLANE, MANY = 64 };

static laci_leaves *create(uint64_t seed, int height, int width) {
  laci_leaves *leaves = NULL;
  lac_error err = {0};
  if (laci_leaves_create(seed, height, width, &leaves, &err)) fail_msg("%s", err.text);
  return leaves;
}

static void a_picture_depends_on_seed_and_number_alone(void **state) {
  (void)state;
  static float first[PICTURE], again[PICTURE], scratch[PLANE];
  laci_leaves *leaves = create(1, SIDE, SIDE), *same = create(1, SIDE, SIDE),
              *other = create(2, SIDE, SIDE);
  laci_leaves_draw(leaves, 7, first, scratch);
  laci_leaves_draw(same, 3, again, scratch);
  assert_memory_not_equal(first, again, sizeof first);
  laci_leaves_draw(same, 7, again, scratch);
  assert_memory_equal(first, again, sizeof first);
  laci_leaves_draw(other, 7, again, scratch);
  assert_memory_not_equal(first, again, sizeof first);
  laci_leaves_destroy(leaves);
  laci_leaves_destroy(same);
  laci_leaves_destroy(other);
}

/* Photographs have about these: mean 0.48, deviation 0.25 of all pixels and 0.2 within a picture,
 * differences of neighbours 0.05. */
static void pictures_have_the_statistics_of_photographs(void **state) {
  (void)state;
  static float rgb[PICTURE], scratch[PLANE];
  laci_leaves *leaves = create(0, SIDE, SIDE);
  double sum = 0, squares = 0, within = 0, steps = 0;
  for (int at = 0; at < MANY; at++) {
    laci_leaves_draw(leaves, (uint64_t)at, rgb, scratch);
    double own = 0, own_squares = 0;
    for (int k = 0; k < PICTURE; k++) {
      assert_true(rgb[k] >= 0 && rgb[k] <= 1);
      own += rgb[k];
      own_squares += rgb[k] * rgb[k];
      if (k % SIDE) steps += fabs(rgb[k] - rgb[k - 1]);
    }
    sum += own;
    squares += own_squares;
    within += sqrt(own_squares / PICTURE - own / PICTURE * own / PICTURE);
  }
  const double n = (double)MANY * PICTURE, mean = sum / n;
  assert_true(mean > 0.4 && mean < 0.6);
  assert_true(sqrt(squares / n - mean * mean) > 0.2);
  assert_true(within / MANY > 0.12);
  assert_true(steps / n > 0.02 && steps / n < 0.08);
  laci_leaves_destroy(leaves);
}

static void any_size_can_be_drawn(void **state) {
  (void)state;
  const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {17, 5}};
  static float rgb[3 * 300], scratch[300];
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const int height = sizes[k][0], width = sizes[k][1];
    laci_leaves *leaves = create(5, height, width);
    for (int e = 0; e < 3 * 300; e++) rgb[e] = -1;
    for (uint64_t at = 0; at < 20; at++) {
      laci_leaves_draw(leaves, at, rgb, scratch);
      for (int e = 0; e < 3 * height * width; e++) assert_true(rgb[e] >= 0 && rgb[e] <= 1);
      for (int e = 3 * height * width; e < 3 * 300; e++) assert_true(rgb[e] == -1);
    }
    laci_leaves_destroy(leaves);
  }
}

static void draws_follow_their_distributions(void **state) {
  (void)state;
  laci_random random = {.seed = 3, .stream = 4};
  enum { N = 20000 };
  double normal = 0, normal_squares = 0, bright = 0, bright_squares = 0;
  int counts[5] = {0};
  for (int k = 0; k < N; k++) {
    const double x = laci_random_normal(&random, 2), b = laci_random_brightness(&random);
    normal += x;
    normal_squares += x * x;
    bright += b;
    bright_squares += b * b;
    counts[laci_random_below(&random, 5)]++;
    const double between = laci_random_between(&random, -3, -1);
    assert_true(between >= -3 && between < -1);
  }
  assert_true(fabs(normal / N) < 0.06);
  assert_true(fabs(normal_squares / N - 4) < 0.15);
  /* Beta(1.2, 1.2): mean 1/2, variance 1 / (4 * 3.4) */
  assert_true(fabs(bright / N - 0.5) < 0.01);
  assert_true(fabs(bright_squares / N - 0.25 - 1 / 13.6) < 0.01);
  for (int k = 0; k < 5; k++) assert_true(counts[k] > N / 5 - 300 && counts[k] < N / 5 + 300);
}

static void no_memory_is_an_error(void **state) {
  (void)state;
  laci_leaves *leaves = NULL;
  lac_error err = {0};
  laci_memory_fail_from(1);
  assert_int_equal(laci_leaves_create(0, 4, 4, &leaves, &err), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_null(leaves);
  laci_leaves_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_picture_depends_on_seed_and_number_alone),
      cmocka_unit_test(pictures_have_the_statistics_of_photographs),
      cmocka_unit_test(any_size_can_be_drawn),
      cmocka_unit_test(draws_follow_their_distributions),
      cmocka_unit_test(no_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

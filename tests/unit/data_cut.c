/* SPDX-License-Identifier: Apache-2.0
 * data: rectangles of random erasing and CutMix, and the limit of gradients' norms, against what
 * torchvision and PyTorch computed (tests/fixtures/train/cuts.txt); what is drawn is the same every
 * time, and lies within limits. */
#include "data/cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/optimizer.h"

enum { SIDE = 16, CHANNELS = 3, PIXELS = CHANNELS * SIDE * SIDE };
static const laci_plane_sizes square = {CHANNELS, SIDE, SIDE};

static void expect_erase(const char *line) {
  int height, width, want_height, want_width, h = -1, w = -1;
  double area, aspect;
  assert_int_equal(sscanf(line, "erase %d %d %lf %lf: %d %d", &height, &width, &area, &aspect,
                          &want_height, &want_width),
                   6);
  const bool fits =
      laci_erase_rectangle_size(area, aspect, (laci_plane_sizes){3, height, width}, &h, &w);
  assert_int_equal(fits, want_height > 0);
  if (fits && (h != want_height || w != want_width)) fail_msg("%d %d for %s", h, w, line);
}

static void expect_cut(const char *line) {
  int height, width, y, x;
  double share;
  laci_rectangle want;
  assert_int_equal(sscanf(line, "cut %d %d %lf %d %d: %d %d %d %d %lf", &height, &width, &share, &y,
                          &x, &want.top, &want.left, &want.bottom, &want.right, &want.share),
                   10);
  const laci_rectangle cut = laci_cut_rectangle_around(share, y, x, height, width);
  const bool same = cut.top == want.top && cut.left == want.left && cut.bottom == want.bottom &&
                    cut.right == want.right && fabs(cut.share - want.share) < 1e-6;
  if (!same)
    fail_msg("%d %d %d %d %g for %s", cut.top, cut.left, cut.bottom, cut.right, cut.share, line);
}

/* The factor is that of trainer.c: limit / (norm + 1e-6), at most 1. */
static void expect_clip(const char *line) {
  static const laci_parameter parameter = {.name = "w", .offset = 0, .count = 4};
  const laci_optimizer_options options = laci_optimizer_options_default(LACI_OPTIMIZER_SGD);
  laci_optimizer *o = NULL;
  float g[4], want[4];
  double limit;
  assert_int_equal(sscanf(line, "clip %lf %f %f %f %f: %f %f %f %f", &limit, &g[0], &g[1], &g[2],
                          &g[3], &want[0], &want[1], &want[2], &want[3]),
                   9);
  assert_int_equal(laci_optimizer_create(&options, &parameter, 1, NULL, &o, NULL), LAC_OK);
  const double part = fmin(1, limit / (laci_optimizer_gradient_norm(o, g) + 1e-6));
  for (int k = 0; k < 4; k++) {
    const double found = part * (double)g[k];
    if (!(fabs(found - (double)want[k]) <= 1e-6)) fail_msg("got %.9g in %s", found, line);
  }
  static const uint8_t mask[4] = {1, 0, 0, 1};
  laci_optimizer_set_mask(o, 0, mask, NULL);
  const double norm = laci_optimizer_gradient_norm(o, g);
  assert_true(fabs(norm - hypot((double)g[0], (double)g[3])) < 1e-6);
  laci_optimizer_destroy(o);
}

static void all_is_as_in_torchvision(void **state) {
  (void)state;
  char line[512];
  int n_erase = 0, n_cut = 0, n_clip = 0;
  FILE *file = fopen(LAC_SOURCE_DIR "/tests/fixtures/train/cuts.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, "erase", 5) == 0) expect_erase(line), n_erase++;
    else if (strncmp(line, "cut", 3) == 0) expect_cut(line), n_cut++;
    else expect_clip(line), n_clip++;
  }
  (void)fclose(file);
  assert_true(n_erase == 48 && n_cut == 48 && n_clip == 4);
}

static void erased_parts_are_rectangles_of_zeros(void **state) {
  (void)state;
  int n_erased = 0;
  double area = 0;
  for (uint64_t sample = 0; sample < 2000; sample++) {
    float image[PIXELS], again[PIXELS];
    for (int k = 0; k < PIXELS; k++) image[k] = again[k] = 1;
    laci_erase_random_rectangle(7, sample, 0.25, square, image);
    laci_erase_random_rectangle(7, sample, 0.25, square, again);
    assert_memory_equal(image, again, sizeof image);
    int top = SIDE, bottom = -1, left = SIDE, right = -1, zeros = 0;
    for (int k = 0; k < PIXELS; k++) {
      const int row = k / SIDE % SIDE, column = k % SIDE;
      if (image[k] > 0) continue;
      zeros++;
      top = row < top ? row : top;
      bottom = row > bottom ? row : bottom;
      left = column < left ? column : left;
      right = column > right ? column : right;
    }
    if (zeros == 0) continue;
    n_erased++;
    area += zeros / (double)PIXELS;
    assert_int_equal(zeros, CHANNELS * (bottom - top + 1) * (right - left + 1));
    assert_in_range(zeros, 1, (int)(0.4 * PIXELS));
  }
  assert_in_range(n_erased, 420, 580); /* a quarter */
  assert_true(fabs(area / n_erased - 0.17) < 0.02);
}

static void rectangles_are_exchanged_with_mirror_images(void **state) {
  (void)state;
  static float images[3 * PIXELS];
  for (int k = 0; k < 3 * PIXELS; k++) images[k] = (float)k;
  const laci_rectangle cut = {.top = 2, .left = 3, .bottom = 5, .right = 16, .share = 0};
  laci_cutmix_swap_rectangles(&cut, square, images, 3);
  for (int k = 0; k < 3 * PIXELS; k++) {
    const int item = k / PIXELS, row = k / SIDE % SIDE, column = k % SIDE;
    const bool inside = row >= 2 && row < 5 && column >= 3;
    const int from = inside ? (2 - item) * PIXELS + k % PIXELS : k;
    assert_true(images[k] == (float)from);
  }
}

static void half_of_the_steps_mix_where_both_are_wanted(void **state) {
  (void)state;
  int n = 0;
  double share = 0;
  for (uint64_t step = 0; step < 4000; step++) {
    assert_false(laci_cutmix_is_chosen(1, step, 0.2, 0));
    assert_true(laci_cutmix_is_chosen(1, step, 0, 1));
    n += laci_cutmix_is_chosen(1, step, 0.2, 1);
    const laci_rectangle cut = laci_cutmix_draw_rectangle(1, step, 1, 20, 30);
    assert_true(cut.top >= 0 && cut.top <= cut.bottom && cut.bottom <= 20);
    assert_true(cut.left >= 0 && cut.left <= cut.right && cut.right <= 30);
    share += cut.share;
  }
  assert_in_range(n, 1850, 2150);
  assert_true(share / 4000 > 0.6 && share / 4000 < 0.75); /* half, and what borders cut off */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_is_as_in_torchvision),
      cmocka_unit_test(erased_parts_are_rectangles_of_zeros),
      cmocka_unit_test(rectangles_are_exchanged_with_mirror_images),
      cmocka_unit_test(half_of_the_steps_mix_where_both_are_wanted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

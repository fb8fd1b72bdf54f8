/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/image_bytes: every variant, in any order of items: the bytes of each pixel against
 * those that QuantizeLinear gives, wherever a layout has them, and nothing else is written. */
#include "kernel/sparse/image_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, INT8X4 = 4 };
static const uint32_t untouched = 0x5A5A5A5A;

typedef struct image_case {
  laci_sparse_size size;
  laci_memory_format format;
  laci_sparse_border border; /* of the int8x4 */
  bool padded;               /* the floats have a border, too */
} image_case;

static const image_case cases[] = {
    {{3, 7, 9, 1}, LACI_FORMAT_CHW, {0, 0, 0, 0, 1, 1}, false},
    {{3, 12, 33, 2}, LACI_FORMAT_CHW, {3, 3, 3, 3, 2, 2}, false},
    {{1, 5, 600, 1}, LACI_FORMAT_CHW, {1, 1, 1, 1, 1, 1}, true},
    {{6, 11, 13, 2}, LACI_FORMAT_CHW, {1, 2, 0, 4, 3, 2}, true},
    {{8, 4, 270, 1}, LACI_FORMAT_CHW, {0, 1, 0, 0, 1, 4}, false},
    {{5, 6, 7, 3}, LACI_FORMAT_PC16P, {0, 0, 0, 1, 1, 1}, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static const laci_fake_quantized grids[] = {{0.03F, -120, 135}, {0.02F, -128, 127}, {1, 0, 255}};
enum { N_GRIDS = sizeof grids / sizeof *grids };

static float value_of(const laci_fake_quantized *q, int64_t at) {
  static const float edges[] = {0, -0.0F, 0.5F, -1.5F, 2.5F, 1e30F, -1e30F, INFINITY, NAN};
  const int64_t n_edges = sizeof edges / sizeof *edges;
  if (at % 5 == 0) return edges[at / 5 % n_edges] * q->scale;
  return ((float)laci_rng_unit_interval(3, 1, (uint64_t)at) - 0.5F) * 700 * q->scale;
}

static uint32_t byte_of(const laci_fake_quantized *q, float x) {
  const double whole = (double)rintf(x / q->scale), low = (double)q->low, high = (double)q->high;
  if (isnan(x)) return 0;
  return (uint32_t)(fmin(fmax(whole, low), high) - low);
}

static laci_image_bytes bytes_of(const image_case *c, const laci_fake_quantized *q) {
  const laci_sparse_size *s = &c->size;
  const laci_sparse_border one = {1, 1, 1, 1, 1, 1};
  const int64_t int8x4 = laci_sparse_layout_channels(s->channels, LACI_SPARSE_S8);
  return (laci_image_bytes){
      c->padded ? laci_sparse_padded_layout(LACI_FORMAT_CHW, s->channels, s->h, s->w, one)
                : laci_sparse_layout_contiguous(LACI_FORMAT_CHW, s->channels, s->h, s->w),
      laci_sparse_padded_layout(c->format, int8x4, s->h, s->w, c->border), *s, q};
}

/* Checks all pixels, and sets their words to `untouched`. */
static void take_pixels(const laci_image_bytes *b, const float *floats, float *int8x4) {
  const int64_t n = laci_sparse_layout_channels(b->size.channels, LACI_SPARSE_S8);
  for (int64_t at = 0; at < b->size.n_images * n * b->size.h * b->size.w; at++) {
    const int64_t x = at % b->size.w, y = at / b->size.w % b->size.h;
    const int64_t which = at / b->size.w / b->size.h % n, image = at / b->size.w / b->size.h / n;
    float *place =
        int8x4 + image * b->int8x4.n_floats + laci_sparse_offset(&b->int8x4, which, y, x);
    uint32_t want = 0, got;
    for (int64_t c = 0; c < INT8X4; c++) {
      const int64_t channel = which * INT8X4 + c;
      const float *from = floats + image * b->floats.n_floats;
      const uint32_t byte = channel < b->size.channels
                                ? byte_of(b->q, from[laci_sparse_offset(&b->floats, channel, y, x)])
                                : (uint32_t)-b->q->low;
      want |= byte << c * 8;
    }
    memcpy(&got, place, sizeof got);
    assert_int_equal(got, want);
    memcpy(place, &untouched, sizeof untouched);
  }
}

static void check_case(const laci_image_bytes *b) {
  enum { GUARD = 16 };
  const int64_t n_from = b->floats.n_floats * b->size.n_images;
  const int64_t n_to = b->int8x4.n_floats * b->size.n_images + 2 * GUARD;
  float *from = malloc((size_t)n_from * sizeof *from), *to = malloc((size_t)n_to * sizeof *to);
  assert_non_null(from);
  assert_non_null(to);
  assert_true(laci_image_bytes_can_pack(&b->floats, &b->int8x4));
  for (int64_t at = 0; at < n_from; at++) from[at] = value_of(b->q, at);
  for (int64_t at = 0; at < n_to; at++) memcpy(to + at, &untouched, sizeof untouched);
  const int64_t items = laci_image_bytes_n_items(b), half = items / 2;
  laci_image_bytes_variant()(b, from, to + GUARD, half, items);
  laci_image_bytes_variant()(b, from, to + GUARD, 0, half);
  take_pixels(b, from, to + GUARD);
  for (int64_t at = 0; at < n_to; at++) assert_memory_equal(to + at, &untouched, sizeof untouched);
  free(from);
  free(to);
}

static void images_become_bytes_in_any_layout(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_CASES * N_GRIDS; at++) {
      const laci_image_bytes b = bytes_of(&cases[at % N_CASES], &grids[at / N_CASES]);
      check_case(&b);
    }
  }
  (void)laci_cpu_limit_level(start);
}

static void layouts_without_rows_are_declined(void **state) {
  const laci_sparse_layout floats = laci_sparse_layout_contiguous(LACI_FORMAT_CHW, 3, 4, 5);
  const laci_sparse_layout last = laci_sparse_layout_contiguous(LACI_FORMAT_HWC, 3, 4, 5);
  const laci_sparse_border none = {.stride_h = 1, .stride_w = 1};
  const laci_sparse_layout to = laci_sparse_padded_layout(LACI_FORMAT_CHW, 1, 4, 5, none);
  const laci_sparse_layout images = laci_sparse_padded_layout(LACI_FORMAT_HWC16N, 1, 4, 5, none);
  (void)state;
  assert_true(laci_image_bytes_can_pack(&floats, &to));
  assert_false(laci_image_bytes_can_pack(&last, &to));
  assert_false(laci_image_bytes_can_pack(&floats, &images));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(images_become_bytes_in_any_layout),
      cmocka_unit_test(layouts_without_rows_are_declined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * sparse/mask: masks and measures against the definition, read off element by element, over random
 * shapes, patterns, types, runs, scales and zero points. */
#include "sparse/mask.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"

enum { MOST = 40000 };

static uint8_t bytes[MOST * 8];
static uint8_t mask[MOST + 16];
static double values[MOST]; /* what the bytes mean */

/* Magnitudes from a short list, so that ties are common. */
static void fill(lac_dtype dtype, int64_t n, uint64_t seed) {
  for (int64_t e = 0; e < n; e++) {
    int k = (int)laci_rng_integer_below(seed, 7, (uint64_t)e, 25) - 12;
    float f = (float)k * 0.25F;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    int exponent = 0;
    float fraction = frexpf(fabsf(f), &exponent); /* [0.5, 1) */
    uint16_t half = (uint16_t)((f < 0 ? 0x8000 : 0) |
                               (k ? (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023) : 0));
    uint16_t brain = (uint16_t)(bits >> 16);
    int32_t word = k;
    double wide = (double)f;
    values[e] = f;
    switch (dtype) {
      case LAC_DTYPE_F16: memcpy(bytes + 2 * e, &half, 2); break;
      case LAC_DTYPE_BF16: memcpy(bytes + 2 * e, &brain, 2); break;
      case LAC_DTYPE_F32: memcpy(bytes + 4 * e, &f, 4); break;
      case LAC_DTYPE_F64: memcpy(bytes + 8 * e, &wide, 8); break;
      case LAC_DTYPE_I32: memcpy(bytes + 4 * e, &word, 4), values[e] = k; break;
      case LAC_DTYPE_U8: bytes[e] = (uint8_t)(k + 12), values[e] = k + 12; break;
      default: bytes[e] = (uint8_t)k, values[e] = k; break; /* i8 */
    }
  }
}

static double distance(const laci_weight_view *w, int64_t e) {
  return fabs(values[e] -
              (w->n_scales && w->zero ? w->zero[e / w->scale_stride % w->n_scales] : 0));
}

static double score(const laci_weight_view *w, int64_t e) {
  const double scored =
      distance(w, e) *
      (w->n_scales && w->scale ? fabs(w->scale[e / w->scale_stride % w->n_scales]) : 1);
  return w->squared ? scored * scored : scored;
}

/* Place of element (o, c, i) among its block, ties to the lower column. */
static int naive_rank(const laci_weight_view *w, int m, int64_t o, int64_t c, int64_t i) {
  int64_t run = c - c % w->run, first = run + (c - run) / m * m;
  int64_t last = first + m < run + w->run ? first + m : run + w->run;
  double mine = score(w, (o * w->columns + c) * w->inner + i);
  int rank = 0;
  for (int64_t d = first; d < last; d++) {
    double other = score(w, (o * w->columns + d) * w->inner + i);
    rank += other > mine || (other == mine && d < c);
  }
  return rank;
}

static void expect_like_the_definition(const laci_weight_view *w, laci_pattern p, laci_pool *pool) {
  const int64_t n = w->outer * w->columns * w->inner;
  laci_mask_stats stats;
  lac_error err = {0};
  double kept = 0, total = 0;
  int64_t zeros = 0;
  memset(mask, 0xEE, sizeof mask);
  assert_int_equal(laci_mask_choose(w, p, pool, mask, &err), LAC_OK);
  assert_int_equal(laci_mask_measure(w, p, pool, &stats, &err), LAC_OK);
  for (int64_t o = 0; o < w->outer; o++) {
    for (int64_t c = 0; c < w->columns; c++) {
      for (int64_t i = 0; i < w->inner; i++) {
        int64_t e = (o * w->columns + c) * w->inner + i;
        bool keeps = naive_rank(w, p.m, o, c, i) < p.n;
        assert_int_equal(mask[e], keeps);
        kept += keeps ? score(w, e) : 0;
        total += score(w, e);
        zeros += distance(w, e) == 0;
      }
    }
  }
  assert_int_equal(mask[n], 0xEE);
  assert_int_equal(stats.n_elements, n);
  assert_int_equal(stats.n_zeros, zeros);
  assert_true(fabs(stats.kept - kept) <= 1e-9 * (1 + kept) &&
              fabs(stats.total - total) <= 1e-9 * (1 + total));
  laci_mask_apply(w, mask, bytes);
  laci_mask_stats after;
  assert_int_equal(laci_mask_measure(w, p, pool, &after, &err), LAC_OK);
  assert_true(after.holds_pattern);
  assert_true(fabs(after.total - kept) <= 1e-9 * (1 + kept));
}

static int64_t pick(uint64_t seed, int what, int64_t n) {
  return (int64_t)laci_rng_integer_below(seed, 100, (uint64_t)what, (uint64_t)n);
}

static void follows_the_definition_on_random_weights(void **state) {
  (void)state;
  static const lac_dtype types[] = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_F64,
                                    LAC_DTYPE_I8,  LAC_DTYPE_U8,  LAC_DTYPE_I32};
  static const int64_t inners[] = {1, 1, 9, 3, 49, 1200};
  laci_pool *pool = NULL;
  assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
  for (uint64_t seed = 0; seed < 400; seed++) {
    double scale[8], zero[8];
    laci_weight_view w = {.name = "w", .bytes = bytes, .dtype = types[pick(seed, 0, 7)]};
    laci_pattern p = {2, 4};
    if (pick(seed, 1, 2))
      p.m = 2 + (int)pick(seed, 2, pick(seed, 3, 4) ? 9 : 63),
      p.n = 1 + (int)pick(seed, 4, p.m - 1);
    w.inner = inners[pick(seed, 5, 6)];
    w.run = 1 + pick(seed, 6, 40);
    w.columns = w.run * (1 + pick(seed, 7, 3));
    w.outer = 1 + pick(seed, 8, 12);
    while (w.outer * w.columns * w.inner > MOST)
      w.outer > 1 ? (w.outer = 1) : (w.inner = w.inner / 2 + 1);
    if (w.outer * w.columns * w.inner > MOST) continue;
    bool is_float = w.dtype == LAC_DTYPE_F32 || w.dtype == LAC_DTYPE_F64 ||
                    w.dtype == LAC_DTYPE_F16 || w.dtype == LAC_DTYPE_BF16;
    if (pick(seed, 9, 3) == 0) {
      w.n_scales = 1 + pick(seed, 10, 8);
      w.scale_stride = 1 + pick(seed, 11, 20);
      w.scale = scale;
      w.zero = is_float ? NULL : zero;
      for (int k = 0; k < 8; k++)
        scale[k] = 0.5 * (double)pick(seed, 20 + k, 5) - 1, zero[k] = (double)pick(seed, 30 + k, 5);
    }
    w.squared = pick(seed, 12, 4) == 0;
    fill(w.dtype, w.outer * w.columns * w.inner, seed);
    if (w.n_scales) {
      bool has_zero_scale = false; /* all scores alike: nothing to learn from the weights left */
      for (int k = 0; k < w.n_scales; k++) has_zero_scale |= scale[k] == 0;
      if (has_zero_scale) continue;
    }
    expect_like_the_definition(&w, p, seed % 2 ? pool : NULL);
  }
  laci_pool_destroy(pool);
}

static laci_weight_view plain(const float *w, int64_t outer, int64_t columns) {
  return (laci_weight_view){.name = "conv1.weight",
                            .dtype = LAC_DTYPE_F32,
                            .bytes = (const uint8_t *)w,
                            .outer = outer,
                            .columns = columns,
                            .inner = 1,
                            .run = columns};
}

static void keeps_two_largest_of_four(void **state) {
  (void)state;
  const float w[8] = {1, -4, 3, 2, 0.5F, 0.25F, -0.75F, 0};
  const uint8_t want[8] = {0, 1, 1, 0, 1, 0, 1, 0};
  laci_weight_view view = plain(w, 2, 4);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
  assert_memory_equal(mask, want, 8);
}

static void ties_keep_the_lowest_column(void **state) {
  (void)state;
  const float w[8] = {1, -1, 1, 1, 0, -0.0F, 0, 0};
  const uint8_t want[8] = {1, 1, 0, 0, 1, 1, 0, 0};
  laci_weight_view view = plain(w, 2, 4);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
  assert_memory_equal(mask, want, 8);
}

static void partial_blocks_are_masked_as_if_padded_with_zeros(void **state) {
  (void)state;
  const float w[7] = {4, 3, 2, 1, 1, 2, 3};
  const uint8_t want[7] = {1, 1, 0, 0, 0, 1, 1};
  laci_weight_view view = plain(w, 1, 7);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
  assert_memory_equal(mask, want, 7);
  view = plain(w, 7, 1); /* one column: a block of its own, and nothing goes */
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
  for (int i = 0; i < 7; i++) assert_int_equal(mask[i], 1);
}

static void blocks_do_not_cross_runs(void **state) {
  (void)state;
  const float w[6] = {1, 2, 3, 4, 5, 6};
  const uint8_t want[6] = {0, 1, 1, 0, 1, 1};
  laci_weight_view view = plain(w, 1, 6);
  view.run = 3;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
  assert_memory_equal(mask, want, 6);
}

static void an_empty_weight_holds_every_pattern(void **state) {
  (void)state;
  laci_weight_view view = plain(NULL, 0, 4);
  laci_mask_stats stats;
  assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, NULL, &stats, NULL), LAC_OK);
  assert_true(stats.holds_pattern && stats.n_elements == 0);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_OK);
}

static void names_the_first_element_that_is_no_number(void **state) {
  (void)state;
  static float w[4000];
  lac_error err = {0};
  laci_mask_stats stats;
  laci_weight_view view = plain(w, 40, 100);
  w[3999] = -INFINITY;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err), LAC_BAD_VALUE);
  assert_string_equal(err.text, "conv1.weight[3999]: found -inf, wanted a finite number");
  w[17] = NAN;
  assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, NULL, &stats, &err),
                   LAC_BAD_VALUE);
  assert_string_equal(err.text, "conv1.weight[17]: found NaN, wanted a finite number");
  const uint16_t halves[3] = {0, 0x7BFF, 0x7C00};
  assert_int_equal(laci_find_first_not_finite(LAC_DTYPE_F16, (const uint8_t *)halves, 3), 2);
  assert_int_equal(laci_find_first_not_finite(LAC_DTYPE_F16, (const uint8_t *)halves, 2), -1);
  assert_int_equal(laci_find_first_not_finite(LAC_DTYPE_I8, (const uint8_t *)halves, 6), -1);
}

static void refuses_what_makes_no_sense(void **state) {
  (void)state;
  const float w[8] = {0};
  const double bad = NAN, one = 1;
  static const laci_pattern patterns[] = {{0, 4}, {4, 4}, {5, 4}, {1, 65}, {-1, 2}};
  lac_error err = {0};
  laci_weight_view view = plain(w, 2, 4);
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    assert_int_equal(laci_mask_choose(&view, patterns[i], NULL, mask, &err), LAC_BAD_ARGUMENT);
  }
  view.run = 3;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "conv1.weight: 4 columns, not a multiple of the run of 3");
  view = plain(w, INT64_MAX / 2, 4);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err), LAC_BAD_SHAPE);
  view = plain(w, 2, 4);
  view.dtype = LAC_DTYPE_TEXT;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err),
                   LAC_UNSUPPORTED);
  view = plain(w, 2, 4);
  view.n_scales = view.scale_stride = 1;
  view.scale = &bad;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err), LAC_BAD_VALUE);
  view.scale = NULL;
  view.zero = &one;
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, &err),
                   LAC_UNSUPPORTED);
}

static void measures_the_same_bits_on_any_number_of_threads(void **state) {
  (void)state;
  static float w[300 * 1000];
  laci_mask_stats one, more;
  for (int i = 0; i < 300 * 1000; i++)
    w[i] = (float)(laci_rng_unit_interval(3, 0, (uint64_t)i) - 0.5);
  laci_weight_view view = plain(w, 300, 1000);
  assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, NULL, &one, NULL), LAC_OK);
  for (int threads = 2; threads <= 4; threads++) {
    laci_pool *pool = NULL;
    assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
    assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, pool, &more, NULL), LAC_OK);
    assert_memory_equal(&one.kept, &more.kept, sizeof one.kept);
    assert_memory_equal(&one.total, &more.total, sizeof one.total);
    laci_pool_destroy(pool);
  }
}

static void says_when_there_is_no_memory(void **state) {
  (void)state;
  const float w[8] = {1, 2, 3, 4};
  laci_mask_stats stats;
  laci_weight_view view = plain(w, 2, 4);
  for (int at = 1; at <= 2; at++) {
    laci_memory_fail_from(at);
    assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, NULL, &stats, NULL),
                     LAC_NO_MEMORY);
  }
  laci_memory_fail_from(1);
  assert_int_equal(laci_mask_choose(&view, (laci_pattern){2, 4}, NULL, mask, NULL), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_two_largest_of_four),
      cmocka_unit_test(ties_keep_the_lowest_column),
      cmocka_unit_test(partial_blocks_are_masked_as_if_padded_with_zeros),
      cmocka_unit_test(blocks_do_not_cross_runs),
      cmocka_unit_test(an_empty_weight_holds_every_pattern),
      cmocka_unit_test(follows_the_definition_on_random_weights),
      cmocka_unit_test(names_the_first_element_that_is_no_number),
      cmocka_unit_test(refuses_what_makes_no_sense),
      cmocka_unit_test(measures_the_same_bits_on_any_number_of_threads),
      cmocka_unit_test(says_when_there_is_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

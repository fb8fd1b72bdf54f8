/* SPDX-License-Identifier: Apache-2.0
 * kernel/attention: every variant against sums in double, for odd sizes, rows with a distance,
 * masks of every stride, f32 and bf16; nothing is written outside of the results. */
#include "kernel/attention/attention.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "tensor/bf16.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 1 << 16 };

static float q[MOST], k[MOST], v[MOST], mask[MOST], want[MOST];
static uint16_t stored[3][MOST];
static uint8_t out[4 * MOST];

static void draw(uint64_t seed, uint64_t stream, float *to, uint16_t *as_stored) {
  for (size_t i = 0; i < MOST; i++) {
    uint32_t bits;
    float x = (float)laci_rng_integer_below(seed, stream, i, 2001) / 500 - 2;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xFFFF0000U; /* bf16 holds it */
    memcpy(&to[i], &bits, sizeof bits);
    as_stored[i] = (uint16_t)(bits >> 16);
  }
}

/** want = softmax(scale * q k' + mask) v, in double. */
static void define(const laci_attention *a, const float *m) {
  for (int64_t i = 0; i < a->n_queries; i++) {
    double s[1024], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->n_keys; j++) {
      s[j] = 0;
      for (int64_t d = 0; d < a->depth; d++) {
        s[j] += (double)q[i * a->q_row + d] * (double)k[j * a->k_row + d];
      }
      s[j] = s[j] * (double)a->scale;
      if (m) s[j] += (double)m[i * a->mask_row + j * a->mask_column];
      if (s[j] > most) most = s[j];
    }
    for (int64_t j = 0; j < a->n_keys; j++) sum += s[j] = exp(s[j] - most);
    for (int64_t c = 0; c < a->width; c++) {
      double y = 0;
      for (int64_t j = 0; j < a->n_keys; j++) y += s[j] / sum * (double)v[j * a->v_row + c];
      want[i * a->width + c] = isnan(y) && a->zero_nan ? 0 : (float)y;
    }
  }
}

static void expect(laci_attend *attend, const laci_attention *a, const float *m) {
  size_t bytes = laci_attention_scratch_bytes(a);
  void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
  assert_non_null(scratch);
  memset(out, 0x5A, sizeof out);
  const laci_attention_head head = {.q = a->bf16 ? (void *)stored[0] : (void *)q,
                                    .k = a->bf16 ? (void *)stored[1] : (void *)k,
                                    .v = a->bf16 ? (void *)stored[2] : (void *)v,
                                    .mask = m,
                                    .y = out,
                                    .scratch = scratch};
  bool any_nan = false;
  for (int64_t at = 0; at < a->n_queries * a->width; at++) any_nan = any_nan || isnan(want[at]);
  assert_int_equal(attend(a, &head), !any_nan);
  double tolerance = a->bf16 ? 0.03 : 2e-5;
  for (int64_t i = 0; i < a->n_queries; i++) {
    for (int64_t c = 0; c < a->y_row; c++) {
      int64_t at = i * a->y_row + c;
      float got =
          a->bf16 ? laci_bf16_value(((uint16_t *)(void *)out)[at]) : ((float *)(void *)out)[at];
      float wanted = c < a->width ? want[i * a->width + c] : 0;
      if (c >= a->width && a->bf16) assert_int_equal(((uint16_t *)(void *)out)[at], 0x5A5A);
      else if (c >= a->width) assert_int_equal(((uint32_t *)(void *)out)[at], 0x5A5A5A5A);
      else if (isnan(wanted)) assert_true(isnan(got));
      else if (!(fabs((double)got - (double)wanted) <= tolerance)) {
        fail_msg("query %d, column %d: got %g, want %g", (int)i, (int)c, (double)got,
                 (double)wanted);
      }
    }
  }
  free(scratch);
}

static void every_variant(laci_attention a, const float *m) {
  laci_cpu_level start = laci_cpu_level_in_force();
  define(&a, m);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int bf16 = 0; bf16 < 2; bf16++) {
      a.bf16 = bf16 != 0;
      expect(laci_attend_variant(a.bf16), &a, m);
    }
  }
  laci_cpu_limit_level(start);
}

static laci_attention sized(int64_t n_queries, int64_t n_keys, int64_t depth, int64_t width) {
  return (laci_attention){.n_queries = n_queries,
                          .n_keys = n_keys,
                          .depth = depth,
                          .width = width,
                          .q_row = depth + 3,
                          .k_row = depth,
                          .v_row = width + 1,
                          .y_row = width + 2,
                          .scale = 0.3f};
}

static void agrees_for_sizes_of_every_kind(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{1, 1, 1, 1},    {5, 3, 2, 7},     {6, 16, 8, 16},
                                     {7, 65, 33, 65}, {13, 64, 64, 64}, {2, 197, 64, 64},
                                     {31, 130, 5, 1}, {12, 17, 16, 48}};
  for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    draw(at, 0, q, stored[0]);
    draw(at, 1, k, stored[1]);
    draw(at, 2, v, stored[2]);
    every_variant(sized(sizes[at][0], sizes[at][1], sizes[at][2], sizes[at][3]), NULL);
  }
}

static void adds_masks_along_either_axis(void **state) {
  (void)state;
  static const int64_t strides[][2] = {{0, 0}, {0, 1}, {1, 0}, {23, 1}, {40, 2}};
  for (size_t at = 0; at < MOST; at++) mask[at] = (float)(at * 7 % 11) / 4 - 1;
  for (size_t at = 0; at < sizeof strides / sizeof *strides; at++) {
    laci_attention a = sized(9, 19, 6, 5);
    a.mask_row = strides[at][0];
    a.mask_column = strides[at][1];
    every_variant(a, mask);
  }
}

static void gives_rows_without_keys_nan_or_zeros(void **state) {
  (void)state;
  for (int zeros = 0; zeros < 2; zeros++) {
    laci_attention a = sized(8, 21, 4, 3);
    a.mask_row = 21;
    a.mask_column = 1;
    a.zero_nan = zeros != 0;
    for (int64_t at = 0; at < 8 * 21; at++) {
      mask[at] = at / 21 == 5 || at % 3 == 0 ? -INFINITY : 0;
    }
    every_variant(a, mask);
  }
}

static void says_that_a_mask_makes_nan_of_a_row(void **state) {
  (void)state;
  static const float odd[] = {NAN, INFINITY};
  for (int64_t at = 0; at < 8 * 21; at++) mask[at] = 0;
  for (int which = 0; which < 2; which++) {
    for (int64_t at = 0; at < 21; at += 10) {
      laci_attention a = sized(8, 21, 4, 3);
      a.mask_row = 21;
      a.mask_column = 1;
      mask[7 * 21 + at] = odd[which];
      every_variant(a, mask);
      mask[7 * 21 + at] = 0;
    }
  }
}

static void keeps_scores_far_apart(void **state) {
  (void)state; /* the smaller exponentials are nothing, and none overflows */
  laci_attention a = sized(7, 33, 16, 8);
  a.scale = 40;
  every_variant(a, NULL);
}

static void refuses_sizes_that_cannot_be_counted(void **state) {
  (void)state;
  laci_attention a = sized(1, (int64_t)1 << 40, 1, 1);
  assert_int_equal(laci_attention_scratch_bytes(&a), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_for_sizes_of_every_kind),
      cmocka_unit_test(adds_masks_along_either_axis),
      cmocka_unit_test(gives_rows_without_keys_nan_or_zeros),
      cmocka_unit_test(says_that_a_mask_makes_nan_of_a_row),
      cmocka_unit_test(keeps_scores_far_apart),
      cmocka_unit_test(refuses_sizes_that_cannot_be_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

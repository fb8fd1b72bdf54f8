/* SPDX-License-Identifier: Apache-2.0
 * lac_mask_*: masks for a caller's own loop, made of weights, of zeros and of a pruned model. */
#include "lacuna/mask.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/report.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static const float values[8] = {1, -4, 3, 2, 0, 5, 5, 5};

static lac_mask *one_mask(void) {
  lac_mask *mask = NULL;
  lac_mask_weight weight = {.size = sizeof(lac_mask_weight),
                            .name = "w",
                            .dtype = LAC_DTYPE_F32,
                            .rank = 2,
                            .shape = {2, 4},
                            .c_axis = 1,
                            .values = values};
  assert_int_equal(lac_mask_create(&mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_add(mask, &weight, 2, 4, NULL), LAC_OK);
  return mask;
}

static void the_largest_of_every_group_are_kept(void **state) {
  (void)state;
  static const uint8_t want[8] = {0, 1, 1, 0, 0, 1, 1, 0};
  lac_mask *mask = one_mask();
  const uint8_t *bytes;
  size_t n;
  assert_int_equal(lac_mask_bytes(mask, "w", &bytes, &n, NULL), LAC_OK);
  assert_int_equal(n, 8);
  assert_memory_equal(bytes, want, 8);
  assert_int_equal(lac_mask_count(mask), 1);
  assert_string_equal(lac_mask_name(mask, 0), "w");
  assert_int_equal(lac_mask_bytes(mask, "x", &bytes, &n, NULL), LAC_NOT_FOUND);
  lac_mask_destroy(mask);
}

static void the_other_axis_can_hold_the_groups(void **state) {
  (void)state;
  static const uint8_t want[8] = {1, 0, 0, 0, 0, 1, 1, 1};
  lac_mask *mask = one_mask();
  lac_mask_weight weight = {.size = sizeof(lac_mask_weight),
                            .name = "v",
                            .dtype = LAC_DTYPE_F32,
                            .rank = 2,
                            .shape = {2, 4},
                            .c_axis = 0,
                            .values = values};
  const uint8_t *bytes;
  size_t n;
  assert_int_equal(lac_mask_add(mask, &weight, 1, 2, NULL), LAC_OK);
  assert_int_equal(lac_mask_bytes(mask, "v", &bytes, &n, NULL), LAC_OK);
  assert_memory_equal(bytes, want, 8);
  lac_mask_destroy(mask);
}

static void buffers_of_any_type_are_masked(void **state) {
  (void)state;
  lac_mask *mask = one_mask();
  float f[8];
  double d[8];
  uint16_t h[8];
  for (int k = 0; k < 8; k++) f[k] = NAN, d[k] = k + 1, h[k] = 0x7E00;
  assert_int_equal(lac_mask_apply(mask, "w", LAC_DTYPE_F32, f, 8, NULL), LAC_OK);
  assert_int_equal(lac_mask_apply(mask, "w", LAC_DTYPE_F64, d, 8, NULL), LAC_OK);
  assert_int_equal(lac_mask_apply(mask, "w", LAC_DTYPE_BF16, h, 8, NULL), LAC_OK);
  for (int k = 0; k < 8; k++) {
    bool kept = k % 4 == 1 || k % 4 == 2;
    assert_true(kept ? isnan(f[k]) : f[k] == 0);
    assert_true(d[k] == (kept ? k + 1 : 0));
    assert_int_equal(h[k], kept ? 0x7E00 : 0);
  }
  d[0] = 9;
  assert_int_equal(lac_mask_apply(mask, "other", LAC_DTYPE_F64, d, 3, NULL), LAC_OK);
  assert_true(d[0] == 9);
  assert_int_equal(lac_mask_apply(mask, "w", LAC_DTYPE_F32, f, 7, NULL), LAC_BAD_SHAPE);
  lac_mask_destroy(mask);
}

static void zeros_can_be_frozen(void **state) {
  (void)state;
  static const float x[6] = {0, -0.0F, 1e-45F, 2, 0, -1};
  static const uint8_t want[6] = {0, 0, 1, 1, 0, 1};
  lac_mask *mask = one_mask();
  lac_mask_weight weight = {.size = sizeof(lac_mask_weight),
                            .name = "x",
                            .dtype = LAC_DTYPE_F32,
                            .rank = 1,
                            .shape = {6},
                            .values = x};
  const uint8_t *bytes;
  size_t n;
  assert_int_equal(lac_mask_add_zeros(mask, &weight, NULL), LAC_OK);
  assert_int_equal(lac_mask_bytes(mask, "x", &bytes, &n, NULL), LAC_OK);
  assert_memory_equal(bytes, want, 6);
  lac_mask_destroy(mask);
}

static void a_pruned_model_has_the_masks_of_its_report(void **state) {
  (void)state;
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_mask *mask = NULL;
  lac_options options = lac_options_default();
  options.permute = false;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  assert_int_equal(lac_mask_from_model(model, &options, &mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_count(mask), 0);
  lac_mask_destroy(mask);
  assert_int_equal(lac_prune(model, &options, &report, NULL), LAC_OK);
  assert_int_equal(lac_mask_from_model(model, &options, &mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_count(mask), report->summary.pruned);
  for (int k = 0; k < lac_mask_count(mask); k++) {
    const uint8_t *bytes;
    static uint8_t want[1 << 16];
    size_t n;
    assert_int_equal(lac_mask_bytes(mask, lac_mask_name(mask, k), &bytes, &n, NULL), LAC_OK);
    assert_true(n <= sizeof want);
    assert_int_equal(lac_report_mask(report, lac_mask_name(mask, k), want, n, NULL), LAC_OK);
    assert_memory_equal(bytes, want, n);
  }
  lac_mask_destroy(mask);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void misuse_is_refused(void **state) {
  (void)state;
  static const float bad[2] = {1, (float)INFINITY};
  lac_mask *mask = one_mask();
  const lac_mask_weight good = {.size = sizeof(lac_mask_weight),
                                .name = "a",
                                .dtype = LAC_DTYPE_F32,
                                .rank = 1,
                                .shape = {2},
                                .values = values};
  lac_mask_weight w = good;
  assert_int_equal(lac_mask_add(mask, &w, 4, 4, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_add(mask, &w, 0, 4, NULL), LAC_BAD_ARGUMENT);
  w.name = "w";
  assert_int_equal(lac_mask_add(mask, &w, 2, 4, NULL), LAC_EXISTS);
  w = good, w.c_axis = 1;
  assert_int_equal(lac_mask_add(mask, &w, 2, 4, NULL), LAC_BAD_SHAPE);
  w = good, w.shape[0] = -2;
  assert_int_equal(lac_mask_add(mask, &w, 2, 4, NULL), LAC_BAD_SHAPE);
  w = good, w.dtype = LAC_DTYPE_I32;
  assert_int_equal(lac_mask_add(mask, &w, 2, 4, NULL), LAC_UNSUPPORTED);
  w = good, w.values = bad;
  assert_int_equal(lac_mask_add(mask, &w, 2, 4, NULL), LAC_BAD_VALUE);
  assert_int_equal(lac_mask_add_zeros(mask, &w, NULL), LAC_BAD_VALUE);
  w = good, w.values = NULL;
  assert_int_equal(lac_mask_add_zeros(mask, &w, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_count(mask), 1);
  for (long n = 1; n < 8; n++) {
    laci_memory_fail_from(n);
    lac_status st = lac_mask_add(mask, &good, 1, 2, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
    if (!st) break;
  }
  assert_int_equal(lac_mask_count(mask), 2);
  lac_mask_destroy(mask);
}

static void what_is_not_there_is_an_error_and_no_crash(void **state) {
  (void)state;
  lac_mask *mask = NULL;
  lac_options o = lac_options_default();
  const uint8_t *bytes;
  size_t count;
  float w[2] = {1, 2};
  assert_int_equal(lac_mask_create(NULL, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_from_model(NULL, &o, &mask, NULL), LAC_BAD_ARGUMENT);
  assert_null(mask);
  assert_int_equal(lac_mask_count(NULL), 0);
  assert_null(lac_mask_name(NULL, 0));
  assert_int_equal(lac_mask_bytes(NULL, "w", &bytes, &count, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_apply(NULL, "w", LAC_DTYPE_F32, w, 2, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_add(NULL, NULL, 2, 4, NULL), LAC_BAD_ARGUMENT);
  mask = one_mask();
  assert_non_null(lac_mask_name(mask, 0));
  assert_null(lac_mask_name(mask, 1));
  assert_null(lac_mask_name(mask, -1));
  assert_int_equal(lac_mask_bytes(mask, NULL, &bytes, &count, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_bytes(mask, "w", NULL, &count, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_bytes(mask, "w", &bytes, NULL, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_apply(mask, NULL, LAC_DTYPE_F32, w, 2, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_apply(mask, "w", LAC_DTYPE_F32, NULL, 2, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_add(mask, NULL, 2, 4, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_mask_add_zeros(mask, NULL, NULL), LAC_BAD_ARGUMENT);
  lac_mask_destroy(mask);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_largest_of_every_group_are_kept),
      cmocka_unit_test(the_other_axis_can_hold_the_groups),
      cmocka_unit_test(buffers_of_any_type_are_masked),
      cmocka_unit_test(zeros_can_be_frozen),
      cmocka_unit_test(a_pruned_model_has_the_masks_of_its_report),
      cmocka_unit_test(misuse_is_refused),
      cmocka_unit_test(what_is_not_there_is_an_error_and_no_crash),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

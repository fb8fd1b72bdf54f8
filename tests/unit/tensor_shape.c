/* SPDX-License-Identifier: Apache-2.0
 * Shapes and element types: counting without overflow, symbols, texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tensor/shape.h"

static void counts_elements_or_says_unknown(void **state) {
  (void)state;
  static const struct {
    laci_shape shape;
    int64_t count;
  } cases[] = {
      {{.rank = 0}, 1},
      {{.rank = 3, .dims = {2, 3, 4}}, 24},
      {{.rank = 2, .dims = {2, -5}}, -1},
      {{.rank = -1}, -1},
      {{.rank = 2, .dims = {INT64_MAX, 2}}, -1},
      {{.rank = 3, .dims = {INT64_MAX, 2, 0}}, 0}, /* empty, however large the rest says it is */
      {{.rank = 2, .dims = {0, -1}}, -1},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    assert_int_equal(laci_shape_count(&cases[at].shape), cases[at].count);
  }
  laci_shape part = {.rank = 3, .dims = {-1, 3, 4}};
  assert_int_equal(laci_shape_count_range(&part, 1, 3), 12);
  assert_int_equal(laci_shape_count_range(&part, 2, 2), 1);
}

static void symbols_go_from_sizes_to_elements_and_back(void **state) {
  (void)state;
  for (int64_t size = -3; size <= 3; size++) {
    int64_t element = laci_element_from_size(size);
    assert_int_equal(laci_is_symbol(element), size < 0);
    assert_int_equal(laci_size_from_element(element), size);
  }
  assert_false(laci_is_symbol(-1));
  assert_false(laci_is_symbol(INT64_MIN));
  assert_false(laci_is_symbol(INT64_MAX));
}

static void shapes_are_compared_axis_by_axis(void **state) {
  (void)state;
  laci_shape a = laci_shape_of(2, (int64_t[]){2, -1}), b = a;
  assert_true(laci_shape_equal(&a, &b));
  assert_false(laci_shape_is_known(&a));
  b.dims[1] = -2;
  assert_false(laci_shape_equal(&a, &b));
  assert_int_equal(laci_shape_of(LACI_MAX_RANK + 1, (int64_t[LACI_MAX_RANK + 1]){0}).rank, -1);
}

static void texts_fit_into_what_is_given(void **state) {
  (void)state;
  char text[64], little[6];
  laci_shape shape = {.rank = 4, .dims = {64, 3, -1, 7}}, scalar = {.rank = 0},
             none = laci_shape_unknown();
  assert_string_equal(laci_shape_text(&shape, text, sizeof text), "[64, 3, ?, 7]");
  assert_string_equal(laci_shape_text(&scalar, text, sizeof text), "[]");
  assert_string_equal(laci_shape_text(&none, text, sizeof text), "[unknown rank]");
  assert_string_equal(laci_shape_text(&shape, little, sizeof little), "[64, ");
}

static void element_types_have_names_and_sizes(void **state) {
  (void)state;
  assert_string_equal(lac_dtype_name(LAC_DTYPE_BF16), "bf16");
  assert_string_equal(lac_dtype_name((lac_dtype)99), "unknown");
  assert_int_equal(lac_dtype_size(LAC_DTYPE_F16), 2);
  assert_int_equal(lac_dtype_size(LAC_DTYPE_I64), 8);
  assert_int_equal(lac_dtype_size(LAC_DTYPE_U4), 1);
  assert_int_equal(lac_dtype_size(LAC_DTYPE_TEXT), 0);
  assert_int_equal(laci_dtype_bits(LAC_DTYPE_U4), 4);
  assert_int_equal(laci_dtype_bits(LAC_DTYPE_I2), 2);
  assert_int_equal(laci_dtype_bits(LAC_DTYPE_F64), 64);
  assert_int_equal(laci_dtype_bits(LAC_DTYPE_TEXT), 0);
  assert_int_equal(lac_dtype_size((lac_dtype)99), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_elements_or_says_unknown),
      cmocka_unit_test(symbols_go_from_sizes_to_elements_and_back),
      cmocka_unit_test(shapes_are_compared_axis_by_axis),
      cmocka_unit_test(texts_fit_into_what_is_given),
      cmocka_unit_test(element_types_have_names_and_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Exact tensors: reading stored bytes of every type, at any address; conversions without undefined
 * behaviour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/to_int.h"
#include "tensor/buf.h"

static void half_precision_is_read_exactly(void **state) {
  (void)state;
  static const struct {
    uint16_t bits;
    double value;
  } cases[] = {
      {0x0000, 0},          {0x3c00, 1},           {0xc000, -2},
      {0x7bff, 65504}, /* the largest */
      {0x0001, 0x1p-24},    {0x03ff, 0x1.ff8p-15}, {0x0400, 0x1p-14},
      {0x3555, 0x1.554p-2}, {0x7c00, INFINITY},    {0xfc00, -INFINITY},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    double got;
    laci_read_f64(LAC_DTYPE_F16, &cases[at].bits, 0, 1, &got);
    assert_true(got == cases[at].value);
  }
  uint16_t nan_bits = 0x7e01;
  double got;
  laci_read_f64(LAC_DTYPE_F16, &nan_bits, 0, 1, &got);
  assert_true(isnan(got));
}

static void brain_floats_are_the_upper_half_of_floats(void **state) {
  (void)state;
  uint16_t bits[2] = {0x3f80, 0xc049};
  double got[2];
  float magnitude[2];
  laci_read_f64(LAC_DTYPE_BF16, bits, 0, 2, got);
  assert_true(got[0] == 1 && got[1] == -3.140625);
  laci_read_abs_f32(LAC_DTYPE_BF16, bits, 0, 2, magnitude);
  assert_true(magnitude[1] == 3.140625f);
}

static void every_integer_type_is_read_with_its_sign(void **state) {
  (void)state;
  static const struct {
    lac_dtype dtype;
    int64_t value;
    float magnitude;
  } cases[] = {{LAC_DTYPE_U8, 255, 255},
               {LAC_DTYPE_I8, -1, 1},
               {LAC_DTYPE_U16, 65535, 65535},
               {LAC_DTYPE_I16, -1, 1},
               {LAC_DTYPE_I32, -1, 1},
               {LAC_DTYPE_I64, -1, 1},
               {LAC_DTYPE_BOOL, 1, 1},
               {LAC_DTYPE_U32, 4294967295, 4294967296.0f},
               {LAC_DTYPE_U64, -1, 18446744073709551616.0f}};
  uint8_t bytes[17];
  memset(bytes, 0xff, sizeof bytes);
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    int64_t got;
    float magnitude;
    laci_read_i64(cases[at].dtype, bytes + 1, 1, 1, &got); /* odd address, second element */
    assert_int_equal(got, cases[at].value);
    laci_read_abs_f32(cases[at].dtype, bytes + 1, 1, 1, &magnitude);
    assert_true(magnitude == cases[at].magnitude);
    assert_true(laci_dtype_is_integer(cases[at].dtype) && !laci_dtype_is_float(cases[at].dtype));
  }
}

static void floats_become_integers_without_overflow(void **state) {
  (void)state;
  assert_int_equal(laci_clamp_to_int64(-1.9), -1);
  assert_int_equal(laci_clamp_to_int64(1e30), INT64_MAX);
  assert_int_equal(laci_clamp_to_int64(-INFINITY), INT64_MIN);
  assert_int_equal(laci_clamp_to_int64(NAN), 0);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_I8, 200), -56);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_U8, -1), 255);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_I16, 40000), -25536);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_U32, -1), 4294967295);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_I32, INT64_MAX), -1);
  assert_int_equal(laci_int_wrap(LAC_DTYPE_BOOL, -7), 1);
}

static void a_tensor_is_made_from_bytes_that_hold_it(void **state) {
  (void)state;
  float bytes[3] = {1, -2, 3};
  lac_error err = {0};
  laci_buf *buf = NULL;
  laci_type type = {.dtype = LAC_DTYPE_F32, .shape = {.rank = 1, .dims = {3}}};
  assert_int_equal(laci_buf_from_bytes(&type, bytes, sizeof bytes, &buf, &err), LAC_OK);
  assert_true(buf->f[1] == -2);
  assert_int_equal(laci_buf_get_i(buf, 2), 3);
  laci_buf_destroy(buf);
  type.shape.dims[0] = 4;
  assert_int_equal(laci_buf_from_bytes(&type, bytes, sizeof bytes, &buf, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "12 bytes do not hold f32 [4]");
  type.shape.dims[0] = INT64_MAX / 2;
  assert_int_equal(laci_buf_from_bytes(&type, bytes, sizeof bytes, &buf, &err), LAC_BAD_SHAPE);
  assert_null(buf);
}

static void what_cannot_be_computed_with_is_refused(void **state) {
  (void)state;
  lac_error err = {0};
  laci_buf *buf = NULL;
  laci_shape shape = {.rank = 1, .dims = {2}};
  assert_int_equal(laci_buf_create(LAC_DTYPE_TEXT, &shape, &buf, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "cannot compute with elements of type text");
  shape.dims[0] = -1;
  assert_int_equal(laci_buf_create(LAC_DTYPE_F32, &shape, &buf, &err), LAC_BAD_SHAPE);
  shape.dims[0] = INT64_MAX; /* too many to be counted in bytes */
  assert_int_equal(laci_buf_create(LAC_DTYPE_F32, &shape, &buf, &err), LAC_BAD_SHAPE);
  shape.dims[0] = (int64_t)1 << 56;
  assert_int_equal(laci_buf_create(LAC_DTYPE_F32, &shape, &buf, &err), LAC_NO_MEMORY);
  assert_null(buf);
  laci_buf_destroy(NULL);
}

static void a_number_that_does_not_fit_becomes_the_nearest_that_does(void **state) {
  (void)state;
  const struct {
    lac_dtype dtype;
    double x;
    int64_t cast, nearest;
  } cases[] = {
      {LAC_DTYPE_I64, 0x1p63, INT64_MAX, INT64_MAX},
      {LAC_DTYPE_I64, -0x1p63, INT64_MIN, INT64_MIN},
      {LAC_DTYPE_I64, -INFINITY, INT64_MIN, INT64_MIN},
      {LAC_DTYPE_I64, NAN, 0, 0},
      {LAC_DTYPE_I32, 3e9, INT32_MAX, INT32_MAX},
      {LAC_DTYPE_I32, -2147483648.9, INT32_MIN, INT32_MIN},
      {LAC_DTYPE_U64, 0x1p63, INT64_MIN, INT64_MIN}, /* the same bits */
      {LAC_DTYPE_U64, 1e30, -1, -1},
      {LAC_DTYPE_U64, -1, -1, 0},
      {LAC_DTYPE_U32, -1.5, UINT32_MAX, 0},
      {LAC_DTYPE_U32, 4294967295.5, UINT32_MAX, UINT32_MAX},
      {LAC_DTYPE_I8, 300, 44, 127},
      {LAC_DTYPE_I8, 1e30, 127, 127},
      {LAC_DTYPE_U8, -1, 255, 0},
      {LAC_DTYPE_U8, NAN, 0, 0},
      {LAC_DTYPE_U8, INFINITY, 255, 255},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    assert_true(laci_int_cast(cases[at].dtype, cases[at].x) == cases[at].cast);
    assert_true(laci_int_truncate(cases[at].dtype, cases[at].x) == cases[at].nearest);
  }
  assert_true(laci_int_cast(LAC_DTYPE_BOOL, NAN) == 1);
  assert_true(laci_clamp_to_uint64(0x1p64) == UINT64_MAX && laci_clamp_to_uint64(NAN) == 0);
  assert_true(laci_clamp_to_range(NAN, 3, 7) == 3 && laci_clamp_to_range(1e300, 3, 7) == 7);
}

static void the_upper_half_of_u64_is_large(void **state) {
  (void)state;
  assert_int_equal(laci_int_compare(LAC_DTYPE_U64, -1, 1), 1);
  assert_int_equal(laci_int_compare(LAC_DTYPE_I64, -1, 1), -1);
  assert_true(laci_int_to_double(LAC_DTYPE_U64, INT64_MIN) == 0x1p63);
  assert_true(laci_int_from_wide(LAC_DTYPE_U64, laci_int_to_wide(LAC_DTYPE_I64, -5)) == 0);
  assert_true(laci_int_from_wide(LAC_DTYPE_I64, laci_int_to_wide(LAC_DTYPE_U64, -5)) == INT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(half_precision_is_read_exactly),
      cmocka_unit_test(brain_floats_are_the_upper_half_of_floats),
      cmocka_unit_test(every_integer_type_is_read_with_its_sign),
      cmocka_unit_test(floats_become_integers_without_overflow),
      cmocka_unit_test(a_tensor_is_made_from_bytes_that_hold_it),
      cmocka_unit_test(what_cannot_be_computed_with_is_refused),
      cmocka_unit_test(a_number_that_does_not_fit_becomes_the_nearest_that_does),
      cmocka_unit_test(the_upper_half_of_u64_is_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Floats of 16 bits and fewer: each code is itself again, and a number between two goes to the
 * nearer one, or to the even one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/bf16.h"
#include "tensor/narrow.h"
#include "tensor/shape.h"

static const lac_dtype types[] = {LAC_DTYPE_F16,        LAC_DTYPE_BF16,   LAC_DTYPE_F8E4M3FN,
                                  LAC_DTYPE_F8E4M3FNUZ, LAC_DTYPE_F8E5M2, LAC_DTYPE_F8E5M2FNUZ,
                                  LAC_DTYPE_F4E2M1};
enum { N_TYPES = sizeof types / sizeof *types };

static void every_code_is_itself_again(void **state) {
  (void)state;
  for (int t = 0; t < N_TYPES; t++) {
    const unsigned n_codes = 1u << laci_dtype_bits(types[t]);
    for (unsigned code = 0; code < n_codes; code++) {
      const double x = laci_narrow_value(types[t], (uint16_t)code);
      const uint16_t back = laci_narrow_bits(types[t], x, isinf(x) ? LACI_ROUND_OVERFLOW : 0);
      if (isnan(x)) assert_true(isnan(laci_narrow_value(types[t], back)));
      else assert_int_equal(back, code);
    }
  }
}

/* Between two codes: the middle goes to the even one, a number next to it to the nearer. */
static void numbers_go_to_the_nearest_and_ties_to_even(void **state) {
  (void)state;
  for (int t = 0; t < N_TYPES; t++) {
    const unsigned n_codes = 1u << (laci_dtype_bits(types[t]) - 1);
    for (unsigned code = 0; code + 1 < n_codes; code++) {
      const double low = laci_narrow_value(types[t], (uint16_t)code);
      const double high = laci_narrow_value(types[t], (uint16_t)(code + 1));
      if (!isfinite(high) || !(high > low)) continue;
      const double middle = low + (high - low) / 2, little = (high - low) / 1024;
      assert_int_equal(laci_narrow_bits(types[t], middle, 0), code + code % 2);
      assert_int_equal(laci_narrow_bits(types[t], middle - little, 0), code);
      assert_int_equal(laci_narrow_bits(types[t], middle + little, 0), code + 1);
    }
  }
}

static void what_is_too_large_saturates_unless_it_may_not(void **state) {
  (void)state;
  static const struct {
    lac_dtype dtype;
    double x;
    uint16_t held, beyond;
  } cases[] = {
      {LAC_DTYPE_F8E4M3FN, 464, 0x7E, 0x7E},
      {LAC_DTYPE_F8E4M3FN, 465, 0x7E, 0x7F},
      {LAC_DTYPE_F8E4M3FN, -1e9, 0xFE, 0xFF},
      {LAC_DTYPE_F8E4M3FNUZ, 248, 0x7F, 0x80},
      {LAC_DTYPE_F8E4M3FNUZ, -1e9, 0xFF, 0x80},
      {LAC_DTYPE_F8E5M2, 61440, 0x7B, 0x7C},
      {LAC_DTYPE_F8E5M2, -INFINITY, 0xFB, 0xFC},
      {LAC_DTYPE_F8E5M2FNUZ, INFINITY, 0x7F, 0x80},
      {LAC_DTYPE_F4E2M1, 1e9, 7, 7},
      {LAC_DTYPE_F16, 65520, 0x7C00, 0x7C00},
      {LAC_DTYPE_F8E4M3FNUZ, -1e-9, 0, 0},
      {LAC_DTYPE_F8E4M3FN, -1e-9, 0x80, 0x80},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    assert_int_equal(laci_narrow_bits(cases[at].dtype, cases[at].x, 0), cases[at].held);
    assert_int_equal(laci_narrow_bits(cases[at].dtype, cases[at].x, LACI_ROUND_OVERFLOW),
                     cases[at].beyond);
  }
}

static void powers_of_two_have_a_direction(void **state) {
  (void)state;
  const lac_dtype power = LAC_DTYPE_F8E8M0;
  assert_int_equal(laci_narrow_bits(power, 1.01, 0), 128);
  assert_int_equal(laci_narrow_bits(power, 1.99, LACI_ROUND_DOWN), 127);
  assert_int_equal(laci_narrow_bits(power, 1.5, LACI_ROUND_NEAREST), 128);
  assert_int_equal(laci_narrow_bits(power, 1.49, LACI_ROUND_NEAREST), 127);
  assert_int_equal(laci_narrow_bits(power, 0, 0), 0);
  assert_int_equal(laci_narrow_bits(power, 0, LACI_ROUND_OVERFLOW), 255);
  assert_int_equal(laci_narrow_bits(power, 1e300, 0), 254);
  assert_int_equal(laci_narrow_bits(power, NAN, 0), 255);
  for (double x = -INFINITY; x != 0; x = x < 0 ? INFINITY : 0) {
    assert_int_equal(laci_narrow_bits(power, x, 0), 254);
    assert_int_equal(laci_narrow_bits(power, x, LACI_ROUND_NEAREST), 254);
    assert_int_equal(laci_narrow_bits(power, x, LACI_ROUND_OVERFLOW), 255);
  }
  assert_true(laci_narrow_value(power, 0) == 0x1p-127 && isnan(laci_narrow_value(power, 255)));
}

/* The quick implementations and the exact one, over bits of all kinds. */
static void vectors_round_as_the_table_does(void **state) {
  (void)state;
  for (uint32_t step = 0; step < 400000; step++) {
    uint32_t bits = step * 2654435761u;
    float x;
    memcpy(&x, &bits, sizeof x);
    const float half = laci_f16_nearest(x), brain = laci_bf16_value(laci_bf16_round(x));
    const double want = laci_float_round(LAC_DTYPE_F16, (double)x, 0);
    const double want_brain = laci_float_round(LAC_DTYPE_BF16, (double)x, 0);
    if (isnan(x)) assert_true(isnan(half) && isnan(want) && isnan(brain) && isnan(want_brain));
    else assert_true((double)half == want && (double)brain == want_brain);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_code_is_itself_again),
      cmocka_unit_test(numbers_go_to_the_nearest_and_ties_to_even),
      cmocka_unit_test(what_is_too_large_saturates_unless_it_may_not),
      cmocka_unit_test(powers_of_two_have_a_direction),
      cmocka_unit_test(vectors_round_as_the_table_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

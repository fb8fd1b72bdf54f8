/* SPDX-License-Identifier: Apache-2.0
 * jit/int8x8: all sets of eight columns that a row can keep; what is kept is taken once, and each
 * of the 36 pairs of 2:4 patterns by one term. */
#include "jit/int8x8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { INT8X4 = LACI_INT8X8_COLUMNS / 2, SETS = 1 << LACI_INT8X8_COLUMNS };

static unsigned columns_of(int number) {
  uint8_t columns[INT8X4];
  unsigned held = 0;
  laci_int8x8_columns_of_register(number, columns);
  for (int at = 0; at < INT8X4; at++) held |= 1U << columns[at];
  return held;
}

static void registers_hold_four_columns(void **state) {
  (void)state;
  for (int number = 0; number < LACI_INT8X8_REGISTERS; number++) {
    assert_int_equal(__builtin_popcount(columns_of(number)), INT8X4);
    const int of_b = __builtin_popcount(columns_of(number) >> INT8X4);
    if (number >= LACI_SPARSE_BLENDS) assert_int_equal(of_b, INT8X4 / 2);
  }
  assert_int_equal(columns_of(LACI_SPARSE_ALL_A), 0x0F);
  assert_int_equal(columns_of(LACI_SPARSE_ALL_B), 0xF0);
}

static void every_set_of_columns_is_taken_once(void **state) {
  laci_int8x8 int8x8;
  int pairs = 0;
  (void)state;
  laci_int8x8_init(&int8x8);
  for (unsigned set = 1; set < SETS; set++) {
    uint32_t kept[LACI_INT8X8_COLUMNS], rows[LACI_INT8X8_REGISTERS];
    const int of_a = __builtin_popcount(set & 0x0F), of_b = __builtin_popcount(set >> INT8X4);
    unsigned taken = 0;
    int n = 0;
    for (int column = 0; column < LACI_INT8X8_COLUMNS; column++) {
      kept[column] = (set >> column & 1) << 17; /* row 17 */
    }
    laci_int8x8_find_rows(&int8x8, kept, rows);
    for (int number = 0; number < LACI_INT8X8_REGISTERS; number++) {
      if (!rows[number]) continue;
      assert_int_equal(rows[number], 1U << 17);
      assert_int_equal(taken & columns_of(number), 0);
      taken |= columns_of(number);
      n++;
    }
    assert_int_equal(set & ~taken, 0);
    assert_true(n == 1 || (n == 2 && (of_a > 2 || of_b > 2)));
    if (of_a == 2 && of_b == 2) pairs++;
  }
  assert_int_equal(pairs, 36);
}

/* Rows of all sets at once: each has its terms, whatever the others keep. */
static void rows_do_not_disturb_each_other(void **state) {
  laci_int8x8 int8x8;
  uint32_t kept[LACI_INT8X8_COLUMNS] = {0}, rows[LACI_INT8X8_REGISTERS];
  (void)state;
  laci_int8x8_init(&int8x8);
  for (unsigned row = 0; row < 24; row++) {
    const unsigned set = 77 * row % SETS;
    for (int column = 0; column < LACI_INT8X8_COLUMNS; column++) {
      kept[column] |= (set >> column & 1U) << row;
    }
  }
  laci_int8x8_find_rows(&int8x8, kept, rows);
  for (unsigned row = 0; row < 24; row++) {
    unsigned taken = 0;
    for (int number = 0; number < LACI_INT8X8_REGISTERS; number++) {
      if (rows[number] >> row & 1) taken |= columns_of(number);
    }
    assert_int_equal(77 * row % SETS & ~taken, 0);
    assert_int_equal(taken != 0, 77 * row % SETS != 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registers_hold_four_columns),
      cmocka_unit_test(every_set_of_columns_is_taken_once),
      cmocka_unit_test(rows_do_not_disturb_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

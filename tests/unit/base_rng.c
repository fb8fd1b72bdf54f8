/* SPDX-License-Identifier: Apache-2.0
 * base/rng: the published known answers of Philox4x32-10, and that derived numbers stay where they
 * belong. */
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gives_the_published_blocks(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t out[4];
    laci_rng_block(cases[i].counter, cases[i].key, out);
    for (int k = 0; k < 4; k++) assert_int_equal(out[k], cases[i].want[k]);
  }
}

static void seeds_streams_and_counters_all_matter(void **state) {
  (void)state;
  uint64_t base = laci_rng(1, 2, 3);
  assert_int_equal(base, laci_rng(1, 2, 3));
  assert_true(base != laci_rng(2, 2, 3) && base != laci_rng(1, 3, 3) && base != laci_rng(1, 2, 4));
  assert_true(base != laci_rng(UINT64_C(1) << 32 | 1, 2, 3) &&
              base != laci_rng(1, UINT64_C(1) << 32 | 2, 3));
}

static void bounded_numbers_reach_every_value_and_no_other(void **state) {
  (void)state;
  int seen[7] = {0};
  for (uint64_t i = 0; i < 7000; i++) {
    uint64_t x = laci_rng_integer_below(5, 0, i, 7);
    assert_true(x < 7);
    seen[x]++;
  }
  for (int i = 0; i < 7; i++) assert_in_range(seen[i], 850, 1150);
  for (uint64_t i = 0; i < 100; i++) {
    uint64_t n = UINT64_C(0x8000000000000001);
    assert_true(laci_rng_integer_below(5, 1, i, n) < n);
    assert_int_equal(laci_rng_integer_below(5, 1, i, 1), 0);
  }
}

static void unit_numbers_have_the_mean_of_a_uniform_one(void **state) {
  (void)state;
  double sum = 0;
  for (uint64_t i = 0; i < 10000; i++) {
    double x = laci_rng_unit_interval(9, 0, i);
    assert_true(x >= 0 && x < 1);
    sum += x;
  }
  assert_true(sum / 10000 > 0.49 && sum / 10000 < 0.51);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_the_published_blocks),
      cmocka_unit_test(seeds_streams_and_counters_all_matter),
      cmocka_unit_test(bounded_numbers_reach_every_value_and_no_other),
      cmocka_unit_test(unit_numbers_have_the_mean_of_a_uniform_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

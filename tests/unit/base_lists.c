/* SPDX-License-Identifier: Apache-2.0
 * Lists of words, medians and sets, at their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/median.h"
#include "base/union_find.h"
#include "base/words.h"

static void a_word_is_whole(void **state) {
  (void)state;
  static const char list[] = " Conv  Gemm MatMul ";
  assert_true(laci_has_word(list, "Conv", 4) && laci_has_word(list, "MatMul", 6));
  assert_false(laci_has_word(list, "Con", 3));
  assert_false(laci_has_word(list, "ConvTranspose", 13));
  assert_false(laci_has_word(list, "", 0));
  assert_false(laci_has_word("", "Conv", 4));
  assert_false(laci_has_word(NULL, "Conv", 4));
}

static void a_median_is_in_the_middle(void **state) {
  (void)state;
  double odd[] = {9, -1, 4}, even[] = {8, 2, 4, 1};
  assert_true(laci_median(odd, 3) == 4);
  assert_true(laci_median(even, 4) == 3);
  assert_true(even[0] == 1 && even[3] == 8);
  assert_true(laci_median(NULL, 0) == 0);
}

static void the_lowest_of_a_set_is_its_root(void **state) {
  (void)state;
  int64_t parent[] = {0, 1, 2, 3, 4, 5};
  laci_unite(parent, 5, 3);
  laci_unite(parent, 4, 5);
  laci_unite(parent, 1, 2);
  laci_unite(parent, 2, 1);
  for (int64_t at = 3; at < 6; at++) assert_true(laci_find_root(parent, at) == 3);
  assert_true(laci_find_root(parent, 2) == 1 && laci_find_root(parent, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_word_is_whole),
      cmocka_unit_test(a_median_is_in_the_middle),
      cmocka_unit_test(the_lowest_of_a_set_is_its_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

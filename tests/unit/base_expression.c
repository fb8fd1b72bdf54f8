/* SPDX-License-Identifier: Apache-2.0
 * base/expression: names are found, and an expression that would eat time or memory is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/expression.h"

static bool finds(const char *text, const char *name) {
  laci_expression *e;
  bool found;
  assert_int_equal(laci_expression_open("include", text, &e, NULL), LAC_OK);
  assert_int_equal(laci_expression_match(e, name, &found, NULL), LAC_OK);
  laci_expression_close(e);
  return found;
}

static void finds_a_part_of_a_name(void **state) {
  (void)state;
  assert_true(finds("conv", "layer1.0.conv2"));
  assert_true(finds("^layer[12][.]0", "layer1.0.conv2"));
  assert_true(finds("(^|/)fc$|head", "net/fc"));
  assert_true(finds("", "anything"));
  assert_false(finds("^conv", "layer1.0.conv2"));
  assert_true(finds("[[:digit:]]{2,}", "layer12"));
}

static void refuses_what_is_no_expression_or_too_large(void **state) {
  (void)state;
  static const char *const cases[] = {"(", "a{1,255}b[", "*",
                                      "((((a{1,255}){1,255}){1,255}){1,255})"};
  char longer[6000];
  memset(longer, 'a', sizeof longer);
  longer[sizeof longer - 1] = '\0';
  for (int k = 0; k < 5; k++) {
    laci_expression *e;
    lac_error err = {0};
    assert_int_equal(laci_expression_open("include", k < 4 ? cases[k] : longer, &e, &err),
                     LAC_BAD_ARGUMENT);
    assert_null(e);
    assert_non_null(strstr(err.text, "is no usable regular expression"));
  }
}

static void refuses_to_try_every_match_of_a_name(void **state) {
  (void)state;
  laci_expression *e;
  lac_error err = {0};
  bool found;
  assert_int_equal(laci_expression_open("exclude", "^(a|aa)+b?(a|aa)+c[^c]$", &e, NULL), LAC_OK);
  const char *name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacc";
  assert_int_equal(laci_expression_match(e, name, &found, &err), LAC_BAD_ARGUMENT);
  assert_false(found);
  assert_non_null(strstr(err.text, "match limit exceeded"));
  laci_expression_close(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_a_part_of_a_name),
      cmocka_unit_test(refuses_what_is_no_expression_or_too_large),
      cmocka_unit_test(refuses_to_try_every_match_of_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

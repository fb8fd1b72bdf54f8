/* SPDX-License-Identifier: Apache-2.0
 * What an unknown word could have meant, and above all what it could not. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const verbs[] = {"prune", "permute", "check", "plot",  "inspect", "pack",
                                    "infer", "eval",    "bench", "train", "demo"};
static const char *const networks[] = {"resnet18",       "resnet50",       "resnext50_32x4d",
                                       "cifar-resnet20", "cifar-resnet56", "digits"};
static const char *const options[] = {"--output",    "--no-permute", "--effort",
                                      "--no-verify", "--verify",     "--time"};

#define NEAREST(text, of) laci_find_nearest_text(text, 0, of, sizeof of / sizeof of[0])
#define NEAREST_AFTER(mark, text, of) \
  laci_find_nearest_text(text, mark, of, sizeof of / sizeof of[0])

typedef struct guess {
  const char *typed, *meant; /* NULL: nothing is near enough */
} guess;

static void a_slip_is_understood(void **state) {
  (void)state;
  const guess rows[] = {{"prnue", "prune"},   {"pune", "prune"},     {"Prune", "prune"},
                        {"prun", "prune"},    {"chek", "check"},     {"inspct", "inspect"},
                        {"evaluate", "eval"}, {"benchmark", "bench"}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
    assert_string_equal(NEAREST(rows[k].typed, verbs), rows[k].meant);
}

static void another_word_is_not_taken_for_a_slip(void **state) {
  (void)state;
  const char *const words[] = {"",     "r",    "run",  "test",     "tune",  "data",  "info",
                               "draw", "save", "load", "sparsify", "zebra", "verify"};
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) assert_null(NEAREST(words[k], verbs));
}

static void the_end_of_a_name_counts_more_than_a_digit(void **state) {
  (void)state;
  const guess rows[] = {{"resnet20", "cifar-resnet20"},
                        {"resnet56", "cifar-resnet56"},
                        {"resnet-50", "resnet50"},
                        {"resnext50", "resnext50_32x4d"}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
    assert_string_equal(NEAREST(rows[k].typed, networks), rows[k].meant);
  assert_null(NEAREST("vgg16", networks));
}

static void a_mark_has_no_letters_that_may_be_wrong(void **state) {
  (void)state;
  assert_string_equal(NEAREST_AFTER(2, "--ouptut", options), "--output");
  assert_string_equal(NEAREST_AFTER(5, "--no-permut", options), "--no-permute");
  assert_string_equal(NEAREST_AFTER(2, "--noverify", options), "--no-verify");
  assert_string_equal(NEAREST_AFTER(2, "--time-limit", options), "--time");
  assert_null(NEAREST_AFTER(5, "--no-prune", options));
  assert_null(NEAREST_AFTER(2, "--jobs", options));
  assert_null(NEAREST_AFTER(2, "--", options));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_slip_is_understood),
      cmocka_unit_test(another_word_is_not_taken_for_a_slip),
      cmocka_unit_test(the_end_of_a_name_counts_more_than_a_digit),
      cmocka_unit_test(a_mark_has_no_letters_that_may_be_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * data: what counts as right among the best one and five, how ties fall, and the loss. */
#include "data/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect_near(double got, double want) {
  if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) fail_msg("got %.17g, want %.17g", got, want);
}

static void counts_the_best_one_and_the_best_five(void **state) {
  (void)state;
  static const float row[7] = {6, 5, 4, 3, 2, 1, 0};
  for (int32_t label = 0; label < 7; label++) {
    laci_metrics m = {0};
    assert_int_equal(laci_metrics_add(&m, row, 1, 7, &label, NULL), LAC_OK);
    assert_int_equal(m.top1, label == 0);
    assert_int_equal(m.top5, label < 5);
  }
}

static void ties_go_to_the_lowest_class(void **state) {
  (void)state;
  static const float row[7] = {1, 1, 1, 1, 1, 1, 1};
  for (int32_t label = 0; label < 7; label++) {
    laci_metrics m = {0};
    assert_int_equal(laci_metrics_add(&m, row, 1, 7, &label, NULL), LAC_OK);
    assert_int_equal(m.top1, label == 0);
    assert_int_equal(m.top5, label < 5);
    expect_near(laci_metrics_loss(&m), log(7));
  }
}

static void the_loss_is_the_cross_entropy_and_survives_large_logits(void **state) {
  (void)state;
  static const float rows[3][2] = {{0, 0}, {1000, 999}, {-3e38F, 3e38F}};
  static const int32_t labels[3] = {1, 1, 1};
  static const double losses[3] = {0.69314718055994531, 1.3132616875182228, 0};
  for (int k = 0; k < 3; k++) {
    laci_metrics m = {0};
    assert_int_equal(laci_metrics_add(&m, rows[k], 1, 2, &labels[k], NULL), LAC_OK);
    expect_near(laci_metrics_loss(&m), losses[k]);
  }
}

static void batches_add_up(void **state) {
  (void)state;
  static const float logits[4][3] = {{3, 1, 2}, {0, 5, 1}, {1, 1, 1}, {-INFINITY, 0, 0}};
  static const int32_t labels[4] = {0, 2, 0, 1};
  laci_metrics whole = {0}, parts = {0};
  assert_int_equal(laci_metrics_add(&whole, logits[0], 4, 3, labels, NULL), LAC_OK);
  for (int k = 0; k < 4; k++) {
    assert_int_equal(laci_metrics_add(&parts, logits[k], 1, 3, labels + k, NULL), LAC_OK);
  }
  assert_memory_equal(&whole, &parts, sizeof whole);
  assert_int_equal(whole.images, 4);
  expect_near(laci_metrics_top1(&whole), 75);
  expect_near(laci_metrics_top5(&whole), 100);
}

static void scores_of_parts_are_the_whole_to_the_bit(void **state) {
  (void)state;
  static const float logits[5][3] = {
      {3, 1, 2}, {0, 5, 1}, {1, 1, 1}, {-INFINITY, 0, 0}, {0.3F, 0.1F, 7}};
  static const int32_t labels[5] = {0, 2, 0, 1, 0};
  laci_image_score scores[5];
  laci_metrics whole = {0}, again = {0};
  assert_int_equal(laci_metrics_add(&whole, logits[0], 5, 3, labels, NULL), LAC_OK);
  for (int from = 4; from >= 0; from -= 2) { /* 4; 2 and 3; 0 and 1 */
    laci_metrics part = {.first = from, .scores = scores};
    const int n = from < 4 ? 2 : 1;
    assert_int_equal(laci_metrics_add(&part, logits[from], n, 3, labels + from, NULL), LAC_OK);
    assert_int_equal(part.images, n);
  }
  for (int k = 0; k < 5; k++) laci_metrics_add_score(&again, &scores[k]);
  assert_memory_equal(&whole, &again, sizeof whole);
}

static void none_is_no_division_by_zero(void **state) {
  (void)state;
  laci_metrics m = {0};
  assert_int_equal(laci_metrics_add(&m, NULL, 0, 10, NULL, NULL), LAC_OK);
  assert_true(laci_metrics_top1(&m) == 0 && laci_metrics_top5(&m) == 0 &&
              laci_metrics_loss(&m) == 0);
}

static void images_without_an_answer_are_counted_where_that_is_wanted(void **state) {
  (void)state;
  const float rows[4][2] = {{1, 0}, {0, NAN}, {0, 1}, {INFINITY, 0}};
  static const int32_t labels[4] = {0};
  laci_metrics m = {.counts_bad = true};
  lac_error err = {0};
  assert_int_equal(laci_metrics_add(&m, rows[0], 1, 2, labels, &err), LAC_OK);
  assert_int_equal(laci_metrics_check_all_finite(&m, &err), LAC_OK);
  assert_int_equal(laci_metrics_add(&m, rows[1], 3, 2, labels, &err), LAC_OK);
  assert_int_equal(laci_metrics_check_all_finite(&m, &err), LAC_BAD_VALUE);
  assert_string_equal(err.text,
                      "2 of 4 images have an answer that is not finite, so that no rate can be "
                      "given; the first is image 1, class 1: a logit of nan, wanted a finite "
                      "number");
}

static void what_is_no_answer_is_refused_and_not_counted(void **state) {
  (void)state;
  static const float bad[3][2] = {{0, NAN}, {INFINITY, 0}, {-INFINITY, -INFINITY}};
  static const char *const texts[3] = {
      "image 1, class 1: a logit of nan, wanted a finite number",
      "image 1, class 0: a logit of inf, wanted a finite number",
      "image 1: all logits are -inf",
  };
  static const float good[2] = {1, 0};
  int32_t label = 0;
  for (int k = 0; k < 3; k++) {
    laci_metrics m = {0}, before;
    lac_error err = {0};
    assert_int_equal(laci_metrics_add(&m, good, 1, 2, &label, NULL), LAC_OK);
    before = m;
    assert_int_equal(laci_metrics_add(&m, bad[k], 1, 2, &label, &err), LAC_BAD_VALUE);
    assert_string_equal(err.text, texts[k]);
    assert_memory_equal(&m, &before, sizeof m);
  }
  for (label = -1; label <= 2; label += 3) {
    laci_metrics m = {0};
    lac_error err = {0};
    assert_int_equal(laci_metrics_add(&m, good, 1, 2, &label, &err), LAC_BAD_SHAPE);
    assert_non_null(strstr(err.text, "the network has 2 classes"));
  }
}

static void probabilities_are_not_put_through_a_softmax_again(void **state) {
  (void)state;
  static const float logits[3] = {1, 2, -3}, nothing[2] = {1, 0};
  float rows[3];
  double sum = 0;
  int32_t label = 1;
  laci_metrics a = {0}, b = {.of_probabilities = true}, c = {.of_probabilities = true};
  for (int j = 0; j < 3; j++) sum += exp((double)logits[j]);
  for (int j = 0; j < 3; j++) rows[j] = (float)(exp((double)logits[j]) / sum);
  assert_int_equal(laci_metrics_add(&a, logits, 1, 3, &label, NULL), LAC_OK);
  assert_int_equal(laci_metrics_add(&b, rows, 1, 3, &label, NULL), LAC_OK);
  assert_true(fabs(laci_metrics_loss(&a) - laci_metrics_loss(&b)) < 1e-6);
  assert_int_equal(laci_metrics_add(&c, nothing, 1, 2, &label, NULL), LAC_OK);
  assert_true(laci_metrics_loss(&c) > 100 && laci_metrics_loss(&c) < 110);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_the_best_one_and_the_best_five),
      cmocka_unit_test(ties_go_to_the_lowest_class),
      cmocka_unit_test(the_loss_is_the_cross_entropy_and_survives_large_logits),
      cmocka_unit_test(batches_add_up),
      cmocka_unit_test(scores_of_parts_are_the_whole_to_the_bit),
      cmocka_unit_test(none_is_no_division_by_zero),
      cmocka_unit_test(probabilities_are_not_put_through_a_softmax_again),
      cmocka_unit_test(images_without_an_answer_are_counted_where_that_is_wanted),
      cmocka_unit_test(what_is_no_answer_is_refused_and_not_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Outputs are judged each by its own scale: how they are cut into parts, and what of each is
 * summed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "calibrate/output_parts_in.h"
#include "prune/prune_in.h"

enum { BOXES = 40, FIELDS = 7, BATCH = 2, COUNT = BATCH * BOXES * FIELDS };

/* Four coordinates in pixels and three scores, along the axis `fields`: 1 or 2. */
static laci_shape make_boxes(int fields, float *x) {
  const int64_t dims[] = {BATCH, fields == 1 ? FIELDS : BOXES, fields == 1 ? BOXES : FIELDS};
  for (int j = 0; j < COUNT; j++) {
    const int field = fields == 1 ? j / BOXES % FIELDS : j % FIELDS;
    x[j] = (float)(laci_rng_unit_interval(1, 0, (uint64_t)j) * (field < 4 ? 300 : 0.5));
  }
  return laci_shape_of(3, dims);
}

static void boxes_and_scores_are_two_parts(void **state) {
  (void)state;
  for (int fields = 1; fields <= 2; fields++) {
    float x[COUNT], y[COUNT];
    const laci_shape shape = make_boxes(fields, x);
    laci_output_parts parts = {0};
    laci_output_parts_decide(&shape, x, false, &parts);
    assert_int_equal(parts.n_parts, 2);
    assert_false(parts.answers);
    for (int k = 0; k < FIELDS; k++) assert_int_equal(parts.is_small[k], k >= 4);
    /* scores are lost, boxes are not */
    for (int j = 0; j < COUNT; j++)
      y[j] = parts.is_small[j / parts.inner % parts.n_slices] ? 0 : x[j];
    double e[2] = {0}, s[2] = {0};
    const float *const both[2] = {x, y};
    laci_output_parts_add_errors(&parts, both, 0, COUNT, e, s);
    assert_true(e[0] == 0 && s[0] > 0);
    assert_true(e[1] == s[1] && s[1] > 0);
    assert_true(e[1] / (s[0] + s[1]) < 1e-5); /* which their sum hides */
    laci_output_parts_clear(&parts);
  }
}

static void numbers_of_one_scale_are_one_part(void **state) {
  (void)state;
  float x[COUNT];
  const laci_shape shape = make_boxes(1, x);
  laci_output_parts parts = {0};
  for (int j = 0; j < COUNT; j++) x[j] = (float)(laci_rng_unit_interval(2, 0, (uint64_t)j) - 0.5);
  laci_output_parts_decide(&shape, x, false, &parts);
  assert_int_equal(parts.n_parts, 1);
  assert_false(parts.answers || parts.unit_rows);
  assert_null(parts.is_small);
  laci_output_parts_clear(&parts);
}

/* Rows of a softmax, of its logarithm, or of length 1. */
static void make_rows(int kind, int64_t n, float *x) {
  for (int64_t r = 0; r < COUNT / n; r++) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
      const double v = exp(3 * laci_rng_unit_interval(4, (uint64_t)r, (uint64_t)j));
      x[r * n + j] = (float)v;
      sum += kind == 2 ? v * v : v;
    }
    for (int64_t j = 0; j < n; j++) {
      float *v = &x[r * n + j];
      *v = (float)(kind == 2 ? (double)*v / sqrt(sum) : (double)*v / sum);
      if (kind == 1) *v = logf(*v);
    }
  }
}

static void rows_of_probabilities_are_answers(void **state) {
  (void)state;
  const int64_t dims[] = {BATCH, BOXES, FIELDS};
  const laci_shape shape = laci_shape_of(3, dims);
  for (int kind = 0; kind < 3; kind++) {
    float x[COUNT], y[COUNT];
    laci_output_parts parts = {0};
    make_rows(kind, FIELDS, x);
    laci_output_parts_decide(&shape, x, false, &parts);
    assert_int_equal(parts.answers, kind < 2);
    assert_int_equal(parts.unit_rows, kind == 2);
    memcpy(y, x, sizeof x);
    for (int r = 0; r < 3; r++) /* three rows answer otherwise */
      for (int j = 0; j < FIELDS; j++) y[r * FIELDS + j] = x[r * FIELDS + (j + 1) % FIELDS];
    double e[2] = {0}, s[2] = {0};
    const float *const both[2] = {x, y};
    laci_output_parts_add_errors(&parts, both, 0, COUNT, e, s);
    if (kind < 2) assert_true(e[0] == 3 && s[0] == BATCH * BOXES);
    laci_output_parts_clear(&parts);
  }
}

/* Logits of twelve classes, decided or not; the same numbers without a product before them. */
static void decided_logits_are_answers(void **state) {
  (void)state;
  enum { CLASSES = 12, ROWS = 10 };
  const int64_t dims[] = {1, ROWS, CLASSES}, pairs[] = {ROWS, CLASSES};
  const laci_shape shape = laci_shape_of(3, dims), one_row = laci_shape_of(2, pairs);
  for (int decided = 0; decided < 2; decided++) {
    float x[ROWS * CLASSES], y[ROWS * CLASSES];
    laci_output_parts parts = {0};
    for (int j = 0; j < ROWS * CLASSES; j++) {
      x[j] = (float)laci_rng_unit_interval(8, 0, (uint64_t)j) - 5;
      if (decided && j % CLASSES == j / CLASSES) x[j] += 9;
      y[j] = x[j] + 3; /* the same softmax */
    }
    laci_output_parts_decide(&shape, x, true, &parts);
    assert_int_equal(parts.answers, decided);
    const float *const both[2] = {x, y};
    assert_true(laci_output_parts_sum_shifts(&parts, both, 0, ROWS * CLASSES) < 1e-6);
    for (int j = 0; j < CLASSES; j++) y[j] = x[(j + 1) % CLASSES]; /* a row answers otherwise */
    double e[2] = {0}, s[2] = {0};
    laci_output_parts_add_errors(&parts, both, 0, ROWS * CLASSES, e, s);
    if (decided) {
      assert_true(e[0] == 1 && s[0] == ROWS);
      const double shift = laci_output_parts_sum_shifts(&parts, both, 0, ROWS * CLASSES);
      assert_true(shift > 0.5 && shift <= 1);
    }
    laci_output_parts_clear(&parts);
    laci_output_parts_decide(&shape, x, false, &parts);
    assert_false(parts.answers);
    laci_output_parts_clear(&parts);
    laci_output_parts_decide(&one_row, x, true, &parts);
    assert_false(parts.answers);
    laci_output_parts_clear(&parts);
  }
}

/* Probabilities that move apart without another answer have a shift and no error. */
static void probabilities_shift_before_answers_change(void **state) {
  (void)state;
  const float p[] = {0.9F, 0.1F, 0.2F, 0.8F}, q[] = {0.64F, 0.36F, 0.2F, 0.8F};
  const double wanted = 1 - (sqrt(0.9 * 0.64) + sqrt(0.1 * 0.36));
  const int64_t dims[] = {2, 2};
  const laci_shape shape = laci_shape_of(2, dims);
  for (int logarithms = 0; logarithms < 2; logarithms++) {
    float x[4], y[4];
    double e = 0, s = 0;
    laci_output_parts parts = {0};
    for (int j = 0; j < 4; j++) {
      x[j] = logarithms ? logf(p[j]) : p[j];
      y[j] = logarithms ? logf(q[j]) : q[j];
    }
    const float *const both[2] = {x, y}, *const same[2] = {x, x};
    laci_output_parts_decide(&shape, x, false, &parts);
    laci_output_parts_add_errors(&parts, both, 0, 4, &e, &s);
    assert_true(e == 0 && s == 2);
    assert_true(fabs(laci_output_parts_sum_shifts(&parts, both, 0, 4) - wanted) < 1e-6);
    assert_true(laci_output_parts_sum_shifts(&parts, same, 0, 4) < 1e-6);
    const laci_output_difference d = {
        .n_parts = 1,
        .parts = {{.kind = LACI_OUTPUT_PART_ANSWERS, .sums = {.n = 2, .s = 2}, .shift = wanted}}};
    assert_true(laci_worst_part_error(&d) == 0 && laci_worst_part_shift(&d) == wanted / 2);
    laci_output_parts_clear(&parts);
  }
}

/* ---- The loss ---- */

static laci_error_sums sums_with(double ratio, int64_t n) {
  laci_error_sums s = {0};
  for (int64_t k = 0; k < n; k++) {
    const double of = 1 + laci_rng_unit_interval(5, 0, (uint64_t)k), e = of * ratio;
    s.n++;
    s.e += e;
    s.s += of;
    s.ee += e * e;
    s.es += e * of;
    s.ss += of * of;
  }
  return s;
}

static void the_worst_part_is_the_loss(void **state) {
  (void)state;
  laci_output_difference d = {
      .n_samples = 100, .n_parts = 3, .relative = 0.001, .sums = sums_with(0.001, 100)};
  for (int worst = 0; worst < 3; worst++) {
    for (int p = 0; p < 3; p++)
      d.parts[p] =
          (laci_output_part){.output = p,
                             .kind = p == 2 ? LACI_OUTPUT_PART_ANSWERS : LACI_OUTPUT_PART_NUMBERS,
                             .sums = sums_with(p == worst ? 0.3 : 0.01, 100)};
    laci_judged_drop drop = {.most = 0};
    laci_drop_compute_bound(&d, &drop);
    assert_int_equal(drop.measure, worst == 2 ? LACI_DROP_POSITIONS : LACI_DROP_OUTPUTS);
    assert_true(fabs(drop.found - 30) < 1e-9 && drop.most >= drop.found - 1e-9);
    assert_true(fabs(laci_worst_part_error(&d) - 0.3) < 1e-9);
    assert_true(worst == 2 || fabs(laci_worst_part_shift(&d) - 0.3) < 1e-9);
  }
  /* answers of the first output are right, another output is lost */
  d.n_answers = d.n_agree = 100;
  laci_judged_drop drop = {.most = 0};
  laci_drop_compute_bound(&d, &drop);
  assert_int_equal(drop.measure, LACI_DROP_POSITIONS);
  d.n_parts = 1;
  laci_drop_compute_bound(&d, &drop);
  assert_int_equal(drop.measure, LACI_DROP_ANSWERS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_and_scores_are_two_parts),
                                     cmocka_unit_test(numbers_of_one_scale_are_one_part),
                                     cmocka_unit_test(rows_of_probabilities_are_answers),
                                     cmocka_unit_test(decided_logits_are_answers),
                                     cmocka_unit_test(probabilities_shift_before_answers_change),
                                     cmocka_unit_test(the_worst_part_is_the_loss)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

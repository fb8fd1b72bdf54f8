/* SPDX-License-Identifier: Apache-2.0
 * lac_recovery_plot: what it refuses, and that nothing is written then. What it draws is tested
 * in report_curve.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/train.h"
#include "onnx_build.h"

static const lac_recovery_score scores[] = {{0, 60}, {45, 91.5}, {90, 93}},
                                back[] = {{9, 1}, {9, 2}};
static const lac_recovery_run run = {"permuted first", scores, 3};
static const lac_recovery usual = {.size = sizeof(lac_recovery),
                                   .title = "net.onnx, 2:4",
                                   .data = "digits",
                                   .dense_top1 = 94,
                                   .steps_per_epoch = 45,
                                   .runs = &run,
                                   .n_runs = 1};

static lac_status plot(const lac_recovery *recovery, const char *path, bool force,
                       const char *text) {
  lac_error err = {0};
  lac_status st = lac_recovery_plot(recovery, path, force, &err);
  if (text && !strstr(err.text, text)) fail_msg("'%s', wanted '%s'", err.text, text);
  return st;
}

static void it_is_written_with_care(void **state) {
  (void)state;
  folder f;
  char text[20000] = "";
  folder_make(&f);
  const char *path = in_folder(&f, "a.svg");
  assert_int_equal(plot(&usual, path, false, NULL), LAC_OK);
  assert_int_equal(plot(&usual, path, false, "exists already"), LAC_EXISTS);
  assert_int_equal(plot(&usual, path, true, NULL), LAC_OK);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  (void)fclose(file);
  static const char *const wanted[] = {">net.onnx, 2:4<", ">permuted first<", ">60.00 %<",
                                       ">93.00 %<", ">dense 94.00 %<"};
  for (size_t at = 0; at < sizeof wanted / sizeof *wanted; at++) {
    if (!strstr(text, wanted[at])) fail_msg("no '%s' in the chart", wanted[at]);
  }
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(f.path), 0);
}

static void what_is_no_picture_is_refused(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  const char *path = in_folder(&f, "a.svg");
  const lac_recovery_run runs[5] = {run, run, run, run, run}, unnamed = {NULL, scores, 3},
                         empty = {"none", scores, 0}, backwards = {"twice 9", back, 2};
  lac_recovery bad = usual;
  assert_int_equal(plot(NULL, path, false, "recovery is NULL"), LAC_BAD_ARGUMENT);
  assert_int_equal(plot(&usual, NULL, false, "path is NULL"), LAC_BAD_ARGUMENT);
  bad.title = NULL;
  assert_int_equal(plot(&bad, path, false, "needed"), LAC_BAD_ARGUMENT);
  bad = usual;
  bad.runs = runs;
  bad.n_runs = 5;
  assert_int_equal(plot(&bad, path, false, "5 runs in one chart, wanted 1 to 4"), LAC_BAD_ARGUMENT);
  bad.n_runs = 0;
  assert_int_equal(plot(&bad, path, false, "0 runs"), LAC_BAD_ARGUMENT);
  bad.n_runs = 1;
  bad.runs = &unnamed;
  assert_int_equal(plot(&bad, path, false, "no label"), LAC_BAD_ARGUMENT);
  bad.runs = &empty;
  assert_int_equal(plot(&bad, path, false, "no scores"), LAC_BAD_ARGUMENT);
  bad.runs = &backwards;
  assert_int_equal(plot(&bad, path, false, "twice 9: its steps do not ascend"), LAC_BAD_ARGUMENT);
  assert_int_equal(plot(&usual, in_folder(&f, "a.png"), false, "a.png: curves end in .svg"),
                   LAC_BAD_ARGUMENT);
  for (long n = 1; n < 4; n++) {
    laci_memory_fail_from(n);
    lac_status st = plot(&usual, in_folder(&f, "a.svg"), false, NULL);
    laci_memory_fail_from(0);
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  assert_int_equal(rmdir(f.path), 0); /* nothing is in it */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_written_with_care),
      cmocka_unit_test(what_is_no_picture_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

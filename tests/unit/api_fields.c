/* SPDX-License-Identifier: Apache-2.0
 * Numbers of options that no caller should give: an answer or LAC_BAD_ARGUMENT, never a crash or a
 * run without an end. And what cannot fail takes a NULL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/bench.h"
#include "lacuna/calibration.h"
#include "lacuna/data.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/infer.h"
#include "lacuna/pack.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"
#include "lacuna/train.h"

#define DATA LAC_SOURCE_DIR "/examples/digits"
#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_model *model;

static int open_all(void **state) {
  (void)state;
  return lac_model_load(DIGITS, NULL, &model, NULL);
}

static int close_all(void **state) {
  (void)state;
  lac_model_destroy(model);
  return 0;
}

static void an_effort_that_is_none_is_refused(void **state) {
  (void)state;
  static const int wrong[] = {-1, 3, 99, INT_MIN, INT_MAX};
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    lac_options o = lac_options_default();
    lac_error err = {0};
    lac_report *report = NULL;
    o.threads = 1;
    memcpy(&o.effort, &wrong[at], sizeof o.effort);
    assert_int_equal(lac_prune(model, &o, &report, &err), LAC_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "wanted 0 to 2"));
    assert_int_equal(lac_permute(model, &o, &report, &err), LAC_BAD_ARGUMENT);
    assert_int_equal(lac_inspect(model, &o, &report, &err), LAC_BAD_ARGUMENT);
    assert_int_equal(lac_check(model, NULL, &o, &report, &err), LAC_BAD_ARGUMENT);
    assert_null(report);
  }
}

/* Every number of lac_options, with each of these: an answer or a status. */
static void every_number_of_the_options_may_be_extreme(void **state) {
  (void)state;
  static const int numbers[] = {-1, 0, 65, 99999, INT_MIN, INT_MAX};
  static const double reals[] = {NAN, INFINITY, -INFINITY, -1, 1e300};
  enum { N_INTS = 7, N_NUMBERS = sizeof numbers / sizeof *numbers };
  for (int k = 0; k < N_INTS * N_NUMBERS; k++) {
    lac_options o = lac_options_default();
    int *const fields[N_INTS] = {
        &o.n, &o.m, &o.v, &o.threads, &o.n_assume, &o.n_targets, &o.n_input_shapes};
    lac_report *report = NULL;
    const int value = numbers[k % N_NUMBERS];
    if (fields[k / N_NUMBERS] == &o.threads && value == 0) continue;
    *fields[k / N_NUMBERS] = value;
    const lac_status st = lac_inspect(model, &o, &report, NULL);
    assert_true(st == LAC_OK || st == LAC_BAD_ARGUMENT);
    lac_report_destroy(report);
  }
  for (size_t at = 0; at < sizeof reals / sizeof *reals; at++) {
    lac_options o = lac_options_default();
    lac_report *report = NULL;
    o.time_limit = reals[at];
    assert_int_equal(lac_inspect(model, &o, &report, NULL), LAC_BAD_ARGUMENT);
  }
}

static void steps_without_an_end_are_refused(void **state) {
  (void)state;
  static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    lac_calibration c = lac_calibration_default();
    lac_options o = lac_options_default();
    lac_report *report = NULL;
    c.data = LAC_SOURCE_DIR "/examples/digits";
    c.refine_steps = wrong[at];
    o.calibration = &c;
    assert_int_equal(lac_prune(model, &o, &report, NULL), LAC_BAD_ARGUMENT);
  }
}

/* Engines' options: enums, and shapes of a rank or without a name. */
static void shapes_and_enums_of_a_run_are_checked(void **state) {
  (void)state;
  const lac_engine_shape wrong[] = {{NULL, 4, {4, 1, 8, 8}},
                                    {"image", 9, {4, 1, 8, 8}},
                                    {"image", -1, {4, 1, 8, 8}},
                                    {"image", INT_MAX, {4, 1, 8, 8}}};
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    lac_engine *engine = NULL;
    lac_bench_result *bench = NULL;
    lac_engine_options e = lac_engine_options_default();
    lac_infer_options i = lac_infer_options_default();
    lac_bench_options b = lac_bench_options_default();
    e.shapes = i.shapes = b.shapes = &wrong[at];
    e.n_shapes = i.n_shapes = b.n_shapes = 1;
    assert_int_equal(lac_engine_create(model, &e, &engine, NULL), LAC_BAD_ARGUMENT);
    assert_int_equal(lac_infer(model, NULL, 0, "never", &i, NULL, NULL), LAC_BAD_ARGUMENT);
    assert_int_equal(lac_bench(model, &b, &bench, NULL), LAC_BAD_ARGUMENT);
  }
  const lac_engine_shape right = {"image", 4, {4, 1, 8, 8}};
  static const int enums[] = {-1, 3, 99, INT_MIN, INT_MAX};
  for (size_t at = 0; at < sizeof enums / sizeof *enums; at++) {
    lac_engine *engine = NULL;
    lac_engine_options e = lac_engine_options_default();
    e.shapes = &right;
    e.n_shapes = 1;
    memcpy(&e.run.tuning, &enums[at], sizeof e.run.tuning);
    assert_int_equal(lac_engine_create(model, &e, &engine, NULL), LAC_BAD_ARGUMENT);
    e = lac_engine_options_default();
    memcpy(&e.run.dtype, &enums[at], sizeof e.run.dtype);
    assert_int_equal(lac_engine_create(model, &e, &engine, NULL), LAC_BAD_ARGUMENT);
    assert_null(engine);
  }
}

/* One bound and one message, whoever is called. */
static void more_threads_than_are_taken_are_refused_by_all(void **state) {
  (void)state;
  static const int wrong[] = {-1, 1025, 65537, INT_MIN, INT_MAX};
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    lac_error err[7] = {{0}};
    lac_report *report = NULL;
    lac_engine *engine = NULL;
    lac_bench_result *bench = NULL;
    lac_eval_result eval = LAC_SIZED(lac_eval_result);
    lac_imagenet_result converted = LAC_SIZED(lac_imagenet_result);
    lac_train_result trained = LAC_SIZED(lac_train_result);
    lac_options o = lac_options_default();
    lac_engine_options e = lac_engine_options_default();
    lac_infer_options i = lac_infer_options_default();
    lac_bench_options b = lac_bench_options_default();
    lac_eval_options v = lac_eval_options_default();
    lac_train_options t = lac_train_options_default();
    lac_imagenet_options d = lac_imagenet_options_default();
    o.threads = e.run.threads = i.run.threads = b.run.threads = v.run.threads = t.run.threads =
        d.threads = wrong[at];
    const lac_status st[7] = {lac_inspect(model, &o, &report, &err[0]),
                              lac_engine_create(model, &e, &engine, &err[1]),
                              lac_infer(model, NULL, 0, "never", &i, NULL, &err[2]),
                              lac_bench(model, &b, &bench, &err[3]),
                              lac_eval(model, DATA, &v, &eval, &err[4]),
                              lac_train(model, DATA, NULL, &t, &trained, &err[5]),
                              lac_imagenet_convert("no", "never", &d, &converted, &err[6])};
    for (int k = 0; k < 7; k++) {
      assert_int_equal(st[k], LAC_BAD_ARGUMENT);
      assert_string_equal(err[k].text, err[0].text);
      assert_non_null(strstr(err[k].text, "wanted 0 (all cores) to 1024"));
    }
  }
}

static void what_cannot_fail_takes_a_null(void **state) {
  (void)state;
  const lac_engine_port *ports;
  assert_non_null(lac_network_names(NULL));
  assert_non_null(lac_network_recipe(NULL));
  assert_non_null(lac_target_names(NULL));
  assert_int_equal(lac_engine_inputs(NULL, &ports) + lac_engine_outputs(NULL, NULL), 0);
  assert_int_equal(lac_pack_tensor_count(NULL), 0);
  assert_true(lac_pack_dense_bytes(NULL) + lac_pack_packed_bytes(NULL) == 0);
  (void)lac_engine_plan_text(NULL);
  (void)lac_process_group_rank(NULL);
  (void)lac_process_group_size(NULL);
  lac_engine_destroy(NULL);
  lac_pack_close(NULL);
  lac_pack_report_destroy(NULL);
  lac_bench_result_destroy(NULL);
  lac_infer_result_destroy(NULL);
  assert_non_null(lac_status_text((lac_status)99));
  assert_non_null(lac_dtype_name((lac_dtype)-1));
  assert_int_equal(lac_dtype_size((lac_dtype)9999), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_effort_that_is_none_is_refused),
      cmocka_unit_test(every_number_of_the_options_may_be_extreme),
      cmocka_unit_test(steps_without_an_end_are_refused),
      cmocka_unit_test(shapes_and_enums_of_a_run_are_checked),
      cmocka_unit_test(more_threads_than_are_taken_are_refused_by_all),
      cmocka_unit_test(what_cannot_fail_takes_a_null),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}

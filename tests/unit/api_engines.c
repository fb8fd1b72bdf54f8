/* SPDX-License-Identifier: Apache-2.0
 * The engine of lac_options: what prune and check run networks on, and what they do not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/array.h"
#include "lacuna/calibration.h"
#include "lacuna/engine.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"
#include "support/counting_engine.h"
#include "verify/verify.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"
enum { SAMPLES = 24, IMAGE = 64 };

static float images[SAMPLES * IMAGE];
static const lac_array array = {.name = "image",
                                .dtype = LAC_DTYPE_F32,
                                .rank = 4,
                                .shape = {SAMPLES, 1, 8, 8},
                                .data = images,
                                .size_bytes = sizeof images};
static const lac_samples samples = {.size = sizeof samples, .arrays = &array, .n_arrays = 1};

static lac_options pruning(lac_calibration *calibration, const char *engine) {
  lac_options options = lac_options_default();
  *calibration = lac_calibration_default();
  calibration->from_memory = &samples;
  calibration->samples = SAMPLES;
  options.calibration = calibration;
  options.permute = false;
  options.threads = 1;
  options.engine = engine;
  return options;
}

/* Prunes the network; the report is the caller's. */
static lac_status prune(const lac_options *options, lac_report **report, lac_error *err) {
  lac_model *model = NULL;
  lac_status st = lac_model_load(DIGITS, NULL, &model, err);
  if (!st) st = lac_prune(model, options, report, err);
  lac_model_destroy(model);
  return st;
}

static int make_images(void **state) {
  (void)state;
  for (int at = 0; at < SAMPLES * IMAGE; at++) images[at] = (float)((at * 37 + at / 61) % 17) / 16;
  return laci_engine_register(&laci_engine_counting, NULL);
}

static int runs_with(const char *engine, bool steps) {
  lac_calibration calibration;
  lac_options options = pruning(&calibration, engine);
  lac_report *report = NULL;
  lac_error err = {0};
  calibration.refine_steps = steps;
  counting = (counts){0};
  if (prune(&options, &report, &err)) fail_msg("%s", err.text);
  assert_true(report->summary.pruned > 0 && report->calibration->outputs_error > 0);
  lac_report_destroy(report);
  assert_int_equal(counting.created, counting.destroyed);
  return counting.runs;
}

static void samples_run_on_the_engine_that_is_named(void **state) {
  (void)state;
  assert_int_equal(runs_with(NULL, true), 0);
  const int fitted = runs_with("counting", false), refined = runs_with("counting", true);
  assert_true(fitted > 0);
  assert_true(refined > fitted); /* steps run on it, too */
}

/* The ranges of values, which are observed; the weights do not depend on the engine. */
static lac_report *quantized_on(const char *engine) {
  lac_calibration calibration;
  lac_options options = pruning(&calibration, engine);
  lac_quantization quantization = lac_quantization_default();
  lac_report *report = NULL;
  lac_error err = {0};
  quantization.range = "minmax";
  calibration.solve = false;
  options.score = "magnitude";
  options.quantization = &quantization;
  if (prune(&options, &report, &err)) fail_msg("%s: %s", engine, err.text);
  return report;
}

static void a_plug_in_shows_values_or_has_them_as_outputs(void **state) {
  (void)state;
  static const char *const files[] = {LAC_TEST_ENGINE_HOST, LAC_TEST_ENGINE_DEVICE};
  lac_report *own = quantized_on("cpu");
  const lac_quantization_result *wanted = own->quantization;
  assert_true(wanted->n_values > 5);
  for (int k = 0; k < 2; k++) {
    const char *name = NULL;
    lac_error err = {0};
    if (lac_engine_load(files[k], &name, &err)) fail_msg("%s", err.text);
    lac_report *report = quantized_on(name);
    const lac_quantization_result *found = report->quantization;
    assert_int_equal(found->n_values, wanted->n_values);
    for (int v = 0; v < found->n_values; v++) {
      const double scale = wanted->values[v].scale;
      if (!(fabs(found->values[v].scale - scale) <= 1e-4 * scale))
        fail_msg("%s: %s: scale %g, wanted %g", name, found->values[v].name, found->values[v].scale,
                 scale);
    }
    lac_report_destroy(report);
  }
  lac_report_destroy(own);
}

static void an_engine_that_would_run_nothing_is_refused(void **state) {
  (void)state;
  lac_options options = lac_options_default();
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  options.engine = "counting";
  assert_int_equal(prune(&options, &report, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "the engine 'counting' would run nothing"));
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  assert_int_equal(lac_permute(model, &options, &report, NULL), LAC_UNSUPPORTED);
  assert_int_equal(lac_check(model, NULL, &options, &report, NULL), LAC_UNSUPPORTED);
  assert_int_equal(lac_permutation_apply(model, "order.json", false, &options, &report, NULL),
                   LAC_UNSUPPORTED);
  options.engine = "nobody's";
  assert_int_equal(lac_check(model, NULL, &options, &report, &err), LAC_NOT_FOUND);
  options.engine = "plain";
  assert_int_equal(lac_check(model, NULL, &options, &report, NULL), LAC_OK);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void a_verification_is_by_engines_of_the_library(void **state) {
  (void)state;
  assert_int_equal(laci_verify_engine_by_name("plain"), LACI_VERIFY_PLAIN);
  assert_int_equal(laci_verify_engine_by_name("cpu"), LACI_VERIFY_AUTO);
  assert_int_equal(laci_verify_engine_by_name("counting"), LACI_VERIFY_AUTO);
  lac_calibration calibration;
  lac_options options = pruning(&calibration, "counting");
  lac_report *report = NULL;
  lac_error err = {0};
  options.permute = options.all_sizes = true;
  if (prune(&options, &report, &err)) fail_msg("%s", err.text);
  assert_string_equal(report->summary.proof_engine, "plain");
  lac_report_destroy(report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_run_on_the_engine_that_is_named),
      cmocka_unit_test(a_plug_in_shows_values_or_has_them_as_outputs),
      cmocka_unit_test(an_engine_that_would_run_nothing_is_refused),
      cmocka_unit_test(a_verification_is_by_engines_of_the_library),
  };
  return cmocka_run_group_tests(tests, make_images, NULL);
}

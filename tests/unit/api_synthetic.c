/* SPDX-License-Identifier: Apache-2.0
 * include/lacuna/data.h and lac_calibration.synthetic: images in the layout and range of a
 * network's input, the same bytes for any number of threads; what takes no images is refused. */
#include "lacuna/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "api/prune/synthetic_in.h"
#include "base/memory.h"
#include "data/npy.h"
#include "lacuna/calibration.h"
#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "lacuna/session.h"
#include "support/light.h"
#include "support/prune_text.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_array draw(const lac_model *model, const lac_synthetic_options *options) {
  lac_array images = {.rank = 0};
  lac_error err = {0};
  if (lac_synthetic_images(model, options, &images, &err)) fail_msg("%s", err.text);
  return images;
}

static double mean_of(const lac_array *images) {
  const size_t n = images->size_bytes / sizeof(float);
  const float *values = images->data;
  double sum = 0;
  for (size_t k = 0; k < n; k++) sum += values[k];
  return sum / (double)n;
}

static lac_synthetic_options few(int64_t samples) {
  lac_synthetic_options o = lac_synthetic_options_default();
  o.samples = samples;
  o.threads = 1;
  return o;
}

/* A network whose first normalization saw pixels of mean 0.5 and deviation 0.29, scaled so. */
static lac_model *normalized_by(double mean, double std) {
  char text[1024];
  const double m = (0.5 * 255 - mean) / std, v = 0.29 * 255 / std * (0.29 * 255 / std);
  (void)snprintf(text, sizeof text,
                 "input x -1x3x16x16\n"
                 "stored one 1x3x1x1 f32 = 1.0 1.0 1.0\n"
                 "scaled = Mul(x, one)\n"
                 "stored s 3 f32 = 1.0 1.0 1.0\nstored b 3 f32 = 0.0 0.0 0.0\n"
                 "stored m 3 f32 = %.6f %.6f %.6f\nstored v 3 f32 = %.6f %.6f %.6f\n"
                 "y = BatchNormalization(scaled, s, b, m, v)\noutput y\n",
                 m, m, m, v, v, v);
  return read_model(text);
}

static void the_range_is_that_of_the_first_normalization(void **state) {
  (void)state;
  const struct {
    double mean, std, expected;
  } ranges[] = {{0, 255, 0.5}, {127.5, 127.5, 0}, {0, 1, 127}, {114, 57, 0.2}, {114, 1, 13}};
  for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
    lac_model *model = normalized_by(ranges[k].mean, ranges[k].std);
    const lac_synthetic_options o = few(64);
    lac_array images = draw(model, &o);
    const double unit = 255 / ranges[k].std, off = mean_of(&images) - ranges[k].expected;
    if (!(off > -0.1 * unit && off < 0.1 * unit))
      fail_msg("range %zu: mean %g, wanted about %g", k, mean_of(&images), ranges[k].expected);
    lac_session_release(&images, 1);
    lac_model_destroy(model);
  }
}

static void a_first_step_tells_grey_levels_from_fractions(void **state) {
  (void)state;
  const struct {
    const char *text;
    double low, high;
  } nets[] = {
      {"input x -1x3x16x16\nstored c 1 f32 = 255.0\ny = Div(x, c)\noutput y\n", 90, 160},
      {"input x -1x3x16x16\nstored c 1x3x1x1 f32 = 123.0 117.0 104.0\ny = Sub(x, c)\noutput y\n",
       90, 160},
      {"input x -1x3x16x16\nstored c 1x3x1x1 f32 = 0.5 0.5 0.4\ny = Sub(x, c)\noutput y\n", 0.4,
       0.6},
      {"input x -1x3x16x16\ny = Relu(x)\noutput y\n", -0.1, 0.6},
      {"input x -1x1x16x16\ny = Relu(x)\noutput y\n", 0.4, 0.6},
  };
  for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
    lac_model *model = read_model(nets[k].text);
    const lac_synthetic_options o = few(64);
    lac_array images = draw(model, &o);
    const double mean = mean_of(&images);
    if (!(mean > nets[k].low && mean < nets[k].high)) fail_msg("network %zu: mean %g", k, mean);
    lac_session_release(&images, 1);
    lac_model_destroy(model);
  }
}

static void layouts_hold_the_same_images(void **state) {
  (void)state;
  enum { SIDE = 12, PLANE = SIDE * SIDE };
  lac_model *first = read_model("input x -1x3x12x12\ny = Relu(x)\noutput y\n");
  lac_model *last = read_model("input x -1x12x12x3\ny = Relu(x)\noutput y\n");
  lac_model *bytes = read_model("input x -1x12x12x3 u8\ny = Identity(x)\noutput y\n");
  lac_synthetic_options o = few(3);
  for (int c = 0; c < 3; c++) o.mean[c] = 0, o.std[c] = 1;
  lac_array a = draw(first, &o), b = draw(last, &o), c = draw(bytes, &o);
  assert_int_equal(a.shape[0], 3);
  assert_int_equal(a.shape[1], 3);
  assert_int_equal(b.shape[3], 3);
  assert_int_equal(c.dtype, LAC_DTYPE_U8);
  assert_int_equal(c.size_bytes, 3 * 3 * PLANE);
  for (int n = 0; n < 3; n++) {
    for (int channel = 0; channel < 3; channel++) {
      for (int p = 0; p < PLANE; p++) {
        const float value = ((float *)a.data)[(n * 3 + channel) * PLANE + p];
        const int other = (n * PLANE + p) * 3 + channel;
        assert_true(((float *)b.data)[other] == value);
        const int level = ((uint8_t *)c.data)[other];
        assert_true(value - (float)level <= 0.5F && (float)level - value <= 0.5F);
      }
    }
  }
  lac_session_release(&a, 1);
  lac_session_release(&b, 1);
  lac_session_release(&c, 1);
  lac_model_destroy(first);
  lac_model_destroy(last);
  lac_model_destroy(bytes);
}

static void open_sizes_are_those_of_the_crop(void **state) {
  (void)state;
  lac_model *model = read_model("input x -1x3x-2x-3\ny = Relu(x)\noutput y\n");
  lac_synthetic_options o = few(1);
  lac_array usual = draw(model, &o);
  assert_int_equal(usual.shape[2], 224);
  o.crop = 20;
  lac_array small = draw(model, &o);
  assert_int_equal(small.shape[2], 20);
  assert_int_equal(small.shape[3], 20);
  lac_session_release(&usual, 1);
  lac_session_release(&small, 1);
  lac_model_destroy(model);
}

static void a_file_has_the_bytes_of_the_array_for_any_number_of_threads(void **state) {
  (void)state;
  const char *path = "synthetic_test.npy";
  lac_model *model = normalized_by(0, 255);
  lac_synthetic_options o = few(21);
  lac_array images = draw(model, &o);
  laci_npy file = {.bytes = NULL};
  lac_error err = {0};
  o.threads = 2;
  (void)unlink(path);
  if (lac_synthetic_save(model, path, &o, false, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_synthetic_save(model, path, &o, false, &err), LAC_EXISTS);
  if (laci_npy_read(path, &file, &err)) fail_msg("%s", err.text);
  assert_int_equal(file.size_bytes, images.size_bytes);
  assert_memory_equal(file.bytes, images.data, images.size_bytes);
  laci_npy_clear(&file);
  lac_session_release(&images, 1);
  lac_model_destroy(model);
  (void)unlink(path);
}

static void what_takes_no_images_is_refused(void **state) {
  (void)state;
  const struct {
    const char *text, *wanted;
  } nets[] = {
      {"input x -1x128\ny = Relu(x)\noutput y\n", "input 'x' is f32"},
      {"input x -1x4x8x8\ny = Relu(x)\noutput y\n", "3 channels or 1"},
      {"input x -1x3x8x8 i64\ny = Identity(x)\noutput y\n", "input 'x' is i64"},
      {"input x -1x3x8x8\ninput z -1x3x8x8\ny = Add(x, z)\noutput y\n", "2 inputs"},
  };
  for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
    lac_model *model = read_model(nets[k].text);
    lac_array images = {.rank = 0};
    lac_error err = {0};
    assert_int_equal(lac_synthetic_images(model, NULL, &images, &err), LAC_BAD_SHAPE);
    if (!strstr(err.text, nets[k].wanted)) fail_msg("got '%s'", err.text);
    assert_null(images.data);
    lac_model_destroy(model);
  }
}

static void bad_options_are_refused(void **state) {
  (void)state;
  lac_model *model = normalized_by(0, 255);
  lac_array images = {.rank = 0};
  lac_error err = {0};
  lac_synthetic_options none = few(0), crop = few(1), std = few(1);
  crop.crop = -1;
  std.std[1] = 0;
  assert_int_equal(lac_synthetic_images(model, &none, &images, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_synthetic_images(model, &crop, &images, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_synthetic_images(model, &std, &images, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_synthetic_images(NULL, NULL, &images, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_synthetic_images(model, NULL, NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_synthetic_save(model, NULL, NULL, false, &err), LAC_BAD_ARGUMENT);
  lac_model_destroy(model);
}

static void every_failing_allocation_is_an_error(void **state) {
  (void)state;
  lac_model *model = normalized_by(0, 255);
  const lac_synthetic_options o = few(2);
  long n = 1;
  for (;; n += tests_stride(1 + (int)n / 8)) {
    lac_array images = {.rank = 0};
    lac_error err = {0};
    laci_memory_fail_from(n);
    const lac_status st = lac_synthetic_images(model, &o, &images, &err);
    laci_memory_fail_from(0);
    lac_session_release(&images, 1);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  assert_true(n > 5);
  lac_model_destroy(model);
}

/* ---- Calibration ---- */

static lac_report *prune_digits(lac_calibration *calibration, int threads) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  lac_options options = lac_options_default();
  options.calibration = calibration;
  options.threads = threads;
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
  return report;
}

static void pruning_calibrates_on_synthetic_images(void **state) {
  (void)state;
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  calibration.samples = 40;
  lac_report *report = prune_digits(&calibration, 1), *same = prune_digits(&calibration, 2);
  const lac_calibration_result *found = report->calibration;
  assert_non_null(found);
  assert_non_null(strstr(found->data, "40 synthetic images"));
  assert_int_equal(found->held_back, 5);
  assert_int_equal(found->labelled, 0);
  assert_true(found->outputs_error > 0 && found->outputs_error == same->calibration->outputs_error);
  lac_report_destroy(report);
  lac_report_destroy(same);
}

static const char two_products[] =
    "input x -1x3x8x8\nstored v 16x3x3x3\na = Conv(x, v)\nb = Relu(a)\n"
    "stored w 16x16x3x3\ny = Conv(b, w)\noutput y\n";

/* Prunes by images of this array, and by synthetic ones next to them. */
static lac_report *prune_by(const lac_array *images, int threads) {
  lac_samples samples = LAC_SIZED(lac_samples);
  samples.arrays = images;
  samples.n_arrays = 1;
  lac_model *model = read_model(two_products);
  lac_report *report = NULL;
  lac_error err = {0};
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  calibration.from_memory = &samples;
  calibration.synthetic = true;
  calibration.samples = images->shape[0];
  options.calibration = &calibration;
  options.threads = threads;
  options.all_sizes = true;
  options.permute = false;
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
  return report;
}

/* A few images are too few alone. 64 of noise suffice for others of noise, and images that are
 * drawn are not like them. */
static void images_next_to_data_stay_where_they_help(void **state) {
  (void)state;
  enum { SAMPLE = 3 * 8 * 8, FEW = 8, ENOUGH = 64 };
  lac_model *model = read_model(two_products);
  lac_synthetic_options o = few(ENOUGH);
  o.seed = 99;
  lac_array images = draw(model, &o);
  images.name = "x";
  for (int noise = 0; noise < 2; noise++) {
    float *values = images.data;
    images.shape[0] = noise ? ENOUGH : FEW;
    images.size_bytes = (size_t)images.shape[0] * SAMPLE * sizeof *values;
    for (int k = 0; noise && k < ENOUGH * SAMPLE; k++)
      values[k] = (float)((unsigned)k * 2654435761U >> 20) / 1024 - 2;
    lac_report *report = prune_by(&images, 1 + noise);
    const lac_calibration_result *found = report->calibration;
    assert_int_equal(found->held_back, images.shape[0] / 4);
    assert_false(found->synthetic);
    assert_true(found->error_alone > 0 && found->error_added > 0);
    assert_int_equal(found->error_added < found->error_alone, !noise);
    assert_int_equal(found->synthetic_added > 0, !noise);
    assert_int_equal(strstr(found->data, "synthetic") != NULL, !noise);
    if (!noise) {
      lac_report *same = prune_by(&images, 2);
      assert_true(found->error_added == same->calibration->error_added);
      assert_true(found->outputs_error == same->calibration->outputs_error);
      lac_report_destroy(same);
    }
    lac_report_destroy(report);
  }
  lac_session_release(&images, 1);
  lac_model_destroy(model);
}

static void larger_networks_get_fewer_images(void **state) {
  (void)state;
  lac_model *small = read_model("input x 1x3x8x8\nstored w 4x3x1x1\ny = Conv(x, w)\noutput y\n");
  lac_model *large =
      read_model("input x 1x64x112x112\nstored w 512x64x3x3\ny = Conv(x, w)\noutput y\n");
  lac_model *huge =
      read_model("input x 1x64x512x512\nstored w 1024x64x3x3\ny = Conv(x, w)\noutput y\n");
  assert_int_equal(laci_synthetic_choose_image_count(small->graph), 512);
  assert_int_equal(laci_synthetic_choose_image_count(large->graph),
                   112); /* 4e11 / (110 * 110 * 512 * 576) */
  assert_int_equal(laci_synthetic_choose_image_count(huge->graph), 32);
  lac_model_destroy(small);
  lac_model_destroy(large);
  lac_model_destroy(huge);
}

static void synthetic_images_have_no_copies(void **state) {
  (void)state;
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  lac_options options = lac_options_default();
  lac_calibration calibration = lac_calibration_default();
  options.calibration = &calibration;
  calibration.synthetic = true;
  calibration.copies = 2;
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "more samples"));
  lac_model_destroy(model);
}

static const char product[] =
    "input x 2x3x4\nstored w 4x4 f32 = 1 2 3 4 1 2 3 4 1 2 3 4 1 2 3 4\ny = MatMul(x, w)\noutput "
    "y\n";

static void optional_calibration_is_left_out_without_images(void **state) {
  (void)state;
  lac_calibration calibration = lac_calibration_default();
  lac_error err = {0};
  lac_report *report = NULL;
  calibration.synthetic = true;
  calibration.optional = true;
  lac_report *pruned = prune_text(product, &calibration, NULL);
  assert_null(pruned->calibration);
  assert_string_equal(pruned->score, "magnitude");
  assert_non_null(pruned->uncalibrated);
  assert_non_null(strstr(pruned->uncalibrated, "input 'x' is f32"));
  lac_report_destroy(pruned);
  lac_options options = lac_options_default();
  options.calibration = &calibration;
  calibration.optional = false;
  lac_model *model = read_model(product);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_SHAPE);
  assert_int_equal(err.hint, LAC_HINT_CALIBRATION);
  lac_model_destroy(model);
}

static void optional_calibration_must_be_better_than_magnitude(void **state) {
  (void)state;
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  calibration.synthetic = true;
  calibration.optional = true;
  calibration.samples = 32;
  options.calibration = &calibration;
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  assert_non_null(report->calibration);
  assert_true(report->calibration->synthetic);
  assert_true(report->calibration->outputs_error < report->calibration->error_magnitude);
  assert_null(report->uncalibrated);
  lac_report_destroy(report);
  lac_model_destroy(model);
  calibration.solve = false; /* random masks whose weights nothing makes up for */
  options.score = "random";
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  assert_null(report->calibration);
  assert_non_null(strstr(report->uncalibrated, "masks by magnitude"));
  lac_report_destroy(report);
  lac_model_destroy(model);
}

/* A value that is not finite, whatever the input, is not an error of pruning by magnitude. */
static void optional_calibration_is_left_out_where_values_are_not_finite(void **state) {
  (void)state;
  static const char text[] =
      "input x 2x3x4x4\nstored zero 1 f32 = 0.0\nz = Mul(x, zero)\nl = Div(x, z)\n"
      "stored w 8x3x1x1 f32 = 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3\n"
      "a = Conv(l, w)\nstored v 8x8x1x1 f32 = 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 "
      "1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8\n"
      "y = Conv(a, v)\noutput y\n";
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  calibration.optional = true;
  calibration.samples = 32;
  lac_report *report = prune_text(text, &calibration, NULL);
  assert_null(report->calibration);
  assert_non_null(report->uncalibrated);
  lac_report_destroy(report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_range_is_that_of_the_first_normalization),
      cmocka_unit_test(a_first_step_tells_grey_levels_from_fractions),
      cmocka_unit_test(layouts_hold_the_same_images),
      cmocka_unit_test(open_sizes_are_those_of_the_crop),
      cmocka_unit_test(a_file_has_the_bytes_of_the_array_for_any_number_of_threads),
      cmocka_unit_test(what_takes_no_images_is_refused),
      cmocka_unit_test(bad_options_are_refused),
      cmocka_unit_test(every_failing_allocation_is_an_error),
      cmocka_unit_test(pruning_calibrates_on_synthetic_images),
      cmocka_unit_test(images_next_to_data_stay_where_they_help),
      cmocka_unit_test(larger_networks_get_fewer_images),
      cmocka_unit_test(synthetic_images_have_no_copies),
      cmocka_unit_test(optional_calibration_is_left_out_without_images),
      cmocka_unit_test(optional_calibration_must_be_better_than_magnitude),
      cmocka_unit_test(optional_calibration_is_left_out_where_values_are_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

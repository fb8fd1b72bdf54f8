/* SPDX-License-Identifier: Apache-2.0
 * Samples and scores from memory and from a function give the same network as from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/npy.h"
#include "lacuna/lacuna.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"
enum { SAMPLES = 48, PIXELS = 64, MOST_WEIGHT = 1 << 16 };

static float images[SAMPLES * PIXELS];
static int64_t labels[SAMPLES];

static int fill(void **state) {
  (void)state;
  for (int k = 0; k < SAMPLES * PIXELS; k++) images[k] = (float)(k * 7 % 17) / 17;
  for (int k = 0; k < SAMPLES; k++) labels[k] = k % 10;
  return 0;
}

static lac_array array_of_images(void *data) {
  return (lac_array){.name = "image",
                     .dtype = LAC_DTYPE_F32,
                     .rank = 4,
                     .shape = {SAMPLES, 1, 8, 8},
                     .data = data,
                     .size_bytes = data ? sizeof images : 0};
}

/* Prunes the digits' network, and returns the first pruned weight's bytes. */
static lac_status prune(const lac_options *options, uint8_t bytes[MOST_WEIGHT], size_t *size,
                        lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options quick = *options;
  quick.effort = LAC_EFFORT_FAST;
  quick.verify = false;
  lac_status st = lac_model_load(DIGITS, NULL, &model, err);
  if (!st) st = lac_prune(model, &quick, &report, err);
  for (int l = 0; !st && l < report->n_layers; l++) {
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    if (!report->layers[l].pruned) continue;
    st = lac_model_find_tensor(model, report->layers[l].weight, &tensor, err);
    if (st) break;
    assert_true(tensor.size_bytes > 0 && tensor.size_bytes <= MOST_WEIGHT);
    memcpy(bytes, tensor.bytes, *size = tensor.size_bytes);
    break;
  }
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
}

static lac_status read_image(void *context, const char *name, int64_t row, void *to,
                             lac_error *err) {
  (void)err;
  assert_string_equal(name, "image");
  ++*(int *)context;
  memcpy(to, &images[row * PIXELS], PIXELS * sizeof *images);
  return LAC_OK;
}

static lac_status refuse(void *context, const char *name, int64_t row, void *to, lac_error *err) {
  (void)context;
  (void)name;
  (void)to;
  if (err) (void)snprintf(err->text, sizeof err->text, "row %d is gone", (int)row);
  return LAC_IO;
}

static void samples_are_those_of_a_file(void **state) {
  (void)state;
  static uint8_t file[MOST_WEIGHT], memory[MOST_WEIGHT], function[MOST_WEIGHT];
  size_t n[3] = {0};
  int n_read = 0;
  folder f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "image.npy");
  const laci_type type = {LAC_DTYPE_F32, {4, {SAMPLES, 1, 8, 8}}};
  assert_int_equal(laci_npy_write(path, &type, images, true, NULL), LAC_OK);
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  lac_error err = {0};
  options.calibration = &calibration;
  calibration.data = path;
  if (prune(&options, file, &n[0], &err)) fail_msg("%s", err.text);
  lac_array array = array_of_images(images);
  lac_samples samples = {.size = sizeof samples, .arrays = &array, .n_arrays = 1};
  calibration.data = NULL;
  calibration.from_memory = &samples;
  if (prune(&options, memory, &n[1], &err)) fail_msg("%s", err.text);
  array = array_of_images(NULL);
  samples.read_row = read_image;
  samples.read_context = &n_read;
  if (prune(&options, function, &n[2], &err)) fail_msg("%s", err.text);
  assert_true(n[0] > 0 && n[1] == n[0] && n[2] == n[0] && n_read >= SAMPLES);
  assert_memory_equal(memory, file, n[0]);
  assert_memory_equal(function, file, n[0]);
  remove_folder(&f);
}

static void labels_count_right_answers(void **state) {
  (void)state;
  const lac_array arrays[] = {array_of_images(images),
                              {.name = "labels",
                               .dtype = LAC_DTYPE_I64,
                               .rank = 1,
                               .shape = {SAMPLES},
                               .data = labels,
                               .size_bytes = sizeof labels}};
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  lac_model *model = NULL;
  lac_report *report = NULL;
  const lac_samples samples = {.size = sizeof samples, .arrays = arrays, .n_arrays = 2};
  calibration.from_memory = &samples;
  options.calibration = &calibration;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  assert_int_equal(lac_prune(model, &options, &report, NULL), LAC_OK);
  assert_true(report->calibration->labelled > 0);
  assert_non_null(strstr(report->calibration->data, "(memory)"));
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void expect_refused(const lac_options *options, lac_status wanted, const char *words) {
  static uint8_t bytes[MOST_WEIGHT];
  size_t n;
  lac_error err = {0};
  const lac_status st = prune(options, bytes, &n, &err);
  if (st != wanted || !strstr(err.text, words)) {
    fail_msg("status %d, \"%s\", wanted \"%s\"", (int)st, err.text, words);
  }
}

static void wrong_arrays_are_named(void **state) {
  (void)state;
  lac_array array = array_of_images(images), both[2];
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  options.calibration = &calibration;
  lac_samples samples = {.size = sizeof samples, .arrays = &array, .n_arrays = 1};
  calibration.from_memory = &samples;
  calibration.data = "digits";
  expect_refused(&options, LAC_BAD_ARGUMENT, "calibration with data and from_memory");
  calibration.data = NULL;
  array.size_bytes--;
  expect_refused(&options, LAC_BAD_ARGUMENT, "image: size_bytes is 12287, wanted 12288");
  array = array_of_images(NULL);
  expect_refused(&options, LAC_BAD_ARGUMENT, "image: it has no data, and there is no read_row");
  samples.read_row = refuse;
  expect_refused(&options, LAC_IO, "is gone");
  array = array_of_images(images);
  array.name = NULL;
  expect_refused(&options, LAC_BAD_ARGUMENT, "array 0 has no name");
  array = array_of_images(images);
  array.name = "picture";
  expect_refused(&options, LAC_BAD_ARGUMENT, "array picture is no input of the network");
  array = array_of_images(images);
  array.dtype = LAC_DTYPE_TEXT;
  expect_refused(&options, LAC_UNSUPPORTED, "image: elements of type");
  array = array_of_images(images);
  array.rank = 9;
  expect_refused(&options, LAC_BAD_SHAPE, "image: rank 9, wanted 0 to 8");
  array = array_of_images(images);
  array.shape[0] = INT64_MAX;
  expect_refused(&options, LAC_BAD_SHAPE, "image: a size is negative, or the array is too large");
  both[0] = both[1] = array_of_images(images);
  samples.arrays = both;
  samples.n_arrays = 2;
  expect_refused(&options, LAC_BAD_ARGUMENT, "array image is given twice");
  samples.n_arrays = -1;
  expect_refused(&options, LAC_BAD_ARGUMENT, "-1 arrays");
}

/* Scores of |w| choose the masks that the default chooses. */
static void scores_choose_masks(void **state) {
  (void)state;
  static uint8_t usual[MOST_WEIGHT], own[MOST_WEIGHT];
  static float values[64][MOST_WEIGHT];
  lac_array scores[64] = {{0}};
  int n_scores = 0;
  size_t n[2] = {0};
  lac_model *model = NULL;
  lac_error err = {0};
  lac_options options = lac_options_default();
  options.permute = false;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, &err), LAC_OK);
  for (int t = 0; t < lac_model_tensor_count(model) && n_scores < 64; t++) {
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(model, t, &tensor, NULL), LAC_OK);
    if (tensor.dtype != LAC_DTYPE_F32 || tensor.rank < 2) continue;
    lac_array *a = &scores[n_scores];
    memcpy(values[n_scores], tensor.bytes, tensor.size_bytes);
    for (size_t e = 0; e < tensor.size_bytes / sizeof(float); e++) {
      if (values[n_scores][e] < 0) values[n_scores][e] = -values[n_scores][e];
    }
    *a = (lac_array){.name = tensor.name,
                     .dtype = tensor.dtype,
                     .rank = tensor.rank,
                     .data = values[n_scores++],
                     .size_bytes = tensor.size_bytes};
    memcpy(a->shape, tensor.shape, sizeof a->shape);
  }
  if (prune(&options, usual, &n[0], &err)) fail_msg("%s", err.text);
  options.scores = scores;
  options.n_scores = n_scores;
  if (prune(&options, own, &n[1], &err)) fail_msg("%s", err.text);
  assert_true(n[0] > 0 && n[0] == n[1]);
  assert_memory_equal(usual, own, n[0]);
  options.score = "magnitude";
  expect_refused(&options, LAC_BAD_ARGUMENT, "scores in memory and a score by name");
  options.score = NULL;
  options.n_scores = 0;
  expect_refused(&options, LAC_NOT_FOUND, "no scores for the weight");
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_are_those_of_a_file), cmocka_unit_test(labels_count_right_answers),
      cmocka_unit_test(wrong_arrays_are_named), cmocka_unit_test(scores_choose_masks)};
  return cmocka_run_group_tests(tests, fill, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Training and evaluation from arrays and from a function give the same bytes as from a path to the
 * same samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/npy.h"
#include "lacuna/lacuna.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"
enum { N = 40, PIXELS = 64, PICTURES = 8, PICTURE_BYTES = 3072, MOST_BYTES = 1 << 22 };

static float digits[N * PIXELS];
static int64_t labels[N];
static uint8_t pictures[PICTURES * PICTURE_BYTES]; /* what add_cifar writes */
static uint8_t picture_labels[PICTURES];

static int fill(void **state) {
  (void)state;
  for (int k = 0; k < N * PIXELS; k++) digits[k] = (float)(k * 7 % 17) / 17;
  for (int k = 0; k < N; k++) labels[k] = k % 7; /* three of the ten classes are missing */
  for (int k = 0; k < PICTURES; k++) {
    picture_labels[k] = (uint8_t)(k % 10);
    for (int at = 0; at < PICTURE_BYTES; at++)
      pictures[k * PICTURE_BYTES + at] = (uint8_t)(at * 7 + k * 31);
  }
  return 0;
}

/* Two arrays, and the samples that point to them. */
typedef struct given {
  lac_array arrays[2];
  lac_samples samples;
} given;

static void give(given *g, lac_array of_samples, lac_array of_labels) {
  g->arrays[0] = of_samples;
  g->arrays[1] = of_labels;
  g->samples = (lac_samples){.size = sizeof g->samples, .arrays = g->arrays, .n_arrays = 2};
}

static lac_array array_of_labels(lac_dtype dtype, int64_t n, void *data) {
  return (lac_array){.name = "labels",
                     .dtype = dtype,
                     .rank = 1,
                     .shape = {n},
                     .data = data,
                     .size_bytes = (size_t)n * lac_dtype_size(dtype)};
}

static void give_digits(given *g) {
  give(g,
       (lac_array){.name = "image",
                   .dtype = LAC_DTYPE_F32,
                   .rank = 4,
                   .shape = {N, 1, 8, 8},
                   .data = digits,
                   .size_bytes = sizeof digits},
       array_of_labels(LAC_DTYPE_I64, N, labels));
}

static void give_pictures(given *g) {
  give(g,
       (lac_array){.name = "image",
                   .dtype = LAC_DTYPE_U8,
                   .rank = 4,
                   .shape = {PICTURES, 3, 32, 32},
                   .data = pictures,
                   .size_bytes = sizeof pictures},
       array_of_labels(LAC_DTYPE_U8, PICTURES, picture_labels));
}

static folder folder_of_digits(void) {
  folder f = make_folder();
  char path[FOLDER_PATH];
  const laci_type images = {LAC_DTYPE_F32, {4, {N, 1, 8, 8}}}, numbers = {LAC_DTYPE_I64, {1, {N}}};
  path_in(path, &f, "image.npy");
  assert_int_equal(laci_npy_write(path, &images, digits, true, NULL), LAC_OK);
  path_in(path, &f, "labels.npy");
  assert_int_equal(laci_npy_write(path, &numbers, labels, true, NULL), LAC_OK);
  return f;
}

/* ---- Networks, trained and evaluated ---- */

static lac_model *load_digits(void) {
  lac_model *model = NULL;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  return model;
}

static lac_model *fresh_network(void) {
  lac_network_options options = lac_network_options_default();
  lac_model *model = NULL;
  options.name = "cifar-resnet20";
  assert_int_equal(lac_network_create(&options, &model, NULL), LAC_OK);
  return model;
}

static lac_train_options quick(void) {
  lac_train_options o = lac_train_options_default();
  o.run.threads = 2;
  o.recipe = "cifar";
  o.batch = 4;
  o.steps = 2;
  o.seed = 5;
  return o;
}

typedef struct outcome {
  lac_train_result trained;
  lac_eval_result scored;
  size_t n;
  uint8_t bytes[MOST_BYTES]; /* of all tensors */
} outcome;

/* Trains and evaluates, and destroys the model. */
static void run(lac_model *model, const char *data, const lac_samples *memory, outcome *to) {
  lac_train_options train = quick();
  lac_eval_options eval = lac_eval_options_default();
  lac_error err = {0};
  to->trained = (lac_train_result)LAC_SIZED(lac_train_result);
  to->scored = (lac_eval_result)LAC_SIZED(lac_eval_result);
  to->n = 0;
  train.from_memory = eval.from_memory = memory;
  eval.run.threads = 2;
  eval.batch = 8;
  if (lac_train(model, data, NULL, &train, &to->trained, &err)) fail_msg("%s", err.text);
  if (lac_eval(model, data, &eval, &to->scored, &err)) fail_msg("%s", err.text);
  for (int t = 0; t < lac_model_tensor_count(model); t++) {
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(model, t, &tensor, NULL), LAC_OK);
    assert_true(to->n + tensor.size_bytes <= MOST_BYTES);
    memcpy(to->bytes + to->n, tensor.bytes, tensor.size_bytes);
    to->n += tensor.size_bytes;
  }
  lac_model_destroy(model);
}

static void expect_same(const outcome *a, const outcome *b) {
  assert_true(a->trained.loss == b->trained.loss && a->trained.top1 == b->trained.top1);
  assert_true(a->trained.eval_loss == b->trained.eval_loss);
  assert_int_equal(a->scored.images, b->scored.images);
  assert_true(a->scored.top1 == b->scored.top1 && a->scored.loss == b->scored.loss);
  assert_true(a->n > 0 && a->n == b->n);
  assert_memory_equal(a->bytes, b->bytes, a->n);
}

static outcome first, second;

static lac_status read_row(void *context, const char *name, int64_t row, void *to, lac_error *err) {
  (void)err;
  assert_true(row >= 0 && row < N);
  __atomic_fetch_add((int *)context, 1, __ATOMIC_RELAXED);
  if (strcmp(name, "labels") == 0) memcpy(to, &labels[row], sizeof *labels);
  else memcpy(to, &digits[row * PIXELS], PIXELS * sizeof *digits);
  return LAC_OK;
}

static void arrays_are_those_of_files(void **state) {
  (void)state;
  given g;
  int n_read = 0;
  folder f = folder_of_digits();
  run(load_digits(), f.path, NULL, &first);
  assert_int_equal(first.scored.images, N);
  give_digits(&g);
  run(load_digits(), NULL, &g.samples, &second);
  expect_same(&first, &second);
  for (int k = 0; k < 2; k++) g.arrays[k].data = NULL;
  g.samples.read_row = read_row;
  g.samples.read_context = &n_read;
  run(load_digits(), NULL, &g.samples, &second);
  expect_same(&first, &second);
  assert_true(n_read > 2 * N);
  remove_folder(&f);
}

static double loss_of(const lac_model *network, const lac_samples *samples) {
  lac_eval_options eval = lac_eval_options_default();
  lac_eval_result scored = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  eval.from_memory = samples;
  eval.run.threads = 2;
  if (lac_eval(network, NULL, &eval, &scored, &err)) fail_msg("%s", err.text);
  return scored.loss;
}

/* A path of CIFAR's files has a test part of its own. */
static void bytes_are_images_of_cifar(void **state) {
  (void)state;
  given g;
  folder f = make_folder();
  add_cifar(&f, "data_batch_1.bin", 1, PICTURES, 0, 10);
  add_cifar(&f, "test_batch.bin", 1, PICTURES, 0, 10);
  run(fresh_network(), f.path, NULL, &first);
  give_pictures(&g);
  run(fresh_network(), NULL, &g.samples, &second);
  expect_same(&first, &second);
  static uint8_t last[sizeof pictures]; /* channels last */
  for (int k = 0; k < PICTURES; k++) {
    for (int c = 0; c < 3; c++)
      for (int x = 0; x < 1024; x++)
        last[k * PICTURE_BYTES + x * 3 + c] = pictures[k * PICTURE_BYTES + c * 1024 + x];
  }
  const int64_t shape[] = {PICTURES, 32, 32, 3};
  lac_model *network = fresh_network();
  const double loss = loss_of(network, &g.samples);
  g.arrays[0].data = last;
  memcpy(g.arrays[0].shape, shape, sizeof shape);
  assert_true(loss_of(network, &g.samples) == loss);
  lac_model_destroy(network);
  remove_folder(&f);
}

static void a_part_of_its_own_is_evaluated(void **state) {
  (void)state;
  given g, test;
  lac_train_options o = quick();
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_train_data found = LAC_SIZED(lac_train_data);
  lac_train_size size = LAC_SIZED(lac_train_size);
  lac_eval_result scored = LAC_SIZED(lac_eval_result);
  lac_eval_options eval = lac_eval_options_default();
  lac_error err = {0};
  lac_model *model = load_digits();
  give_digits(&g);
  give_digits(&test);
  for (int k = 0; k < 2; k++) { /* the last ten */
    test.arrays[k].shape[0] = 10;
    test.arrays[k].size_bytes /= 4;
  }
  test.arrays[0].data = digits + 30 * PIXELS;
  test.arrays[1].data = labels + 30;
  o.from_memory = &g.samples;
  o.test_from_memory = &test.samples;
  if (lac_train_data_find(NULL, &o, &found, &err)) fail_msg("%s", err.text);
  assert_string_equal(found.format, "arrays");
  assert_true(found.images == N && found.classes == 7 && found.channels == 1 && found.width == 8);
  if (lac_train_size_find(NULL, &o, &size, &err)) fail_msg("%s", err.text);
  assert_int_equal(size.images, N);
  if (lac_train_check(model, NULL, &o, &err)) fail_msg("%s", err.text);
  if (lac_train(model, NULL, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  eval.from_memory = &test.samples;
  eval.run.threads = 2;
  eval.batch = 4;
  if (lac_eval(model, NULL, &eval, &scored, &err)) fail_msg("%s", err.text);
  assert_int_equal(scored.images, 10);
  assert_true(result.evaluated && result.top1 == scored.top1);
  lac_model_destroy(model);
}

static void finetuning_takes_samples(void **state) {
  (void)state;
  given g;
  lac_train_options train = quick();
  lac_finetune_options o = lac_finetune_options_default();
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  lac_error err = {0};
  lac_model *model = load_digits();
  give_digits(&g);
  train.from_memory = &g.samples;
  o.training = &train;
  if (lac_finetune(model, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_true(lac_mask_count(result.mask) > 0);
  assert_int_equal(result.training->images, N);
  lac_finetune_result_clear(&result);
  lac_model_destroy(model);
}

/* ---- What is refused ---- */

static lac_model *model;

static void expect_refused(const lac_samples *samples, const char *data, lac_status wanted,
                           const char *words) {
  lac_eval_options eval = lac_eval_options_default();
  lac_train_options train = quick();
  lac_eval_result scored = LAC_SIZED(lac_eval_result);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  eval.from_memory = train.from_memory = samples;
  lac_status st = lac_eval(model, data, &eval, &scored, &err);
  if (st != wanted || !strstr(err.text, words))
    fail_msg("eval: status %d, \"%s\", wanted \"%s\"", (int)st, err.text, words);
  err = (lac_error){0};
  st = lac_train(model, data, NULL, &train, &result, &err);
  if (st != wanted || !strstr(err.text, words))
    fail_msg("train: status %d, \"%s\", wanted \"%s\"", (int)st, err.text, words);
}

static lac_status refuse(void *context, const char *name, int64_t row, void *to, lac_error *err) {
  (void)context;
  if (strcmp(name, "labels") == 0) return read_row(&(int){0}, name, row, to, err);
  if (row == 3 && err) (void)snprintf(err->text, sizeof err->text, "row 3 is gone");
  return row == 3 ? LAC_IO : read_row(&(int){0}, name, row, to, err);
}

static void wrong_samples_are_named(void **state) {
  (void)state;
  given g;
  model = load_digits();
  give_digits(&g);
  expect_refused(&g.samples, "digits", LAC_BAD_ARGUMENT, "data and options.from_memory");
  expect_refused(NULL, NULL, LAC_BAD_ARGUMENT, "data is NULL");
  g.samples.size = 0;
  expect_refused(&g.samples, NULL, LAC_BAD_ARGUMENT, "lac_samples.size is 0");
  give_digits(&g);
  g.samples.n_arrays = 1;
  expect_refused(&g.samples, NULL, LAC_NOT_FOUND, "(memory): no array labels");
  give_digits(&g);
  g.arrays[0].name = "picture";
  expect_refused(&g.samples, NULL, LAC_BAD_ARGUMENT, "array picture, wanted one of samples, image");
  give_digits(&g);
  g.arrays[1].name = "image";
  expect_refused(&g.samples, NULL, LAC_BAD_ARGUMENT, "array image is given twice");
  give_digits(&g);
  g.arrays[1].shape[0]--;
  g.arrays[1].size_bytes -= sizeof *labels;
  expect_refused(&g.samples, NULL, LAC_BAD_SHAPE, "labels: 39 samples, but the first input has 40");
  give_digits(&g);
  g.arrays[0].shape[2] = 4;
  g.arrays[0].shape[3] = 16;
  expect_refused(&g.samples, NULL, LAC_BAD_SHAPE, "input 'image' is f32");
  give_digits(&g);
  g.arrays[0].dtype = LAC_DTYPE_I32;
  expect_refused(&g.samples, NULL, LAC_BAD_SHAPE, "wanted floats [N, ...], or bytes (u8)");
  give_digits(&g);
  labels[5] = 10;
  expect_refused(&g.samples, NULL, LAC_BAD_SHAPE, "11 classes, but output");
  labels[5] = -1;
  expect_refused(&g.samples, NULL, LAC_BAD_VALUE, "labels: label -1 of sample 5");
  labels[5] = 5;
  digits[3 * PIXELS + 1] = 1.0f / 0.0f;
  lac_eval_options eval = lac_eval_options_default();
  lac_eval_result scored = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  eval.from_memory = &g.samples;
  assert_int_equal(lac_eval(model, NULL, &eval, &scored, &err), LAC_BAD_VALUE);
  assert_non_null(strstr(err.text, "image: element 1 of sample 3 is infinite"));
  digits[3 * PIXELS + 1] = 0;
  g.arrays[0].data = NULL;
  g.samples.read_row = refuse;
  assert_int_equal(lac_eval(model, NULL, &eval, &scored, &err), LAC_IO);
  assert_non_null(strstr(err.text, "image: row 3 is gone"));
  eval.crop = 8;
  assert_int_equal(lac_eval(model, NULL, &eval, &scored, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "resizing and cropping are for images"));
  lac_train_options train = quick();
  lac_train_result result = LAC_SIZED(lac_train_result);
  train.test_from_memory = &g.samples;
  assert_int_equal(lac_train(model, "digits", NULL, &train, &result, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "test_from_memory, but no options.from_memory"));
  lac_model_destroy(model);
}

static void no_allocation_that_fails_leaks(void **state) {
  (void)state;
  given g;
  lac_model *loaded = load_digits();
  lac_eval_options eval = lac_eval_options_default();
  give_digits(&g);
  eval.from_memory = &g.samples;
  eval.run.threads = 1;
  for (long n = 1;; n += 1 + n / 32) {
    lac_eval_result scored = LAC_SIZED(lac_eval_result);
    lac_error err = {0};
    laci_memory_fail_from(n);
    const lac_status st = lac_eval(loaded, NULL, &eval, &scored, &err);
    laci_memory_fail_from(0);
    if (!st) break;
    if (st != LAC_NO_MEMORY || n > 1000000) fail_msg("allocation %ld: %s", n, err.text);
  }
  lac_model_destroy(loaded);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_are_those_of_files),
                                     cmocka_unit_test(bytes_are_images_of_cifar),
                                     cmocka_unit_test(a_part_of_its_own_is_evaluated),
                                     cmocka_unit_test(finetuning_takes_samples),
                                     cmocka_unit_test(wrong_samples_are_named),
                                     cmocka_unit_test(no_allocation_that_fails_leaks)};
  return cmocka_run_group_tests(tests, fill, NULL);
}

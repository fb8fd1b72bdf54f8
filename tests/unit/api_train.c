/* SPDX-License-Identifier: Apache-2.0
 * lac_train and what goes with it: fresh networks, options and data that do not fit, what is in
 * the folder afterwards, what is evaluated, masks, and how a run ends. */
#include "lacuna/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/folder.h"
#include "base/memory.h"
#include "base/reader.h"
#include "lacuna/eval.h"
#include "lacuna/log.h"
#include "lacuna/pack.h"
#include "lacuna/report.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"
#include "unit/data_folder.h"
#include "support/light.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

static lac_model *fresh(const char *name, int classes) {
  lac_network_options o = {
      .size = sizeof(lac_network_options), .name = name, .classes = classes, .seed = 2};
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_network_create(&o, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_train_options quick(int64_t steps) {
  lac_train_options o = lac_train_options_default();
  o.run.threads = 1;
  o.recipe = "cifar";
  o.batch = 24;
  o.steps = steps;
  o.rate = 0.05;
  return o;
}

static bool is_there(const folder *f, const char *name) {
  char path[FOLDER_PATH];
  struct stat found;
  path_in(path, f, name);
  return stat(path, &found) == 0;
}

/* ---- What is refused ---- */

static void options_beyond_their_limits_are_refused(void **state) {
  (void)state;
  lac_model *model = fresh("digits", 0);
  static const char *const texts[] = {
      "batch size 70000: wanted 0 to 65536",
      "accumulated batches 0: wanted 1 to 65536",
      "momentum 1: wanted 0 to 1",
      "rate nan: wanted 0 to 1e+06",
      "recipe x: wanted resnet-sgd, resnet-lars, resnext, mixup-250, cifar or adamw-300",
      "optimizer x: wanted sgd, lars or adamw",
      "schedule x: wanted constant, piecewise, cosine or polynomial",
      "optimizer adamw: the rate of recipe cifar is made for sgd: wanted a rate, 0.001 say",
      "boundaries with schedule polynomial: wanted piecewise",
      "boundary 2 after 2: wanted ascending epochs above 0, 1000000 at most",
      "9 boundaries: wanted 8 at most",
      "decay 0.5 with schedule cosine: wanted piecewise",
      "decay nan: wanted 0 to 1e+06",
      "images to evaluate on -1: wanted 0 to",
      "a stop threshold without evaluations",
      "the best evaluated weights without evaluations",
      "recovering: no model dir says where checkpoints are",
      "it holds digits, but the format wanted is cifar10",
      "a run in f16: wanted f32 or bf16",
      "0 epochs: wanted more, or to evaluate only",
      "1437 images for training are less than a batch of 1439, and a step takes whole batches: "
      "wanted a batch of 1437 or less",
      ("1437 images for training are less than a step of 60 batches of 24: wanted a step of 59 "
       "batches or "
       "less"),
      "moving average 1: wanted 0 to less than 1",
      "moving average nan: wanted 0 to less than 1",
  };
  enum { N = sizeof texts / sizeof *texts };
  lac_train_options o[N];
  for (int k = 0; k < N; k++) o[k] = quick(1);
  o[0].batch = 70000;
  o[1].accumulate = 0;
  o[2].momentum = 1;
  o[3].rate = NAN;
  o[4].recipe = "x";
  o[5].optimizer = "x";
  o[6].schedule = "x";
  o[7].optimizer = "adamw";
  o[7].rate = -1;
  const double boundaries[9] = {2, 2};
  o[8].boundaries = o[9].boundaries = o[10].boundaries = boundaries;
  o[8].n_boundaries = 1;
  o[8].schedule = "polynomial";
  o[9].n_boundaries = 2;
  o[10].n_boundaries = 9;
  o[11].decay = 0.5;
  o[12].decay = NAN;
  o[13].eval_limit = -1;
  o[14].stop_threshold = 90;
  o[14].evaluate = false;
  o[15].keep_best = true;
  o[15].evaluate = false;
  o[16].recover = true;
  o[17].format = "cifar10";
  o[18].run.dtype = LAC_DTYPE_F16;
  o[19].epochs = 0;
  o[19].steps = 0;
  o[20].batch = 1439;
  o[21].accumulate = 60;
  o[22].ema = 1;
  o[23].ema = NAN;
  for (int k = 0; k < N; k++) {
    lac_train_result result = LAC_SIZED(lac_train_result);
    lac_error err = {0};
    assert_int_equal(lac_train(model, DIGITS, NULL, &o[k], &result, &err), LAC_BAD_ARGUMENT);
    if (!strstr(err.text, texts[k])) fail_msg("%s, wanted %s", err.text, texts[k]);
  }
  lac_model_destroy(model);
}

static void expect_refusal(lac_model *model, const char *data, const lac_mask *mask,
                           lac_status wanted, const char *text) {
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_train_options o = quick(2);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  path_in(path, &f, "run");
  o.batch = 4;
  o.model_dir = path;
  lac_status st = lac_train(model, data, mask, &o, &result, &err);
  if (st != wanted || !strstr(err.text, text)) fail_msg("%d %s, wanted %s", st, err.text, text);
  assert_false(is_there(&f, "run")); /* nothing was written */
  remove_folder(&f);
}

static void data_that_do_not_fit_are_refused_before_anything_is_written(void **state) {
  (void)state;
  folder cifar = make_folder(), no_test = make_folder(), parts = make_folder();
  lac_model *digits = fresh("digits", 0), *five = fresh("cifar-resnet20", 5),
            *ten = fresh("cifar-resnet20", 10), *hundred = fresh("cifar-resnet20", 100);
  add_cifar(&cifar, "data_batch_1.bin", 1, 20, 0, 10);
  add_cifar(&cifar, "test_batch.bin", 1, 10, 0, 10);
  add_cifar(&no_test, "data_batch_1.bin", 1, 20, 0, 10);
  expect_refusal(digits, cifar.path, NULL, LAC_BAD_SHAPE, "image");
  expect_refusal(ten, DIGITS, NULL, LAC_BAD_SHAPE, "image");
  expect_refusal(
      five, cifar.path, NULL, LAC_BAD_SHAPE,
      "10 classes, but output 'scores' has 5: wanted a network of 10 outputs, or data of 5");
  expect_refusal(hundred, cifar.path, NULL, LAC_BAD_SHAPE,
                 "10 classes, but output 'scores' has 100");
  expect_refusal(ten, no_test.path, NULL, LAC_NOT_FOUND, "test_batch.bin");
  expect_refusal(ten, "nowhere", NULL, LAC_NOT_FOUND, "nowhere");
  remove_folder(&cifar);
  remove_folder(&no_test);
  remove_folder(&parts);
  lac_model_destroy(digits);
  lac_model_destroy(five);
  lac_model_destroy(ten);
  lac_model_destroy(hundred);
}

static void a_mask_of_no_weight_is_refused(void **state) {
  (void)state;
  static const float values[4] = {1, 2, 3, 4};
  lac_model *model = fresh("digits", 0);
  lac_mask *mask = NULL;
  lac_mask_weight weight = {.size = sizeof(lac_mask_weight),
                            .name = "nobody",
                            .dtype = LAC_DTYPE_F32,
                            .rank = 1,
                            .shape = {4},
                            .values = values};
  assert_int_equal(lac_mask_create(&mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_add_zeros(mask, &weight, NULL), LAC_OK);
  expect_refusal(model, DIGITS, mask, LAC_NOT_FOUND, "nobody: it has a mask");
  lac_mask_destroy(mask);
  assert_int_equal(lac_mask_create(&mask, NULL), LAC_OK);
  weight.name = "bn1.running_mean"; /* it changes, but is no weight */
  assert_int_equal(lac_mask_add_zeros(mask, &weight, NULL), LAC_OK);
  expect_refusal(model, DIGITS, mask, LAC_NOT_FOUND, "bn1.running_mean: it has a mask");
  lac_mask_destroy(mask);
  assert_int_equal(lac_mask_create(&mask, NULL), LAC_OK);
  weight.name = "conv1.weight";
  assert_int_equal(lac_mask_add_zeros(mask, &weight, NULL), LAC_OK);
  expect_refusal(model, DIGITS, mask, LAC_BAD_SHAPE, "but its mask has 4");
  lac_mask_destroy(mask);
  lac_model_destroy(model);
}

/* ---- Data ---- */

static void what_is_in_a_folder_is_told(void **state) {
  (void)state;
  folder cifar = make_folder();
  lac_train_options o = lac_train_options_default();
  lac_train_data found = LAC_SIZED(lac_train_data);
  add_cifar(&cifar, "train.bin", 2, 20, 0, 100);
  add_cifar(&cifar, "test.bin", 2, 10, 0, 100);
  assert_int_equal(lac_train_data_find(cifar.path, &o, &found, NULL), LAC_OK);
  assert_string_equal(found.format, "cifar100");
  assert_true(found.images == 20 && found.classes == 100 && found.channels == 3);
  assert_int_equal(lac_train_data_find(DIGITS, &o, &found, NULL), LAC_OK);
  assert_string_equal(found.format, "digits");
  assert_true(found.classes == 10 && found.channels == 1 && found.height == 8);
  remove_folder(&cifar);
}

static void the_parts_of_a_folder_have_the_same_classes(void **state) {
  (void)state;
  static const char *const parts[] = {"train", "val"};
  static const char *const names[] = {"train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg"};
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_model *model = fresh("cifar-resnet20", 2);
  lac_train_options o = quick(1);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  o.batch = 2;
  o.resize = o.crop = 32;
  for (int k = 0; k < 2; k++) {
    path_in(path, &f, parts[k]);
    assert_int_equal(mkdir(path, 0777), 0);
  }
  for (int k = 0; k < 3; k++) add_picture(&f, names[k]);
  assert_int_equal(lac_train(model, f.path, NULL, &o, &result, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "1 classes for evaluation, but 2 for training"));
  add_picture(&f, "val/c/1.jpg");
  assert_int_equal(lac_train(model, f.path, NULL, &o, &result, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "class 1 is 'c' for evaluation, but 'b' for training"));
  o.evaluate = false; /* then it does not matter */
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_true(isfinite(result.loss));
  lac_model_destroy(model);
  remove_folder(&f);
}

static bool file_says(const folder *f, const char *file, const char *words) {
  char path[FOLDER_PATH];
  laci_file_bytes x;
  path_in(path, f, file);
  assert_int_equal(laci_file_bytes_read(path, &x, NULL), LAC_OK);
  bool found = false;
  const size_t n = strlen(words);
  for (size_t at = 0; at + n <= x.size_bytes && !found; at++)
    found = memcmp((const char *)x.bytes + at, words, n) == 0;
  laci_file_bytes_clear(&x);
  return found;
}

static void expect_names(const folder *f, lac_model *model, const char *names) {
  char path[FOLDER_PATH];
  lac_error err = {0};
  path_in(path, f, "looked.onnx");
  if (lac_model_save(model, path, true, &err)) fail_msg("%s", err.text);
  assert_int_equal(file_says(f, "looked.onnx", "lacuna.class_names"), names != NULL);
  if (names) assert_true(file_says(f, "looked.onnx", names));
}

/* The model is saved, loaded from there, and evaluates its own training data. */
static void expect_saved(const folder *f, lac_model **model, const char *data, const char *names) {
  static int n_saved; /* an input is never replaced */
  char name[32], path[FOLDER_PATH];
  lac_eval_options o = lac_eval_options_default();
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  (void)snprintf(name, sizeof name, "saved%d.onnx", n_saved++);
  path_in(path, f, name);
  if (lac_model_save(*model, path, true, &err)) fail_msg("%s", err.text);
  lac_model_destroy(*model);
  if (lac_model_load(path, NULL, model, &err)) fail_msg("%s", err.text);
  expect_names(f, *model, names);
  o.run.threads = 1;
  o.resize = o.crop = 32;
  if (lac_eval(*model, data, &o, &result, &err)) fail_msg("%s", err.text);
}

/* Of each training: what its file says of classes is of the last data that it was trained on. */
static void names_of_classes_are_those_of_the_last_training(void **state) {
  (void)state;
  static const struct {
    const char *classes[2], *names; /* names NULL: the file has none */
  } cases[] = {{{"a", "b"}, "a\nb"},
               {{"c", "d\xff"}, NULL}, /* no UTF-8 */
               {{"e", "f"}, "e\nf"},
               {{"g\nh", "i"}, NULL}};
  folder saved = make_folder();
  lac_model *model = fresh("cifar-resnet20", 2);
  lac_train_options o = quick(1);
  o.batch = 2;
  o.evaluate = false;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    folder f = make_folder();
    char name[64];
    lac_train_result result = LAC_SIZED(lac_train_result);
    lac_error err = {0};
    for (int c = 0; c < 2; c++) {
      (void)snprintf(name, sizeof name, "%s/1.jpg", cases[k].classes[c]);
      add_picture(&f, name);
    }
    o.resize = o.crop = 32;
    if (lac_train_check(model, f.path, &o, &err)) fail_msg("%s", err.text);
    if (k > 0) /* which is a look only */
      expect_names(&saved, model, cases[k - 1].names);
    if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
    expect_saved(&saved, &model, f.path, cases[k].names);
    remove_folder(&f);
  }
  lac_model_destroy(model);
  remove_folder(&saved);
}

/* Data that number classes by themselves remove the names of other ones. */
static void numbers_of_data_replace_names_of_folders(void **state) {
  (void)state;
  folder f = make_folder(), cifar = make_folder(), saved = make_folder();
  lac_model *model = fresh("cifar-resnet20", 10);
  lac_train_options o = quick(1);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  for (int c = 0; c < 10; c++) {
    char name[16];
    (void)snprintf(name, sizeof name, "%c/1.jpg", 'a' + c);
    add_picture(&f, name);
  }
  add_cifar(&cifar, "data_batch_1.bin", 1, 20, 0, 10);
  add_cifar(&cifar, "test_batch.bin", 1, 10, 0, 10);
  o.batch = 10;
  o.resize = o.crop = 32;
  o.evaluate = false;
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  expect_saved(&saved, &model, f.path, "a\nb\nc");
  o.resize = o.crop = 0;
  if (lac_train(model, cifar.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  expect_saved(&saved, &model, cifar.path, NULL);
  lac_model_destroy(model);
  remove_folder(&f);
  remove_folder(&cifar);
  remove_folder(&saved);
}

static void count_warnings(lac_log_level level, const char *line, void *context) {
  int *n = context;
  *n += level == LAC_LOG_WARNING && (strstr(line, "left out") || strstr(line, "no folders train"));
}

static void one_part_of_a_folder_will_do_where_the_other_is_not_looked_at(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("cifar-resnet20", 2);
  lac_train_options o = quick(1);
  lac_train_data found = LAC_SIZED(lac_train_data);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  o.batch = 2;
  o.resize = o.crop = 32;
  char path[FOLDER_PATH];
  path_in(path, &f, "train");
  assert_int_equal(mkdir(path, 0777), 0);
  add_picture(&f, "train/a/1.jpg");
  add_picture(&f, "train/b/1.jpg");
  assert_int_equal(lac_train(model, f.path, NULL, &o, &result, &err), LAC_NOT_FOUND);
  if (!strstr(err.text, "it has a folder train, but none for evaluation: wanted val"))
    fail_msg("%s", err.text);
  o.eval_only = true;
  assert_int_equal(lac_train(model, f.path, NULL, &o, &result, &err), LAC_NOT_FOUND);
  o.eval_only = o.evaluate = false;
  if (lac_train_data_find(f.path, &o, &found, &err)) fail_msg("%s", err.text);
  assert_true(found.images == 2 && found.classes == 2);
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  remove_folder(&f);
  f = make_folder();
  path_in(path, &f, "val");
  assert_int_equal(mkdir(path, 0777), 0);
  add_picture(&f, "val/a/1.jpg");
  add_picture(&f, "val/b/1.jpg");
  o.eval_only = o.evaluate = true;
  o.batch = 24; /* more than there are */
  if (lac_train_check(model, f.path, &o, &err)) fail_msg("%s", err.text);
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_true(result.evaluated && result.steps == 0);
  o.eval_only = false;
  assert_int_equal(lac_train(model, f.path, NULL, &o, &result, &err), LAC_NOT_FOUND);
  if (!strstr(err.text, "it has a folder val, but none for training: wanted train"))
    fail_msg("%s", err.text);
  remove_folder(&f);
  /* a class may be called train, or val */
  f = make_folder();
  add_picture(&f, "val/1.jpg");
  o.batch = 1;
  lac_model *one = fresh("cifar-resnet20", 1);
  if (lac_train(one, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  lac_model_destroy(one);
  remove_folder(&f);
  f = make_folder();
  add_picture(&f, "ship/1.jpg");
  add_picture(&f, "train/1.jpg");
  o.batch = 2;
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  remove_folder(&f);
  /* CIFAR's test part alone */
  f = make_folder();
  add_cifar(&f, "test_batch.bin", 1, 10, 0, 10);
  lac_model_destroy(model);
  model = fresh("cifar-resnet20", 10);
  o = quick(1);
  o.eval_only = true;
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void colours_of_grey_images_are_refused(void **state) {
  (void)state;
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(1);
  lac_eval_options how = lac_eval_options_default();
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_eval_result scored = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  how.run.threads = 1;
  o.mean[1] = 10;
  how.std[2] = 10;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "mean and std are for images in colour"));
  assert_int_equal(lac_eval(model, DIGITS, &how, &scored, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "mean and std are for images in colour"));
  lac_model_destroy(model);
}

/* However often the folder is opened: before the training, and for every evaluation. */
static void a_warning_about_the_data_is_given_once(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("cifar-resnet20", 2);
  lac_train_options o = quick(3);
  lac_train_data found = LAC_SIZED(lac_train_data);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  int n = 0;
  o.batch = 2;
  o.resize = o.crop = 32;
  o.eval_steps = 1;
  add_picture(&f, "a/1.jpg");
  add_picture(&f, "b/1.jpg");
  add_text(&f, "b/notes.txt", "no picture");
  lac_log_set(LAC_LOG_WARNING, count_warnings, &n);
  if (lac_train_data_find(f.path, &o, &found, &err)) fail_msg("%s", err.text);
  if (lac_train_check(model, f.path, &o, &err)) fail_msg("%s", err.text);
  if (lac_train(model, f.path, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  assert_int_equal(n, 3); /* the training part's file, the test part's, that they are the same */
  lac_model_destroy(model);
  remove_folder(&f);
}

/* ---- What a run leaves ---- */

static void the_weights_that_are_evaluated_are_those_of_the_result(void **state) {
  (void)state;
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(40);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_eval_options how = lac_eval_options_default();
  lac_eval_result again = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  if (lac_train(model, DIGITS, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_true(result.evaluated && result.steps == 40 && result.first_step == 0);
  assert_true(result.top1 > 20 && result.best_top1 == result.top1 && result.best_step == 40);
  how.run.threads = 1;
  how.batch = 24;
  assert_int_equal(lac_eval(model, DIGITS, &how, &again, NULL), LAC_OK);
  assert_true(again.top1 == result.top1 && again.loss == result.eval_loss);
  lac_model_destroy(model);
}

static void the_folder_holds_the_log_the_curves_and_the_events(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(6);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  laci_file_bytes log;
  char path[FOLDER_PATH];
  o.model_dir = f.path;
  o.eval_steps = 3;
  o.eval_first = true;
  o.display_steps = 2;
  if (lac_train(model, DIGITS, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_true(is_there(&f, "curves.svg") && is_there(&f, "checkpoint-000000000006.lac"));
  path_in(path, &f, "log.jsonl");
  assert_int_equal(laci_file_bytes_read(path, &log, NULL), LAC_OK);
  int n_lines = 0, n_evals = 0;
  for (size_t at = 0; at < log.size_bytes; at++) {
    n_lines += log.bytes[at] == '\n';
    n_evals += at + 5 < log.size_bytes && memcmp(log.bytes + at, "{\"eva", 5) == 0;
  }
  laci_file_bytes_clear(&log);
  assert_int_equal(n_lines, 9); /* 6 steps; evaluations before them, after 3 and after 6 */
  assert_int_equal(n_evals, 3);
  /* another run needs a word */
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_EXISTS);
  o.steps = 4;
  o.force = true;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_OK);
  assert_true(is_there(&f, "checkpoint-000000000004.lac"));
  assert_false(is_there(&f, "checkpoint-000000000006.lac"));
  lac_model_destroy(model);
  remove_folder(&f);
}

static void a_folder_that_another_run_writes_to_is_left_alone(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(2);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  int lock;
  o.model_dir = f.path;
  assert_int_equal(lac_train_check(model, DIGITS, &o, NULL), LAC_OK);
  assert_int_equal(laci_folder_lock(f.path, &lock, NULL), LAC_OK);
  assert_true(lock >= 0);
  for (int k = 0; k < 4; k++) {
    o.recover = k & 1;
    o.force = k & 2;
    assert_int_equal(lac_train_check(model, DIGITS, &o, &err), LAC_EXISTS);
    assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_EXISTS);
    assert_non_null(strstr(err.text, "another run writes there now"));
    assert_false(is_there(&f, "log.jsonl"));
  }
  laci_folder_unlock(lock);
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, NULL), LAC_OK);
  assert_int_equal(laci_folder_lock(f.path, &lock, NULL), LAC_OK); /* the run gave it back */
  o.eval_only = o.recover = true;                                  /* a reader waits for no lock */
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, NULL), LAC_OK);
  laci_folder_unlock(lock);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void only_evaluating_changes_nothing(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0), *other = fresh("digits", 0);
  lac_train_options o = quick(12);
  lac_train_result trained = LAC_SIZED(lac_train_result), result = LAC_SIZED(lac_train_result);
  o.model_dir = f.path;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &trained, NULL), LAC_OK);
  o.eval_only = true;
  o.recover = true;
  assert_int_equal(lac_train(other, DIGITS, NULL, &o, &result, NULL), LAC_OK);
  assert_true(result.top1 == trained.top1 && result.eval_loss == trained.eval_loss);
  assert_true(isnan(result.loss) && result.steps == 12);
  lac_model_destroy(model);
  lac_model_destroy(other);
  remove_folder(&f);
}

/* ---- Masks ---- */

static void pruned_weights_stay_pruned(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "lars", "adamw"};
  static const double rates[] = {0.05, 1, 2e-3};
  for (int k = 0; k < 3; k++) {
    lac_model *model = fresh("digits", 0);
    lac_options pruning = lac_options_default();
    lac_report *report = NULL;
    lac_mask *mask = NULL, *after = NULL;
    lac_train_options o = quick(10);
    lac_train_result result = LAC_SIZED(lac_train_result);
    lac_error err = {0};
    pruning.all_sizes = true;
    pruning.effort = LAC_EFFORT_FAST;
    pruning.threads = 1;
    if (lac_prune(model, &pruning, &report, &err)) fail_msg("%s", err.text);
    assert_int_equal(lac_mask_from_model(model, &pruning, &mask, NULL), LAC_OK);
    assert_true(lac_mask_count(mask) > 0);
    o.optimizer = optimizers[k];
    o.rate = rates[k];
    if (lac_train(model, DIGITS, mask, &o, &result, &err)) fail_msg("%s", err.text);
    assert_int_equal(lac_mask_from_model(model, &pruning, &after, NULL), LAC_OK);
    assert_int_equal(lac_mask_count(after), lac_mask_count(mask));
    for (int m = 0; m < lac_mask_count(mask); m++) {
      const uint8_t *wanted;
      size_t n;
      lac_tensor tensor = LAC_SIZED(lac_tensor);
      const char *name = lac_mask_name(mask, m);
      assert_int_equal(lac_mask_bytes(mask, name, &wanted, &n, NULL), LAC_OK);
      assert_int_equal(lac_model_find_tensor(model, name, &tensor, NULL), LAC_OK);
      for (size_t at = 0; at < n; at++) {
        float w;
        memcpy(&w, (const uint8_t *)tensor.bytes + at * sizeof w, sizeof w);
        if (!wanted[at] && w != 0) fail_msg("%s: %s[%zu]", optimizers[k], name, at);
      }
    }
    lac_report_destroy(report);
    lac_mask_destroy(mask);
    lac_mask_destroy(after);
    lac_model_destroy(model);
  }
}

/* ---- Ends ---- */

static void stop_at_2(const lac_train_event *event, void *context) {
  (void)context;
  if (event->kind == LAC_TRAIN_STEP && event->step == 2) lac_interrupt(true);
}

static void an_interrupt_saves_and_says_so(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(6);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  o.model_dir = f.path;
  o.listener = stop_at_2;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_INTERRUPTED);
  lac_interrupt(false);
  assert_true(result.interrupted && result.steps == 2 && result.planned_steps == 6);
  assert_string_equal(err.text, "interrupted after step 2; the checkpoint of step 2 is kept");
  assert_true(is_there(&f, "checkpoint-000000000002.lac") && is_there(&f, "curves.svg"));
  lac_model_destroy(model);
  remove_folder(&f);
}

static void a_threshold_ends_the_training(void **state) {
  (void)state;
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(100);
  lac_train_result result = LAC_SIZED(lac_train_result);
  o.eval_steps = 1;
  o.stop_threshold = 0;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, NULL), LAC_OK);
  assert_true(result.reached && result.steps == 1);
  lac_model_destroy(model);
}

/* ---- The summary ---- */

static void keep_best(const lac_train_event *event, void *context) {
  lac_train_event *best = context;
  if (event->kind == LAC_TRAIN_EVALUATED && event->is_best) *best = *event;
}

static void a_run_is_summed_up(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0), *again = fresh("digits", 0);
  lac_train_options o = quick(9);
  lac_train_result r = LAC_SIZED(lac_train_result);
  lac_train_event best = {0};
  lac_error err = {0};
  o.recipe = "resnet-sgd";
  o.eval_steps = 3;
  o.model_dir = f.path;
  o.listener = keep_best;
  o.context = &best;
  if (lac_train(model, DIGITS, NULL, &o, &r, &err)) fail_msg("%s", err.text);
  assert_string_equal(r.recipe, "resnet-sgd");
  assert_true(r.threads == 1 && r.batch == 24 && r.accumulate == 1 && r.images == 1437);
  assert_true(r.steps == 9 && r.planned_steps == 9 && r.eval_step == 9 && !r.interrupted);
  assert_true(fabs(r.epochs - 9.0 / 59) < 1e-12);
  assert_true(best.step > 0 && r.best_step == best.step && r.best_top1 == best.top1);
  assert_true(r.best_top5 == best.top5);
  /* the steps are a part of the whole */
  assert_true(r.seconds > 0 && r.average_images_per_second * r.seconds >= 9 * 24);
  assert_string_equal(r.changed,
                      "warm-up: 1 step, this run's share, not 3 epochs (177 steps)\n"
                      "the rate does not fall at epochs 30, 60 and 80: the run ends before, after "
                      "0.153\n");
  /* a run that goes on knows the best one of the run before, but not all of it */
  o.recover = true;
  o.steps = 10;
  o.evaluate = false;
  if (lac_train(again, DIGITS, NULL, &o, &r, &err)) fail_msg("%s", err.text);
  assert_true(r.first_step == 9 && r.best_top1 == best.top1 && isnan(r.best_top5));
  lac_model_destroy(model);
  lac_model_destroy(again);
  remove_folder(&f);
}

static void expect_line(const char *text, const char *line) {
  if (!strstr(text, line)) fail_msg("no %s in %s", line, text);
}

static void a_summary_becomes_json(void **state) {
  (void)state;
  lac_train_options o = quick(5);
  lac_train_result r = {.size = sizeof(lac_train_result),
                        .recipe = "cifar",
                        .images = 7,
                        .steps = 5,
                        .planned_steps = 9,
                        .loss = NAN,
                        .best_top1 = -1,
                        .average_images_per_second = NAN,
                        .changed = "one\ntwo\n"};
  lac_train_about about = {.size = sizeof(lac_train_about),
                           .verb = "train",
                           .arch = "digits",
                           .data = "d\xff",
                           .options = &o};
  static const char *const endings[] = {"steps", "threshold", "interrupted", "evaluated"};
  char *text = NULL;
  assert_int_equal(lac_train_json(NULL, &r, &text, NULL), LAC_BAD_ARGUMENT);
  for (int k = 0; k < 4; k++) {
    char line[64];
    r.reached = k == 1;
    r.interrupted = k == 2;
    o.eval_only = k == 3;
    o.seed = k == 3 ? UINT64_MAX : 1;
    assert_int_equal(lac_train_json(&about, &r, &text, NULL), LAC_OK);
    (void)snprintf(line, sizeof line, "\"ended\": \"%s\"", endings[k]);
    expect_line(text, line);
    expect_line(text, "\"model\": null");
    expect_line(text, k == 3 ? "\"seed\": \"18446744073709551615\"" : "\"seed\": 1,");
    expect_line(text, "\"images_per_second\": null");
    expect_line(text, "\"best\": null");
    expect_line(text, "\"final\": null");
    expect_line(text, "\"changed\": [\n    \"one\",\n    \"two\"\n  ]");
    expect_line(text, "\"masks\": null");
    lac_text_free(text);
  }
  for (long n = 1;; n++) { /* a part that is missing is an error, not a shorter text */
    laci_memory_fail_from(n);
    lac_status st = lac_train_json(&about, &r, &text, NULL);
    laci_memory_fail_from(0);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_null(text);
  }
  lac_text_free(text);
}

static void a_rate_that_is_too_high_is_told_by_its_step(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = fresh("digits", 0);
  lac_train_options o = quick(60);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  o.model_dir = f.path;
  o.evaluate = false;
  o.rate = 1e6;
  o.schedule = "constant";
  o.weight_decay = 1e6;
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_BAD_VALUE);
  if (strncmp(err.text, "step ", 5) != 0) fail_msg("%s", err.text);
  lac_model_destroy(model);
  remove_folder(&f);
}

/* Everything that a run may hold: the n-th allocation and all after it fail. */
static bool train_with_failing(long n) {
  folder f = make_folder();
  lac_model *model = fresh("digits", 0);
  lac_mask *mask = NULL;
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  lac_train_options o = quick(2);
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  assert_int_equal(lac_model_find_tensor(model, "conv1.weight", &tensor, NULL), LAC_OK);
  lac_mask_weight weight = {.size = sizeof(lac_mask_weight),
                            .name = tensor.name,
                            .dtype = tensor.dtype,
                            .rank = tensor.rank,
                            .values = tensor.bytes};
  memcpy(weight.shape, tensor.shape, sizeof weight.shape);
  assert_int_equal(lac_mask_create(&mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_add_zeros(mask, &weight, NULL), LAC_OK);
  o.model_dir = f.path;
  o.accumulate = 2;
  o.eval_steps = 1;
  o.keep_best = true;
  o.mixup = 0.2;
  laci_memory_fail_from(n);
  lac_status st = lac_train(model, DIGITS, mask, &o, &result, &err);
  laci_memory_fail_from(0);
  if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
  lac_mask_destroy(mask);
  lac_model_destroy(model);
  remove_folder(&f);
  return st == LAC_OK;
}

static void no_allocation_that_fails_is_missed(void **state) {
  (void)state;
  long n = 1;
  while (!train_with_failing(n)) n += 1 + n * tests_stride(4) / 16;
  assert_true(n > 100);
}

/* ---- A network that came from no file ---- */

static void a_fresh_network_is_a_model_like_any_other(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_model *model = fresh("digits", 0), *read = NULL;
  lac_options o = lac_options_default();
  lac_report *report = NULL;
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  o.threads = 1;
  if (lac_inspect(model, &o, &report, &err)) fail_msg("%s", err.text);
  lac_report_destroy(report);
  if (lac_eval(model, DIGITS, NULL, &result, &err)) fail_msg("%s", err.text);
  path_in(path, &f, "digits.onnx");
  if (lac_model_save(model, path, false, &err)) fail_msg("%s", err.text);
  if (lac_model_load(path, NULL, &read, &err)) fail_msg("%s", err.text);
  int n;
  assert_true(lac_network_names(&n) && n > 5);
  assert_string_equal(lac_network_recipe("digits"), "cifar");
  assert_string_equal(lac_network_recipe("cifar-resnet20"), "cifar");
  assert_string_equal(lac_network_recipe("resnext50_32x4d"), "resnext");
  assert_string_equal(lac_network_recipe("resnet50"), "resnet-sgd");
  lac_network_options unknown = {.size = sizeof(lac_network_options), .name = "nothing"};
  lac_model *none;
  assert_int_equal(lac_network_create(&unknown, &none, NULL), LAC_NOT_FOUND);
  assert_null(none);
  lac_model_destroy(model);
  lac_model_destroy(read);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_beyond_their_limits_are_refused),
      cmocka_unit_test(data_that_do_not_fit_are_refused_before_anything_is_written),
      cmocka_unit_test(a_mask_of_no_weight_is_refused),
      cmocka_unit_test(what_is_in_a_folder_is_told),
      cmocka_unit_test(names_of_classes_are_those_of_the_last_training),
      cmocka_unit_test(numbers_of_data_replace_names_of_folders),
      cmocka_unit_test(the_parts_of_a_folder_have_the_same_classes),
      cmocka_unit_test(one_part_of_a_folder_will_do_where_the_other_is_not_looked_at),
      cmocka_unit_test(colours_of_grey_images_are_refused),
      cmocka_unit_test(a_warning_about_the_data_is_given_once),
      cmocka_unit_test(the_weights_that_are_evaluated_are_those_of_the_result),
      cmocka_unit_test(the_folder_holds_the_log_the_curves_and_the_events),
      cmocka_unit_test(a_folder_that_another_run_writes_to_is_left_alone),
      cmocka_unit_test(only_evaluating_changes_nothing),
      cmocka_unit_test(pruned_weights_stay_pruned),
      cmocka_unit_test(an_interrupt_saves_and_says_so),
      cmocka_unit_test(a_threshold_ends_the_training),
      cmocka_unit_test(a_run_is_summed_up),
      cmocka_unit_test(a_summary_becomes_json),
      cmocka_unit_test(a_rate_that_is_too_high_is_told_by_its_step),
      cmocka_unit_test(no_allocation_that_fails_is_missed),
      cmocka_unit_test(a_fresh_network_is_a_model_like_any_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * lac_finetune: the same files as the command's, byte for byte, also where a run goes on; what it
 * finds, replays and refuses. */
#include "lacuna/finetune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/log.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "support/light.h"
#include "support/programs.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

static lac_model *load(const char *path) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(path, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

/* Options of a short run on one thread; they point to `training` and `pruning`. */
static lac_train_options training;
static lac_options pruning;

static lac_finetune_options quick(const char *model_dir) {
  lac_finetune_options o = lac_finetune_options_default();
  training = lac_finetune_training_default();
  pruning = lac_options_default();
  training.run.threads = pruning.threads = 1;
  training.steps = 4;
  training.checkpoint_steps = 2;
  training.model_dir = model_dir;
  o.training = &training;
  o.pruning = &pruning;
  return o;
}

/* The model after lac_finetune with these options, saved. */
static void tune(const lac_finetune_options *o, const char *out, lac_finetune_result *result) {
  lac_model *model = load(DIGITS "/digits.onnx");
  lac_error err = {0};
  if (lac_finetune(model, DIGITS, o, result, &err)) fail_msg("%s", err.text);
  if (lac_model_save(model, out, true, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
}

static void command(const char *arguments) {
  char line[4 * FOLDER_PATH];
  (void)snprintf(line, sizeof line, "finetune -q %s > /dev/null", arguments);
  if (run_built("lacuna", line) != 0) fail_msg("%s", line);
}

static void assert_same_file(const folder *f, const char *a, const char *b) {
  char first[FOLDER_PATH], second[FOLDER_PATH];
  laci_file_bytes x, y;
  path_in(first, f, a);
  path_in(second, f, b);
  assert_int_equal(laci_file_bytes_read(first, &x, NULL), LAC_OK);
  assert_int_equal(laci_file_bytes_read(second, &y, NULL), LAC_OK);
  assert_int_equal(x.size_bytes, y.size_bytes);
  assert_memory_equal(x.bytes, y.bytes, x.size_bytes);
  laci_file_bytes_clear(&x);
  laci_file_bytes_clear(&y);
}

/* Takes back the last two steps of a run. */
static void cut_the_end(const folder *f, const char *run) {
  char path[FOLDER_PATH];
  (void)snprintf(path, sizeof path, "%s/%s/checkpoint-000000000004.lac", f->path, run);
  assert_int_equal(unlink(path), 0);
}

static void it_writes_what_the_command_writes(void **state) {
  (void)state;
  folder f = make_folder();
  char ours[FOLDER_PATH], out[FOLDER_PATH], line[3 * FOLDER_PATH];
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  path_in(ours, &f, "ours");
  path_in(out, &f, "ours.onnx");
  lac_finetune_options o = quick(ours);
  tune(&o, out, &result);
  assert_true(result.pruning && result.mask && !result.replayed);
  assert_int_equal(result.n_pruned, 0);
  assert_true(result.n_rest > 0 && lac_mask_count(result.mask) == result.pruning->summary.pruned);
  assert_int_equal(result.training->steps, 4);
  lac_finetune_result_clear(&result);
  (void)snprintf(line, sizeof line,
                 DIGITS "/digits.onnx --data " DIGITS
                        " --threads 1 --steps 4 --checkpoint-steps 2 "
                        "--model-dir %s/theirs -o %s/theirs.onnx",
                 f.path, f.path);
  command(line);
  assert_same_file(&f, "ours.onnx", "theirs.onnx");
  assert_same_file(&f, "ours/order.json", "theirs/order.json");

  /* both go on, with the order that is there and the masks of the checkpoint */
  cut_the_end(&f, "ours");
  cut_the_end(&f, "theirs");
  path_in(out, &f, "again.onnx");
  training.recover = true;
  tune(&o, out, &result);
  assert_true(result.replayed && result.training->first_step == 2);
  lac_finetune_result_clear(&result);
  (void)snprintf(line, sizeof line,
                 DIGITS "/digits.onnx --data " DIGITS
                        " --threads 1 --steps 4 --checkpoint-steps 2 "
                        "--model-dir %s/theirs -o %s/theirs-again.onnx --recover",
                 f.path, f.path);
  command(line);
  assert_same_file(&f, "again.onnx", "theirs-again.onnx");
  assert_same_file(&f, "again.onnx", "ours.onnx");
  assert_same_file(&f, "ours/order.json", "theirs/order.json");
  remove_folder(&f);
}

static void masks_that_are_there_are_held(void **state) {
  (void)state;
  folder f = make_folder();
  char out[FOLDER_PATH];
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  lac_error err = {0};
  lac_finetune_options o = quick(NULL);
  path_in(out, &f, "a.onnx");
  tune(&o, out, &result);
  int n = lac_mask_count(result.mask);
  lac_finetune_result_clear(&result);
  lac_model *model = load(out);
  o.prune_rest = false;
  assert_int_equal(lac_finetune(model, DIGITS, &o, &result, &err), LAC_OK);
  assert_true(result.n_pruned > 0 && !result.pruning && lac_mask_count(result.mask) == n);
  lac_finetune_result_clear(&result);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void expect(const lac_finetune_options *o, lac_status wanted, const char *text) {
  lac_model *model = load(DIGITS "/digits.onnx");
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  lac_error err = {0};
  lac_status st = lac_finetune(model, DIGITS, o, &result, &err);
  if (st != wanted || !strstr(err.text, text)) fail_msg("%d %s, wanted %s", st, err.text, text);
  lac_finetune_result_clear(&result);
  lac_finetune_result_clear(&result); /* empty is fine */
  lac_model_destroy(model);
}

static void what_cannot_be_sparse_is_refused(void **state) {
  (void)state;
  lac_finetune_options o = quick(NULL);
  o.prune_rest = false;
  expect(&o, LAC_BAD_VALUE, "no layer holds 2:4, so there are no masks to keep");
  o = quick(NULL);
  o.must_mask = true;
  pruning.exclude = ".";
  expect(&o, LAC_BAD_ARGUMENT, "exclude leaves none of 8 layers that could take 2:4");
  o = quick(NULL);
  o.must_mask = true;
  pruning.n = 1;
  pruning.m = 48; /* divides no layer's input channels */
  expect(&o, LAC_BAD_VALUE, "no layer takes 1:48, so nothing would be sparse");
  o = quick(NULL);
  training.recipe = "x";
  expect(&o, LAC_BAD_ARGUMENT, "recipe x: wanted");
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  lac_error err = {0};
  assert_int_equal(lac_finetune(NULL, DIGITS, &o, &result, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "lac_finetune: model is NULL");
}

static int n_warned, n_first;

static void count_warnings(lac_log_level level, const char *text, void *context) {
  (void)context;
  if (level == LAC_LOG_WARNING) n_warned += strstr(text, "a lower rate than ") != NULL;
}

static void count_first(const lac_train_event *event, void *context) {
  (void)context;
  n_first += event->kind == LAC_TRAIN_EVALUATED && event->step == 0;
}

/* A rate of 10 leaves a network that is worse than a guess; the usual one says nothing. */
static void a_wrecked_network_is_a_warning(void **state) {
  (void)state;
  const double rates[] = {0.02, 10};
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  for (int i = 0; i < 2; i++) {
    lac_finetune_options o = quick(NULL);
    lac_model *model = load(DIGITS "/digits.onnx");
    training.rate = rates[i];
    training.steps = 8;
    training.evaluate = true;
    n_warned = 0;
    lac_log_set(LAC_LOG_WARNING, count_warnings, NULL);
    assert_int_equal(lac_finetune(model, DIGITS, &o, &result, NULL), LAC_OK);
    lac_log_set(LAC_LOG_WARNING, NULL, NULL);
    assert_int_equal(n_warned, i);
    lac_finetune_result_clear(&result);
    lac_model_destroy(model);
  }
}

/* What holds the pattern already is evaluated before the first step as what is pruned now. */
static void masks_that_are_there_are_evaluated_first(void **state) {
  (void)state;
  lac_model *model = load(DIGITS "/digits.onnx");
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  n_first = 0;
  for (int run = 0; run < 2; run++) {
    lac_finetune_options o = quick(NULL);
    training.steps = 1;
    training.evaluate = training.eval_first = true;
    training.listener = count_first;
    assert_int_equal(lac_finetune(model, DIGITS, &o, &result, NULL), LAC_OK);
    assert_true((result.pruning == NULL) == (run == 1));
    assert_int_equal(n_first, run + 1);
    lac_finetune_result_clear(&result);
  }
  lac_model_destroy(model);
}

static void nothing_sparse_is_a_training(void **state) {
  (void)state;
  lac_finetune_options o = quick(NULL);
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  folder f = make_folder();
  char out[FOLDER_PATH];
  path_in(out, &f, "a.onnx");
  o.sparse = false;
  tune(&o, out, &result);
  assert_true(!result.found && !result.pruning && !result.mask);
  lac_finetune_result_clear(&result);
  lac_model *model = load(DIGITS "/digits.onnx");
  lac_train_result trained = LAC_SIZED(lac_train_result);
  training.eval_first = false;
  assert_int_equal(lac_train(model, DIGITS, NULL, &training, &trained, NULL), LAC_OK);
  path_in(out, &f, "b.onnx");
  assert_int_equal(lac_model_save(model, out, true, NULL), LAC_OK);
  lac_model_destroy(model);
  assert_same_file(&f, "a.onnx", "b.onnx");
  remove_folder(&f);
}

/* Wherever memory ends, that is told, and the result can be cleared. */
static void every_failed_allocation_is_told(void **state) {
  (void)state;
  lac_finetune_options o = quick(NULL);
  training.steps = 1;
  training.evaluate = pruning.permute = false;
  long n = 1;
  for (lac_status st = LAC_NO_MEMORY; st; n += 1 + n * tests_stride(3) / 4) {
    lac_model *model = load(DIGITS "/digits.onnx");
    lac_finetune_result result = LAC_SIZED(lac_finetune_result);
    lac_error err = {0};
    laci_memory_fail_from(n);
    st = lac_finetune(model, DIGITS, &o, &result, &err);
    laci_memory_fail_from(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
    lac_finetune_result_clear(&result);
    lac_model_destroy(model);
  }
  assert_true(n > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_writes_what_the_command_writes),
      cmocka_unit_test(masks_that_are_there_are_held),
      cmocka_unit_test(what_cannot_be_sparse_is_refused),
      cmocka_unit_test(a_wrecked_network_is_a_warning),
      cmocka_unit_test(masks_that_are_there_are_evaluated_first),
      cmocka_unit_test(nothing_sparse_is_a_training),
      cmocka_unit_test(every_failed_allocation_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

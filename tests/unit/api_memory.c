/* SPDX-License-Identifier: Apache-2.0
 * Every allocation of the main path fails once: the call says so, leaks nothing (the sanitizers
 * look) and leaves the model as it was. Where one fails alone, jansson's among them, the files that
 * come out are right or not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "base/memory.h"
#include "lacuna/prune.h"
#include "support/light.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static uint64_t checksum(const lac_model *model) {
  uint64_t sum = 0;
  for (int i = 0; i < lac_model_tensor_count(model); i++) {
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    if (lac_model_tensor(model, i, &tensor, NULL)) continue; /* no memory to read it */
    const uint8_t *bytes = tensor.bytes;
    for (size_t b = 0; b < tensor.size_bytes; b++) sum = sum * 31 + bytes[b];
  }
  return sum;
}

/* One attempt under a failing allocation; true when all went well. */
static bool attempt(long n, bool (*body)(lac_error *err)) {
  lac_error err = {0};
  laci_memory_fail_from(n);
  bool done = body(&err);
  laci_memory_fail_from(0);
  if (!done && err.status != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
  return done;
}

static void fail_in_turn(bool (*body)(lac_error *err)) {
  long n = 1;
  /* All of the first ones, then ever fewer: a large pipeline has tens of thousands. */
  for (; !attempt(n, body); n += 1 + n * tests_stride(4) / 64) {
    if (n > 100000000) fail_msg("it never succeeds");
  }
  assert_true(n > 10);
}

static bool load(lac_error *err) {
  lac_model *model;
  if (lac_model_load(DIGITS, NULL, &model, err)) {
    assert_null(model);
    return false;
  }
  lac_model_destroy(model);
  return true;
}

static bool prune(lac_error *err) {
  lac_model *model;
  lac_report *report = NULL;
  lac_options options = lac_options_default();
  options.verify = false;
  options.effort = LAC_EFFORT_FAST;
  options.threads = 1;
  if (lac_model_load(DIGITS, NULL, &model, err)) return false;
  uint64_t before = checksum(model);
  bool done = lac_prune(model, &options, &report, err) == LAC_OK;
  if (!done) assert_true(before == checksum(model));
  lac_report_destroy(report);
  lac_model_destroy(model);
  return done;
}

static bool check_and_json(lac_error *err) {
  lac_model *model;
  lac_report *report = NULL;
  char *text = NULL;
  lac_options options = lac_options_default();
  options.verify = false;
  options.threads = 1;
  if (lac_model_load(DIGITS, NULL, &model, err)) return false;
  bool done = lac_check(model, model, &options, &report, err) == LAC_OK &&
              lac_report_json(report, &text, err) == LAC_OK;
  lac_text_free(text);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return done;
}

static void loading_survives_every_failed_allocation(void **state) {
  (void)state;
  fail_in_turn(load);
}

static void pruning_survives_every_failed_allocation(void **state) {
  (void)state;
  fail_in_turn(prune);
}

static void checking_survives_every_failed_allocation(void **state) {
  (void)state;
  fail_in_turn(check_and_json);
}

/* ---- one failure alone, jansson's allocations among them ---- */

#define ORDER "api_memory-order.json"

static lac_options quiet_options(void) {
  lac_options options = lac_options_default();
  options.verify = false;
  options.effort = LAC_EFFORT_FAST;
  options.threads = 1;
  return options;
}

/* lac_prune and its permutation file. */
static lac_status prune_and_save(uint64_t *sum, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options options = quiet_options();
  lac_status st = lac_model_load(DIGITS, NULL, &model, err);
  if (!st) st = lac_prune(model, &options, &report, err);
  if (!st) st = lac_permutation_save(report, ORDER, true, err);
  if (!st) *sum = checksum(model);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
}

/* The file applied to the dense network. */
static lac_status apply_saved(uint64_t *sum, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options options = quiet_options();
  lac_status st = lac_model_load(DIGITS, NULL, &model, err);
  uint64_t before = st ? 0 : checksum(model);
  if (!st) st = lac_permutation_apply(model, ORDER, false, &options, &report, err);
  if (!st) *sum = checksum(model);
  else if (model && checksum(model) != before) fail_msg("\"%s\" and a changed model", err->text);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
}

static void *json_memory(size_t size) { return laci_alloc(size, 1); }

static char *saved_text(void) {
  char *text;
  lac_error err = {0};
  if (laci_file_read_text(ORDER, 1 << 24, &text, &err)) fail_msg("%s", err.text);
  return text;
}

/* Either an error, or what the body does when nothing fails; a file is whole or not there. */
static void one_failure_in_turn(lac_status (*body)(uint64_t *sum, lac_error *err), bool writes) {
  uint64_t wanted = 0, sum;
  lac_error err = {0};
  if (body(&wanted, &err)) fail_msg("%s", err.text);
  char *wanted_text = saved_text();
  long failed = 0;
  json_set_alloc_funcs(json_memory, laci_free);
  bool pending = false;
  for (long n = 1; !pending; n += 1 + n * tests_stride(4) / 64) {
    if (writes) (void)remove(ORDER);
    err = (lac_error){0};
    laci_memory_fail_once(n);
    lac_status st = body(&sum, &err);
    pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    failed += st != LAC_OK;
    if (st && writes && access(ORDER, F_OK) == 0) fail_msg("%ld: \"%s\" and a file", n, err.text);
    if (st) continue;
    char *text = saved_text();
    if (sum != wanted || strcmp(text, wanted_text) != 0) fail_msg("allocation %ld: no error", n);
    laci_free(text);
  }
  json_set_alloc_funcs(malloc, free);
  assert_true(failed > 100 / tests_stride(4));
  laci_free(wanted_text);
}

static void a_permutation_file_is_right_or_not_there(void **state) {
  (void)state;
  one_failure_in_turn(prune_and_save, true);
}

static void a_permutation_file_is_applied_right_or_not_at_all(void **state) {
  (void)state;
  uint64_t sum;
  lac_error err = {0};
  if (prune_and_save(&sum, &err)) fail_msg("%s", err.text);
  one_failure_in_turn(apply_saved, false);
  (void)remove(ORDER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loading_survives_every_failed_allocation),
      cmocka_unit_test(pruning_survives_every_failed_allocation),
      cmocka_unit_test(checking_survives_every_failed_allocation),
      cmocka_unit_test(a_permutation_file_is_right_or_not_there),
      cmocka_unit_test(a_permutation_file_is_applied_right_or_not_at_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

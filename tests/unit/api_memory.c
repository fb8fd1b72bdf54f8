/* SPDX-License-Identifier: Apache-2.0
 * Every allocation of the main road fails in turn: the call says so, leaks nothing (the sanitizers
 * look) and leaves the model as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/prune.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static uint64_t checksum(const lac_model *model) {
  uint64_t sum = 0;
  for (int i = 0; i < lac_model_tensor_count(model); i++) {
    lac_tensor tensor;
    lac_model_tensor(model, i, &tensor);
    const uint8_t *bytes = tensor.bytes;
    for (size_t b = 0; b < tensor.size_bytes; b++) sum = sum * 31 + bytes[b];
  }
  return sum;
}

/* One attempt under a failing allocation; true when all went well. */
static bool attempt(long n, bool (*body)(lac_error *err)) {
  lac_error err = {0};
  laci_memory_fail_at(n);
  bool done = body(&err);
  laci_memory_fail_at(0);
  if (!done && err.status != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
  return done;
}

static void fail_in_turn(bool (*body)(lac_error *err)) {
  long n = 1;
  /* All of the first ones, then ever fewer: a large road has tens of thousands. */
  for (; !attempt(n, body); n += 1 + n / 64) {
    if (n > 100000000) fail_msg("it never succeeds");
  }
  assert_true(n > 10);
}

static bool load(lac_error *err) {
  lac_model *model;
  if (lac_model_load(DIGITS, &model, err)) {
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
  if (lac_model_load(DIGITS, &model, err)) return false;
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
  if (lac_model_load(DIGITS, &model, err)) return false;
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loading_survives_every_failed_allocation),
      cmocka_unit_test(pruning_survives_every_failed_allocation),
      cmocka_unit_test(checking_survives_every_failed_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

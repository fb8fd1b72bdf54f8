/* SPDX-License-Identifier: Apache-2.0
 * A NULL where a pointer is wanted: an error that names function and argument, of everything that
 * runs, measures, packs or trains. What cannot fail takes it for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/context.h"
#include "lacuna/finetune.h"
#include "lacuna/bench.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/infer.h"
#include "lacuna/pack.h"
#include "lacuna/run.h"
#include "lacuna/train.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_model *model;
static lac_error err;

static int load(void **state) {
  (void)state;
  return lac_model_load(DIGITS, NULL, &model, &err);
}

static int unload(void **state) {
  (void)state;
  lac_model_destroy(model);
  return 0;
}

/** The call fails, and its text begins with `words`. */
#define expect_named(call, words)                                                 \
  do {                                                                            \
    err = (lac_error){0};                                                         \
    assert_int_equal((call), LAC_BAD_ARGUMENT);                                   \
    if (strncmp(err.text, (words), strlen(words)) != 0) fail_msg("%s", err.text); \
  } while (0)

static void engines_say_what_is_missing(void **state) {
  (void)state;
  lac_engine *engine = (lac_engine *)model;
  const lac_engine_port *ports = (const lac_engine_port *)model;
  expect_named(lac_engine_create(NULL, NULL, &engine, &err), "lac_engine_create: model is NULL");
  assert_null(engine);
  expect_named(lac_engine_create(model, NULL, NULL, &err), "lac_engine_create: engine is NULL");
  expect_named(lac_engine_run(NULL, NULL, NULL, &err), "lac_engine_run: engine is NULL");
  assert_int_equal(lac_engine_inputs(NULL, &ports), 0);
  assert_null(ports);
  assert_int_equal(lac_engine_outputs(NULL, NULL), 0);
  assert_null(lac_engine_plan_text(NULL));
  lac_engine_memory memory = LAC_SIZED(lac_engine_memory);
  lac_engine_facts facts = LAC_SIZED(lac_engine_facts);
  expect_named(lac_engine_planned(NULL, &memory, &err), "lac_engine_planned: engine is NULL");
  expect_named(lac_engine_about(NULL, &facts, &err), "lac_engine_about: engine is NULL");
}

static void eval_says_what_is_missing(void **state) {
  (void)state;
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  char *text = (char *)model;
  expect_named(lac_eval(NULL, ".", NULL, &result, &err), "lac_eval: model is NULL");
  expect_named(lac_eval(model, NULL, NULL, &result, &err), "lac_eval: data is NULL");
  expect_named(lac_eval(model, ".", NULL, NULL, &err), "lac_eval: result is NULL");
  expect_named(lac_eval_json(NULL, &result, &text, &err), "lac_eval_json: model is NULL");
  assert_null(text);
  expect_named(lac_eval_json(model, NULL, &text, &err), "lac_eval_json: result is NULL");
  expect_named(lac_eval_json(model, &result, NULL, &err), "lac_eval_json: text is NULL");
}

static void infer_and_bench_say_what_is_missing(void **state) {
  (void)state;
  lac_infer_input input = {.name = "image"};
  lac_bench_result *result = (lac_bench_result *)model;
  char *text;
  expect_named(lac_infer(NULL, NULL, 0, "o", NULL, NULL, &err), "lac_infer: model is NULL");
  expect_named(lac_infer(model, NULL, 0, NULL, NULL, NULL, &err), "lac_infer: folder is NULL");
  expect_named(lac_infer(model, NULL, 1, "o", NULL, NULL, &err), "lac_infer: n_inputs is 1");
  expect_named(lac_infer(model, &input, 1, "o", NULL, NULL, &err), "lac_infer: path is NULL");
  expect_named(lac_bench(NULL, NULL, &result, &err), "lac_bench: model is NULL");
  assert_null(result);
  expect_named(lac_bench(model, NULL, NULL, &err), "lac_bench: result is NULL");
  expect_named(lac_bench_measure_costs(NULL, NULL, &err), "lac_bench_measure_costs: text is NULL");
  expect_named(lac_bench_json(NULL, &text, &err), "lac_bench_json: result is NULL");
  expect_named(lac_bench_plot(NULL, "o", false, NULL, &err), "lac_bench_plot: result is NULL");
  expect_named(lac_bench_roofline(NULL, "o", false, &err), "lac_bench_roofline: result is NULL");
}

static void packs_say_what_is_missing(void **state) {
  (void)state;
  lac_options options = lac_options_default();
  lac_pack *pack = (lac_pack *)model;
  char *text;
  expect_named(lac_pack_save_context(NULL, "o", &options, false, NULL, &err),
               "lac_pack_save_context: model is NULL");
  expect_named(lac_pack_save(NULL, "o", &options, false, NULL, &err),
               "lac_pack_save: model is NULL");
  expect_named(lac_pack_save(model, NULL, &options, false, NULL, &err),
               "lac_pack_save: path is NULL");
  expect_named(lac_pack_save(model, "o", NULL, false, NULL, &err),
               "lac_pack_save: options is NULL");
  expect_named(lac_pack_report_json(NULL, &text, &err), "lac_pack_report_json: report is NULL");
  expect_named(lac_pack_restore("o", NULL, false, NULL, &err), "lac_pack_restore: out is NULL");
  expect_named(lac_pack_open(NULL, &pack, &err), "lac_pack_open: path is NULL");
  assert_null(pack);
  expect_named(lac_pack_open("o", NULL, &err), "lac_pack_open: pack is NULL");
  assert_int_equal(lac_pack_tensor_count(NULL), 0);
  lac_packed_tensor tensor = LAC_SIZED(lac_packed_tensor);
  expect_named(lac_pack_tensor(NULL, 0, &tensor, &err), "lac_pack_tensor: pack is NULL");
}

static void training_says_what_is_missing(void **state) {
  (void)state;
  lac_train_options options = lac_train_options_default();
  lac_network_options network = {.size = sizeof(lac_network_options), .name = NULL};
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_train_data found = LAC_SIZED(lac_train_data);
  lac_train_about about = {.size = sizeof(lac_train_about), .options = NULL};
  lac_model *made = model;
  char *text;
  expect_named(lac_network_create(NULL, &made, &err), "lac_network_create: options is NULL");
  assert_null(made);
  expect_named(lac_network_create(&network, &made, &err), "lac_network_create: name is NULL");
  expect_named(lac_train(NULL, ".", NULL, &options, &result, &err), "lac_train: model is NULL");
  expect_named(lac_train(model, NULL, NULL, &options, &result, &err), "lac_train: data is NULL");
  expect_named(lac_train(model, ".", NULL, NULL, &result, &err), "lac_train: options is NULL");
  expect_named(lac_train(model, ".", NULL, &options, NULL, &err), "lac_train: result is NULL");
  expect_named(lac_train_check(model, NULL, &options, &err), "lac_train_check: data is NULL");
  expect_named(lac_train_data_find(".", &options, NULL, &err),
               "lac_train_data_find: found is NULL");
  expect_named(lac_train_data_find(NULL, &options, &found, &err),
               "lac_train_data_find: data is NULL");
  lac_train_size size = LAC_SIZED(lac_train_size);
  expect_named(lac_train_size_find(NULL, &options, &size, &err),
               "lac_train_size_find: data is NULL");
  expect_named(lac_train_size_find(".", &options, NULL, &err),
               "lac_train_size_find: found is NULL");
  expect_named(lac_train_json(&about, &result, &text, &err), "lac_train_json: options is NULL");
  lac_finetune_options tuning = lac_finetune_options_default();
  lac_finetune_result tuned = LAC_SIZED(lac_finetune_result);
  expect_named(lac_finetune(model, NULL, &tuning, &tuned, &err), "lac_finetune: data is NULL");
  expect_named(lac_finetune(model, ".", NULL, &tuned, &err), "lac_finetune: options is NULL");
  expect_named(lac_finetune(model, ".", &tuning, NULL, &err), "lac_finetune: result is NULL");
  lac_finetune_result_clear(NULL);
  expect_named(lac_context_create(NULL, &err), "lac_context_create: context is NULL");
  lac_context_destroy(NULL);
  expect_named(lac_train_json(NULL, &result, &text, &err), "lac_train_json: about is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(engines_say_what_is_missing),
      cmocka_unit_test(eval_says_what_is_missing),
      cmocka_unit_test(infer_and_bench_say_what_is_missing),
      cmocka_unit_test(packs_say_what_is_missing),
      cmocka_unit_test(training_says_what_is_missing),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

/* SPDX-License-Identifier: Apache-2.0
 * The data of targets: every fact has a source that is listed, names are what they are asked by; a
 * pattern holds another exactly where every mask of it does; and prune leaves what a target does
 * not take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/prune.h"
#include "target/target.h"
#include "target/target_in.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

/* ---- Data ---- */

static bool has_source(const laci_target *target, const char *key, size_t n) {
  for (int s = 0; s < target->n_sources; s++) {
    if (strlen(target->sources[s].key) == n && strncmp(target->sources[s].key, key, n) == 0)
      return target->sources[s].title[0] && target->sources[s].section[0];
  }
  return false;
}

static void expect_sources(const laci_target *target, const char *keys) {
  assert_non_null(keys);
  for (const char *at = keys; *at;) {
    const size_t n = strcspn(at, " ");
    if (!has_source(target, at, n)) fail_msg("%s: no source %.*s", target->title, (int)n, at);
    at += n + (at[n] == ' ');
  }
}

static void expect_types(const char *types) {
  for (const char *at = types; *at;) {
    const size_t n = strcspn(at, " ");
    bool known = false;
    for (int d = 1; d < LAC_DTYPE_COUNT; d++) {
      const char *name = lac_dtype_name((lac_dtype)d);
      known = known || (strlen(name) == n && strncmp(name, at, n) == 0);
    }
    if (!known) fail_msg("no type %.*s", (int)n, at);
    at += n + (at[n] == ' ');
  }
}

static void every_fact_has_a_source(void **state) {
  (void)state;
  int n_targets;
  (void)laci_target_names(&n_targets);
  assert_int_equal(n_targets, 7);
  for (int t = 0; t < n_targets; t++) {
    const laci_target *target = laci_targets[t];
    assert_true(target->n_sources > 0 && target->remarks);
    assert_true(target->never ? target->n_rules == 0 : target->n_rules > 0);
    if (target->never) expect_sources(target, target->never_source);
    for (int r = 0; r < target->n_rules; r++) {
      const laci_target_rule *rule = &target->rules[r];
      expect_sources(target, rule->source);
      expect_types(rule->types);
      assert_true(rule->ops && rule->pattern.n <= rule->pattern.m);
      assert_true(rule->least_rank <= rule->most_rank);
    }
    for (int g = 0; g < target->n_gains; g++) {
      expect_sources(target, target->gains[g].source);
      expect_types(target->gains[g].type);
      assert_true(target->gains[g].times > 0 && target->gains[g].of);
    }
  }
}

static void targets_are_found_by_name_and_type(void **state) {
  (void)state;
  laci_target_choice choice;
  lac_error err = {0};
  int n;
  const char *const *names = lac_target_names(&n);
  for (int t = 0; t < n; t++) {
    assert_int_equal(laci_target_find(names[t], &choice, NULL), LAC_OK);
    assert_ptr_equal(choice.target, laci_targets[t]);
    assert_string_equal(choice.name, names[t]);
    assert_int_equal(choice.as, LAC_DTYPE_NONE);
  }
  assert_int_equal(laci_target_find("torch:bf16", &choice, NULL), LAC_OK);
  assert_int_equal(choice.as, LAC_DTYPE_BF16);
  static const char *const wrong[] = {"", "tor", "torch2", ":f16", "torch:", "torch:f64", "Torch"};
  for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
    assert_int_equal(laci_target_find(wrong[w], &choice, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_target_find("trt", &choice, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text,
                      "target trt: wanted NAME or NAME:TYPE of tensorrt, cusparselt, torch, "
                      "vitis, ascend, openvino, lacuna-cpu");
}

/* ---- Patterns ---- */

static int non_zeros(unsigned mask, int from, int size) {
  int n = 0;
  for (int i = from; i < from + size; i++) n += mask >> i & 1;
  return n;
}

static bool mask_holds(unsigned mask, int columns, laci_pattern p) {
  for (int from = 0; from < columns; from += p.m) {
    if (non_zeros(mask, from, p.m) > p.n) return false;
  }
  return true;
}

/* By every mask of twelve columns, a multiple of all blocks here. */
static bool every_mask_holds(laci_pattern has, laci_pattern wants) {
  for (unsigned mask = 0; mask < 1u << 12; mask++) {
    if (mask_holds(mask, 12, has) && !mask_holds(mask, 12, wants)) return false;
  }
  return true;
}

static void a_pattern_implies_another_where_every_mask_does(void **state) {
  (void)state;
  static const int blocks[] = {2, 3, 4, 6, 12};
  for (size_t a = 0; a < 5; a++) {
    for (size_t b = 0; b < 5; b++) {
      for (int n = 1; n < blocks[a]; n++) {
        for (int k = 1; k < blocks[b]; k++) {
          const laci_pattern has = {n, blocks[a]}, wants = {k, blocks[b]};
          if (laci_target_pattern_implies(has, wants) != every_mask_holds(has, wants))
            fail_msg("%d:%d and %d:%d", has.n, has.m, wants.n, wants.m);
        }
      }
    }
  }
}

/* ---- Forecasts ---- */

static laci_target_answer foresee(const char *name, laci_target_layer layer, laci_pattern pattern) {
  laci_target_choice choice;
  laci_target_answer answer;
  assert_int_equal(laci_target_find(name, &choice, NULL), LAC_OK);
  laci_target_predict_answer(&choice, &layer, pattern, &answer);
  return answer;
}

static void forecasts_say_why(void **state) {
  (void)state;
  static const int64_t dims[] = {1024, 64};
  const laci_pattern two = {2, 4}, one = {1, 2};
  const laci_target_layer gemm = {.op = "Gemm",
                                  .dtype = LAC_DTYPE_F32,
                                  .rank = 2,
                                  .k_axis = 0,
                                  .c_axis = 1,
                                  .dims = dims,
                                  .groups = 1,
                                  .channels_in = 64,
                                  .channels_out = 1024};
  laci_target_answer a = foresee("torch", gemm, two);
  assert_int_equal(a.answer, LAC_TARGET_REFUSED);
  assert_string_equal(a.reason,
                      "1:2 is wanted of f32, which 2:4 does not hold; cast to f16 it would be "
                      "taken");
  a = foresee("torch", gemm, one);
  assert_int_equal(a.answer, LAC_TARGET_TAKEN);
  assert_string_equal(a.reason, "by cuSPARSELt");
  a = foresee("torch:f16", gemm, two);
  assert_int_equal(a.answer, LAC_TARGET_TAKEN);
  a = foresee("tensorrt", gemm, (laci_pattern){3, 4});
  assert_int_equal(a.fault, LACI_FAULT_PATTERN);
}

static void gains_are_those_of_the_shape(void **state) {
  (void)state;
  static const int64_t dims[] = {64, 256, 1, 1};
  laci_target_layer conv = {.op = "Conv",
                            .dtype = LAC_DTYPE_F32,
                            .rank = 4,
                            .k_axis = 0,
                            .c_axis = 1,
                            .dims = dims,
                            .groups = 1,
                            .channels_in = 256,
                            .channels_out = 64};
  laci_target_answer a = foresee("lacuna-cpu", conv, (laci_pattern){2, 4});
  assert_non_null(a.gain);
  assert_true(a.gain->times > 1.73 && a.gain->times < 1.75);
  conv.channels_out = 65;
  assert_null(foresee("lacuna-cpu", conv, (laci_pattern){2, 4}).gain);
}

static void size_decides_whether_it_pays(void **state) {
  (void)state;
  static const int64_t dims[] = {512, 32, 3, 3};
  laci_target_layer conv = {.op = "Conv",
                            .dtype = LAC_DTYPE_F16,
                            .rank = 4,
                            .k_axis = 0,
                            .c_axis = 1,
                            .dims = dims,
                            .groups = 1,
                            .channels_in = 32,
                            .channels_out = 512};
  assert_int_equal(foresee("tensorrt", conv, (laci_pattern){2, 4}).pays, LAC_TARGET_PAYS);
  conv.channels_in = 28; /* 252 with the window */
  assert_int_equal(foresee("tensorrt", conv, (laci_pattern){2, 4}).pays, LAC_TARGET_PAYS_NOT);
  assert_int_equal(foresee("ascend", conv, (laci_pattern){2, 4}).answer,
                   LAC_TARGET_REFUSED); /* f16 */
}

/* ---- Pruning ---- */

static lac_report *prune(const char *const *targets, int n, lac_model **model) {
  lac_options o = lac_options_default();
  lac_report *report;
  lac_error err = {0};
  o.threads = 1;
  o.permute = false;
  o.targets = targets;
  o.n_targets = n;
  assert_int_equal(lac_model_load(DIGITS, NULL, model, NULL), LAC_OK);
  if (lac_prune(*model, &o, &report, &err)) fail_msg("%s", err.text);
  return report;
}

static void pruning_leaves_what_a_target_does_not_take(void **state) {
  (void)state;
  static const char *const both[] = {"tensorrt", "cusparselt:f16"};
  lac_model *model;
  lac_report *report = prune(both, 2, &model);
  assert_int_equal(report->n_targets, 2);
  assert_int_equal(report->summary.pruned, 2); /* the two of one pixel */
  for (int l = 0; l < report->n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    if (layer->shape[2] != 3 || layer->channels_in == 1) continue;
    assert_false(layer->pruned);
    assert_string_equal(layer->reason, "cusparselt: a kernel of 9 positions, taken is at most 1");
  }
  for (int t = 0; t < 2; t++) {
    assert_int_equal(report->targets[t].n_taken, 2);
    assert_int_equal(report->targets[t].n_refused, 0);
    assert_int_equal(report->targets[t].n_dense, report->n_layers - 2);
  }
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void pruning_for_what_takes_nothing_is_refused(void **state) {
  (void)state;
  static const char *const target = "vitis";
  lac_model *model;
  lac_options o = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  o.targets = &target;
  o.n_targets = 1;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  assert_int_equal(lac_prune(model, &o, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text,
                         "the target takes none of 8 layers; the first is left out by "
                         "vitis: no DPU of Vitis AI"));
  assert_null(report);
  lac_model_destroy(model);
}

static void reports_without_memory_fail_and_leave_nothing(void **state) {
  (void)state;
  static const char *const target = "tensorrt";
  lac_model *model;
  lac_options o = lac_options_default();
  o.threads = 1;
  o.targets = &target;
  o.n_targets = 1;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  for (long n = 1;; n++) {
    lac_report *report;
    laci_memory_fail_once(n);
    const lac_status st = lac_check(model, NULL, &o, &report, NULL);
    const bool reached = !laci_memory_is_failure_pending();
    laci_memory_fail_once(0);
    if (st == LAC_OK) lac_report_destroy(report);
    else assert_int_equal(st, LAC_NO_MEMORY);
    if (!reached) break;
  }
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_fact_has_a_source),
      cmocka_unit_test(targets_are_found_by_name_and_type),
      cmocka_unit_test(a_pattern_implies_another_where_every_mask_does),
      cmocka_unit_test(forecasts_say_why),
      cmocka_unit_test(gains_are_those_of_the_shape),
      cmocka_unit_test(size_decides_whether_it_pays),
      cmocka_unit_test(pruning_leaves_what_a_target_does_not_take),
      cmocka_unit_test(pruning_for_what_takes_nothing_is_refused),
      cmocka_unit_test(reports_without_memory_fail_and_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

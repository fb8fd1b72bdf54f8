/* SPDX-License-Identifier: Apache-2.0
 * Two networks side by side: which nodes belong together, and how far their values are apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/compare/compare_in.h"
#include "base/memory.h"
#include "lacuna/compare.h"
#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "support/graph_build.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_compare_result *compare(const lac_model *a, const lac_model *b) {
  lac_compare_result *result = NULL;
  lac_error err = {0};
  if (lac_compare(a, b, NULL, &result, &err)) fail_msg("%s", err.text);
  assert_true(result->n_values > 10);
  return result;
}

static void a_network_is_like_itself(void **state) {
  (void)state;
  lac_model *a = load(), *b = load();
  lac_compare_result *result = compare(a, b);
  assert_int_equal(result->n_values, result->n_nodes);
  for (int at = 0; at < result->n_values; at++) {
    const lac_compare_value *value = &result->values[at];
    assert_true(value->error == 0 && value->largest == 0 && value->scale > 0);
    assert_true(value->by_name && value->same_shape && !value->reordered);
    assert_string_equal(value->name, value->other);
  }
  assert_true(result->values[result->n_values - 1].is_output);
  lac_compare_result_destroy(result);
  lac_model_destroy(a);
  lac_model_destroy(b);
}

static void channels_in_another_order_are_found(void **state) {
  (void)state;
  lac_model *a = load(), *b = load();
  lac_report *report = NULL;
  lac_error err = {0};
  const lac_options options = lac_options_default();
  if (lac_permute(b, &options, &report, &err)) fail_msg("%s", err.text);
  assert_true(report->summary.reordered > 0);
  lac_compare_result *result = compare(a, b);
  int n_reordered = 0;
  for (int at = 0; at < result->n_values; at++) {
    if (!(result->values[at].error < 1e-9))
      fail_msg("%s: %g", result->values[at].name, result->values[at].error);
    n_reordered += result->values[at].reordered;
  }
  assert_true(n_reordered > 3);
  assert_false(result->values[result->n_values - 1].reordered);
  lac_compare_result_destroy(result);
  lac_report_destroy(report);
  lac_model_destroy(a);
  lac_model_destroy(b);
}

static void says_where_a_pruned_network_parts(void **state) {
  (void)state;
  lac_model *a = load(), *b = load();
  lac_report *report = NULL;
  lac_error err = {0};
  char *text = NULL;
  lac_options options = lac_options_default();
  options.permute = false;
  if (lac_prune(b, &options, &report, &err)) fail_msg("%s", err.text);
  const char *first = NULL;
  for (int at = 0; at < report->n_layers && !first; at++)
    if (report->layers[at].pruned) first = report->layers[at].name;
  assert_non_null(first);
  lac_compare_result *result = compare(a, b);
  bool is_apart = false;
  for (int at = 0; at < result->n_values; at++) {
    is_apart |= strcmp(result->values[at].name, first) == 0;
    assert_int_equal(result->values[at].error > 1e-3, is_apart);
  }
  if (lac_compare_json(result, &text, &err)) fail_msg("%s", err.text);
  char wanted[256];
  (void)snprintf(wanted, sizeof wanted, "\"first_apart\": \"%s\"", first);
  assert_non_null(strstr(text, wanted));
  lac_text_free(text);
  lac_compare_result_destroy(result);
  lac_report_destroy(report);
  lac_model_destroy(a);
  lac_model_destroy(b);
}

static void same_inputs_and_seed_give_the_same_figures(void **state) {
  (void)state;
  lac_model *a = load(), *b = load();
  char *texts[2];
  for (int run = 0; run < 2; run++) {
    lac_compare_options options = lac_compare_options_default();
    lac_compare_result *result = NULL;
    lac_error err = {0};
    options.threads = run + 1;
    if (lac_compare(a, b, &options, &result, &err)) fail_msg("%s", err.text);
    assert_int_equal(lac_compare_json(result, &texts[run], &err), LAC_OK);
    lac_compare_result_destroy(result);
  }
  assert_string_equal(texts[0], texts[1]);
  lac_text_free(texts[0]);
  lac_text_free(texts[1]);
  lac_model_destroy(a);
  lac_model_destroy(b);
}

static void matches_by_name_and_then_by_structure(void **state) {
  (void)state;
  laci_graph *a = NULL, *b = NULL;
  laci_node_pair *pairs = NULL;
  lac_error err = {0};
  int n = 0;
  assert_int_equal(net_read("input x 1x4\nr = Relu(x) name=\"one\"\ns = Abs(r) name=\"two\"\n"
                            "t = Neg(s) name=\"three\"\noutput t\n",
                            &a, &err),
                   LAC_OK);
  assert_int_equal(net_read("input x 1x4\nr = Relu(x) name=\"first\"\nq = Exp(r) name=\"more\"\n"
                            "s = Abs(q) name=\"two\"\nt = Neg(s) name=\"last\"\noutput t\n",
                            &b, &err),
                   LAC_OK);
  assert_int_equal(laci_compare_pair_nodes(a, b, &pairs, &n, &err), LAC_OK);
  const laci_node_pair wanted[] = {{0, 0, false}, {1, 2, true}, {2, 3, false}};
  assert_int_equal(n, 3);
  for (int at = 0; at < n; at++) {
    assert_int_equal(pairs[at].a, wanted[at].a);
    assert_int_equal(pairs[at].b, wanted[at].b);
    assert_int_equal(pairs[at].by_name, wanted[at].by_name);
  }
  laci_free(pairs);
  laci_graph_destroy(a);
  laci_graph_destroy(b);
}

static void refuses_wrong_requests(void **state) {
  (void)state;
  lac_model *a = load();
  lac_compare_result *result = NULL;
  lac_error err = {0};
  lac_compare_options options = lac_compare_options_default();
  const lac_infer_input none = {.name = "no such input", .path = "/nonexistent.npy"};
  assert_int_equal(lac_compare(a, NULL, NULL, &result, &err), LAC_BAD_ARGUMENT);
  options.inputs = &none;
  options.n_inputs = 1;
  assert_int_equal(lac_compare(a, a, &options, &result, &err), LAC_NOT_FOUND);
  assert_null(result);
  lac_model_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_network_is_like_itself),
                                     cmocka_unit_test(channels_in_another_order_are_found),
                                     cmocka_unit_test(says_where_a_pruned_network_parts),
                                     cmocka_unit_test(same_inputs_and_seed_give_the_same_figures),
                                     cmocka_unit_test(matches_by_name_and_then_by_structure),
                                     cmocka_unit_test(refuses_wrong_requests)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * The target lacuna-cpu: only layers that the plan runs as sparse are pruned, and check says of
 * each layer what the plan does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/model.h"
#include "lacuna/plan.h"
#include "lacuna/prune.h"

static const char digits[] = LAC_SOURCE_DIR "/examples/digits/digits.onnx";
static const char *const target[] = {"lacuna-cpu"};

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(digits, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_options options_with(int n_targets) {
  lac_options o = lac_options_default();
  o.permute = o.verify = false;
  o.targets = target;
  o.n_targets = n_targets;
  return o;
}

/* Is the layer of that name run as sparse? */
static bool plan_says(const lac_plan_answer *answer, const char *name) {
  lac_plan_facts facts = LAC_SIZED(lac_plan_facts);
  assert_int_equal(lac_plan_about(answer, &facts, NULL), LAC_OK);
  for (int at = 0; at < facts.n_nodes; at++) {
    lac_plan_node node = LAC_SIZED(lac_plan_node);
    assert_int_equal(lac_plan_node_at(answer, at, &node, NULL), LAC_OK);
    if (strcmp(node.name, name) == 0) return node.sparse;
  }
  fail_msg("%s is not in the plan", name);
  return false;
}

static void check_is_the_plan(void **state) {
  (void)state;
  for (int n_targets = 0; n_targets < 2; n_targets++) {
    lac_model *model = load();
    lac_report *pruned = NULL, *report = NULL;
    lac_plan_answer *answer = NULL;
    lac_error err = {0};
    const lac_options how = options_with(n_targets), look = options_with(1);
    if (lac_prune(model, &how, &pruned, &err)) fail_msg("%s", err.text);
    if (lac_check(model, NULL, &look, &report, &err)) fail_msg("%s", err.text);
    const lac_engine_options engine = lac_engine_options_default();
    if (lac_plan_ask(model, &engine, &answer, &err)) fail_msg("%s", err.text);
    int n_sparse = 0;
    for (int l = 0; l < report->n_layers; l++) {
      const lac_target_layer *judged = &report->targets[0].layers[l];
      const bool sparse = plan_says(answer, report->layers[l].name);
      n_sparse += sparse;
      if (report->layers[l].pruned) assert_int_equal(judged->answer == LAC_TARGET_TAKEN, sparse);
      else assert_false(sparse);
      if (judged->answer == LAC_TARGET_REFUSED) assert_string_equal(judged->fault, "plan");
    }
    assert_int_equal(report->targets[0].n_taken, n_sparse);
    /* pruned for the target: nothing in vain */
    if (n_targets == 1) assert_int_equal(pruned->summary.pruned, n_sparse);
    if (n_targets == 1) assert_int_equal(report->targets[0].n_refused, 0);
    lac_plan_answer_destroy(answer);
    lac_report_destroy(report);
    lac_report_destroy(pruned);
    lac_model_destroy(model);
  }
}

/* The figures of prune and check are the same: check takes the network for dense that was. */
static void check_predicts_what_prune_did(void **state) {
  (void)state;
  lac_model *model = load();
  lac_report *pruned = NULL, *report = NULL;
  lac_error err = {0};
  const lac_options how = options_with(0), look = options_with(1);
  if (lac_prune(model, &how, &pruned, &err)) fail_msg("%s", err.text);
  if (lac_check(model, NULL, &look, &report, &err)) fail_msg("%s", err.text);
  const lac_prediction *p = pruned->prediction, *c = report->prediction;
  assert_non_null(p);
  assert_non_null(c);
  assert_null(p->refusal);
  assert_true(p->dense_seconds > 0 && p->pruned_seconds > 0);
  assert_true(p->dense_seconds == c->dense_seconds && p->pruned_seconds == c->pruned_seconds);
  assert_int_equal(p->n_sparse + p->n_dense, pruned->summary.pruned);
  assert_int_equal(p->n_sparse, report->targets[0].n_taken);
  assert_true(p->multiplications_pruned > 0 && p->multiplications_pruned < p->multiplications);
  double layers = 0;
  int n_dense = 0;
  for (int l = 0; l < pruned->n_layers; l++) layers += p->layers[l].dense_seconds;
  for (int r = 0; r < p->n_reasons; r++) n_dense += p->reasons[r].n_layers;
  assert_true(layers > 0 && layers <= p->dense_seconds);
  assert_int_equal(n_dense, p->n_dense);
  lac_report_destroy(report);
  lac_report_destroy(pruned);
  lac_model_destroy(model);
}

static void nothing_is_predicted_without_pruned_layers(void **state) {
  (void)state;
  lac_model *model = load();
  lac_report *report = NULL;
  lac_error err = {0};
  const lac_options look = options_with(1);
  if (lac_check(model, NULL, &look, &report, &err)) fail_msg("%s", err.text);
  assert_null(report->prediction);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(check_is_the_plan),
                                     cmocka_unit_test(check_predicts_what_prune_did),
                                     cmocka_unit_test(nothing_is_predicted_without_pruned_layers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

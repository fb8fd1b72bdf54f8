/* SPDX-License-Identifier: Apache-2.0
 * lacuna/plan.h: what is said of a network is what lac_engine_create then does, with fixed and with
 * open sizes, and each node is found by its output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/engine.h"
#include "lacuna/plan.h"
#include "lacuna/train.h"
#include "support/light.h"

static lac_model *network(const char *name) {
  lac_network_options options = lac_network_options_default();
  lac_model *model = NULL;
  lac_error err = {0};
  options.name = name;
  if (lac_network_create(&options, &model, &err)) fail_msg("%s: %s", name, err.text);
  return model;
}

static lac_plan_answer *ask(const lac_model *model, const lac_engine_options *options,
                            lac_plan_facts *facts) {
  lac_plan_answer *answer = NULL;
  lac_error err = {0};
  *facts = (lac_plan_facts)LAC_SIZED(lac_plan_facts);
  if (lac_plan_ask(model, options, &answer, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_plan_about(answer, facts, &err), LAC_OK);
  return answer;
}

/** Fixes the shape of the network's input. */
static lac_engine_options options_for(const lac_engine_shape *shape) {
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.shapes = shape;
  options.n_shapes = shape ? 1 : 0;
  return options;
}

static lac_engine_shape images(int64_t n, int64_t size) {
  return (lac_engine_shape){.name = "image", .rank = 4, .shape = {n, 3, size, size}};
}

/** Does the plan's text name this node with a kernel of that kind? */
static bool says(const char *text, const char *kind, const char *node) {
  char line[512];
  for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    const char *name = strrchr(line, ' ');
    if (name && strcmp(name + 1, node) == 0 && strstr(line, kind)) return true;
  }
  return false;
}

static void what_is_said_of_our_networks_is_what_is_planned(void **state) {
  (void)state;
  static const char *const known[] = {"cifar-resnet20", "digits", "resnet18"};
  for (int at = 0; at < (tests_are_light() ? 2 : 3); at++) {
    lac_model *model = network(known[at]);
    lac_plan_facts facts;
    lac_engine_options o = options_for(NULL);
    lac_plan_answer *answer = ask(model, &o, &facts);
    assert_true(facts.open); /* the batch */
    assert_int_equal(facts.refusal, LAC_OK);
    assert_int_equal(facts.n_none + facts.n_unknown + facts.n_exact + facts.n_operator, 0);
    assert_int_equal(facts.n_fast + facts.n_no_step, facts.n_nodes);
    lac_plan_answer_destroy(answer);
    lac_model_destroy(model);
  }
}

static void fixed_sizes_are_answered_as_the_engine_is_made(void **state) {
  (void)state;
  lac_model *model = network("cifar-resnet20");
  const lac_engine_shape right = images(2, 32), wrong = images(2, 33);
  lac_engine_options o = options_for(&right);
  lac_engine *engine = NULL;
  lac_engine_facts about = LAC_SIZED(lac_engine_facts);
  lac_error err = {0};
  lac_plan_facts facts;
  lac_plan_answer *answer = ask(model, &o, &facts);
  assert_false(facts.open);
  assert_null(facts.reason);
  assert_string_equal(facts.engine, "auto");
  if (lac_engine_create(model, &o, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_engine_about(engine, &about, &err), LAC_OK);
  assert_int_equal(about.n_nodes, facts.n_nodes);
  int n_fast = 0;
  for (int at = 0; at < facts.n_nodes; at++) {
    lac_plan_node node = LAC_SIZED(lac_plan_node), found = LAC_SIZED(lac_plan_node);
    assert_int_equal(lac_plan_node_at(answer, at, &node, &err), LAC_OK);
    assert_int_equal(lac_plan_find(answer, node.output, &found, &err), LAC_OK);
    assert_string_equal(node.output, found.output);
    assert_false(says(lac_engine_plan_text(engine), " plain ", node.name));
    n_fast += node.runner == LAC_RUNNER_FAST;
  }
  assert_int_equal(n_fast, facts.n_fast);
  lac_engine_destroy(engine);
  lac_plan_answer_destroy(answer);
  o = options_for(&wrong);
  o.run.engine = "cpu";
  answer = ask(model, &o, &facts);
  assert_int_equal(lac_engine_create(model, &o, &engine, &err), facts.refusal);
  assert_int_equal(facts.refusal, LAC_BAD_SHAPE);
  assert_string_equal(facts.reason, err.text);
  lac_plan_answer_destroy(answer);
  lac_model_destroy(model);
}

static void a_limit_of_memory_is_a_refusal_with_its_cure(void **state) {
  (void)state;
  lac_model *model = network("cifar-resnet20");
  const lac_engine_shape shape = images(64, 32);
  lac_engine_options o = options_for(&shape);
  lac_engine *engine = NULL;
  lac_error err = {0};
  lac_plan_facts facts;
  o.run.max_memory = 3 << 20;
  lac_plan_answer *answer = ask(model, &o, &facts);
  assert_int_equal(facts.refusal, LAC_MEMORY_LIMIT);
  assert_int_equal(lac_engine_create(model, &o, &engine, &err), LAC_MEMORY_LIMIT);
  assert_string_equal(facts.reason, err.text);
  assert_int_equal(facts.hint, err.hint);
  assert_true(facts.n_fast > 0); /* with more memory they would be fast */
  lac_plan_answer_destroy(answer);
  lac_model_destroy(model);
}

static void what_is_not_there_is_not_found(void **state) {
  (void)state;
  lac_model *model = network("digits");
  lac_engine_options o = options_for(NULL);
  lac_plan_facts facts;
  lac_plan_node node = LAC_SIZED(lac_plan_node);
  lac_error err = {0};
  lac_plan_answer *answer = ask(model, &o, &facts);
  assert_int_equal(lac_plan_node_at(answer, facts.n_nodes, &node, &err), LAC_NOT_FOUND);
  assert_int_equal(lac_plan_node_at(answer, -1, &node, &err), LAC_NOT_FOUND);
  assert_int_equal(lac_plan_find(answer, "no such output", &node, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "no such output"));
  node.size = 0;
  assert_int_equal(lac_plan_node_at(answer, 0, &node, &err), LAC_BAD_ARGUMENT);
  lac_plan_answer_destroy(answer);
  o.run.engine = "none such";
  assert_int_equal(lac_plan_ask(model, &o, &answer, &err), LAC_NOT_FOUND);
  assert_null(answer);
  const lac_engine_shape unknown = {.name = "no such input", .rank = 1, .shape = {1}};
  o = options_for(&unknown);
  assert_int_equal(lac_plan_ask(model, &o, &answer, &err), LAC_NOT_FOUND);
  lac_plan_answer_destroy(NULL);
  assert_string_equal(lac_node_runner_name(LAC_RUNNER_OPERATOR), "operator");
  assert_string_equal(lac_node_runner_name((lac_node_runner)99), "unknown");
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_said_of_our_networks_is_what_is_planned),
      cmocka_unit_test(fixed_sizes_are_answered_as_the_engine_is_made),
      cmocka_unit_test(a_limit_of_memory_is_a_refusal_with_its_cure),
      cmocka_unit_test(what_is_not_there_is_not_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

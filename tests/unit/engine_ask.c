/* SPDX-License-Identifier: Apache-2.0
 * What laci_engine_ask answers is what laci_engine_create then does, node by node: over random
 * networks of every operator, and over networks that are refused.
 *
 * LAC_RANDOM_GRAPHS sets how many random networks, LAC_RANDOM_SEED where they start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/random_ops.h"

#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "support/graph_run.h"
#include "support/random_net.h"

enum { DEFAULT_GRAPHS = 300, MOST_NODES = 512, MOST_INPUTS = 8 };

static const char *const engines[] = {"auto", "cpu", "plain"};

typedef struct asked {
  laci_arena memory;
  laci_engine_node nodes[MOST_NODES];
  laci_engine_answer answer;
} asked;

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text ? strtol(text, NULL, 10) : otherwise;
}

static laci_graph *read(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static void ask(asked *a, const laci_graph *graph, laci_engine_options options) {
  lac_error err = {0};
  *a = (asked){0};
  assert_true(graph->n_nodes <= MOST_NODES);
  if (laci_engine_ask(graph, &options, &a->memory, a->nodes, &a->answer, &err))
    fail_msg("%s", err.text);
}

/** Gives every node a name of its own, by which steps name it. */
static void name_nodes(laci_graph *graph, laci_arena *memory) {
  for (int n = 0; n < graph->n_nodes; n++) {
    char own[32];
    (void)snprintf(own, sizeof own, "node %d", n);
    graph->nodes[n].name = laci_arena_text(memory, own);
  }
}

static laci_engine_runner runner_of_step(const laci_engine_step *step, const char *engine) {
  if (step->exact || (step->plain && strcmp(engine, "plain") == 0)) return LACI_RUNNER_EXACT;
  return step->plain ? LACI_RUNNER_PLAIN : LACI_RUNNER_FAST;
}

/** Compares the answer with the steps of an engine that was made. */
static void has_the_steps_of(const asked *a, const laci_graph *graph, const laci_engine *engine,
                             const char *which, const char *text) {
  bool found[MOST_NODES] = {false};
  laci_engine_runner slowest[MOST_NODES] = {LACI_RUNNER_NONE}; /* of the node's steps */
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step step = laci_engine_step_info(engine, at);
    int n = -1;
    if (!step.name || sscanf(step.name, "node %d", &n) != 1) continue;
    const laci_engine_runner runner = runner_of_step(&step, which);
    if (runner > slowest[n]) slowest[n] = runner;
    if (slowest[n] > a->nodes[n].runner || (step.sparse && !a->nodes[n].sparse))
      fail_msg("%s, node %d (%s): runner %d, but the step is %s\n%s", which, n,
               graph->nodes[n].type, (int)a->nodes[n].runner, step.what, text);
    found[n] = true;
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_engine_node *node = &a->nodes[n];
    const bool own = node->runner == LACI_RUNNER_PLAIN || node->runner == LACI_RUNNER_EXACT;
    const bool runs =
        own || node->runner == LACI_RUNNER_FAST || node->runner == LACI_RUNNER_NO_STEP;
    const bool begins = laci_node_control_flow_role(&graph->nodes[n]) == LACI_CONTROL_BEGIN;
    if (!runs || (own && !found[n] && !begins) || (found[n] && node->runner != slowest[n]) ||
        (node->runner == LACI_RUNNER_NO_STEP && found[n]))
      fail_msg("%s, node %d (%s): runner %d\n%s", which, n, graph->nodes[n].type, (int)node->runner,
               text);
    assert_true(!own == !node->reason);
  }
}

/** Asks, then creates, and compares; returns whether an engine was made. */
static bool is_true_of(const laci_graph *graph, laci_engine_options options, const char *text) {
  laci_engine *engine = NULL;
  asked *a = malloc(sizeof *a);
  lac_error err = {0};
  ask(a, graph, options);
  assert_false(a->answer.open);
  lac_status st = laci_engine_create(graph, &options, &engine, &err);
  if (st != a->answer.refusal.status || strcmp(err.text, a->answer.refusal.text) != 0)
    fail_msg("%s: said \"%s\", but \"%s\"\n%s", options.engine, a->answer.refusal.text, err.text,
             text);
  if (!st) has_the_steps_of(a, graph, engine, options.engine, text);
  laci_engine_destroy(engine);
  laci_arena_clear(&a->memory);
  free(a);
  return !st;
}

static void open_sizes(laci_graph *graph) {
  for (int at = 0; at < graph->n_inputs; at++) {
    laci_shape *shape = &graph->values[graph->inputs[at]].type.shape;
    for (int axis = 0; axis < shape->rank; axis++) shape->dims[axis] = laci_graph_add_symbol(graph);
  }
}

/** The answer with open sizes must be no "no" where a plan was made with sizes. */
static void says_yes_with_open_sizes(laci_graph *graph, const char *engine, const char *text) {
  asked *a = malloc(sizeof *a);
  open_sizes(graph);
  ask(a, graph, (laci_engine_options){.engine = engine, .threads = 1});
  if (a->answer.refusal.status) fail_msg("%s: %s\n%s", engine, a->answer.refusal.text, text);
  for (int n = 0; n < graph->n_nodes; n++) {
    if (a->nodes[n].runner == LACI_RUNNER_NONE)
      fail_msg("%s, node %d (%s): %s\n%s", engine, n, graph->nodes[n].type, a->nodes[n].reason,
               text);
  }
  laci_arena_clear(&a->memory);
  free(a);
}

static bool has_sizes(const laci_graph *graph) {
  for (int at = 0; at < graph->n_inputs; at++) {
    if (graph->values[graph->inputs[at]].type.shape.rank > 0) return true;
  }
  return false;
}

static void what_is_said_of_random_networks_is_what_is_planned(void **state) {
  (void)state;
  const long n = number_from("LAC_RANDOM_GRAPHS", DEFAULT_GRAPHS);
  const long first = number_from("LAC_RANDOM_SEED", 0);
  int n_ops, n_planned[3] = {0}, n_refused[3] = {0};
  const laci_op *const *ops = drawn_ops(&n_ops);
  builder *m = malloc(sizeof *m);
  for (long seed = first; seed < first + n; seed++) {
    laci_arena names = {0};
    const bool made = make_net(m, (uint64_t)seed, key_of(ops[seed % n_ops]).text);
    if (made) name_nodes(m->graph, &names);
    bool planned[3] = {false};
    for (int e = 0; e < 3 && made; e++) {
      planned[e] =
          is_true_of(m->graph, (laci_engine_options){.engine = engines[e], .threads = 1}, m->text);
      n_planned[e] += planned[e];
      n_refused[e] += !planned[e];
    }
    for (int e = 0; e < 3 && made && has_sizes(m->graph); e++) {
      if (planned[e]) says_yes_with_open_sizes(m->graph, engines[e], m->text);
    }
    laci_graph_destroy(m->graph);
    laci_arena_clear(&names);
  }
  free(m);
  assert_true(n_planned[0] > n / 2 && n_planned[1] > n / 2 && n_planned[2] > n / 2);
  assert_true(n < DEFAULT_GRAPHS || n_refused[1] > 0);
}

/* ---- Networks that are refused ---- */

#define FIRST "input x 2x16x12x12\nstored w 16x16x3x3\nc = Conv(x, w) name=\"node 0\"\n"

static void an_unknown_operator_is_why_and_the_others_are_told_as_without_it(void **state) {
  (void)state;
  laci_graph *graph = read(FIRST
                           "r = Relu(c) name=\"node 1\"\nu = com.acme.Odd(r) name=\"node 2\"\n"
                           "s = Sigmoid(u) name=\"node 3\"\noutput s\n");
  for (int e = 0; e < 2; e++) {
    const laci_engine_options options = {.engine = engines[e], .threads = 1};
    asked a;
    assert_false(is_true_of(graph, options, ""));
    ask(&a, graph, options);
    assert_int_equal(a.nodes[0].runner, LACI_RUNNER_FAST);
    assert_int_equal(a.nodes[1].runner, LACI_RUNNER_FAST);
    assert_int_equal(a.nodes[2].runner, LACI_RUNNER_NONE);
    assert_non_null(strstr(a.nodes[2].reason, "com.acme.Odd"));
    assert_string_equal(a.answer.refusal.text, a.nodes[2].reason);
    laci_arena_clear(&a.memory);
  }
  laci_graph_destroy(graph);
}

static void what_depends_on_data_is_refused_by_the_fast_engine_alone(void **state) {
  (void)state;
  laci_graph *graph =
      read(FIRST "z = NonZero(c) name=\"node 1\"\nt = Transpose(z) name=\"node 2\"\noutput t\n");
  asked a;
  assert_false(is_true_of(graph, (laci_engine_options){.engine = "cpu", .threads = 1}, ""));
  assert_true(is_true_of(graph, (laci_engine_options){.engine = "auto", .threads = 1}, ""));
  ask(&a, graph, (laci_engine_options){.engine = "cpu", .threads = 1});
  assert_int_equal(a.nodes[0].runner, LACI_RUNNER_FAST);
  assert_int_equal(a.nodes[1].runner, LACI_RUNNER_NONE);
  assert_non_null(strstr(a.nodes[1].reason, "not known from the inputs' shapes"));
  assert_int_equal(a.nodes[2].runner, LACI_RUNNER_NONE);
  assert_non_null(strstr(a.nodes[2].reason, "it reads 'z'"));
  laci_arena_clear(&a.memory);
  laci_graph_destroy(graph);
}

static void sizes_that_do_not_fit_are_told_as_creation_tells_them(void **state) {
  (void)state;
  laci_graph *graph = read("input x 2x3\ninput y 2x3\ns = Add(x, y) name=\"node 0\"\noutput s\n");
  open_sizes(graph);
  const laci_input_shape shapes[] = {{"x", laci_shape_of(2, (int64_t[]){2, 3})},
                                     {"y", laci_shape_of(2, (int64_t[]){2, 4})}};
  for (int e = 0; e < 3; e++) {
    laci_engine_options options = {
        .engine = engines[e], .threads = 1, .shapes = shapes, .n_shapes = 2};
    const bool planned = is_true_of(graph, options, "");
    assert_true(planned == (e == 0)); /* "auto" runs the sum exactly, which fails */
  }
  laci_graph_destroy(graph);
}

static void a_limit_of_memory_is_told_as_creation_tells_it(void **state) {
  (void)state;
  laci_graph *graph = read(FIRST "output c\n");
  for (uint64_t limit = 1000; limit < 4000000; limit *= 3) {
    laci_budget one = laci_budget_with_limit(limit), other = one;
    laci_engine_options options = {.engine = "cpu", .threads = 1, .budget = &one};
    laci_engine *engine = NULL;
    lac_error err = {0};
    asked a;
    ask(&a, graph, options);
    assert_int_equal(one.needed, 0); /* a question needs no memory later */
    options.budget = &other;
    lac_status st = laci_engine_create(graph, &options, &engine, &err);
    assert_int_equal(a.answer.refusal.status, st);
    assert_string_equal(a.answer.refusal.text, err.text);
    assert_int_equal(a.nodes[0].runner, LACI_RUNNER_FAST);
    laci_arena_clear(&a.memory);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

/* The branches have plans in parts: NonZero has a result whose size depends on data. */
static void an_unknown_operator_leaves_branches_their_plans(void **state) {
  (void)state;
  static asked a;
  laci_graph *graph = read(
      "input c 1 bool\ninput x 2x16x12x12\nstored w 16x16x3x3\n"
      "u = com.acme.Odd(x)\noutput u\n"
      "then\na = Conv(x, w) pads=1,1,1,1 name=\"a\"\nn = NonZero(a) name=\"n\"\n"
      "k = Cast(n) to=1\nm = ReduceMax(k) keepdims=0\nb = Add(a, m)\nelse\n"
      "d = Conv(x, w) pads=1,1,1,1\nr = Relu(d)\nend\n"
      "y = If(c, b, r)\noutput y\n");
  ask(&a, graph, (laci_engine_options){.engine = "auto", .threads = 1});
  for (int at = 0; at < graph->n_nodes; at++) {
    const char *node = graph->nodes[at].name;
    if (strcmp(node, "a") == 0) assert_int_equal(a.nodes[at].runner, LACI_RUNNER_FAST);
    if (strcmp(node, "n") == 0) assert_int_equal(a.nodes[at].runner, LACI_RUNNER_EXACT);
  }
  laci_arena_clear(&a.memory);
  laci_graph_destroy(graph);
}

static void an_unknown_operator_is_refused_with_open_sizes_too(void **state) {
  (void)state;
  laci_graph *graph = read(
      "input x 2x3\nr = Relu(x) name=\"node 0\"\n"
      "u = com.acme.Odd(r) name=\"node 1\"\noutput u\n");
  graph->values[graph->inputs[0]].type.shape.dims[0] = laci_graph_add_symbol(graph);
  for (int e = 0; e < 3; e++) {
    asked a;
    ask(&a, graph, (laci_engine_options){.engine = engines[e], .threads = 1});
    assert_true(a.answer.open);
    assert_int_equal(a.answer.refusal.status, LAC_UNSUPPORTED);
    assert_non_null(strstr(a.answer.refusal.text, "com.acme.Odd"));
    assert_int_equal(a.nodes[1].runner, LACI_RUNNER_NONE);
    assert_true(a.nodes[0].runner != LACI_RUNNER_NONE);
    laci_arena_clear(&a.memory);
  }
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_said_of_random_networks_is_what_is_planned),
      cmocka_unit_test(an_unknown_operator_is_why_and_the_others_are_told_as_without_it),
      cmocka_unit_test(what_depends_on_data_is_refused_by_the_fast_engine_alone),
      cmocka_unit_test(sizes_that_do_not_fit_are_told_as_creation_tells_them),
      cmocka_unit_test(a_limit_of_memory_is_told_as_creation_tells_it),
      cmocka_unit_test(an_unknown_operator_leaves_branches_their_plans),
      cmocka_unit_test(an_unknown_operator_is_refused_with_open_sizes_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

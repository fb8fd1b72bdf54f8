/* SPDX-License-Identifier: Apache-2.0
 * Computing again on the plain engine: every gradient, statistic and loss is the very same number,
 * and the graph is a sound one. (The fast engine's bits: train_remat.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "support/walk.h"
#include "base/rng.h"
#include "graph/training_graph.h"
#include "support/block_nets.h"
#include "support/graph_run.h"

static laci_training_graph *make(const laci_graph *model, int64_t batch, bool remat) {
  lac_error err = {0};
  laci_training_graph *made;
  laci_training_options options = {.batch = batch, .remat = remat};
  if (laci_training_graph_create(model, &options, &made, &err)) fail_msg("%s", err.text);
  return made;
}

/** Every input with numbers of its own, variances above zero. */
static laci_stepper *run(const laci_training_graph *g) {
  lac_error err = {0};
  laci_stepper *made;
  assert_int_equal(walk_open(g->graph, NULL, &made, &err), LAC_OK);
  for (int at = 0; at < g->graph->n_inputs; at++) {
    int value = g->graph->inputs[at];
    const laci_type *type = &g->graph->values[value].type;
    laci_buf *buf;
    assert_int_equal(laci_buf_create(type->dtype, &type->shape, &buf, &err), LAC_OK);
    for (int64_t i = 0; i < buf->count; i++) {
      double x = laci_rng_unit(11, (uint64_t)at, (uint64_t)i);
      bool scores = value == g->labels;
      buf->f[i] = scores ? (double)(i % g->n_classes == i / g->n_classes) : 0.6 * x - 0.25;
    }
    laci_stepper_set(made, value, buf);
  }
  if (walk_all(made, g->graph, &err)) fail_msg("%s", err.text);
  return made;
}

static void expect_same(const laci_stepper *a, int value_a, const laci_stepper *b, int value_b,
                        const char *name) {
  const laci_buf *want = laci_stepper_value(a, value_a), *got = laci_stepper_value(b, value_b);
  assert_non_null(want);
  assert_non_null(got);
  assert_int_equal(want->count, got->count);
  if (memcmp(want->f, got->f, (size_t)want->count * sizeof *want->f) != 0)
    fail_msg("%s differs", name);
}

/** Producers stand before readers, the forward part reads no clone, and a clone is like what it
 * repeats. */
static void check_graph(const laci_graph *graph, int n_again) {
  int n = 0;
  for (int at = 0; at < graph->n_nodes; at++) {
    const laci_node *node = &graph->nodes[at];
    int first = node->outputs[0];
    bool again = graph->values[first].repeats >= 0;
    for (int port = 0; port < node->n_inputs; port++) {
      if (node->inputs[port] < 0) continue;
      const laci_value *v = &graph->values[node->inputs[port]];
      if (v->producer >= at) fail_msg("%s reads %s before it is made", node->name, v->name);
    }
    for (int port = 0; port < node->n_outputs; port++) {
      if (node->outputs[port] < 0) continue;
      const laci_value *v = &graph->values[node->outputs[port]];
      assert_int_equal(laci_graph_find_value(graph, v->name), node->outputs[port]);
      assert_int_equal(v->repeats >= 0, again);
      if (!again) continue;
      const laci_value *from = &graph->values[v->repeats];
      assert_false(v->is_output);
      assert_true(from->producer >= 0 && from->producer < at && from->repeats < 0);
      assert_string_equal(graph->nodes[from->producer].type, node->type);
      assert_int_equal(v->type.dtype, from->type.dtype);
      assert_true(laci_shape_equal(&v->type.shape, &from->type.shape));
      if (v->n_readers == 0) assert_int_not_equal(port, 0);
    }
    n += again;
  }
  assert_int_equal(n, n_again);
}

static void check(const laci_graph *model, int64_t batch, const char *name) {
  laci_training_graph *once = make(model, batch, false), *again = make(model, batch, true);
  assert_int_equal(once->n_again, 0);
  if (again->n_again < 2) fail_msg("%s: %d nodes again", name, again->n_again);
  assert_int_equal(again->graph->n_nodes, once->graph->n_nodes + again->n_again);
  check_graph(again->graph, again->n_again);
  laci_stepper *a = run(once), *b = run(again);
  expect_same(a, once->loss, b, again->loss, "loss");
  expect_same(a, once->logits, b, again->logits, "logits");
  assert_int_equal(once->n_params, again->n_params);
  for (int at = 0; at < once->n_params; at++) {
    expect_same(a, once->params[at].gradient, b, again->params[at].gradient, once->params[at].name);
  }
  assert_int_equal(once->n_stats, again->n_stats);
  for (int at = 0; at < once->n_stats; at++)
    expect_same(a, once->stats[at].update, b, again->stats[at].update, once->stats[at].name);
  laci_stepper_destroy(a);
  laci_stepper_destroy(b);
  laci_training_graph_destroy(once);
  laci_training_graph_destroy(again);
}

static void check_arch(const char *name, int size, int64_t batch) {
  lac_error err = {0};
  laci_graph *model;
  laci_arch_options o = {.name = name, .n_classes = 10, .image_size = size, .seed = 3};
  if (laci_arch_build(&o, &model, &err)) fail_msg("%s", err.text);
  check(model, batch, name);
  laci_graph_destroy(model);
}

static void check_blocks(block_kind kind, int n_blocks, int64_t batch) {
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  block_net(kind, n_blocks, &net);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  check(model, batch, net.text);
  laci_graph_destroy(model);
}

static void residual_networks_have_the_same_gradients(void **state) {
  (void)state;
  check_arch("digits", 16, 4);
  check_arch("cifar-resnet20", 16, 4);
  check_arch("resnet18", 64, 2);
}

static void joins_have_the_same_gradients(void **state) {
  (void)state;
  check_blocks(BLOCK_JOINS, 5, 3);
}

static void gates_have_the_same_gradients(void **state) {
  (void)state;
  check_blocks(BLOCK_GATES, 4, 3);
}

static void branches_have_the_same_gradients(void **state) {
  (void)state;
  check_blocks(BLOCK_BRANCHES, 5, 3);
}

static void attention_has_the_same_gradients(void **state) {
  (void)state;
  check_blocks(BLOCK_ATTENTION, 4, 8);
}

/** A model may use the names that clones would have. */
static void names_of_clones_collide_with_nobodys(void **state) {
  (void)state;
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  net.used = 0;
  block_say(&net, "input x 1x3x16x16\nstored a0.w 16x3x3x3\na0 = Conv(x, a0.w) pads=1,1,1,1\n");
  for (int k = 1; k <= 6; k++) {
    block_say(&net, "stored w%d 16x16x3x3\nc%d = Conv(a%d, w%d) pads=1,1,1,1\n", k, k, k - 1, k);
    block_say(&net, "c%d/again = Relu(c%d)\na%d = Relu(c%d/again)\n", k, k, k, k);
  }
  block_end(&net, "a6", 16);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  check(model, 4, "again");
  laci_graph_destroy(model);
}

/** More places to cut than are looked at. */
static void a_long_chain_has_the_same_gradients(void **state) {
  (void)state;
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  net.used = 0;
  block_say(&net, "input x 1x3x16x16\nstored w 8x3x3x3\na0 = Conv(x, w) pads=1,1,1,1\n");
  for (int k = 1; k <= 600; k++) block_say(&net, "a%d = Sigmoid(a%d)\n", k, k - 1);
  block_end(&net, "a600", 8);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  check(model, 2, "chain");
  laci_graph_destroy(model);
}

static void nothing_changes_where_nothing_is_saved(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x4\nstored w 4x3\nstored b 3\na = MatMul(x, w)\ny = Add(a, b)\noutput y\n";
  assert_int_equal(net_read(net, &model, &err), LAC_OK);
  laci_training_graph *once = make(model, 2, false), *again = make(model, 2, true);
  assert_int_equal(again->n_again, 0);
  assert_int_equal(again->graph->n_nodes, once->graph->n_nodes);
  assert_int_equal(again->graph->n_values, once->graph->n_values);
  laci_training_graph_destroy(once);
  laci_training_graph_destroy(again);
  laci_graph_destroy(model);
}

/** Makes the training graph with the n-th allocation failing; true where n was too far. */
static bool make_without_memory(const laci_graph *model, bool remat, long n) {
  lac_error err = {0};
  laci_training_graph *made = NULL;
  laci_training_options options = {.batch = 4, .remat = remat};
  laci_memory_fail_at(n);
  lac_status st = laci_training_graph_create(model, &options, &made, &err);
  laci_memory_fail_at(0);
  assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
  assert_true((made != NULL) == (st == LAC_OK));
  laci_training_graph_destroy(made);
  return st == LAC_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  long first = 1, most = 1, n;
  block_net(BLOCK_JOINS, 3, &net);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  while (!make_without_memory(model, false, most)) most *= 2;
  while (first < most) { /* what comes before computing again is another test's */
    long middle = first + (most - first) / 2;
    if (make_without_memory(model, false, middle)) most = middle;
    else first = middle + 1;
  }
  for (n = first; !make_without_memory(model, true, n); n++) continue;
  assert_true(n > first + 20);
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(residual_networks_have_the_same_gradients),
      cmocka_unit_test(joins_have_the_same_gradients),
      cmocka_unit_test(gates_have_the_same_gradients),
      cmocka_unit_test(branches_have_the_same_gradients),
      cmocka_unit_test(attention_has_the_same_gradients),
      cmocka_unit_test(names_of_clones_collide_with_nobodys),
      cmocka_unit_test(a_long_chain_has_the_same_gradients),
      cmocka_unit_test(nothing_changes_where_nothing_is_saved),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Ifs on the engine "auto": a branch is planned in advance and run when the condition chooses it, an
 * If of known condition is inlined, and what cannot be planned runs as the plain engine runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/row.h"
#include "engine/stepper.h"
#include "support/graph_run.h"
#include "tensor/buf.h"

enum { IN = 2 * 16 * 12 * 12, MOST_PORTS = 4, MOST_STEPS = 64 };

#define INPUTS "input c 1 bool\ninput x 2x16x12x12\nstored w 16x16x3x3\nstored v 16x16x3x3\n"

static laci_graph *read(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_engine *plan(const laci_graph *graph) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.engine = "auto", .threads = 2};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  return engine;
}

static int n_exact(const laci_engine *engine) {
  return laci_engine_describe_exact_nodes(engine).n_nodes;
}

/** Whether a step of the node is fast, exact, or there is none. */
typedef enum how { NO_STEP, FAST, EXACT } how;

static how step_of(const laci_engine *engine, const char *node) {
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step step = laci_engine_step_info(engine, at);
    if (step.name && strcmp(step.name, node) == 0) return step.exact ? EXACT : FAST;
  }
  return NO_STEP;
}

static const float *numbers(void) {
  static float x[IN];
  for (int at = 0; at < IN; at++) x[at] = (float)(at % 17) / 8 - 1;
  return x;
}

/** A walk of the plain engine over all nodes. */
static laci_stepper *walk(const laci_graph *graph, bool condition) {
  laci_stepper *made;
  lac_error err = {0};
  const laci_stepper_options options = {.engine = "plain"};
  assert_int_equal(laci_stepper_create(graph, &options, &made, &err), LAC_OK);
  for (int at = 0; at < graph->n_inputs; at++) {
    laci_buf *buf;
    const laci_type *type = &graph->values[graph->inputs[at]].type;
    assert_int_equal(laci_buf_create(type->dtype, &type->shape, &buf, NULL), 0);
    for (int64_t k = 0; k < buf->count; k++) {
      if (buf->f) buf->f[k] = (double)numbers()[k];
      else buf->i[k] = condition;
    }
    laci_stepper_set_value(made, graph->inputs[at], buf);
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    if (laci_stepper_step(made, n, &err)) fail_msg("%s", err.text);
  }
  return made;
}

static void compare_output(const laci_engine *engine, int at, const laci_buf *want,
                           const void *out) {
  const laci_engine_port *ports;
  (void)laci_engine_outputs(engine, &ports);
  const laci_buf *open = ports[at].open ? laci_engine_result(engine, at) : NULL;
  assert_non_null(want);
  if (ports[at].open) assert_non_null(open);
  assert_true(laci_shape_equal(open ? &open->shape : &ports[at].type.shape, &want->shape));
  for (int64_t k = 0; k < want->count; k++) {
    const double found = open      ? laci_buf_get_f(open, k)
                         : want->f ? (double)((const float *)out)[k]
                                   : (double)((const int64_t *)out)[k];
    const double diff = fabs(found - laci_buf_get_f(want, k));
    if (!(diff <= 2e-3)) fail_msg("%s[%d]: off by %g", ports[at].name, (int)k, diff);
  }
}

/** Runs the engine with that condition, and compares every output with a walk's. */
static void agrees(const laci_graph *graph, laci_engine *engine, bool condition) {
  const int64_t number = condition;
  const void *in[MOST_PORTS];
  void *out[MOST_PORTS] = {0};
  const laci_engine_port *inputs, *outputs;
  lac_error err = {0};
  const int n_in = laci_engine_inputs(engine, &inputs),
            n_out = laci_engine_outputs(engine, &outputs);
  laci_stepper *wanted = walk(graph, condition);
  for (int at = 0; at < n_in; at++)
    in[at] = inputs[at].type.dtype == LAC_DTYPE_F32 ? (const void *)numbers() : &number;
  for (int at = 0; at < n_out; at++) {
    assert_string_equal(outputs[at].name, graph->values[graph->outputs[at]].name);
    if (!outputs[at].open) out[at] = laci_alloc(outputs[at].size_bytes, 1);
  }
  if (laci_engine_run(engine, in, out, &err)) fail_msg("%s", err.text);
  for (int at = 0; at < n_out; at++) {
    compare_output(engine, at, laci_stepper_value(wanted, graph->outputs[at]), out[at]);
    laci_free(out[at]);
  }
  laci_stepper_destroy(wanted);
}

/** Runs both branches alternately: each run finds what the last one left. */
static void agrees_alternately(const laci_graph *graph, laci_engine *engine) {
  for (int run = 0; run < 4; run++) agrees(graph, engine, run % 2 == 0);
}

static void check(const char *text, int exact) {
  laci_graph *graph = read(text);
  laci_engine *engine = plan(graph);
  if (n_exact(engine) != exact)
    fail_msg("%d exact nodes, wanted %d:\n%s", n_exact(engine), exact, text);
  agrees_alternately(graph, engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/* ---- Branches with engines ---- */

static void each_branch_has_a_plan_of_its_own(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "then\na = Conv(x, w) name=\"one\"\nelse\nb = Conv(x, v) "
                           "name=\"other\"\nend\ny = If(c, a, b) name=\"choice\"\n"
                           "z = Conv(y, w) name=\"after\"\noutput z\noutput y");
  laci_engine *engine = plan(graph);
  assert_int_equal(step_of(engine, "one"), FAST);
  assert_int_equal(step_of(engine, "other"), FAST);
  assert_int_equal(step_of(engine, "after"), FAST);
  assert_int_equal(n_exact(engine), 0);
  assert_non_null(strstr(laci_engine_plan_text(engine), "else branch of choice: fast"));
  agrees_alternately(graph, engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void results_may_differ_in_shape(void **state) {
  (void)state;
  check(INPUTS
        "then\na = Conv(x, w)\nelse\nb = Conv(x, v) pads=1,1,1,1\nend\ny = If(c, a, b)\n"
        "z = Relu(y)\noutput y\noutput z",
        1);
}

static void results_may_be_outer_values_and_the_same_twice(void **state) {
  (void)state;
  check(INPUTS
        "r = Neg(x)\nstored s 2x16x10x10\nthen\na = Conv(x, w)\nelse\nb = Conv(x, v)\nend\n"
        "y, z = If(c, a, a, b, s)\noutput z\noutput y\noutput r",
        1);
  check(INPUTS
        "r = Neg(x)\nthen\na = Conv(x, w)\ng = Relu(a)\nelse\nb = Conv(r, v)\nend\n"
        "y, z = If(c, g, x, b, r)\nu = Add(z, x)\noutput y\noutput u",
        2);
}

static void a_condition_may_be_computed(void **state) {
  (void)state;
  check(
      "input c 1 i64\ninput x 2x16x12x12\nstored w 16x16x3x3\nstored v 16x16x3x3\n"
      "stored o \"\" i64 = 1\nis = Equal(c, o)\nf = Conv(x, v)\n"
      "then\na = Conv(f, w)\nelse\nb = Conv(f, v)\nend\ny = If(is, a, b)\noutput y",
      0);
}

static void ifs_may_follow_each_other(void **state) {
  (void)state;
  check(INPUTS
        "then\na = Conv(x, w)\nelse\nb = Conv(x, v)\nend\ny = If(c, a, b)\nn = Not(c)\n"
        "then\nd = Conv(y, w)\nelse\ne = Conv(y, v)\nend\nz = If(n, d, e)\noutput z",
        1);
}

static void a_body_may_have_bodies(void **state) {
  (void)state;
  check(INPUTS
        "stored t \"\" i64 = 3\nthen\na = Conv(x, w)\nloop\n"
        "i, go, h = LoopBegin(t, _, a) domain=\"lacuna\"\nk = Neg(h)\nend\n"
        "l = Loop(go, a, h, k)\nelse\nb = Conv(x, v)\nend\ny = If(c, l, b)\noutput y",
        2);
  check(INPUTS
        "then\na = Conv(x, w)\nthen\nd = Conv(a, v) pads=1,1,1,1\nelse\n"
        "e = Conv(a, w) pads=1,1,1,1\nend\nl = If(c, d, e)\nelse\nb = Conv(x, v)\nend\n"
        "y = If(c, l, b)\noutput y",
        0);
}

/* ---- Branches without ---- */

static void a_branch_of_little_work_is_stepped(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "stored s 2x16x10x10\nthen\na = Conv(x, w) name=\"one\"\nelse\n"
                           "k = Shape(x)\nb = Identity(s) name=\"little\"\nend\n"
                           "y = If(c, a, b)\nz = Conv(y, v) name=\"after\"\noutput z");
  laci_engine *engine = plan(graph);
  assert_int_equal(step_of(engine, "one"), FAST);
  assert_int_equal(step_of(engine, "little"), EXACT);
  assert_int_equal(step_of(engine, "after"), FAST);
  agrees_alternately(graph, engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void a_branch_that_does_not_fit_is_no_fault_until_it_is_taken(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "stored g 16x7x3x3\nthen\na = Conv(x, w)\nelse\nb = Conv(x, g)\n"
                           "end\ny = If(c, a, b)\noutput y");
  laci_engine *engine = plan(graph);
  lac_error err = {0};
  const laci_engine_port *ports;
  agrees(graph, engine, true);
  (void)laci_engine_outputs(engine, &ports);
  void *out = ports[0].open ? NULL : laci_alloc(ports[0].size_bytes, 1);
  assert_int_not_equal(
      laci_engine_run(engine, (const void *[]){&(int64_t){0}, numbers()}, (void *[]){out}, &err),
      LAC_OK);
  laci_free(out);
  agrees(graph, engine, true);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void what_comes_from_data_in_a_branch_is_exact_there(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "then\na = Conv(x, w) name=\"one\"\np = NonZero(a) name=\"data\"\n"
                           "else\nb = Conv(x, v)\nq = NonZero(b)\nend\n"
                           "y = If(c, p, q)\noutput y");
  laci_engine *engine = plan(graph);
  assert_int_equal(step_of(engine, "one"), FAST);
  assert_int_equal(step_of(engine, "data"), EXACT);
  agrees_alternately(graph, engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/* ---- Conditions that are known ---- */

#define KNOWN                                                                        \
  "k = Shape(x)\nstored z \"\" i64 = 0\ng = Gather(k, z)\nstored two \"\" i64 = 2\n" \
  "is = Equal(g, two)\nthen\na = Conv(x, w) name=\"taken\"\nelse\nb = Conv(x, v) "   \
  "name=\"not taken\"\nend\n"

static void a_known_condition_leaves_one_fast_network(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS KNOWN "y = If(is, a, b)\nr = Relu(y)\noutput r\noutput y\n");
  laci_engine *engine = plan(graph);
  assert_int_equal(n_exact(engine), 0);
  assert_int_equal(step_of(engine, "taken"), FAST);
  assert_int_equal(step_of(engine, "not taken"), NO_STEP);
  agrees_alternately(graph, engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void a_known_condition_passes_inputs_and_stored_tensors_on(void **state) {
  (void)state;
  check(INPUTS "stored s 3\n" KNOWN
               "y, n, m = If(is, a, x, s, b, x, s)\noutput y\noutput n\noutput m",
        0);
}

static void an_inner_condition_may_follow_from_sizes(void **state) {
  (void)state;
  check(INPUTS "then\n" KNOWN
               "l = If(is, a, b)\nd = Relu(l)\nelse\ne = Conv(x, v)\nend\n"
               "y = If(c, d, e)\noutput y",
        0);
}

/* ---- Reports ---- */

static void steps_of_a_branch_that_is_not_taken_take_no_time(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "then\na = Conv(x, w) name=\"one\"\nelse\nb = Conv(x, v) "
                           "name=\"other\"\nend\ny = If(c, a, b)\noutput y");
  laci_engine *engine = plan(graph);
  double begins[MOST_STEPS], seconds[MOST_STEPS];
  static float out[2 * 16 * 10 * 10];
  const laci_engine_watch watch = {.begins = begins, .seconds = seconds};
  const size_t n = laci_engine_step_count(engine);
  assert_in_range(n, 2, MOST_STEPS);
  for (int64_t condition = 0; condition < 2; condition++) {
    for (size_t at = 0; at < n; at++) seconds[at] = begins[at] = -1;
    assert_int_equal(laci_engine_run_watched(engine, (const void *[]){&condition, numbers()},
                                             (void *[]){out}, &watch, NULL),
                     LAC_OK);
    for (size_t at = 0; at < n; at++) {
      const laci_engine_step step = laci_engine_step_info(engine, at);
      assert_true(seconds[at] >= 0 && begins[at] >= 0);
      if (!step.name || strcmp(step.name, condition ? "other" : "one") != 0) continue;
      assert_true(seconds[at] == 0);
    }
  }
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void nodes_of_branches_are_listed(void **state) {
  (void)state;
  laci_graph *graph = read(INPUTS
                           "then\na = Conv(x, w)\nelse\nb = Conv(x, v)\nend\n"
                           "y = If(c, a, b)\noutput y");
  laci_engine *engine = plan(graph);
  laci_engine_node nodes[3] = {[2] = {.runner = LACI_RUNNER_NO_STEP}};
  assert_int_equal(graph->n_nodes, 3);
  laci_engine_list_nodes(engine, graph, nodes);
  assert_int_equal(nodes[0].runner, LACI_RUNNER_FAST);
  assert_int_equal(nodes[1].runner, LACI_RUNNER_FAST);
  assert_int_equal(nodes[2].runner, LACI_RUNNER_NO_STEP);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/* ---- Memory ---- */

static lac_status plan_and_run(const laci_graph *graph, float *out) {
  const laci_engine_options options = {.engine = "auto", .threads = 1};
  laci_engine *engine = NULL;
  lac_status st = laci_engine_create(graph, &options, &engine, NULL);
  for (int64_t condition = 0; condition < 2 && !st; condition++)
    st = laci_engine_run(engine, (const void *[]){&condition, numbers()}, (void *[]){out}, NULL);
  laci_engine_destroy(engine);
  return st;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static float out[2 * 16 * 10 * 10];
  laci_graph *graph = read(INPUTS "then\n" KNOWN
                                  "l = If(is, a, b)\nd = Relu(l)\nelse\n"
                                  "e = NonZero(x)\nh = Conv(x, v)\nend\ny = If(c, d, h)\noutput y");
  lac_status st = LAC_NO_MEMORY;
  for (long at = 1; at < 20000 && st; at += 1 + at / 8) {
    laci_memory_fail_from(at);
    st = plan_and_run(graph, out);
    laci_memory_fail_from(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: status %d", at, (int)st);
  }
  assert_int_equal(st, LAC_OK);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_branch_has_a_plan_of_its_own),
      cmocka_unit_test(results_may_differ_in_shape),
      cmocka_unit_test(results_may_be_outer_values_and_the_same_twice),
      cmocka_unit_test(a_condition_may_be_computed),
      cmocka_unit_test(ifs_may_follow_each_other),
      cmocka_unit_test(a_body_may_have_bodies),
      cmocka_unit_test(a_branch_of_little_work_is_stepped),
      cmocka_unit_test(a_branch_that_does_not_fit_is_no_fault_until_it_is_taken),
      cmocka_unit_test(what_comes_from_data_in_a_branch_is_exact_there),
      cmocka_unit_test(a_known_condition_leaves_one_fast_network),
      cmocka_unit_test(a_known_condition_passes_inputs_and_stored_tensors_on),
      cmocka_unit_test(an_inner_condition_may_follow_from_sizes),
      cmocka_unit_test(steps_of_a_branch_that_is_not_taken_take_no_time),
      cmocka_unit_test(nodes_of_branches_are_listed),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * What engine.h promises of every engine, tried on those of the house: the list, ports, runs,
 * steps, memory, and which nodes are supported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/row.h"
#include "engine/stepper.h"
#include "support/graph_run.h"
#include "tensor/buf.h"

static const char *const engines[] = {"plain", "cpu"};
enum { N_ENGINES = 2, BATCH = 2, IN = 16 * 8 * 8, OUT = 5 };

static const char network[] =
    "input x 2x16x8x8\nstored w 8x16x3x3\nstored b 8\nstored v 8x5\n"
    "c = Conv(x, w, b) name=\"first\"\nr = Relu(c)\np = GlobalAveragePool(r)\nf = Flatten(p)\n"
    "y = Gemm(f, v)\noutput y\n";

static laci_graph *read(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_engine *plan(const laci_graph *graph, const char *name) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.engine = name, .threads = 2};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s: %s", name, err.text);
  return engine;
}

static void fill(float *to, int n) {
  for (int at = 0; at < n; at++) to[at] = (float)(at % 13) / 6 - 1;
}

/* ---- The list ---- */

static void the_list_begins_with_the_engines_of_the_house(void **state) {
  (void)state;
  const char *names[8];
  assert_true(laci_engine_names(names, 8) >= N_ENGINES);
  for (int at = 0; at < N_ENGINES; at++) assert_string_equal(names[at], engines[at]);
  assert_true(laci_engine_names(NULL, 0) >= N_ENGINES);
}

static void without_a_name_the_default_runs(void **state) {
  (void)state;
  laci_graph *graph = read(network);
  laci_engine *engine = plan(graph, NULL);
  assert_string_equal(laci_engine_name(engine), LACI_ENGINE_FAST);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void an_unknown_name_is_refused_with_those_that_there_are(void **state) {
  (void)state;
  laci_graph *graph = read(network);
  laci_engine *engine;
  laci_stepper *stepper;
  lac_error err = {0};
  laci_engine_options options = {.engine = "gpu"};
  assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "gpu"));
  assert_non_null(strstr(err.text, "plain, cpu"));
  assert_null(engine);
  laci_stepper_options walk = {.engine = "gpu"};
  assert_int_equal(laci_stepper_create(graph, &walk, &stepper, &err), LAC_NOT_FOUND);
  walk.engine = "cpu";
  assert_int_equal(laci_stepper_create(graph, &walk, &stepper, &err), LAC_UNSUPPORTED);
  assert_null(stepper);
  assert_false(laci_engine_has_stepper("cpu"));
  assert_true(laci_engine_has_stepper(NULL));
  laci_graph_destroy(graph);
}

static void a_row_that_is_not_whole_or_not_new_is_refused(void **state) {
  (void)state;
  static const laci_engine_row empty = {.name = "empty"};
  lac_error err = {0};
  const char *names[1];
  int n = laci_engine_names(names, 1);
  assert_int_equal(laci_engine_register(&empty, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_engine_register(NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_engine_names(names, 1), n);
}

/* ---- An engine ---- */

static void ports_are_the_networks(void **state) {
  (void)state;
  laci_graph *graph = read(network);
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine = plan(graph, engines[at]);
    const laci_engine_port *in, *out;
    assert_int_equal(laci_engine_inputs(engine, &in), 1);
    assert_int_equal(laci_engine_outputs(engine, &out), 1);
    assert_string_equal(in[0].name, "x");
    assert_int_equal(in[0].size_bytes, BATCH * IN * sizeof(float));
    assert_string_equal(out[0].name, "y");
    assert_int_equal(out[0].type.dtype, LAC_DTYPE_F32);
    assert_int_equal(out[0].type.shape.dims[1], OUT);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void engines_agree(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[N_ENGINES][BATCH * OUT];
  lac_error err = {0};
  laci_graph *graph = read(network);
  fill(x, BATCH * IN);
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine = plan(graph, engines[at]);
    for (int run = 0; run < 2; run++) {
      lac_status st = laci_engine_run(engine, (const void *[]){x}, (void *[]){y[at]}, &err);
      if (st) fail_msg("%s: %s", engines[at], err.text);
    }
    laci_engine_destroy(engine);
  }
  for (int i = 0; i < BATCH * OUT; i++) {
    if (!number_close((double)y[1][i], (double)y[0][i], 1e-4)) {
      fail_msg("%d: %g and %g", i, (double)y[0][i], (double)y[1][i]);
    }
  }
  laci_graph_destroy(graph);
}

static void integers_come_through(void **state) {
  (void)state;
  const int64_t i[3] = {4, 0, 2};
  int64_t y[N_ENGINES][3];
  lac_error err = {0};
  laci_graph *graph = read("input i 3 i64\nstored one 1 i64 = 1\ny = Add(i, one)\noutput y\n");
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine = plan(graph, engines[at]);
    if (laci_engine_run(engine, (const void *[]){i}, (void *[]){y[at]}, &err)) {
      fail_msg("%s: %s", engines[at], err.text);
    }
    for (int k = 0; k < 3; k++) assert_int_equal(y[at][k], i[k] + 1);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void steps_are_told_and_timed(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[BATCH * OUT];
  double seconds[64];
  lac_error err = {0};
  laci_graph *graph = read(network);
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine = plan(graph, engines[at]);
    size_t n = laci_engine_step_count(engine);
    int64_t flops = 0;
    assert_true(n > 0 && n <= 64);
    for (size_t step = 0; step < n; step++) {
      laci_engine_step s = laci_engine_step_info(engine, step);
      assert_true(s.op && s.what && s.kernel && s.bytes_read >= 0 && s.bytes_written > 0);
      flops += s.flops;
      seconds[step] = -1;
    }
    assert_int_equal(flops, 2 * BATCH * (8 * 6 * 6 * 16 * 9 + 8 * OUT));
    assert_int_equal(laci_engine_run_watched(engine, (const void *[]){x}, (void *[]){y},
                                             &(laci_engine_watch){.seconds = seconds}, &err),
                     LAC_OK);
    for (size_t step = 0; step < n; step++) assert_true(seconds[step] >= 0);
    assert_int_equal(laci_engine_threads(engine), 2);
    assert_non_null(strstr(laci_engine_plan_text(engine), "first"));
    assert_true(laci_engine_planned_memory(engine).arena_bytes > 0);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void more_than_the_budget_is_refused_and_less_is_added(void **state) {
  (void)state;
  laci_graph *graph = read(network);
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine;
    lac_error err = {0};
    laci_budget small = laci_budget_with_limit(4096), large = laci_budget_with_limit(1 << 26);
    laci_engine_options options = {.engine = engines[at], .threads = 1, .budget = &small};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_MEMORY_LIMIT);
    options.budget = &large;
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_OK);
    laci_engine_memory planned = laci_engine_planned_memory(engine);
    assert_true(large.needed > planned.arena_bytes + planned.weight_bytes);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static lac_status fetch(void *context, const uint8_t *bytes, size_t n, void *to, lac_error *err) {
  (void)err;
  *(int *)context += 1;
  memcpy(to, bytes, n);
  return LAC_OK;
}

static void stored_bytes_may_be_elsewhere(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float here[BATCH * OUT], fetched[BATCH * OUT];
  lac_error err = {0};
  laci_graph *graph = read(network);
  fill(x, BATCH * IN);
  for (int at = 0; at < N_ENGINES; at++) {
    int n_fetched = 0;
    laci_engine *engine = plan(graph, engines[at]);
    assert_int_equal(laci_engine_run(engine, (const void *[]){x}, (void *[]){here}, &err), LAC_OK);
    laci_engine_destroy(engine);
    laci_engine_options options = {
        .engine = engines[at], .threads = 2, .fetch = fetch, .fetch_context = &n_fetched};
    if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
    assert_true(n_fetched >= 3 && laci_engine_planned_memory(engine).weight_bytes > 0);
    n_fetched = 0;
    assert_int_equal(laci_engine_run(engine, (const void *[]){x}, (void *[]){fetched}, &err),
                     LAC_OK);
    assert_int_equal(n_fetched, 0);
    assert_memory_equal(here, fetched, sizeof here);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void what_is_wrong_is_said_alike(void **state) {
  (void)state;
  laci_graph *graph = read(network);
  laci_graph *open = read("input x Nx4\ny = Relu(x)\noutput y\n");
  for (int at = 0; at < N_ENGINES; at++) {
    laci_engine *engine;
    lac_error err = {0};
    laci_input_shape shape = {"z", laci_shape_of(1, (int64_t[]){1})};
    laci_engine_options options = {.engine = engines[at], .shapes = &shape, .n_shapes = 1};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_NOT_FOUND);
    options.n_shapes = 0;
    assert_int_equal(laci_engine_create(open, &options, &engine, &err), LAC_BAD_SHAPE);
    assert_non_null(strstr(err.text, "input 'x'"));
    shape = (laci_input_shape){"x", laci_shape_of(2, (int64_t[]){3, 4})};
    options.n_shapes = 1;
    assert_int_equal(laci_engine_create(open, &options, &engine, &err), LAC_OK);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(open);
  laci_graph_destroy(graph);
}

static void an_operator_that_cannot_be_run_is_named(void **state) {
  (void)state;
  laci_graph *graph = read("input x 4\nr = Relu(x)\ny = Nonsense(r) name=\"odd\"\noutput y\n");
  for (int at = 0; at < N_ENGINES; at++) {
    lac_error err = {0};
    laci_engine *engine;
    laci_engine_options options = {.engine = engines[at]};
    assert_true(laci_engine_can_run_node(engines[at], graph, &graph->nodes[0], &err));
    assert_false(laci_engine_can_run_node(engines[at], graph, &graph->nodes[1], &err));
    assert_string_equal(err.text, "odd: operator Nonsense cannot be run");
    assert_false(laci_engine_can_run_node(engines[at], graph, &graph->nodes[1], NULL));
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_UNSUPPORTED);
    assert_string_equal(err.text, "odd: operator Nonsense cannot be run");
  }
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_list_begins_with_the_engines_of_the_house),
      cmocka_unit_test(without_a_name_the_default_runs),
      cmocka_unit_test(an_unknown_name_is_refused_with_those_that_there_are),
      cmocka_unit_test(a_row_that_is_not_whole_or_not_new_is_refused),
      cmocka_unit_test(ports_are_the_networks),
      cmocka_unit_test(engines_agree),
      cmocka_unit_test(integers_come_through),
      cmocka_unit_test(steps_are_told_and_timed),
      cmocka_unit_test(more_than_the_budget_is_refused_and_less_is_added),
      cmocka_unit_test(stored_bytes_may_be_elsewhere),
      cmocka_unit_test(what_is_wrong_is_said_alike),
      cmocka_unit_test(an_operator_that_cannot_be_run_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

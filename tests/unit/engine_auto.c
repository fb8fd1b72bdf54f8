/* SPDX-License-Identifier: Apache-2.0
 * The engine "auto": what the fast engine runs is its own to the bit, what it cannot run is the
 * plain one's, and a network that needs both is cut where it must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/stepper.h"
#include "support/graph_run.h"
#include "tensor/buf.h"

enum { IN = 2 * 16 * 12 * 12, MOST_PORTS = 4 };

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

static int exact_nodes(const laci_engine *engine) {
  return laci_engine_describe_exact_nodes(engine).n_nodes;
}

static bool is_exact(const laci_engine *engine, const char *node) {
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step step = laci_engine_step_info(engine, at);
    if (step.name && strcmp(step.name, node) == 0) return step.exact;
  }
  fail_msg("no step of %s", node);
  return false;
}

/** The content of every output on the engine `name` and by a walk of the plain one, compared. */
static void agrees_with_the_walk(const laci_graph *graph, laci_engine *engine, double tolerance) {
  static float x[IN];
  static int64_t whole[IN];
  const void *in[MOST_PORTS];
  void *out[MOST_PORTS] = {0};
  const laci_engine_port *inputs, *outputs;
  lac_error err = {0};
  laci_stepper *walk;
  const laci_stepper_options options = {.engine = "plain"};
  int n_in = laci_engine_inputs(engine, &inputs), n_out = laci_engine_outputs(engine, &outputs);
  for (int at = 0; at < IN; at++) {
    x[at] = (float)(at % 17) / 8 - 1;
    whole[at] = at % 3;
  }
  assert_int_equal(laci_stepper_create(graph, &options, &walk, &err), LAC_OK);
  for (int at = 0; at < n_in; at++) {
    laci_buf *buf;
    int value = graph->inputs[at];
    assert_int_equal(
        laci_buf_create(graph->values[value].type.dtype, &inputs[at].type.shape, &buf, NULL), 0);
    for (int64_t k = 0; k < buf->count; k++) {
      if (buf->f) buf->f[k] = (double)x[k];
      else buf->i[k] = whole[k];
    }
    in[at] = buf->f ? (const void *)x : whole;
    laci_stepper_set_value(walk, value, buf);
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    if (laci_stepper_step(walk, n, &err)) fail_msg("%s", err.text);
  }
  for (int at = 0; at < n_out; at++) {
    if (!outputs[at].open) out[at] = laci_alloc(outputs[at].size_bytes, 1);
  }
  for (int round = 0; round < 2; round++) { /* the second finds what the first left */
    if (laci_engine_run(engine, in, out, &err)) fail_msg("%s", err.text);
  }
  for (int at = 0; at < n_out; at++) {
    const laci_buf *want = laci_stepper_value(walk, graph->outputs[at]);
    const laci_buf *open = laci_engine_result(engine, at);
    assert_non_null(want);
    if (outputs[at].open) assert_non_null(open);
    if (outputs[at].open) assert_true(laci_shape_equal(&open->shape, &want->shape));
    else
      assert_int_equal(outputs[at].size_bytes / lac_dtype_size(outputs[at].type.dtype),
                       want->count);
    for (int64_t k = 0; k < want->count; k++) {
      double found = outputs[at].open ? laci_buf_get_f(open, k)
                     : want->f        ? (double)((float *)out[at])[k]
                                      : (double)((int64_t *)out[at])[k];
      double diff = fabs(found - laci_buf_get_f(want, k));
      if (!(diff <= tolerance)) fail_msg("%s[%d]: off by %g", outputs[at].name, (int)k, diff);
    }
    laci_free(out[at]);
  }
  laci_stepper_destroy(walk);
}

#define FIRST_LAYERS                                             \
  "input x 2x16x12x12\nstored w 16x16x3x3\nstored v 16x16x3x3\n" \
  "c = Conv(x, w) name=\"first\"\nr = Relu(c)\n"

/* ---- What runs where ---- */

static void a_network_that_is_fast_as_a_whole_is_the_fast_engines(void **state) {
  (void)state;
  laci_graph *graph = read(FIRST_LAYERS "d = Conv(r, v)\noutput d");
  laci_engine *one = plan(graph, "auto"), *other = plan(graph, "cpu");
  static float x[IN], a[2 * 16 * 8 * 8], b[2 * 16 * 8 * 8];
  for (int at = 0; at < IN; at++) x[at] = (float)(at % 17) / 8 - 1;
  assert_int_equal(exact_nodes(one), 0);
  assert_string_equal(laci_engine_plan_text(one), laci_engine_plan_text(other));
  assert_int_equal(laci_engine_run(one, (const void *[]){x}, (void *[]){a}, NULL), LAC_OK);
  assert_int_equal(laci_engine_run(other, (const void *[]){x}, (void *[]){b}, NULL), LAC_OK);
  assert_memory_equal(a, b, sizeof a);
  laci_engine_destroy(one);
  laci_engine_destroy(other);
  laci_graph_destroy(graph);
}

static void what_comes_from_data_is_exact_and_what_is_before_it_fast(void **state) {
  (void)state;
  laci_graph *graph = read(FIRST_LAYERS
                           "z = NonZero(r) name=\"count\"\nt = Transpose(z) name=\"after\"\n"
                           "output t\noutput r");
  laci_engine *engine = plan(graph, "auto");
  const laci_engine_port *out;
  assert_int_equal(exact_nodes(engine), 2);
  assert_non_null(strstr(laci_engine_describe_exact_nodes(engine).reason, "count"));
  assert_false(is_exact(engine, "first"));
  assert_true(is_exact(engine, "count"));
  assert_true(is_exact(engine, "after"));
  assert_int_equal(laci_engine_outputs(engine, &out), 2);
  assert_true(out[0].open);
  assert_int_equal(out[0].size_bytes, 0);
  assert_false(out[1].open);
  agrees_with_the_walk(graph, engine, 1e-3);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void what_is_of_known_shape_again_is_fast_again(void **state) {
  (void)state;
  laci_graph *graph = read(FIRST_LAYERS
                           "stored m 1 i64 = -1\nf = Reshape(r, m)\nz = NonZero(f)\n"
                           "stored a 1 i64 = 0\ns = Squeeze(z, a)\np = Concat(s, s, s, s) axis=0\n"
                           "n = GatherElements(f, p) name=\"gathered\"\nstored k 1 i64 = 1600\n"
                           "u, i = TopK(n, k) name=\"chosen\"\nstored h 4 i64 = 1 16 10 10\n"
                           "q = Reshape(u, h)\nd = Conv(q, v) name=\"back\"\noutput d");
  laci_engine *engine = plan(graph, "auto");
  assert_false(is_exact(engine, "first"));
  assert_true(is_exact(engine, "gathered"));
  assert_true(is_exact(engine, "chosen"));
  assert_false(is_exact(engine, "back"));
  agrees_with_the_walk(graph, engine, 1e-3);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void small_work_is_not_worth_a_plan(void **state) {
  (void)state;
  laci_graph *graph = read("input x 2x3\ny = Relu(x)\nz = NonZero(y)\noutput z");
  laci_engine *engine = plan(graph, "auto");
  assert_int_equal(exact_nodes(engine), 2);
  agrees_with_the_walk(graph, engine, 0);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void outputs_may_be_inputs_stored_or_listed_twice(void **state) {
  (void)state;
  laci_graph *graph = read(
      FIRST_LAYERS "z = NonZero(r)\nstored s 3 = 1 2 3\noutput x\noutput s\noutput r\noutput z");
  laci_engine *engine = plan(graph, "auto");
  agrees_with_the_walk(graph, engine, 1e-3);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void the_fast_engine_alone_still_refuses(void **state) {
  (void)state;
  laci_graph *graph = read("input x 2x3\nz = NonZero(x)\noutput z");
  laci_engine *engine;
  const laci_engine_options options = {.engine = "cpu"};
  lac_error err = {0};
  assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_UNSUPPORTED);
  assert_null(engine);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_network_that_is_fast_as_a_whole_is_the_fast_engines),
      cmocka_unit_test(what_comes_from_data_is_exact_and_what_is_before_it_fast),
      cmocka_unit_test(what_is_of_known_shape_again_is_fast_again),
      cmocka_unit_test(small_work_is_not_worth_a_plan),
      cmocka_unit_test(outputs_may_be_inputs_stored_or_listed_twice),
      cmocka_unit_test(the_fast_engine_alone_still_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

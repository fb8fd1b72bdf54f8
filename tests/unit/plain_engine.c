/* SPDX-License-Identifier: Apache-2.0
 * The plain engine: stepping, real sizes where the file has symbols, how long values live, what it
 * refuses, replaced stored tensors, failing allocations. What operators compute is tested in
 * ops_*.c. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/plain/plain.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

static laci_graph *read_net(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_plain *start(const laci_graph *graph) {
  laci_plain *run = NULL;
  lac_error err = {0};
  if (laci_plain_create(graph, NULL, NULL, NULL, &run, &err)) fail_msg("%s", err.text);
  return run;
}

static int id(const laci_graph *graph, const char *name) {
  int value = laci_graph_find_value(graph, name);
  assert_true(value >= 0);
  return value;
}

/** A float vector [n] or matrix [n, m], 1 2 3 ... */
static laci_buf *counting(int64_t n, int64_t m) {
  laci_buf *buf = NULL;
  laci_shape shape = laci_shape_of(m ? 2 : 1, (int64_t[]){n, m});
  assert_int_equal(laci_buf_create(LAC_DTYPE_F32, &shape, &buf, NULL), LAC_OK);
  for (int64_t at = 0; at < buf->count; at++) buf->f[at] = (double)at + 1;
  return buf;
}

static void values_live_as_long_as_they_are_read(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input x 3\na = Neg(x)\nb = Abs(a)\nunread = Neg(a)\ny = Add(b, b)\noutput y\noutput b");
  laci_plain *run = start(graph);
  laci_plain_set_value(run, id(graph, "x"), counting(3, 0));
  assert_int_equal(laci_plain_step(run, 0, NULL), LAC_OK);
  assert_non_null(laci_plain_value(run, id(graph, "x"))); /* until the next step */
  assert_int_equal(laci_plain_step(run, 1, NULL), LAC_OK);
  assert_null(laci_plain_value(run, id(graph, "x")));
  assert_non_null(laci_plain_value(run, id(graph, "a")));
  assert_int_equal(laci_plain_step(run, 2, NULL), LAC_OK);
  assert_non_null(laci_plain_value(run, id(graph, "unread")));
  assert_int_equal(laci_plain_step(run, 3, NULL), LAC_OK);
  assert_null(laci_plain_value(run, id(graph, "unread")));
  assert_null(laci_plain_value(run, id(graph, "a")));
  assert_true(laci_plain_value(run, id(graph, "b"))->f[2] ==
              3); /* an output stays, though all have read it */
  assert_true(laci_plain_value(run, id(graph, "y"))->f[2] == 6);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static void sizes_come_from_the_operands(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input x -90x4\nstored a 1 i64 = 0\nstored b 1 i64 = 1\nstored m 1 i64 = -1\ns = Shape(x)\n"
      "n = Slice(s, a, b)\nc = Concat(m, n) axis=0\ny = Reshape(x, c)\nz = NonZero(y)\noutput "
      "y\noutput z");
  laci_plain *run = start(graph);
  laci_plain_set_value(run, id(graph, "x"), counting(3, 4));
  assert_int_equal(laci_plain_run_all(run, NULL), LAC_OK);
  const laci_buf *y = laci_plain_value(run, id(graph, "y")),
                 *z = laci_plain_value(run, id(graph, "z"));
  assert_int_equal(y->shape.dims[0], 4);
  assert_int_equal(y->shape.dims[1], 3);
  assert_int_equal(z->shape.dims[1], 12);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static void an_unknown_operator_may_be_stood_in_for(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph =
      read_net("input x 3\nm = Mystery(x) name=\"odd\" domain=\"my\"\ny = Neg(m)\noutput y");
  laci_plain *run = start(graph);
  laci_plain_set_value(run, id(graph, "x"), counting(3, 0));
  assert_int_equal(laci_plain_step(run, 0, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "odd: operator my.Mystery cannot be run");
  assert_int_equal(laci_plain_step(run, 1, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "Neg_1 (Neg): its input 'm' was not computed");
  laci_plain_set_value(run, id(graph, "m"), counting(2, 0));
  assert_int_equal(laci_plain_step(run, 1, &err), LAC_OK);
  assert_true(laci_plain_value(run, id(graph, "y"))->f[1] == -2);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static void a_lying_shape_does_not_take_all_memory(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph =
      read_net("stored s 2 i64 = 1000000 1000000\ny = ConstantOfShape(s) name=\"big\"\noutput y");
  laci_plain *run = start(graph);
  assert_int_equal(laci_plain_run_all(run, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text,
                      "big (ConstantOfShape): output 0 would have shape [1000000, 1000000], more "
                      "than 2147483648 elements");
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
  graph = read_net("stored s 1 i64 = 10\ny = ConstantOfShape(s)\noutput y");
  run = start(graph);
  laci_plain_set_max_elements(run, 9);
  assert_int_equal(laci_plain_run_all(run, &err), LAC_BAD_SHAPE);
  laci_plain_set_max_elements(run, 10);
  assert_int_equal(laci_plain_run_all(run, &err), LAC_OK);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static void operands_that_do_not_fit_name_the_node(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph =
      read_net("input x -90\nstored w 3 = 1 2 3\ny = Add(x, w) name=\"sum\"\noutput y");
  laci_plain *run = start(graph);
  laci_plain_set_value(run, id(graph, "x"), counting(2, 0));
  assert_int_equal(laci_plain_run_all(run, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "sum (Add): shapes [2] and [3] cannot be broadcast");
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

typedef struct loads {
  int n;
  double factor;
} loads;

static lac_status load_ones(void *context, int stored, laci_buf **buf, lac_error *err) {
  (void)stored;
  (void)err;
  loads *counter = context;
  counter->n++;
  *buf = counting(3, 0);
  for (int at = 0; at < 3; at++) (*buf)->f[at] *= counter->factor;
  return LAC_OK;
}

static void long_stored_tensors_are_loaded_anew_and_replaced_ones_never(void **state) {
  (void)state;
  laci_graph *graph = read_net("stored w 3\na = Neg(w)\nb = Add(a, w)\nc = Add(b, w)\noutput c");
  for (int keep = 0; keep < 2; keep++) {
    loads counter = {.factor = 2};
    laci_plain *run = NULL;
    assert_int_equal(laci_plain_create(graph, load_ones, &counter, NULL, &run, NULL), LAC_OK);
    laci_plain_set_max_kept_elements(run, keep ? 3 : 2);
    assert_int_equal(laci_plain_run_all(run, NULL), LAC_OK);
    assert_int_equal(counter.n, keep ? 1 : 3);
    assert_true(laci_plain_value(run, id(graph, "c"))->f[2] == 6);
    laci_plain_destroy(run);
  }
  loads counter = {.factor = 2};
  laci_plain *run = NULL;
  assert_int_equal(laci_plain_create(graph, load_ones, &counter, NULL, &run, NULL), LAC_OK);
  laci_plain_set_max_kept_elements(run, 0);
  laci_plain_set_value(run, id(graph, "w"), counting(3, 0));
  assert_int_equal(laci_plain_run_all(run, NULL), LAC_OK);
  assert_int_equal(counter.n, 0);
  assert_true(laci_plain_value(run, id(graph, "c"))->f[2] == 3);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static void a_stored_tensor_may_be_an_output(void **state) {
  (void)state;
  laci_graph *graph = read_net("stored w 2 = 5 6\noutput w");
  laci_plain *run = start(graph);
  assert_int_equal(laci_plain_run_all(run, NULL), LAC_OK);
  assert_true(laci_plain_value(run, id(graph, "w"))->f[1] == 6);
  laci_plain_destroy(run);
  laci_graph_destroy(graph);
}

static lac_status run_once(const laci_graph *graph) {
  laci_plain *run = NULL;
  lac_error err = {0};
  lac_status st = laci_plain_create(graph, NULL, NULL, NULL, &run, &err);
  if (!st) st = laci_plain_run_all(run, &err);
  laci_plain_destroy(run);
  return st;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "stored x 2x3\nstored p 4 i64 = 0 1 0 1\nstored k 1 i64 = 2\na = Pad(x, p)\n"
      "v, i = TopK(a, k)\nb = Concat(v, a) axis=1\ny = Transpose(b)\noutput y");
  for (long at = 1; at < 1000; at++) {
    laci_memory_fail_from(at);
    lac_status st = run_once(graph);
    laci_memory_fail_from(0);
    if (st == LAC_OK) {
      laci_graph_destroy(graph);
      return;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  fail_msg("still failing after a thousand allocations");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_live_as_long_as_they_are_read),
      cmocka_unit_test(sizes_come_from_the_operands),
      cmocka_unit_test(an_unknown_operator_may_be_stood_in_for),
      cmocka_unit_test(a_lying_shape_does_not_take_all_memory),
      cmocka_unit_test(operands_that_do_not_fit_name_the_node),
      cmocka_unit_test(long_stored_tensors_are_loaded_anew_and_replaced_ones_never),
      cmocka_unit_test(a_stored_tensor_may_be_an_output),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

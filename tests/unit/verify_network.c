/* SPDX-License-Identifier: Apache-2.0
 * The verification on small networks: right orders pass, each wrong one is named, zeros hide
 * nothing, unknown operators, dynamic sizes, indices, NaN, threads, interruption, memory. All of it
 * twice: products by the plain engine, and by the fast one, whose findings are believed as they
 * are. Networks are in graph_build.h's notation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "permute/orders.h"
#include "verify/verify.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

enum { CHANNELS = 8 };
static const int32_t mixed[CHANNELS] = {3, 0, 7, 1, 6, 2, 5, 4};
static const int32_t swapped[CHANNELS] = {1, 0, 2, 3, 4, 5, 6, 7};

/* A network and orders for its values; "NAME AXIS" moves 8 channels along that axis by `mixed`. */
typedef struct setting {
  laci_graph *graph;
  laci_orders orders;
} setting;

static laci_verify_engine engine;

static laci_verify_options options(void) {
  return (laci_verify_options){.seed = 3, .tolerance = 1e-9, .engine = engine};
}

static setting set_up(const char *net) {
  setting s = {0};
  lac_error err = {0};
  if (net_read(net, &s.graph, &err)) fail_msg("%s", err.text);
  s.orders.n_values = s.graph->n_values;
  s.orders.values =
      laci_arena_alloc(&s.orders.arena, (size_t)s.graph->n_values, sizeof *s.orders.values);
  assert_non_null(s.orders.values);
  return s;
}

static void tear_down(setting *s) {
  laci_orders_clear(&s->orders);
  laci_graph_destroy(s->graph);
}

static void move_by(setting *s, const char *name, int axis, const int32_t *order) {
  int value = laci_graph_find_value(s->graph, name);
  if (value < 0) fail_msg("no value %s", name);
  laci_value_orders *orders = &s->orders.values[value];
  if (!orders->items) orders->items = laci_arena_alloc(&s->orders.arena, 4, sizeof *orders->items);
  assert_non_null(orders->items);
  orders->items[orders->n++] =
      (laci_axis_order){.n_axes = 1, .axes = {axis}, .count = CHANNELS, .order = order};
}

/* "w 0, b 0": all those are moved together. */
static void move(setting *s, const char *places) {
  char name[64];
  int axis, used;
  while (sscanf(places, " %63s %d%n", name, &axis, &used) == 2) {
    move_by(s, name, axis, mixed);
    places += used;
    if (*places == ',') places++;
  }
}

static lac_status verify(const setting *s, laci_verification *found, lac_error *err) {
  laci_verify_options how = options();
  return laci_verify(s->graph, &s->orders, &how, NULL, found, err);
}

static laci_verification expect_verified(const setting *s) {
  laci_verification found;
  lac_error err = {0};
  if (verify(s, &found, &err)) fail_msg("%s", err.text);
  assert_true(found.worst_ratio <= 1e-9);
  return found;
}

static void expect_failure(const setting *s, lac_status status, const char *text) {
  laci_verification found;
  lac_error err = {0};
  lac_status st = verify(s, &found, &err);
  if (st != status || !strstr(err.text, text)) {
    fail_msg("got %s: '%s', want %s: '%s'", lac_status_text(st), err.text, lac_status_text(status),
             text);
  }
}

static const char two_layers[] =
    "input x 1x4x6x6\n"
    "stored w1 8x4x3x3\nstored gamma 8\nstored beta 8\nstored mean 8\nstored var 8 "
    "positive\nstored w2 5x8x1x1\n"
    "c = Conv(x, w1)\nn = BatchNormalization(c, gamma, beta, mean, var)\nr = Relu(n)\ny = Conv(r, "
    "w2)\noutput y\n";
static const char right_orders[] = "w1 0, c 1, gamma 0, beta 0, mean 0, var 0, n 1, r 1, w2 1";

static void right_orders_are_verified(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  move(&s, right_orders);
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_compared, 8); /* four values, two rounds */
  assert_int_equal(found.n_skipped, 0);
  assert_null(found.first_skipped);
  assert_non_null(found.worst_value);
  double rounding = engine == LACI_VERIFY_CPU ? 1e-5 : 1e-12;
  assert_true(found.max_abs_output > 0 && found.max_abs_error <= rounding * found.max_abs_output);
  assert_string_equal(found.engine, engine == LACI_VERIFY_CPU ? "cpu" : "plain");
  tear_down(&s);
}

static void no_orders_are_verified_exactly(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  laci_verification found = expect_verified(&s);
  assert_true(found.worst_ratio == 0 && found.max_abs_error == 0);
  tear_down(&s);
}

static void each_forgotten_order_is_found_where_it_shows(void **state) {
  (void)state;
  static const char *const forgotten[][2] = {
      {"w1", "c: node"},   {"c", "c: node"},    {"gamma", "n: node"},
      {"beta", "n: node"}, {"mean", "n: node"}, {"var", "n: node"},
      {"n", "n: node"},    {"r", "r: node"},    {"w2", "y: node"}};
  for (size_t i = 0; i < sizeof forgotten / sizeof *forgotten; i++) {
    setting s = set_up(two_layers);
    move(&s, right_orders);
    s.orders.values[laci_graph_find_value(s.graph, forgotten[i][0])].n = 0;
    expect_failure(&s, LAC_PROOF_FAILED, forgotten[i][1]);
    tear_down(&s);
  }
}

static void one_exchange_too_many_is_found(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  move_by(&s, "w2", 1, swapped);
  expect_failure(&s, LAC_PROOF_FAILED, "y: node");
  tear_down(&s);
}

static void axes_of_equal_size_are_told_apart(void **state) {
  (void)state;
  const char *net =
      "input x 2x8\nstored a 8x8\nstored b 8x3\nh = MatMul(x, a)\ny = MatMul(h, b)\noutput y\n";
  setting right = set_up(net), wrong = set_up(net);
  move(&right, "a 1, h 1, b 0");
  move(&wrong, "a 0, h 1, b 0");
  expect_verified(&right);
  expect_failure(&wrong, LAC_PROOF_FAILED, "h: node");
  tear_down(&right);
  tear_down(&wrong);
}

static void grouped_weights_and_axes_taken_together_are_verified(void **state) {
  (void)state;
  static const int32_t within[CHANNELS] = {1, 3, 0, 2, 7, 4, 6, 5}; /* 2 groups of 4 channels */
  static const int32_t heads[CHANNELS] = {4, 5, 6, 7, 0, 1, 2, 3};  /* 2 heads of 4 */
  setting s = set_up(
      "input x 1x4x5x5\nstored w1 8x4x1x1\nstored w2 6x4x3x3\nc = Conv(x, w1)\ng = Conv(c, w2) "
      "group=2\noutput g\n");
  move_by(&s, "w1", 0, within);
  move_by(&s, "c", 1, within);
  move_by(&s, "w2", 1, within);
  laci_axis_order *grouped = s.orders.values[laci_graph_find_value(s.graph, "w2")].items;
  grouped->n_groups = 2;
  grouped->row_axis = 0;
  expect_verified(&s);
  tear_down(&s);
  setting t = set_up(
      "input x 3x5\nstored a 5x8\nstored b 8x2\nstored k 3 i64 = 3 2 4\nstored kr 2 i64 = 3 8\n"
      "h = MatMul(x, a)\nq = Reshape(h, k)\nr = Relu(q)\nf = Reshape(r, kr)\ny = MatMul(f, "
      "b)\noutput y\n");
  move_by(&t, "a", 1, heads);
  move_by(&t, "h", 1, heads);
  move_by(&t, "f", 1, heads);
  move_by(&t, "b", 0, heads);
  for (int i = 0; i < 2; i++) {
    const char *name = i ? "r" : "q";
    move_by(&t, name, 1, heads);
    laci_axis_order *both = t.orders.values[laci_graph_find_value(t.graph, name)].items;
    both->n_axes = 2;
    both->axes[1] = 2;
  }
  expect_verified(&t);
  tear_down(&t);
}

static void zeros_hide_nothing(void **state) {
  (void)state;
  /* The branch is switched off by its gamma, as fresh residual networks are: only the second round
   * sees it. */
  setting s = set_up(
      "input x 1x4x6x6\nstored w1 8x4x3x3\nstored gamma 8 = 0 0 0 0 0 0 0 0\nstored beta 8 = 0 0 0 "
      "0 0 0 0 0\n"
      "stored mean 8\nstored var 8 positive\nstored w2 4x8x1x1\nc = Conv(x, w1) pads=1,1,1,1\n"
      "n = BatchNormalization(c, gamma, beta, mean, var)\nz = Conv(n, w2)\ny = Add(z, x)\noutput "
      "y\n");
  move(&s, "w1 0, c 1, gamma 0, beta 0, mean 0, var 0, n 1");
  expect_failure(&s, LAC_PROOF_FAILED, "z: node");
  expect_failure(&s, LAC_PROOF_FAILED, "drawn anew");
  tear_down(&s);
}

static void what_cancels_out_may_round(void **state) {
  (void)state;
  /* The mean of what the mean was taken from: nothing but rounding errors, and they depend on the
   * order. */
  setting s = set_up(
      "input x 3x5\nstored a 5x8\nstored k 1 i64 = 1\nh = MatMul(x, a)\nm = ReduceMean(h, k)\nd = "
      "Sub(h, m)\n"
      "y = ReduceMean(d, k)\noutput y\n");
  move(&s, "a 1, h 1, d 1");
  expect_verified(&s);
  tear_down(&s);
}

static void ties_but_for_rounding_are_no_difference(void **state) {
  (void)state;
  /* The same sums computed twice: which of them is larger is a matter of the last bit, and so of
   * the order of the summands. */
  const char *net =
      "input x 64x16\nstored w 16x8\nstored v 8x1\nstored flat 1 i64 = 8\nstored k 1 i64 = "
      "2\nstored axis 1 i64 = 1\n"
      "h = MatMul(x, w)\na = MatMul(h, v)\nu = Reshape(v, flat)\nm = Mul(h, u)\nb = "
      "ReduceSum(m, axis)\n"
      "s = Concat(a, b) axis=1\nt, i = TopK(s, k)\nn = ArgMax(s) axis=1\nl = Less(a, b)\n"
      "output t\noutput i\noutput n\noutput l\n";
  setting s = set_up(net);
  move(&s, "w 1, h 1, v 0, u 0, m 1");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_skipped, 0);
  /* A real difference is still found, however it is read. */
  s.orders.values[laci_graph_find_value(s.graph, "m")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "m: node");
  tear_down(&s);
}

static void the_outside_of_a_network_must_not_move(void **state) {
  (void)state;
  setting s = set_up("input x 1x8\nstored w 8x8\ny = MatMul(x, w)\noutput y\n");
  move(&s, "x 1, w 0");
  expect_failure(&s, LAC_INTERNAL, "x: an input");
  tear_down(&s);
  s = set_up("input x 1x8\nstored w 8x8\ny = MatMul(x, w)\noutput y\n");
  move(&s, "w 1, y 1");
  expect_failure(&s, LAC_INTERNAL, "y: an output");
  tear_down(&s);
  s = set_up(
      "input x 1x8\nstored w 8x8 listed\nstored v 8x3\nh = MatMul(x, w)\ny = MatMul(h, v)\noutput "
      "y\n");
  move(&s, "w 1, h 1, v 0");
  expect_failure(&s, LAC_INTERNAL, "w: an input");
  tear_down(&s);
}

static const char unknown_between[] =
    "input x 2x4\nstored a 4x8\nstored b 8x8\nstored c 8x3\nh = MatMul(x, a)\nu = Odd(h) "
    "domain=\"my\" name=\"odd\"\n"
    "shape u 2x8\nv = MatMul(u, b)\ny = MatMul(v, c)\noutput y\n";

static void an_unknown_operator_is_stepped_over(void **state) {
  (void)state;
  setting s = set_up(unknown_between);
  move(&s, "b 1, v 1, c 0");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_compared, 6);
  assert_int_equal(found.n_skipped, 2);
  assert_string_equal(found.first_skipped, "odd");
  assert_string_equal(found.reason, "my.Odd is not known");
  assert_int_equal(found.n_outputs, 1);
  assert_int_equal(found.n_outputs_compared, 0); /* y is equal, of numbers that were made up */
  assert_int_equal(found.state, LACI_VERIFY_PART);
  s.orders.values[laci_graph_find_value(s.graph, "c")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "y: node"); /* what comes after it is verified as well */
  tear_down(&s);
}

/* What it gives has the shape that the reader's weight tells; together with another branch that
 * shape may not fit. */
static void what_is_after_an_unknown_shape_is_verified(void **state) {
  (void)state;
  setting s = set_up(
      "input x 1x4x6x6\nstored a 8x4x1x1\nstored b 3x8x1x1\nstored k 3x4x1x1\n"
      "u = Odd(x) domain=\"my\"\nh = Conv(u, a)\nv = Conv(h, b)\nw = Conv(x, k)\n"
      "y = Add(v, w)\noutput y\n");
  move(&s, "a 0, h 1, b 1");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_compared, 6); /* h, v and w, twice */
  assert_int_equal(found.n_outputs_compared, 0);
  s.orders.values[laci_graph_find_value(s.graph, "b")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "v: node");
  tear_down(&s);
}

static void an_unknown_operator_freezes_what_it_touches(void **state) {
  (void)state;
  setting reads = set_up(unknown_between), gives = set_up(unknown_between);
  move(&reads, "a 1, h 1");
  expect_failure(&reads, LAC_PROOF_FAILED,
                 "h: was reordered, but the unknown operator Odd (node odd) reads it");
  move(&gives, "u 1, b 0");
  expect_failure(&gives, LAC_PROOF_FAILED,
                 "u: was reordered, but the unknown operator Odd (node odd) gives it");
  tear_down(&reads);
  tear_down(&gives);
}

static void a_declared_operator_may_be_moved_through(void **state) {
  (void)state;
  setting s = set_up(unknown_between);
  for (int n = 0; n < s.graph->n_nodes; n++) {
    if (!s.graph->nodes[n].op) s.graph->nodes[n].assume = "same";
  }
  move(&s, "a 1, h 1, u 1, b 0");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_skipped, 2);
  tear_down(&s);
}

static void what_has_no_known_shape_is_skipped_and_counted(void **state) {
  (void)state;
  setting s = set_up(
      "input x 2x4\nstored a 4x8\nstored b 8x4\nstored w 4x4\nh = MatMul(x, a)\nr = MatMul(h, b)\n"
      "u = Odd(r) domain=\"my\"\nv = MatMul(u, w)\noutput v\n");
  move(&s, "a 1, h 1, b 0");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_compared, 4);
  assert_int_equal(found.n_skipped, 4);
  assert_int_equal(found.n_outputs, 1);
  assert_int_equal(found.n_outputs_compared, 0);
  tear_down(&s);
}

static void dynamic_sizes_are_found(void **state) {
  (void)state;
  /* Two strides of 4 and a kernel of 4 need 64 pixels at least; the batch is 1, since the shape
   * says so. */
  setting s = set_up(
      "input x -1x3x-2x-3\nstored w 8x3x4x4\nstored v 4x8x4x4\nstored u 4x8x4x4\nstored k 2 i64 = "
      "1 64\n"
      "stored f 64x5\nc = Conv(x, w) strides=4,4\nd = Conv(c, v) strides=4,4\ne = Reshape(d, k)\n"
      "y = MatMul(e, f)\noutput y\n");
  move(&s, "w 0, c 1, v 1");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_compared, 8);
  assert_int_equal(found.n_skipped, 0);
  tear_down(&s);
}

static void sizes_that_no_attempt_meets_are_told(void **state) {
  (void)state;
  setting s = set_up(
      "input x -1x3x-2x-3\nstored w 8x3x1x1\nstored k 2 i64 = 1 1000001\nc = Conv(x, w)\ny = "
      "Reshape(c, k)\n"
      "output y\n");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.state, LACI_VERIFY_PART);
  assert_int_equal(found.n_compared, 2); /* c, twice */
  assert_non_null(strstr(found.reason, "tried [2, 3, 32, 32] [1, 3, 32, 32] [2, 3, 64, 64]"));
  tear_down(&s);
}

/* A file can say any size of what cannot be computed. Nothing of it is allocated. */
static void what_is_made_up_has_to_fit_in_memory(void **state) {
  (void)state;
  laci_verification found;
  laci_budget budget = laci_budget_with_limit((uint64_t)64 << 20);
  laci_verify_options how = options();
  lac_error err = {0};
  how.budget = &budget;
  setting s = set_up(
      "input x 1x4\ny = Odd(x) domain=\"my\"\nshape y 16777215x6x16\nz = Relu(y)\noutput z\n");
  assert_int_equal(laci_verify(s.graph, &s.orders, &how, NULL, &found, &err), LAC_MEMORY_LIMIT);
  assert_non_null(strstr(err.text, "16777215"));
  tear_down(&s);
}

static void an_input_without_a_shape_is_refused(void **state) {
  (void)state;
  setting s = set_up("input x what\ny = Relu(x)\noutput y\n");
  expect_failure(&s, LAC_UNSUPPORTED, "x: the verification needs the shape");
  tear_down(&s);
}

static void indices_stay_inside_what_they_index(void **state) {
  (void)state;
  setting s = set_up(
      "input ids -1x-2 i64\ninput mask 2x1 bool\nstored table 5x8\nstored w 8x3\nstored k 1 i64 = "
      "0\n"
      "u = Unsqueeze(ids, k)\nf = Cast(u) to=6\ne = Gather(table, f)\nh = Relu(e)\ny = MatMul(h, "
      "w)\n"
      "z = Not(mask)\noutput y\noutput z\n");
  move(&s, "table 1, e 3, h 3, w 0");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.n_skipped, 0);
  tear_down(&s);
}

static void integers_must_be_equal_exactly(void **state) {
  (void)state;
  const char *net =
      "input ids 4 i64\nstored table 5x8 i64\nstored k 1 i64 = 1\ne = Gather(table, ids)\ny = "
      "ReduceSum(e, k)\n"
      "stored kb 1x8 i64 = 1000000000 0 0 0 0 0 0 1\nf = Add(e, kb)\nz = "
      "ReduceMax(f, k)\n"
      "output y\noutput z\n";
  setting s = set_up(net);
  move(&s, "table 1, e 1, kb 1, f 1");
  expect_verified(&s);
  s.orders.values[laci_graph_find_value(s.graph, "kb")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "f: node");
  tear_down(&s);
}

static void quantized_weights_are_followed(void **state) {
  (void)state;
  const char *net =
      "input x 2x4\nstored q 8x4 i8\nstored s 8 positive\nstored z 8 i8 = 0 0 0 0 0 0 0 0\nstored "
      "v 8x3\n"
      "w = DequantizeLinear(q, s, z) axis=0\nt = Transpose(w) perm=1,0\nh = MatMul(x, t)\ny = "
      "MatMul(h, v)\noutput y\n";
  setting s = set_up(net);
  move(&s, "q 0, s 0, z 0, w 0, t 1, h 1, v 0");
  expect_verified(&s);
  s.orders.values[laci_graph_find_value(s.graph, "s")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "w: node");
  tear_down(&s);
}

static void a_network_of_nothing_but_nan_is_told(void **state) {
  (void)state;
  setting s = set_up("input x 2x8\nstored k \"\" = nan\nh = Mul(x, k)\ny = Relu(h)\noutput y\n");
  laci_verification found = expect_verified(&s);
  assert_int_equal(found.state, LACI_VERIFY_NOTHING);
  assert_non_null(strstr(found.reason, "h has no finite element"));
  tear_down(&s);
}

static void nan_must_be_where_it_was(void **state) {
  (void)state;
  const char *net =
      "input x 2x8\nstored a 8x8\nstored b 8 = nan 1 2 3 inf 4 5 6\nstored v 8x3\nh = MatMul(x, "
      "a)\ng = Add(h, b)\n"
      "stored k 1 i64 = 1\ny = ReduceMax(g, k)\noutput y\n";
  setting s = set_up(net);
  move(&s, "a 1, h 1, b 0, g 1");
  expect_verified(&s);
  s.orders.values[laci_graph_find_value(s.graph, "b")].n = 0;
  expect_failure(&s, LAC_PROOF_FAILED, "g: node");
  expect_failure(&s, LAC_PROOF_FAILED, "NaN or an infinity");
  tear_down(&s);
}

static void any_number_of_threads_gives_the_same_verification(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  move(&s, right_orders);
  laci_verification one = expect_verified(&s);
  laci_verify_options how = options();
  for (int threads = 2; threads <= 3; threads++) {
    laci_pool *pool = NULL;
    laci_verification many;
    assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
    assert_int_equal(laci_verify(s.graph, &s.orders, &how, pool, &many, NULL), LAC_OK);
    bool rounds = engine == LACI_VERIFY_CPU; /* a number of threads may have sums of its own */
    assert_true(rounds || (many.max_abs_error == one.max_abs_error &&
                           many.max_abs_output == one.max_abs_output));
    assert_true(many.worst_ratio == one.worst_ratio && many.worst_value == one.worst_value);
    laci_pool_destroy(pool);
  }
  tear_down(&s);
}

static void ends_when_interrupted(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  lac_interrupt(true);
  expect_failure(&s, LAC_INTERRUPTED, "interrupted");
  lac_interrupt(false);
  tear_down(&s);
}

static void fails_cleanly_without_memory(void **state) {
  (void)state;
  setting s = set_up(two_layers);
  move(&s, right_orders);
  for (long n = 1; n < 10000; n++) {
    laci_verification found;
    lac_error err = {0};
    laci_memory_fail_from(n);
    lac_status st = verify(&s, &found, &err);
    laci_memory_fail_from(0);
    if (!st) {
      tear_down(&s);
      return;
    }
    if (st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s: %s", n, lac_status_text(st), err.text);
  }
  fail_msg("never succeeded");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_orders_are_verified),
      cmocka_unit_test(no_orders_are_verified_exactly),
      cmocka_unit_test(each_forgotten_order_is_found_where_it_shows),
      cmocka_unit_test(one_exchange_too_many_is_found),
      cmocka_unit_test(axes_of_equal_size_are_told_apart),
      cmocka_unit_test(grouped_weights_and_axes_taken_together_are_verified),
      cmocka_unit_test(zeros_hide_nothing),
      cmocka_unit_test(what_cancels_out_may_round),
      cmocka_unit_test(ties_but_for_rounding_are_no_difference),
      cmocka_unit_test(the_outside_of_a_network_must_not_move),
      cmocka_unit_test(an_unknown_operator_is_stepped_over),
      cmocka_unit_test(what_is_after_an_unknown_shape_is_verified),
      cmocka_unit_test(an_unknown_operator_freezes_what_it_touches),
      cmocka_unit_test(a_declared_operator_may_be_moved_through),
      cmocka_unit_test(what_has_no_known_shape_is_skipped_and_counted),
      cmocka_unit_test(dynamic_sizes_are_found),
      cmocka_unit_test(sizes_that_no_attempt_meets_are_told),
      cmocka_unit_test(what_is_made_up_has_to_fit_in_memory),
      cmocka_unit_test(an_input_without_a_shape_is_refused),
      cmocka_unit_test(indices_stay_inside_what_they_index),
      cmocka_unit_test(integers_must_be_equal_exactly),
      cmocka_unit_test(quantized_weights_are_followed),
      cmocka_unit_test(a_network_of_nothing_but_nan_is_told),
      cmocka_unit_test(nan_must_be_where_it_was),
      cmocka_unit_test(any_number_of_threads_gives_the_same_verification),
      cmocka_unit_test(ends_when_interrupted),
      cmocka_unit_test(fails_cleanly_without_memory),
  };
  engine = LACI_VERIFY_PLAIN;
  int failed = cmocka_run_group_tests_name("plain", tests, NULL, NULL);
  engine = LACI_VERIFY_CPU;
  return failed + cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}

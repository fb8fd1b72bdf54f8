/* SPDX-License-Identifier: Apache-2.0
 * How much a verification says: all outputs, a part, nothing. Inputs that must be in a domain
 * (token numbers, batch indices, shapes), detectors that find nothing in usual numbers, outputs
 * that are empty or NaN, unknown operators. LAC_RANDOM_GRAPHS sets how many random networks get an
 * unknown operator, LAC_RANDOM_SEED where they start; tests/CMakeLists.txt runs 1,000 of them with
 * the long tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "permute/orders.h"
#include "verify/verify.h"
#include "support/random_net.h"

enum { DEFAULT_GRAPHS = 250 };

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static laci_verification verified(laci_graph *graph) {
  laci_orders orders = {.n_values = graph->n_values};
  laci_verification found;
  lac_error err = {0};
  orders.values = laci_arena_alloc(&orders.arena, (size_t)graph->n_values, sizeof *orders.values);
  assert_non_null(orders.values);
  laci_verify_options how = {.seed = 3};
  if (laci_verify(graph, &orders, &how, NULL, &found, &err)) fail_msg("%s", err.text);
  laci_orders_clear(&orders);
  return found;
}

static laci_verification verified_text(const char *net) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  laci_verification found = verified(graph);
  found.first_skipped = found.worst_value = NULL; /* of the graph */
  laci_graph_destroy(graph);
  return found;
}

static void expect_all(const char *net) {
  laci_verification found = verified_text(net);
  if (found.state != LACI_VERIFY_ALL || found.n_outputs_compared != found.n_outputs)
    fail_msg("state %d, %d of %d outputs: %s\n%s", found.state, found.n_outputs_compared,
             found.n_outputs, found.reason, net);
}

/* Compared are so many outputs, and a part of the network before the others. */
static void expect_part(const char *net, int n_outputs, const char *why) {
  laci_verification found = verified_text(net);
  if (found.state != LACI_VERIFY_PART || found.n_outputs_compared != n_outputs ||
      found.n_compared < 1 || !strstr(found.reason, why))
    fail_msg("state %d, %d of %d outputs, %d values: %s\n%s", found.state, found.n_outputs_compared,
             found.n_outputs, found.n_compared, found.reason, net);
}

static void expect_nothing(const char *net, const char *why) {
  laci_verification found = verified_text(net);
  if (found.state != LACI_VERIFY_NOTHING || !strstr(found.reason, why))
    fail_msg("state %d, %d of %d outputs, %d values: %s\n%s", found.state, found.n_outputs_compared,
             found.n_outputs, found.n_compared, found.reason, net);
}

static void token_numbers_are_in_the_table_that_they_index(void **state) {
  (void)state;
  static const char *const offsets[] = {
      "stored k \"\" i64 = 1000\nt = Sub(ids, k)\n",
      "stored k \"\" i64 = 7\nt = Add(ids, k)\n",
      "stored k \"\" i64 = 300\nn = Neg(ids)\nt = Add(n, k)\n",
      "stored k \"\" i64 = 500\nt = Sub(k, ids)\n",
      "stored k \"\" i64 = 64\nt = Div(ids, k)\n",
      "stored k \"\" i64 = 5\nstored o \"\" i64 = 100\nu = Mul(ids, k)\nt = Sub(u, o)\n",
      "stored k \"\" = 1000\nf = Cast(ids) to=1\nq = Sub(f, k)\nt = Cast(q) to=7\n",
      ("stored k 1 i64 = 1000\nc = Identity(k)\nu = Unsqueeze(ids, z)\nv = Sub(u, c)\nt = "
       "Squeeze(v, z)\nstored z 1 i64 = 0\n"),
  };
  char net[512];
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    (void)snprintf(net, sizeof net,
                   "input ids -1x-2 i64\nstored e 40x8\nstored w 8x4\n%sg = Gather(e, t)\ny = "
                   "MatMul(g, w)\noutput y\n",
                   offsets[i]);
    expect_all(net);
  }
  expect_all(
      "input ids 2x5\nstored e 40x8\nstored o \"\" = 9\nf = Sub(ids, o)\nt = Cast(f) to=7\ny = "
      "Gather(e, t)\noutput y\n");
}

static void indices_of_every_operator_are_drawn_in_their_axis(void **state) {
  (void)state;
  expect_all(
      "input x 1x4x8x8\ninput r 3x4\ninput b 3 i64\ny = RoiAlign(x, r, b) output_height=2 "
      "output_width=2 mode=\"avg\"\noutput y\n");
  expect_all(
      "input x -1x4x8x8\ninput r 3x4\ninput b 3 i32\nc = Cast(b) to=7\ny = RoiAlign(x, r, c) "
      "output_height=2 output_width=2 mode=\"avg\"\noutput y\n");
  expect_all(
      "input i 3x1 i64\nstored t 5x7\ny = GatherElements(t, i) axis=1\nz = "
      "GatherND(t, i)\noutput y\noutput z\n");
  expect_all(
      "input i 6 i64\nstored d \"\" i64 = 4\nstored v 2 = 0 1\ny = OneHot(i, d, v)\noutput "
      "y\n");
  expect_all("input x 4x9\ninput k 1 i64\ny, i = TopK(x, k)\noutput y\noutput i\n");
  expect_all("input x 5x3x4\ninput n 3 i64\ny = ReverseSequence(x, n)\noutput y\n");
}

static void a_shape_as_an_input_is_one_that_fits(void **state) {
  (void)state;
  expect_all("input x 2x3x4\ninput s 2 i64\ny = Reshape(x, s)\noutput y\n");
  expect_all("input x 2x3x4\ninput s 5 i64\ny = Reshape(x, s)\noutput y\n");
  expect_all(
      "input x 2x3x4\ninput s 2 i64\nstored w 4x5\nr = Reshape(x, s)\ny = MatMul(r, w)\noutput "
      "y\n");
  expect_all(
      "input x 2x3x4\ninput s 2 i64\nstored w 5x12\nr = Reshape(x, s)\ny = Gemm(r, w) "
      "transB=1\noutput y\n");
  expect_all(
      "input x 2x12\ninput s 1 i64\nstored l 1 i64 = -1\nc = Concat(s, l) axis=0\ny = Reshape(x, "
      "c)\noutput y\n");
  expect_all("input x 2x1\ninput s 2 i64\ny = Expand(x, s)\noutput y\n");
  expect_all("input x 2x3\ninput s 2 i64\ny = Tile(x, s)\noutput y\n");
  expect_all("input x 2x3\ninput a 1 i64\ny = Unsqueeze(x, a)\noutput y\n");
  expect_all("input x 6x7\ninput a 1 i64\ninput b 1 i64\ny = Slice(x, a, b)\noutput y\n");
}

/* What passes the threshold, cut into rows. */
static const char detector[] =
    "input x 4x16\nstored a 16x32\nstored b 32x16\nstored t \"\" = %s\nstored m 1 i64 = -1\n"
    "stored z \"\" i64 = 0\nstored ax 1 i64 = 0\nstored one 1 i64 = 1\n"
    "h = MatMul(x, a)\nr = Relu(h)\nc = MatMul(r, b)\nbest = ReduceMax(c, one) keepdims=0\n"
    "g = Greater(best, t)\nsel = Compress(c, g) axis=0\ns = Shape(sel)\nk = Gather(s, z)\n"
    "u = Unsqueeze(k, ax)\nsh = Concat(u, m) axis=0\ny = Reshape(sel, sh)\noutput y\n";

static void a_detector_is_shown_larger_numbers_until_it_finds(void **state) {
  (void)state;
  char net[1024];
  static const char *const thresholds[] = {"1", "200", "4000"};
  for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
    (void)snprintf(net, sizeof net, detector, thresholds[i]);
    expect_all(net);
  }
  (void)snprintf(net, sizeof net, detector, "1000000000000");
  expect_part(net, 0, "0 elements cannot be cut");
}

static void outputs_that_are_always_empty_are_a_part(void **state) {
  (void)state;
  expect_part(
      "input x 2x8\nstored t \"\" = 1000000000000\nstored a 8x8\nh = MatMul(x, a)\n"
      "r = Relu(h)\nflat = Flatten(r) axis=0\ng = Greater(flat, t)\nq = Compress(h, g)\n"
      "output r\noutput q\n",
      1, "no finite element");
}

static void a_logarithm_is_shown_positive_numbers(void **state) {
  (void)state;
  expect_all("input x 2x8\nstored k 1 i64 = 1\nl = Log(x)\ny = ReduceSum(l, k)\noutput y\n");
  expect_all("input x 2x8\nstored k 1 i64 = 1\nl = Sqrt(x)\ny = ReduceSum(l, k)\noutput y\n");
}

static void nothing_finite_is_never_verified(void **state) {
  (void)state;
  expect_nothing("input x 2x8\nstored k \"\" = nan\nh = Mul(x, k)\ny = Relu(h)\noutput y\n",
                 "no finite element");
  expect_nothing("input x 0x8\nstored k \"\" = 2\ny = Mul(x, k)\noutput y\n", "no finite element");
  expect_nothing("input x 2x8\ny = Odd(x) domain=\"my\"\noutput y\n", "my.Odd is not known");
  expect_nothing(
      "input x 2x8\nstored w 8x4\nu = Odd(x) domain=\"my\"\ny = MatMul(u, w)\noutput y\n",
      "my.Odd is not known");
  expect_part("input x 2x8\nstored k \"\" = nan\nh = Relu(x)\ny = Mul(h, k)\noutput y\n", 0,
              "y has no finite element");
}

/* Up to 0 is what a wrong network gives, too. */
static void outputs_that_are_always_zero_are_not_compared(void **state) {
  (void)state;
  static const char dead[] = "input x 2x8\nstored k \"\" = -1000000\nh = Add(x, k)\n";
  static const char *const zeros[] = {"y = Relu(h)\noutput y\n", "y = Greater(h, x)\noutput y\n",
                                      "y = IsNaN(h)\noutput y\n"};
  char net[256];
  for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
    (void)snprintf(net, sizeof net, "%s%s", dead, zeros[i]);
    expect_part(net, 0, "outputs are 0 for every input tried");
  }
  (void)snprintf(net, sizeof net, "%sy = Relu(h)\noutput h\noutput y\n", dead);
  expect_part(net, 1, "the output y is 0 for every input tried");
  (void)snprintf(net, sizeof net, "%sy = IsNaN(h)\noutput h\noutput y\n", dead);
  expect_all(net); /* 0 by its nature, with an output that is not */
}

/* What is NaN for all but small numbers is 0 for ones. */
static void other_numbers_are_drawn_while_outputs_are_zero(void **state) {
  (void)state;
  expect_all("input x 2x8\nh = Acos(x)\nk = ReduceSum(h)\noutput k\n");
  expect_all("input x 2x8\nh = Atanh(x)\nk = ReduceSum(h)\noutput k\n");
  expect_all(
      "input x 2x8\nstored one \"\" = 1\ns = Mul(x, x)\nd = Sub(one, s)\nr = Sqrt(d)\nk = "
      "ReduceSum(r)\noutput k\n");
  expect_all("input x 2x8\nstored t \"\" = 1000\nd = Sub(x, t)\ny = Relu(d)\noutput y\n");
  expect_all(
      "input x 1x4x8x8\ninput r 3x4\ninput b 3 i64\ny = RoiAlign(x, r, b) output_height=2 "
      "output_width=2 spatial_scale=0.25\noutput y\n");
}

static void no_value_without_a_finite_element_counts(void **state) {
  (void)state;
  laci_verification found =
      verified_text("input x 2x8\nstored k \"\" = nan\nh = Relu(x)\ny = Mul(h, k)\noutput y\n");
  assert_int_equal(found.n_compared, 2); /* h, in both rounds */
  assert_int_equal(found.n_skipped, 2);
}

static void outputs_that_depend_on_no_input_are_said(void **state) {
  (void)state;
  expect_part("input x 2x8\nstored w 8x8\nh = MatMul(x, w)\noutput w\n", 0,
              "no output depends on an input");
}

static void random_numbers_are_called_so(void **state) {
  (void)state;
  expect_nothing("input x 2x8\nh = Neg(x)\ny = RandomNormalLike(h)\noutput y\n",
                 "RandomNormalLike gives other numbers in every run");
}

static void one_finite_element_is_enough(void **state) {
  (void)state;
  expect_all("input x 2x4\nstored k 4 = nan inf nan 1\ny = Mul(x, k)\noutput y\n");
}

/* What comes after is compared all the same, and is no output of the network. */
static void outputs_after_an_unknown_operator_are_not_counted(void **state) {
  (void)state;
  expect_part(
      "input x 2x4\nstored a 4x8\nstored b 8x8\nh = MatMul(x, a)\nu = Odd(h) domain=\"my\"\nshape "
      "u "
      "2x8\ny = MatMul(u, b)\nz = Relu(h)\noutput y\noutput z\n",
      1, "my.Odd is not known");
  expect_all(
      "input x 2x4\nstored a 4x8\nh = MatMul(x, a)\nu = Odd(h) domain=\"my\"\ny = Relu(h)\noutput "
      "y\n");
}

/* The branch that is not taken is run as far as it can be, and says nothing of the result. */
static void an_unknown_operator_in_a_branch_not_taken_hides_nothing(void **state) {
  (void)state;
  static const char net[] =
      "input x 2x8\nstored c \"\" bool = %d\nthen\na = Relu(x)\nelse\nb = Odd(x) "
      "domain=\"my\"\nshape "
      "b 2x8\nend\ny = If(c, a, b)\nz = Neg(x)\noutput y\noutput z\n";
  char text[512];
  (void)snprintf(text, sizeof text, net, 1);
  expect_all(text);
  (void)snprintf(text, sizeof text, net, 0);
  expect_part(text, 1, "my.Odd is not known");
}

/* ---- Random networks with an unknown operator somewhere ---- */

static void depend(const laci_graph *graph, int from, bool *depends) {
  for (int v = 0; v < graph->n_values; v++) depends[v] = false;
  for (int n = from; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    bool reads = n == from;
    for (int i = 0; i < node->n_inputs; i++)
      reads |= node->inputs[i] >= 0 && depends[node->inputs[i]];
    for (int o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] >= 0) depends[node->outputs[o]] = reads;
  }
}

static int count_free(const laci_graph *graph, const bool *depends) {
  int n = 0;
  for (int i = 0; i < graph->n_outputs; i++)
    n += graph->values[graph->outputs[i]].producer >= 0 && !depends[graph->outputs[i]];
  return n;
}

/* Every other time nothing is known of what it gives. */
static void make_unknown(laci_graph *graph, int at, bool keep_shapes) {
  laci_node *node = &graph->nodes[at];
  node->op = NULL;
  node->type = "Odd";
  node->domain = "my";
  for (int o = 0; o < node->n_outputs && !keep_shapes; o++) {
    if (node->outputs[o] >= 0) graph->values[node->outputs[o]].type.shape = laci_shape_unknown();
  }
}

static void never_more_is_verified_than_was_compared(void **state) {
  (void)state;
  long n = number_from("LAC_RANDOM_GRAPHS", DEFAULT_GRAPHS),
       first = number_from("LAC_RANDOM_SEED", 0), n_states[4] = {0};
  int n_ops;
  const laci_op *const *ops = drawn_ops(&n_ops);
  builder *m = malloc(sizeof *m);
  assert_non_null(m);
  for (long g = first; g < first + n; g++) {
    if (make_net(m, (uint64_t)g, key_of(ops[g % n_ops]).text) && m->graph->n_nodes > 0) {
      laci_graph *graph = m->graph;
      bool *depends = laci_alloc((size_t)graph->n_values + 1, sizeof *depends);
      assert_non_null(depends);
      int at = (int)draw(m, graph->n_nodes);
      make_unknown(graph, at, g % 2 == 0);
      laci_verification found = verified(graph);
      depend(graph, at, depends);
      int n_free = count_free(graph, depends);
      bool claims = found.state == LACI_VERIFY_ALL;
      n_states[found.state]++;
      if (found.n_outputs_compared > n_free || (claims && n_free < found.n_outputs) ||
          (claims && !(found.max_abs_output >= 0 && found.n_compared > 0)))
        fail_msg("network %ld, node %d: state %d, %d of %d outputs, %d do not depend on it", g, at,
                 found.state, found.n_outputs_compared, found.n_outputs, n_free);
      laci_free(depends);
    }
    builder_clear(m);
  }
  free(m);
  print_message("%ld verified, %ld in part, %ld not\n", n_states[LACI_VERIFY_ALL],
                n_states[LACI_VERIFY_PART], n_states[LACI_VERIFY_NOTHING]);
  assert_true(n_states[LACI_VERIFY_PART] > n / 4 && n_states[LACI_VERIFY_NONE] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_numbers_are_in_the_table_that_they_index),
      cmocka_unit_test(indices_of_every_operator_are_drawn_in_their_axis),
      cmocka_unit_test(a_shape_as_an_input_is_one_that_fits),
      cmocka_unit_test(a_detector_is_shown_larger_numbers_until_it_finds),
      cmocka_unit_test(outputs_that_are_always_empty_are_a_part),
      cmocka_unit_test(a_logarithm_is_shown_positive_numbers),
      cmocka_unit_test(nothing_finite_is_never_verified),
      cmocka_unit_test(outputs_that_are_always_zero_are_not_compared),
      cmocka_unit_test(other_numbers_are_drawn_while_outputs_are_zero),
      cmocka_unit_test(no_value_without_a_finite_element_counts),
      cmocka_unit_test(outputs_that_depend_on_no_input_are_said),
      cmocka_unit_test(random_numbers_are_called_so),
      cmocka_unit_test(one_finite_element_is_enough),
      cmocka_unit_test(outputs_after_an_unknown_operator_are_not_counted),
      cmocka_unit_test(an_unknown_operator_in_a_branch_not_taken_hides_nothing),
      cmocka_unit_test(never_more_is_verified_than_was_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Weights that are computed from stored tensors: each of their layers is a row with its reason, and
 * says from which value on the product may be stored. */
#include "support/expect_classes.h"

#include "base/acquire.h"
#include "graph/constants.h"

static const laci_layer *row_of(const analysed *n, const char *name) {
  for (int l = 0; l < n->a->n_rows; l++) {
    if (strcmp(n->graph->nodes[n->a->layers[l].node].name, name) == 0) return &n->a->layers[l];
  }
  return NULL;
}

static const char *value_name(const analysed *n, int value) {
  return value < 0 ? "" : n->graph->values[value].name;
}

#define BEGIN "input x 1x16x4x4\nstored w 32x16x1x1\nstored m 32x16x1x1\n"
#define END "y = Conv(x, k) name=\"c\"\noutput y\n"

static void a_product_is_a_row_without_a_stored_tensor(void **state) {
  (void)state;
  static const struct {
    const char *text, *computed; /* the value that could be stored */
  } cases[] = {
      {BEGIN "k = Mul(w, m)\n" END, "k"},
      {BEGIN "k = Add(w, m)\n" END, "k"},
      {BEGIN "b = Cast(m) to=9\nstored z \"\" f32 = 0\nk = Where(b, w, z)\n" END, "k"},
      {BEGIN "p = Mul(w, m)\nk = Identity(p)\n" END, "p"},
      {"input x 1x16x4x4\nstored w 16x32x1x1\nstored m 16x32x1x1\np = Mul(w, m)\n"
       "k = Transpose(p) perm=1,0,2,3\n" END,
       "p"},
      {"input x 1x16x4x4\nstored a 32x8x1x1\nstored b 32x8x1x1\nk = Concat(a, b) axis=1\n" END,
       "k"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    analysed n = analyse(cases[c].text);
    const laci_layer *row = row_of(&n, "c");
    if (n.a->n_layers != 0 || n.a->n_rows != 1 || !row) fail_msg("%s", cases[c].text);
    assert_int_equal(row->stored, -1);
    assert_false(row->eligible);
    assert_non_null(strstr(row->reason, "is computed by"));
    assert_true(row->storable && row->alone);
    assert_string_equal(value_name(&n, row->computed), cases[c].computed);
    assert_int_equal(row->channels_in, 16);
    assert_int_equal(row->channels_out, 32);
    analysed_clear(&n);
  }
}

static void a_product_of_an_input_is_no_layer(void **state) {
  (void)state;
  static const char *const cases[] = {
      "input x 1x16x4x4\ninput s 32x16x1x1\nstored w 32x16x1x1\nk = Mul(w, s)\n" END,
      "input x 1x16x4x4\ninput s 32x16x1x1\nstored w 32x16x1x1\nr = my.Unknown(w)\nk = Mul(r, "
      "s)\n" END,
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    analysed n = analyse(cases[c]);
    if (n.a->n_rows != 0) fail_msg("%s", cases[c]);
    analysed_clear(&n);
  }
}

static void a_weight_that_an_unknown_operator_makes_of_constants_is_a_row(void **state) {
  (void)state;
  static const struct {
    const char *text, *reason;
  } cases[] = {
      {BEGIN "k = my.Unknown(w, m) name=\"u\"\n" END,
       "what u (my.Unknown) makes of it is not known"},
      {BEGIN "r = my.Unknown(w) name=\"u\"\nk = Mul(r, m)\n" END, "what u (my.Unknown)"},
      {"input x 1x16x4x4\nk = RandomNormal() name=\"r\" shape=32,16,1,1\n" END,
       "what r (RandomNormal)"},
      {"input x 4x32\nstored w 32x16\nk = my.Unknown(w) name=\"u\"\n"
       "y = MatMul(x, k) name=\"c\"\noutput y\n",
       "what u (my.Unknown)"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    analysed n = analyse(cases[c].text);
    const laci_layer *row = row_of(&n, "c");
    if (n.a->n_layers != 0 || n.a->n_rows != 1 || !row) fail_msg("%s", cases[c].text);
    assert_false(row->eligible || row->storable || row->constant);
    assert_non_null(strstr(row->reason, cases[c].reason));
    analysed_clear(&n);
  }
}

static void what_a_random_operator_makes_ends_at_a_layer(void **state) {
  (void)state;
  analysed n = analyse(
      "stored w 32x16\nr = RandomNormal() shape=4,32\nh = MatMul(r, w) name=\"c\"\n"
      "t = Transpose(h) perm=1,0\ny = MatMul(h, t)\noutput y\n");
  assert_int_equal(n.a->n_layers, 1);
  assert_int_equal(n.a->n_rows, 1);
  analysed_clear(&n);
}

static void a_node_that_makes_a_weight_is_no_layer(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 4x32\nstored w 32x16\nstored b 32x8\nstored a 8x16\n"
      "u = MatMul(b, a) name=\"update\"\nk = Add(w, u)\ny = MatMul(x, k) name=\"c\"\noutput y\n");
  assert_null(row_of(&n, "update"));
  assert_int_equal(n.a->n_rows, 1);
  assert_int_equal(row_of(&n, "c")->channels_in, 32);
  analysed_clear(&n);
}

static void a_weight_of_one_input_channel_stays(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x8x4x4\nstored w 8x1x3x3\nstored m 8x1x3x3\nk = Mul(w, m)\n"
      "y = Conv(x, k) name=\"c\" group=8\noutput y\n");
  const laci_layer *row = row_of(&n, "c");
  assert_non_null(strstr(row->reason, "has 1 input channel"));
  assert_false(row->storable || row->alone);
  analysed_clear(&n);
}

static void parts_that_others_read_are_named(void **state) {
  (void)state;
  analysed n = analyse(BEGIN "k = Mul(w, m)\nz = Conv(x, w) name=\"whole\"\noutput z\n" END);
  const laci_layer *row = row_of(&n, "c");
  assert_int_equal(n.a->n_rows, 2);
  assert_true(row->storable);
  assert_false(row->alone);
  assert_non_null(strstr(row->reason, "which whole (Conv) reads, too"));
  analysed_clear(&n);
}

static void weights_that_share_a_part_go_together(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x16x4x4\nstored w 16x16x1x1\nstored v 16x16x1x1\nstored m 16x16x1x1\n"
      "k = Mul(w, m)\nl = Mul(v, m)\nz = Conv(x, l) name=\"d\"\noutput z\n" END);
  assert_true(row_of(&n, "c")->alone);
  assert_true(row_of(&n, "d")->alone);
  analysed_clear(&n);
  /* where one of them has to stay, both do: the mask does */
  n = analyse(
      "input x 1x16x4x4\nstored w 16x16x1x1\nstored v 16x16x1x1\nstored m 16x16x1x1\n"
      "k = Mul(w, m)\nl = Mul(v, m)\nz = Conv(x, l) name=\"d\"\noutput z\noutput l\n" END);
  assert_false(row_of(&n, "d")->alone);
  assert_false(row_of(&n, "c")->alone);
  analysed_clear(&n);
}

static void what_a_caller_may_replace_says_so(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x16x4x4\nstored w 32x16x1x1 listed\nstored m 32x16x1x1\n"
      "k = Mul(w, m)\n" END);
  const laci_layer *row = row_of(&n, "c");
  assert_non_null(strstr(row->reason, "may be replaced by the caller"));
  assert_false(row->storable || row->alone);
  analysed_clear(&n);
}

static void a_number_for_each_channel_may_be_shared(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x16x4x4\nstored w 32x16x1x1\nstored v 32x16x1x1\nstored g 32x1x1x1\n"
      "s = Add(w, v)\nk = Mul(s, g)\nh = Relu(g)\noutput h\n" END);
  assert_true(row_of(&n, "c")->alone);
  analysed_clear(&n);
}

static void what_a_body_computes_is_a_row_and_stays(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x16x4x4\ninput c 1 bool\nstored w 16x16x1x1\nstored m 16x16x1x1\n"
      "then\nk = Mul(w, m)\na = Conv(x, k) name=\"c\"\nelse\nb = Identity(x)\nend\n"
      "y = If(c, a, b)\noutput y\n");
  const laci_layer *row = row_of(&n, "c");
  assert_non_null(row);
  assert_non_null(strstr(row->reason, "in a body"));
  assert_false(row->storable || row->alone);
  analysed_clear(&n);
}

static void a_factor_that_leaves_channels_out_may_be_stored(void **state) {
  (void)state;
  analysed n =
      analyse("input x 1x4x4x4\nstored w 8x4x1x1\nstored m 1x4x1x1 = 1 0 1 0\nk = Mul(w, m)\n" END);
  assert_int_equal(n.a->n_layers, 1);
  assert_true(n.a->layers[0].eligible && n.a->layers[0].alone);
  assert_string_equal(value_name(&n, n.a->layers[0].computed), "k");
  analysed_clear(&n);
  n = analyse("input x 1x4x4x4\nstored w 8x4x1x1\nstored m 1x4x1x1 = 1 2 3 4\nk = Mul(w, m)\n" END);
  assert_int_equal(n.a->layers[0].computed, -1); /* followed as it is */
  analysed_clear(&n);
}

/* ---- Contents ---- */

static void contents_are_those_of_the_operators(void **state) {
  (void)state;
  lac_error err = {0};
  laci_buf *buf = NULL;
  analysed n = analyse(
      "input x 1x2\nstored w 2x2 = 1 2 3 4\nstored b 2x1 = 10 20\nstored a 1x2 = 1 -1\n"
      "u = MatMul(b, a)\nk = Add(w, u)\ny = MatMul(x, k) name=\"c\"\noutput y\n");
  int k = laci_graph_find_value(n.graph, "k");
  assert_int_equal(laci_graph_evaluate_constant(n.graph, k, UINT64_MAX, &buf, &err), LAC_OK);
  static const double want[] = {11, -8, 23, -16};
  assert_int_equal(buf->count, 4);
  for (int at = 0; at < 4; at++) assert_true(buf->f[at] == want[at]);
  laci_buf_destroy(buf);
  assert_int_equal(laci_graph_evaluate_constant(n.graph, k, 64, &buf, &err), LAC_MEMORY_LIMIT);
  assert_null(buf);
  analysed_clear(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_product_is_a_row_without_a_stored_tensor),
      cmocka_unit_test(a_product_of_an_input_is_no_layer),
      cmocka_unit_test(a_weight_that_an_unknown_operator_makes_of_constants_is_a_row),
      cmocka_unit_test(what_a_random_operator_makes_ends_at_a_layer),
      cmocka_unit_test(a_node_that_makes_a_weight_is_no_layer),
      cmocka_unit_test(a_weight_of_one_input_channel_stays),
      cmocka_unit_test(parts_that_others_read_are_named),
      cmocka_unit_test(weights_that_share_a_part_go_together),
      cmocka_unit_test(what_a_caller_may_replace_says_so),
      cmocka_unit_test(a_number_for_each_channel_may_be_shared),
      cmocka_unit_test(what_a_body_computes_is_a_row_and_stays),
      cmocka_unit_test(a_factor_that_leaves_channels_out_may_be_stored),
      cmocka_unit_test(contents_are_those_of_the_operators),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

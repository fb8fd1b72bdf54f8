/* SPDX-License-Identifier: Apache-2.0
 * Writing down couplings: element-wise operators under broadcasting, sizes that are not sure,
 * helpers at their edges, and memory that runs out. The notation is op_case.h's. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

static void assert_coupling(const char *net, const char *want) {
  char text[2048];
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  coupling_text(graph, &graph->nodes[graph->n_nodes - 1], text, sizeof text);
  if (strcmp(text, want) != 0) fail_msg("%s:\n got %s\nwant %s", net, text, want);
  laci_graph_destroy(graph);
}

static void equal_sizes_share_a_label_and_size_one_joins_nothing(void **state) {
  (void)state;
  assert_coupling("input x 2x3\ninput z 2x3\ny = Add(x, z)\noutput y", "ab ab -> ab");
  assert_coupling("input x 2x3\ninput z 1x3\ny = Add(x, z)\noutput y", "ab cb -> ab");
  assert_coupling("input x 2x3\ninput z 3\ny = Mul(x, z)\noutput y", "ab b -> ab");
  assert_coupling("input x 3\ninput z 2x1\ny = Mul(x, z)\noutput y", "a bc -> ba");
  assert_coupling("input x 2x1\ninput z 2x1\ny = Add(x, z)\noutput y", "ab ab -> ab");
}

static void equal_symbols_share_a_label_and_others_freeze_what_they_meet(void **state) {
  (void)state;
  assert_coupling("input x -90x3\ninput z -90x3\ny = Add(x, z)\noutput y", "ab ab -> ab");
  assert_coupling("input x -90x3\ninput z 1x3\ny = Add(x, z)\noutput y", "ab cb -> ab");
  /* the symbol may be 4, or 1 */
  assert_coupling("input x -90x3\ninput z 4x3\ny = Add(x, z)\noutput y", ".a .a -> .a");
  assert_coupling("input x -90x3\ninput z -91x3\ny = Add(x, z)\noutput y", ".a .a -> .a");
}

static void an_unknown_rank_freezes_everything(void **state) {
  (void)state;
  assert_coupling("input x 2x3\nz = Mystery(x)\ny = Add(x, z)\noutput y", ".. ? -> ?");
  assert_coupling("input x 2x3\nz = Mystery(x)\ny = Relu(z)\noutput y", "? -> ?");
}

static void maps_need_sizes_that_are_known(void **state) {
  (void)state;
  assert_coupling("input x -90x3\ninput z -91x3\ny = Concat(x, z) axis=0\noutput y", ".a .a -> .a");
  assert_coupling("input x -90x3\ny, z = Split(x) axis=0\noutput y", ".a -> .a .a");
  assert_coupling("input x -90x3\nstored p 4 i64 = 1 0 0 0\ny = Pad(x, p)\noutput y", ".a . -> .a");
  assert_coupling("input x 2x3\ninput r 2 i64\ny = Tile(x, r)\noutput y", ".. . -> ..");
  assert_coupling("input x 4x3\ninput s 1 i64\ny = Slice(x, s, s)\noutput y", ".a . . -> .a");
  assert_coupling("input x 4x3\ninput s 1 i64\ny = Slice(x, s, s, s)\noutput y", ".. . . . -> ..");
  assert_coupling("input x 4x3\ninput p 4 i64\ny = Pad(x, p)\noutput y", ".. . -> ..");
  assert_coupling("input x 4x3\ninput a 1 i64\ny = Unsqueeze(x, a)\noutput y", ".. . -> ?");
}

static void an_axis_too_long_for_a_map_is_fixed(void **state) {
  (void)state;
  assert_coupling("input x 2x200000000\ninput z 2x1\ny = Concat(x, z) axis=1\noutput y",
                  "a. a. -> a.");
}

static void labels_at_the_edges(void **state) {
  (void)state;
  laci_graph *graph = NULL;
  laci_coupling c;
  assert_int_equal(net_read("input x 2x3\ny = Clip(x, _)\noutput y", &graph, NULL), LAC_OK);
  assert_int_equal(laci_coupling_init(&c, graph, &graph->nodes[0]), LAC_OK);
  assert_null(laci_port_shape(&c, 1)); /* absent */
  assert_null(laci_port_shape(&c, 7)); /* no such port */
  assert_null(laci_port_shape(&c, LACI_OUT(3)));
  int label = laci_coupling_new_label(&c);
  laci_coupling_set_label(&c, 0, -1, label);
  laci_coupling_set_label(&c, 0, 2, label); /* no such axis: nothing happens */
  laci_coupling_set_label(&c, 1, 0, label);
  assert_int_equal(laci_coupling_get_label(&c, 0, 1), label);
  assert_int_equal(laci_coupling_get_label(&c, 0, 0), LACI_FIXED);
  assert_int_equal(laci_coupling_get_label(&c, 0, 5), LACI_FIXED);
  assert_true(c.in[0].described && !c.out[0].described);
  laci_coupling_mark_label_normalized(&c, label);
  laci_coupling_mark_label_normalized(&c, 99);
  assert_int_equal(c.normalized[label], 1);
  for (int n = 0; n < 100; n++) assert_int_equal(laci_coupling_new_label(&c), label + 1 + n);
  assert_int_equal(c.normalized[label], 1);
  assert_int_equal(laci_coupling_status(&c), LAC_OK);
  laci_coupling_clear(&c);
  laci_graph_destroy(graph);
}

/* u comes from an unknown operator; x, w and vectors are of known shapes. */
static const char *const unknown_operands[] = {
    "y = Conv(x, w, u)",
    "y = ConvTranspose(x, w, u)",
    "y = com.microsoft.FusedConv(x, w, u)",
    "y = BatchNormalization(x, u, b, b, b)",
    "y = BatchNormalization(x, b, u, b, b)",
    "y = BatchNormalization(x, b, b, u, b)",
    "y = BatchNormalization(x, b, b, b, u)",
    "y = InstanceNormalization(x, b, u)",
    "y = GroupNormalization(x, b, u) num_groups=2",
    "y = LayerNormalization(x, s, u)",
    "y = QuantizeLinear(x, u) axis=1",
    "y = Gemm(m, n, u)",
};

/* Is nothing said of any port? */
static bool all_fixed(const laci_coupling *c) {
  bool fixed = c->n_maps == 0;
  for (int port = 0; port < c->node->n_inputs; port++) fixed &= !c->in[port].described;
  for (int out = 0; out < c->node->n_outputs; out++) fixed &= !c->out[out].described;
  return fixed;
}

static void an_operand_of_unknown_shape_is_not_absent(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof unknown_operands / sizeof *unknown_operands; at++) {
    for (int known = 0; known < 2; known++) {
      char net[512];
      laci_coupling c;
      laci_graph *graph = NULL;
      (void)snprintf(net, sizeof net,
                     "input x 1x4x3x3\ninput m 2x4\nstored w 4x4x1x1\nstored b 4\nstored s 3\n"
                     "stored n 4x4\nu = Mystery(b)\n%s%s\noutput y",
                     !known                                  ? ""
                     : strstr(unknown_operands[at], "(x, s") ? "shape u 3\n"
                                                             : "shape u 4\n",
                     unknown_operands[at]);
      if (net_read(net, &graph, NULL)) fail_msg("%s", net);
      assert_int_equal(laci_couple_node(&c, graph, &graph->nodes[graph->n_nodes - 1]), LAC_OK);
      if (all_fixed(&c) != !known) fail_msg("%s", net);
      laci_coupling_clear(&c);
      laci_graph_destroy(graph);
    }
  }
}

/* A Conv whose couple says nothing of its bias. */
static lac_status couple_without_bias(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c) {
  (void)graph, (void)node;
  int label = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 1, 0, label);
  laci_coupling_set_label(c, LACI_OUT(0), 1, label);
  laci_coupling_mark_described(c, 0);
  return laci_coupling_status(c);
}

static void an_operand_that_couple_forgets_keeps_what_it_touches(void **state) {
  (void)state;
  static const laci_op forgetful = {.name = "Conv", .couple = couple_without_bias},
                       aside = {.name = "Conv",
                                .inputs_without_channels = 1u << 2,
                                .couple = couple_without_bias};
  const char *net = "input x 1x4x3x3\nstored w 4x4x1x1\nstored b 4\ny = Conv(x, w, b)\noutput y";
  laci_graph *graph = NULL;
  assert_int_equal(net_read(net, &graph, NULL), LAC_OK);
  for (int k = 0; k < 2; k++) {
    laci_coupling c;
    graph->nodes[0].op = k ? &aside : &forgetful;
    assert_int_equal(laci_couple_node(&c, graph, &graph->nodes[0]), LAC_OK);
    assert_int_equal(all_fixed(&c), !k);
    laci_coupling_clear(&c);
  }
  laci_graph_destroy(graph);
}

static void running_out_of_memory_is_told_at_the_end(void **state) {
  (void)state;
  laci_graph *graph = NULL;
  const char *net = "input x 2x3\ninput z 2x4\ny = Concat(x, z) axis=1\noutput y";
  assert_int_equal(net_read(net, &graph, NULL), LAC_OK);
  const laci_node *node = &graph->nodes[0];
  for (long at = 1; at < 100; at++) {
    laci_coupling c;
    laci_memory_fail_from(at);
    lac_status st = laci_couple_node(&c, graph, node);
    laci_memory_fail_from(0);
    laci_coupling_clear(&c);
    if (st == LAC_OK) {
      assert_true(at > 1);
      laci_graph_destroy(graph);
      return;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  fail_msg("still failing after a hundred allocations");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_sizes_share_a_label_and_size_one_joins_nothing),
      cmocka_unit_test(equal_symbols_share_a_label_and_others_freeze_what_they_meet),
      cmocka_unit_test(an_unknown_rank_freezes_everything),
      cmocka_unit_test(maps_need_sizes_that_are_known),
      cmocka_unit_test(an_axis_too_long_for_a_map_is_fixed),
      cmocka_unit_test(labels_at_the_edges),
      cmocka_unit_test(an_operand_of_unknown_shape_is_not_absent),
      cmocka_unit_test(an_operand_that_couple_forgets_keeps_what_it_touches),
      cmocka_unit_test(running_out_of_memory_is_told_at_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * The float form of quantized networks (graph/float_form.h): what the fast engine computes is what
 * the plain one does, and no step of it is plain. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/float_form.h"
#include "graph/graph.h"
#include "base/memory.h"
#include "support/engine_check.h"

#define CONSTANTS                                                                                  \
  "input x 2x8x6x6\nstored s \"\" f32 = 0.0625\nstored z \"\" u8 = 128\nstored t \"\" f32 = "      \
  "0.125\n"                                                                                        \
  "stored u \"\" u8 = 100\nstored w 8x8x1x1 i8\nstored r 8 positive\nstored n 8 i8 = 0 0 0 0 0 0 " \
  "0 0\n"                                                                                          \
  "stored b 8 i32\n"

static const struct {
  const char *name, *text;
  int plain; /* steps without a fast form */
} networks[] = {
    {"convolution, sum, pool, moved",
     CONSTANTS
     "q = QuantizeLinear(x, s, z)\nc = QLinearConv(q, s, z, w, r, n, t, u, b)\n"
     "a = com.microsoft.QLinearAdd(c, t, u, q, s, z, t, u)\nm = MaxPool(a) kernel_shape=2,2\n"
     "k = Transpose(m) perm=0,1,3,2\ng = com.microsoft.QLinearGlobalAveragePool(k, t, u, s, z)\n"
     "y = DequantizeLinear(g, s, z)\noutput y\n",
     0},
    {"integers are the output, too",
     CONSTANTS "q = QuantizeLinear(x, s, z)\nc = QLinearConv(q, s, z, w, r, n, t, u, b)\n"
               "y = com.microsoft.QLinearSigmoid(c, t, u, s, z)\nv = DequantizeLinear(c, t, "
               "u)\noutput y\noutput v\n",
     -1},
    {"another scale is read",
     CONSTANTS "q = QuantizeLinear(x, s, z)\nc = QLinearConv(q, s, z, w, r, n, t, u, b)\n"
               "y = DequantizeLinear(c, s, u)\noutput y\n",
     -1},
    {"a dynamic product",
     "input x 2x5x8\nstored w 8x6 i8\nstored o 6 i8 = 0 0 0 0 0 0\nstored s 6 positive\n"
     "q, a, z = DynamicQuantizeLinear(x)\np = MatMulInteger(q, w, z, o)\nf = Cast(p) to=1\n"
     "m = Mul(a, s)\ny = Mul(f, m)\noutput y\n",
     0},
    {"integers of a dynamic product are read twice",
     "input x 2x5x8\nstored w 8x6 i8\nstored o 6 i8 = 0 0 0 0 0 0\n"
     "q, a, z = DynamicQuantizeLinear(x)\np = MatMulInteger(q, w, z, o)\nf = Cast(p) to=1\n"
     "g = Cast(p) to=11\nh = Cast(g) to=1\ny = Add(f, h)\noutput y\n",
     -1},
    {"fused dynamic products",
     "input x 2x5x8\nstored w 8x6 i8\nstored s \"\" f32 = 0.03\nstored c 6\nstored v 6x4 "
     "i8\nstored d 4 positive\n"
     "p = com.microsoft.DynamicQuantizeMatMul(x, w, s, _, c)\n"
     "q, a, z = DynamicQuantizeLinear(p)\ny = com.microsoft.MatMulIntegerToFloat(q, v, a, d, "
     "z)\noutput y\n",
     0},
    {"an embedding of bytes",
     "input x 2x5x8\nstored e 9x8 i8\nstored i 5 i64 = 3 1 8 0 2\nstored s \"\" f32 = 0.05\nstored "
     "z \"\" i8 = 4\n"
     "k = ArgMax(x) axis=2 keepdims=0\ng = Gather(e, k)\nd = DequantizeLinear(g, s, z)\ny = Add(d, "
     "x)\noutput y\n",
     -1},
};

static laci_graph *read(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static void each_network_is_the_plain_one(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof networks / sizeof *networks; at++)
    check_as(networks[at].text, (expectation){.tolerance = 1e-5, .plain = networks[at].plain});
}

static void a_graph_without_integers_is_its_own_form(void **state) {
  laci_graph *graph = read("input x 2x8\nstored w 8x4\ny = MatMul(x, w)\noutput y\n");
  laci_arena arena = {0};
  const laci_graph *form;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_graph_make_float_form(&arena, graph, &form, &err), LAC_OK);
  assert_ptr_equal(form, graph);
  laci_arena_clear(&arena);
  laci_graph_destroy(graph);
}

static void values_and_names_stay(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof networks / sizeof *networks; at++) {
    laci_graph *graph = read(networks[at].text);
    laci_arena arena = {0};
    const laci_graph *form;
    lac_error err = {0};
    assert_int_equal(laci_graph_make_float_form(&arena, graph, &form, &err), LAC_OK);
    assert_ptr_not_equal(form, graph);
    assert_true(form->n_values >= graph->n_values);
    for (int v = 0; v < graph->n_values; v++)
      assert_ptr_equal(form->values[v].name, graph->values[v].name);
    int from = 0, before = 0;
    for (int n = 0; n < form->n_nodes; n++) {
      const int origin = laci_float_form_find_original_node(graph, &form->nodes[n], &from);
      assert_true(origin >= before);
      before = origin;
      for (int i = 0; i < form->nodes[n].n_inputs; i++) {
        const int value = form->nodes[n].inputs[i];
        assert_true(value < form->n_values);
        if (value >= 0) assert_true(form->values[value].producer < n);
      }
    }
    laci_arena_clear(&arena);
    laci_graph_destroy(graph);
  }
}

static void no_memory_is_said(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof networks / sizeof *networks; at++) {
    laci_graph *graph = read(networks[at].text);
    bool failed = true;
    for (long n = 1; failed; n++) {
      laci_arena arena = {0};
      const laci_graph *form;
      lac_error err = {0};
      laci_memory_fail_from(n);
      const lac_status st = laci_graph_make_float_form(&arena, graph, &form, &err);
      laci_memory_fail_from(0);
      failed = st != LAC_OK;
      if (failed) assert_int_equal(st, LAC_NO_MEMORY);
      laci_arena_clear(&arena);
    }
    laci_graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_network_is_the_plain_one),
                                     cmocka_unit_test(a_graph_without_integers_is_its_own_form),
                                     cmocka_unit_test(values_and_names_stay),
                                     cmocka_unit_test(no_memory_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

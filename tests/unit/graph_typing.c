/* SPDX-License-Identifier: Apache-2.0
 * graph/typing: what breaks ONNX's typing is named, or with lenient frozen; what does not passes.
 */
#include "graph/typing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/op.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

static laci_graph *build(const char *text) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

typedef struct breach {
  const char *net, *text; /* NULL: nothing is wrong */
} breach;

static const breach breaches[] = {
    {"input x 1x4x8x8\nstored w 8x4x3x3\ny = Conv(x, w) group=\"2\" name=\"c\"\noutput y\n",
     "c (Conv): attribute 'group' is a text, wanted an integer"},
    {"input x 1x4x8x8\nstored w 8x4x3x3\ny = Conv(x, w) group=2.0 name=\"c\"\noutput y\n",
     "c (Conv): attribute 'group' is a float, wanted an integer"},
    {"input x 1x4x8x8\nstored w 8x4x3x3\ny = Conv(x, w) pads=1 name=\"c\"\noutput y\n",
     "c (Conv): attribute 'pads' is an integer, wanted a list of integers"},
    {"input x 1x4x8x8\ny = LeakyRelu(x) alpha=1 name=\"l\"\noutput y\n",
     "l (LeakyRelu): attribute 'alpha' is an integer, wanted a float"},
    {"input x 1x4x8x8\nstored w 8x4x1x1 i64 = "
     "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
     "y = Conv(x, w) name=\"c\"\noutput y\n",
     "c (Conv): its weight 'w' is of type i64, wanted f16, bf16, f32 or f64"},
    {"input x 1x2 i64\nstored w 2x1 i64 = 1 1\ny = MatMul(x, w)\noutput y\n", NULL},
    {"input x 1x4\nstored w 4x1 bool = 1 1 1 1\ny = MatMul(x, w) name=\"m\"\noutput y\n",
     "m (MatMul): its weight 'w' is of type bool, wanted f16, bf16, f32, f64 or 32- and 64-bit "
     "integers"},
    {"input x 1x4x8x8\nstored w 8x2x3x3\ny = Conv(x, w) group=2 future=\"text\"\noutput y\n", NULL},
    {"input x 2x3\ny = Softmax(x) axis=1 axis=0 name=\"s\"\noutput y\n",
     "s (Softmax): attribute 'axis' is given 2 times"},
    {"input x 1x4\ny = Odd(x) group=\"2\" domain=\"my\"\noutput y\n", NULL},
    {"input x 1x4\ny = Relu(x) group=\"2\"\noutput y\n", NULL},
};

static void every_breach_is_named(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof breaches / sizeof *breaches; at++) {
    laci_graph *graph = build(breaches[at].net);
    lac_error err = {0};
    lac_status st = laci_graph_check_attr_and_weight_types(graph, false, &err);
    assert_int_equal(st, breaches[at].text ? LAC_BAD_FILE : LAC_OK);
    if (breaches[at].text) {
      assert_string_equal(err.text, breaches[at].text);
      assert_int_equal(err.hint, LAC_HINT_LENIENT);
    }
    laci_graph_destroy(graph);
  }
}

static void lenient_makes_an_unknown_node(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof breaches / sizeof *breaches; at++) {
    laci_graph *graph = build(breaches[at].net);
    const bool declared = graph->nodes[0].op != NULL;
    assert_int_equal(laci_graph_check_attr_and_weight_types(graph, true, NULL), LAC_OK);
    const laci_node *node = &graph->nodes[0];
    assert_int_equal(node->op != NULL, declared && !breaches[at].text);
    assert_int_equal(node->fault != NULL, breaches[at].text != NULL);
    if (node->fault) assert_non_null(strstr(breaches[at].text, node->fault));
    laci_graph_destroy(graph);
  }
}

/* A table that is not in order, or names an attribute twice, was edited in haste. */
static void tables_are_in_order(void **state) {
  (void)state;
  int n;
  const laci_op *const *ops = laci_op_all(&n);
  for (int at = 0; at < n; at++) {
    const laci_attr_type *type = ops[at]->attributes;
    for (; type && type[0].name && type[1].name; type++)
      if (strcmp(type[0].name, type[1].name) >= 0) fail_msg("%s: %s", ops[at]->name, type[1].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_breach_is_named),
      cmocka_unit_test(lenient_makes_an_unknown_node),
      cmocka_unit_test(tables_are_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

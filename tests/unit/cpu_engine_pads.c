/* SPDX-License-Identifier: Apache-2.0
 * Pads before convolutions and pools (plan/pads.c): which of these take them in, which must not,
 * and that the results are the plain engine's in both cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine_check.h"
#include "support/engine_plan.h"

enum { TEXT = 2048 };

/** Steps that are done for the node "pad". */
static int pad_steps(const char *text, const laci_engine_observer *observer) {
  int n = 0;
  planned p = plan_text(text, (laci_engine_options){.threads = 1, .observer = observer});
  for (size_t at = 0; at < laci_engine_step_count(p.engine); at++) {
    const char *name = laci_engine_step_info(p.engine, at).name;
    n += name && strcmp(name, "pad") == 0;
  }
  planned_clear(&p);
  return n;
}

static void check(const char *text, bool joins) {
  check_as(text, (expectation){.tolerance = 1e-5, .plain = -1});
  const int n = pad_steps(text, NULL);
  if (joins != (n == 0)) fail_msg("%d steps for the Pad:\n%s", n, text);
}

static void convolutions_take_in_zeros(void **state) {
  static const char *const nets[] = {
      /* alike all around; with a fill that is written; before stride 2; two-sided and uneven */
      "stored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 16x8x3x3\na = Pad(x, p) name=\"pad\"\n"
      "y = Conv(a, w)\n",
      "stored p 8 i64 = 0 0 1 1 0 0 1 1\nstored z 1 = 0\nstored w 16x8x3x3\nstored b 16\n"
      "a = Pad(x, p, z) name=\"pad\"\ny = Conv(a, w, b) auto_pad=\"VALID\"\n",
      "stored p 8 i64 = 0 0 0 0 0 0 1 1\nstored w 16x8x3x3\na = Pad(x, p) name=\"pad\"\n"
      "y = Conv(a, w) strides=2,2 pads=0,0,0,0 kernel_shape=3,3\n",
      "stored p 8 i64 = 0 0 2 0 0 0 1 3\nstored w 16x8x5x5 pruned\na = Pad(x, p) name=\"pad\"\n"
      "b = Conv(a, w) pads=1,2,0,1\ny = Relu(b)\n",
      /* depthwise, groups, dilation */
      "stored p 8 i64 = 0 0 2 1 0 0 2 2\nstored w 8x1x5x5\na = Pad(x, p) name=\"pad\"\n"
      "y = Conv(a, w) group=8 strides=2,2\n",
      "stored p 8 i64 = 0 0 1 0 0 0 1 1\nstored w 16x4x3x3\na = Pad(x, p) name=\"pad\"\n"
      "y = Conv(a, w) group=2\n",
      "stored p 8 i64 = 0 0 3 4 0 0 4 3\nstored w 16x8x3x3\na = Pad(x, p) name=\"pad\"\n"
      "y = Conv(a, w) dilations=2,2\n",
      /* an attribute, as before operator set 11 */
      "stored w 16x8x3x3\nopset 10\na = Pad(x) pads=0,0,1,1,0,0,1,1 name=\"pad\"\n"
      "y = Conv(a, w)\n",
      /* two convolutions, one of them with more of its own, and another reader of x */
      "stored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 8x8x3x3\nstored v 8x8x5x5\n"
      "a = Pad(x, p) name=\"pad\"\nb = Conv(a, w)\nc = Conv(a, v) pads=1,1,1,1\nd = Relu(x)\n"
      "e = Add(b, c)\ny = Add(e, d)\n",
      /* after a layer, whose result only the Pad reads */
      "stored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 8x8x3x3\nstored u 8x8x1x1\n"
      "b = Conv(x, u)\nc = Relu(b)\na = Pad(c, p) name=\"pad\"\ny = Conv(a, w)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    (void)snprintf(text, sizeof text, "input x 2x8x13x14\n%soutput y\n", nets[at]);
    check(text, true);
  }
}

static void pools_of_what_is_no_less_take_in_zeros(void **state) {
  static const struct {
    const char *net;
    bool joins;
  } cases[] = {
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3 strides=2,2\n",
       true},
      {"r = Clip(x, l, h)\na = Pad(r, p) name=\"pad\"\n"
       "y = MaxPool(a) kernel_shape=4,3 pads=1,0,1,1 auto_pad=\"NOTSET\"\n",
       true},
      {"r = Sigmoid(x)\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=2,2\n"
       "c = Conv(a, w) strides=2,2\noutput c\n",
       true},
      {"a = Pad(x, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3\n", false},
      {"r = LeakyRelu(x) alpha=0.1\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3\n",
       false},
      {"r = Clip(x, n, h)\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3\n", false},
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\n"
       "y = MaxPool(a) kernel_shape=3,3 strides=2,2 ceil_mode=1\n",
       false},
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=1,1\n", false},
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3 dilations=2,1\n",
       false},
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\ny, i = MaxPool(a) kernel_shape=3,3\noutput i\n",
       false},
      {"r = Relu(x)\na = Pad(r, p) name=\"pad\"\ny = AveragePool(a) kernel_shape=3,3\n", false},
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 2x8x13x14\nstored p 8 i64 = 0 0 1 1 0 0 1 1\nstored l \"\" = 0.25\n"
                   "stored h \"\" = 6\nstored n \"\" = -0.25\nstored w 8x8x3x3\n%soutput y\n",
                   cases[at].net);
    check(text, cases[at].joins);
  }
}

static void lines_and_volumes_too(void **state) {
  (void)state;
  check(
      "input x 2x8x33\nstored p 6 i64 = 0 0 2 0 0 1\nstored w 16x8x4\n"
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w)\noutput y\n",
      true);
  check(
      "input x 1x4x7x8x9\nstored p 10 i64 = 0 0 1 1 1 0 0 1 1 0\nstored w 8x4x3x3x3\n"
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w)\noutput y\n",
      true);
}

static void all_else_is_padded(void **state) {
  static const char *const nets[] = {
      /* no zeros */
      "stored z 1 = 1\na = Pad(x, p, z) name=\"pad\"\ny = Conv(a, w)\n",
      "a = Pad(x, p) mode=\"reflect\" name=\"pad\"\ny = Conv(a, w)\n",
      "a = Pad(x, p) mode=\"edge\" name=\"pad\"\ny = Conv(a, w)\n",
      "opset 10\na = Pad(x) pads=0,0,1,1,0,0,1,1 value=0.5 name=\"pad\"\ny = Conv(a, w)\n",
      /* channels, and cropping */
      "stored q 8 i64 = 0 2 1 1 0 2 1 1\nstored v 8x12x3x3\na = Pad(x, q) name=\"pad\"\n"
      "y = Conv(a, v)\n",
      "stored q 8 i64 = 0 0 -1 1 0 0 1 1\na = Pad(x, q) name=\"pad\"\ny = Conv(a, w)\n",
      /* wider than the window, alone or with its own */
      "stored q 8 i64 = 0 0 1 3 0 0 1 1\na = Pad(x, q) name=\"pad\"\ny = Conv(a, w)\n",
      "stored q 8 i64 = 0 0 2 2 0 0 2 2\na = Pad(x, q) name=\"pad\"\n"
      "y = Conv(a, w) pads=1,1,1,1\n",
      "stored v 8x8x1x1\na = Pad(x, p) name=\"pad\"\ny = Conv(a, v)\n",
      /* the convolution's own pads follow from its input's size */
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w) auto_pad=\"SAME_UPPER\" strides=2,2\n",
      /* others read the padded value */
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w)\noutput a\n",
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w)\nb = Relu(a)\noutput b\n",
      "a = Pad(x, p) name=\"pad\"\ny = MaxPool(a) kernel_shape=3,3\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 1x8x12x11\nstored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 8x8x3x3\n"
                   "%soutput y\n",
                   nets[at]);
    check(text, false);
  }
}

/* As in a quantized network: int8 of the same scale before and after the Pad. */
static void through_bytes_of_the_same_scale(void **state) {
  static const char net[] =
      "input x 2x8x13x14\nstored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 16x8x3x3\n"
      "stored s \"\" = 0.0125\nstored z \"\" u8 = 120\nstored t \"\" = %s\n"
      "q = QuantizeLinear(x, s, z)\nd = DequantizeLinear(q, s, z)\na = Pad(d, p) name=\"pad\"\n"
      "b = QuantizeLinear(a, t, z)\nc = DequantizeLinear(b, t, z)\ny = Conv(c, w)\n%soutput y\n";
  char text[TEXT];
  (void)state;
  (void)snprintf(text, sizeof text, net, "0.0125", "");
  check(text, true);
  (void)snprintf(text, sizeof text, net, "0.0127", "");
  check(text, false);
  (void)snprintf(text, sizeof text, net, "0.0125", "output c\n");
  check(text, false);
  (void)snprintf(text, sizeof text, net, "0.0125", "r = Relu(a)\noutput r\n");
  check(text, false);
}

static lac_status see(void *context, int value, const laci_engine_port *port, const void *bytes,
                      lac_error *err) {
  (void)context, (void)value, (void)port, (void)bytes, (void)err;
  return LAC_OK;
}

static void an_observer_sees_the_padded_value(void **state) {
  static const char text[] =
      "input x 1x8x12x11\nstored p 8 i64 = 0 0 1 1 0 0 1 1\nstored w 8x8x3x3\n"
      "a = Pad(x, p) name=\"pad\"\ny = Conv(a, w)\noutput y\n";
  laci_graph *graph;
  (void)state;
  assert_int_equal(net_read(text, &graph, NULL), LAC_OK); /* to learn the value's number */
  int value = laci_graph_find_value(graph, "a");
  laci_graph_destroy(graph);
  const laci_engine_observer observer = {.values = &value, .n_values = 1, .on_value = see};
  assert_int_equal(pad_steps(text, NULL), 0);
  assert_true(pad_steps(text, &observer) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_take_in_zeros),
      cmocka_unit_test(pools_of_what_is_no_less_take_in_zeros),
      cmocka_unit_test(lines_and_volumes_too),
      cmocka_unit_test(all_else_is_padded),
      cmocka_unit_test(through_bytes_of_the_same_scale),
      cmocka_unit_test(an_observer_sees_the_padded_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

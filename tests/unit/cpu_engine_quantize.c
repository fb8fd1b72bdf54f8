/* SPDX-License-Identifier: Apache-2.0
 * Networks with QuantizeLinear and DequantizeLinear on the fast engine: pairs of one scale and zero
 * point are one step, whatever is around them; others are as ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "support/engine_check.h"
#include "support/graph_build.h"

enum { TEXT = 1024 };
#define PARAMETERS \
  "stored s \"\" = 0.03\nstored z \"\" u8 = 120\nstored t \"\" = 0.02\nstored u \"\" i8 = -3\n"

static void pairs_are_one_step(void **state) {
  static const struct {
    const char *text;
    int plain;
  } nets[] = {
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\n", 0},
      {"q = QuantizeLinear(x, t, u)\ny = DequantizeLinear(q, t, u)\n", 0},
      {"q = QuantizeLinear(x, s)\ny = DequantizeLinear(q, s)\n", 0},
      {"a = Relu(x)\nq = QuantizeLinear(a, s, z)\nd = DequantizeLinear(q, s, z)\n"
       "e = Add(d, x)\nr = QuantizeLinear(e, t, u)\ny = DequantizeLinear(r, t, u)\noutput a\n",
       0},
      /* Several read the same bytes: one value, however they say its parameters. */
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nd = DequantizeLinear(q, s, z)\n"
       "output d\n",
       0},
      {"stored s2 \"\" = 0.03\nstored z2 \"\" u8 = 120\nr = Relu(x)\nq = QuantizeLinear(r, s, z)\n"
       "a = DequantizeLinear(q, s, z)\nb = DequantizeLinear(q, s2, z2)\nc = Relu(a)\n"
       "d = DequantizeLinear(q, s, z2)\ne = Sub(c, b)\ny = Add(e, d)\noutput e\n",
       0},
      /* Copies and bounds of the integers in between. */
      {"q = QuantizeLinear(x, s, z)\nc = Cast(q) to=2\ny = DequantizeLinear(c, s, z)\n", 0},
      {"w = Identity(z)\nq = QuantizeLinear(x, s, w)\nc = Cast(q) to=2\ni = Identity(q)\n"
       "a = DequantizeLinear(c, s, z)\nb = DequantizeLinear(i, s, w)\ny = Add(a, b)\noutput b\n",
       0},
      {"stored l \"\" u8 = 100\nstored h \"\" u8 = 127\nq = QuantizeLinear(x, s, z)\n"
       "c = Clip(q, l, h)\ny = DequantizeLinear(c, s, z)\n",
       0},
      {"stored h \"\" u8 = 127\nq = QuantizeLinear(x, s, z)\nc = Clip(q, _, h)\n"
       "d = Cast(c) to=2\na = DequantizeLinear(d, s, z)\nb = DequantizeLinear(c, s, z)\n"
       "y = Add(a, b)\n",
       0},
      /* A Clip that leaves out the zero point, and one whose input is read, too. */
      {"stored l \"\" u8 = 121\nq = QuantizeLinear(x, s, z)\nc = Clip(q, l)\n"
       "y = DequantizeLinear(c, s, z)\n",
       1},
      {"stored h \"\" u8 = 127\nq = QuantizeLinear(x, s, z)\nc = Clip(q, _, h)\n"
       "y = DequantizeLinear(c, s, z)\noutput q\n",
       1},
      /* One of them otherwise, or another node. */
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nd = DequantizeLinear(q, t, z)\n"
       "output d\n",
       0},
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nd = DequantizeLinear(q, s, z)\n"
       "f = Cast(q) to=1\noutput d\noutput f\n",
       0},
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, t, z)\n", 0},
      {"q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s)\n", 0},
      /* Scales for each channel, and integers of other types. */
      {"stored c 3 = 0.1 0.2 0.3\nq = QuantizeLinear(x, c) axis=1\n"
       "y = DequantizeLinear(q, c) axis=1\n",
       0},
      {"stored c 7 = 0.1 0.2 0.3 0.4 0.5 0.6 0.7\nstored v 7 i8 = 1 -2 3 -4 5 -6 7\n"
       "q = QuantizeLinear(x, c, v) axis=-1\ny = DequantizeLinear(q, c, v) axis=3\n",
       0},
      {"stored c 3 = 0.1 0.2 0.3\nq = QuantizeLinear(x, c) axis=1\n"
       "d = DequantizeLinear(q, c) axis=1\ne = DequantizeLinear(q, s)\ny = Add(d, e)\noutput q\n",
       0},
      {"stored v \"\" u16 = 9\nq = QuantizeLinear(x, s, v)\ny = DequantizeLinear(q, s, v)\n", 0},
      {"stored v \"\" i16 = -9\nq = QuantizeLinear(x, s, v)\ny = DequantizeLinear(q, s, v)\n"
       "output q\n",
       0},
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    (void)snprintf(text, sizeof text, "input x 2x3x5x7\n" PARAMETERS "%soutput y\n", nets[at].text);
    check_plan(text, (expectation){.tolerance = 1e-7, .plain = nets[at].plain});
  }
}

/* Between layers in blocks and in native layouts. Two sums that differ by their rounding may round
 * differently at a half, so that results differ by a step or two. */
static void layers_go_through_integers(void **state) {
  static const int batches[] = {1, 3, 16};
  char text[TEXT];
  (void)state;
  for (int b = 0; b < 3; b++) {
    (void)snprintf(
        text, sizeof text,
        "input x %dx12x9x10\n" PARAMETERS
        "stored p 12x12x1x1\nstored w 12x12x3x3\n"
        "stored v 12x1x3x3\na = Conv(x, p)\nra = Relu(a)\nqa = QuantizeLinear(ra, s, z)\n"
        "da = DequantizeLinear(qa, s, z)\nb = Conv(da, v) group=12 pads=1,1,1,1\n"
        "qb = QuantizeLinear(b, t, u)\ndb = DequantizeLinear(qb, t, u)\n"
        "c = Conv(db, w) pads=1,1,1,1\nqc = QuantizeLinear(c, s, z)\n"
        "dc = DequantizeLinear(qc, s, z)\nd = Conv(dc, p)\ny = Add(d, da)\noutput y\n",
        batches[b]);
    check_as(text, (expectation){.tolerance = 0.1, .plain = 0});
  }
}

/* Elements that are moved or picked stay what they are: a second pair of the same scale and zero
 * point is no step, a pair of others is one. */
static void pairs_after_moves_are_no_step(void **state) {
#define PAIR(to, from, s, z)                                                                       \
  "q" to " = QuantizeLinear(" from ", " s ", " z ")\n" to " = DequantizeLinear(q" to ", " s ", " z \
  ")\n"
  static const struct {
    const char *text;
    int pairs;
  } nets[] = {
      {"m = Transpose(d) perm=0,2,3,1\n" PAIR("y", "m", "s", "z"), 1},
      {"m = Transpose(d) perm=0,2,3,1\n" PAIR("y", "m", "t", "u"), 2},
      {"r = Relu(d)\n" PAIR("e", "r", "s", "z") "m = Flatten(e)\n" PAIR("y", "m", "s", "z"), 1},
      {"p = MaxPool(d) kernel_shape=2,2\n" PAIR("y", "p", "s", "z"), 1},
      {"p = AveragePool(d) kernel_shape=3,3\n" PAIR("y", "p", "s", "z"), 2},
      {PAIR("e", "x", "t", "u") "c = Concat(d, e) axis=1\n" PAIR("y", "c", "s", "z"), 3},
      {"m = Identity(d)\nc = Concat(d, m) axis=1\n" PAIR("y", "c", "s", "z"), 1},
      {"c = Concat(d, x) axis=1\n" PAIR("y", "c", "s", "z"), 2},
      {"m = Identity(d)\na = Mul(m, x)\n" PAIR("y", "a", "s", "z"), 2},
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    laci_graph *graph;
    laci_engine *engine;
    lac_error err = {0};
    (void)snprintf(text, sizeof text, "input x 2x3x6x8\n" PARAMETERS "%s%soutput y\n",
                   PAIR("d", "x", "s", "z"), nets[at].text);
    check_plan(text, (expectation){.tolerance = 1e-7, .plain = 0});
    if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
    if (laci_engine_create(graph, &(laci_engine_options){.threads = 1}, &engine, &err))
      fail_msg("%s", err.text);
    const char *plan = laci_engine_plan_text(engine);
    if (count_text(plan, "QuantizeLinear + DequantizeLinear") != nets[at].pairs)
      fail_msg("not %d pairs:\n%s%s", nets[at].pairs, plan, text);
    laci_engine_destroy(engine);
    laci_graph_destroy(graph);
  }
#undef PAIR
}

static int count_reorders(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    n += strcmp(laci_engine_step_info(engine, at).kernel, "native reorder") == 0;
  }
  return n;
}

/* In between, values have a layout that both layers take. */
static void integers_between_sparse_layers_are_no_reorder(void **state) {
  static const char text[] =
      "input x 1x16x9x10\n" PARAMETERS
      "stored p 16x16x1x1\nstored w 16x16x3x3\na = Conv(x, p)\n"
      "qa = QuantizeLinear(a, s, z)\nda = DequantizeLinear(qa, s, z)\nb = Conv(da, w) "
      "pads=1,1,1,1\n"
      "qb = QuantizeLinear(b, t, u)\ndb = DequantizeLinear(qb, t, u)\nc = Conv(db, p)\noutput c\n";
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  (void)state;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  const laci_engine_options options = {.threads = 1};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  assert_int_equal(count_reorders(engine), 2);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pairs_are_one_step),
      cmocka_unit_test(pairs_after_moves_are_no_step),
      cmocka_unit_test(layers_go_through_integers),
      cmocka_unit_test(integers_between_sparse_layers_are_no_reorder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

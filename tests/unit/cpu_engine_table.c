/* SPDX-License-Identifier: Apache-2.0
 * Functions of one quantized value on the fast engine: they are one step, which looks up results in
 * a table. Its bits are those of a careful plan, where each node is evaluated by itself, and they
 * are the same for any number of threads. */
#include <math.h>
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

enum { TEXT = 4096 };

#define SCALES                                                                                    \
  "stored sx \"\" = 0.0303\nstored zx \"\" u8 = 110\nstored sy \"\" = 0.0237\nstored zy \"\" u8 " \
  "= "                                                                                            \
  "60\nstored ss \"\" = 0.0111\nstored zs \"\" i8 = -5\nstored one \"\" = 1\nstored half 1 = "    \
  "0.5\n"                                                                                         \
  "stored root 1x1 = 1.4142135\nstored three \"\" = 3\nstored six \"\" = 6\nstored zero \"\" = "  \
  "0\n"

/* `to` is `from` through bytes. */
#define BYTES(to, from, s, z)                                                                      \
  "q" to " = QuantizeLinear(" from ", " s ", " z ")\n" to " = DequantizeLinear(q" to ", " s ", " z \
  ")\n"

typedef struct table_net {
  const char *what, *text;
  int n_tables, n_pairs; /* number of tables, and of quantizations that are steps of their own */
} table_net;

/* d is x through bytes. */
static const table_net nets[] = {
    {"a function", "y = Sigmoid(d)\n", 1, 0},
    {"a function that is as fast as a table", "y = Relu(d)\n", 0, 1},
    {"a function and bytes", "a = Relu(d)\n" BYTES("y", "a", "sy", "zy"), 1, 0},
    {"swish",
     "a = Sigmoid(d)\n" BYTES("e", "a", "ss", "zs") "b = Mul(d, e)\n" BYTES("y", "b", "sy", "zy"),
     1, 0},
    {"gelu",
     "a = Div(d, root)\n" BYTES("e", "a", "sy", "zy") "b = Erf(e)\n" BYTES(
         "f", "b", "ss",
         "zs") "c = Add(f, one)\n" BYTES("g", "c", "ss",
                                         "zs") "h = Mul(d, g)\n" BYTES("i", "h", "sy",
                                                                       "zy") "j = Mul(i, "
                                                                             "half)\n" BYTES(
                                                                                 "y", "j", "ss",
                                                                                 "zs"),
     1, 0},
    {"hard swish of single operators",
     "a = Add(d, three)\n" BYTES("e", "a", "sy", "zy") "b = Clip(e, zero, six)\n" BYTES(
         "f", "b", "sx", "zx") "c = Mul(d, f)\nb2 = Div(c, six)\n" BYTES("y", "b2", "ss", "zs"),
     1, 0},
    {"hard swish",
     "a = HardSigmoid(d) alpha=0.16666667\n" BYTES("e", "a", "ss", "zs") "y = Mul(d, e)\n", 1, 0},
    {"a result that is infinite or no number", "a = Sub(d, d)\ny = Div(d, a)\n", 1, 0},
    {"powers, least and greatest", "a = Pow(d, three)\nb = Min(a, six, d)\ny = Max(b, half)\n", 1,
     0},
    {"a start that others read",
     "a = Tanh(d)\n" BYTES("e", "a", "ss", "zs") "b = Abs(x)\nc = Add(d, b)\ny = Sub(c, e)\n", 1,
     1},
    {"a value in between that others read",
     "a = Tanh(d)\n" BYTES("e", "a", "ss", "zs") "b = Exp(e)\n" BYTES(
         "f", "b", "sy", "zy") "c = Abs(x)\ng = Mul(e, c)\ny = Sub(g, f)\n",
     2, 0},
    {"a value in between that comes out",
     "a = Tanh(d)\n" BYTES("e", "a", "ss", "zs") "b = Exp(e)\n" BYTES("y", "b", "sy",
                                                                      "zy") "output e\n",
     2, 0},
    {"two functions of one start",
     "a = Tanh(d)\nb = Exp(d)\nc = Abs(x)\ne = Mul(a, c)\ny = Sub(b, e)\n", 2, 1},
    {"bytes that each reader reads for itself",
     "d2 = DequantizeLinear(qd, sx, zx)\na = Sigmoid(d)\n" BYTES(
         "e", "a", "ss",
         "zs") "e2 = DequantizeLinear(qe, ss, zs)\nb = Mul(d2, e)\nc = Add(b, e2)\n" BYTES("y", "c",
                                                                                           "sy",
                                                                                           "zy"),
     1, 1},
    {"bytes that are read after a transpose",
     "t = Transpose(d)\n" BYTES("e", "t", "sx", "zx") "a = Sigmoid(e)\nb = Mul(a, e)\n" BYTES(
         "y", "b", "sy", "zy"),
     1, 1},
    {"constants along an axis", "stored v 7\na = Tanh(d)\ny = Mul(a, v)\n", 1, 0},
    {"a constant with more axes", "stored v 1x1x1x1x1\na = Tanh(d)\ny = Mul(a, v)\n", 1, 0},
    {"two values", "a = Abs(x)\ny = Mul(a, d)\n", 0, 1},
};

/* ---- Quantizations that change nothing ---- */

static const table_net moves[] = {
    {"the same once more", BYTES("e", "d", "sx", "zx") "y = Relu(e)\n", 0, 1},
    {"moves",
     "a = Transpose(d)\n" BYTES("e", "a", "sx", "zx") "b = Flatten(e)\n" BYTES(
         "f", "b", "sx", "zx") "y = Relu(f)\n",
     0, 1},
    {"a part",
     "stored from 1 i64 = 1\nstored to 1 i64 = 3\na = Slice(d, from, to)\n" BYTES("y", "a", "sx",
                                                                                  "zx"),
     0, 1},
    {"parts", "a, b = Split(d) axis=1\n" BYTES("e", "b", "sx", "zx") "f = Relu(a)\ny = Sub(e, f)\n",
     0, 1},
    {"other units", "a = Transpose(d)\n" BYTES("y", "a", "sy", "zy"), 0, 2},
    {"a sum", "a = Add(d, x)\n" BYTES("y", "a", "sx", "zx"), 0, 2},
};

/* ---- Running ---- */

typedef struct result {
  float *floats;
  size_t bytes;
} result;

static void count(const laci_engine *engine, const table_net *net, const char *text) {
  const char *plan = laci_engine_plan_text(engine);
  const int n_tables = count_text(plan, "  table of "),
            n_pairs = count_text(plan, "QuantizeLinear + DequantizeLinear");
  if (n_tables == net->n_tables && n_pairs == net->n_pairs) return;
  fail_msg("%s: %d tables, %d quantizations\n%s\n%s", net->what, n_tables, n_pairs, plan, text);
}

/* The first output. careful: a number of the second input is none, so that the run is careful. */
static result run_fast(const laci_graph *graph, const char *text, const table_net *net, int threads,
                       bool careful) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  void *written[MAX_PORTS];
  const laci_engine_options options = {.threads = threads};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  if (!getenv("LAC_SPARSE")) count(engine, net, text);
  const int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  for (int at = 0; at < n_in; at++) {
    laci_buf *buf = run_source(graph, graph->inputs[at]);
    if (careful && at == 1) buf->f[0] = NAN;
    read[at] = pack(&in[at], buf);
    laci_buf_destroy(buf);
  }
  for (int at = 0; at < n_out; at++) written[at] = laci_alloc(out[at].size_bytes, 1);
  if (laci_engine_run(engine, read, written, &err)) fail_msg("%s\n%s", err.text, text);
  const result r = {written[0], out[0].size_bytes};
  for (int at = 0; at < n_in; at++) laci_free((void *)(uintptr_t)read[at]);
  for (int at = 1; at < n_out; at++) laci_free(written[at]);
  laci_engine_destroy(engine);
  return r;
}

/* Elements of NaN may have any bits. */
static void expect_same(const result *got, const result *want, const char *text) {
  assert_int_equal(got->bytes, want->bytes);
  for (size_t at = 0; at < got->bytes / sizeof(float); at++) {
    if (isnan(got->floats[at]) && isnan(want->floats[at])) continue;
    if (memcmp(&got->floats[at], &want->floats[at], sizeof(float)) == 0) continue;
    fail_msg("element %d: %g, not %g\n%s", (int)at, (double)got->floats[at],
             (double)want->floats[at], text);
  }
}

static void check_net(const table_net *net) {
  laci_graph *graph;
  lac_error err = {0};
  char text[TEXT];
  (void)snprintf(text, sizeof text,
                 "input x 2x8x5x7\ninput k 1\n" SCALES BYTES("d", "x", "sx", "zx") "%soutput y\n"
                 "r = Relu(k)\noutput r\n",
                 net->text);
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  const result one = run_fast(graph, text, net, 1, false),
               three = run_fast(graph, text, net, 3, false),
               careful = run_fast(graph, text, net, 1, true);
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0); /* bytes in native layouts */
  const result bytes = run_fast(graph, text, net, 2, false);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  expect_same(&bytes, &one, text);
  expect_same(&three, &one, text);
  expect_same(&one, &careful, text);
  laci_free(one.floats);
  laci_free(three.floats);
  laci_free(bytes.floats);
  laci_free(careful.floats);
  laci_graph_destroy(graph);
}

static void functions_of_one_value_are_a_table(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) check_net(&nets[at]);
}

static void quantized_values_are_not_quantized_again(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof moves / sizeof *moves; at++) check_net(&moves[at]);
}

/* A mask of huge numbers becomes a bound of the bytes, which needs no careful run. */
static void huge_numbers_are_quantized_without_care(void **state) {
  static const char text[] =
      "input x 2x9\n" SCALES
      "stored huge \"\" = -3e38\nb = Less(x, half)\na = Where(b, x, huge)\n" BYTES(
          "y", "a", "sx", "zx") "output y\n";
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.threads = 1};
  (void)state;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(count_text(laci_engine_plan_text(engine), "  look  "), 0);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_of_one_value_are_a_table),
      cmocka_unit_test(quantized_values_are_not_quantized_again),
      cmocka_unit_test(huge_numbers_are_quantized_without_care),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

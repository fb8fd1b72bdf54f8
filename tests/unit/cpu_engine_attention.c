/* SPDX-License-Identifier: Apache-2.0
 * The parts of transformers, on the fast engine against the plain one: attention in the forms that
 * exporters write and in those that must stay apart, layer norms as single operators, heads as
 * views, and masks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "graph/graph.h"
#include "support/engine_check.h"
#include "tensor/buf.h"

static void check(const char *text, int steps) {
  check_as(text, (expectation){.tolerance = 1e-5, .steps = steps});
}

#define HEADS "input q 2x3x7x16\ninput k 2x3x9x16\ninput v 2x3x9x10\n"
#define TRANSPOSED "t = Transpose(k) perm=0,1,3,2\n"

/* ---- Attention ---- */

static void makes_one_step_of_attention(void **state) {
  (void)state;
  check(HEADS TRANSPOSED "s = MatMul(q, t)\np = Softmax(s) axis=-1\ny = MatMul(p, v)\noutput y\n",
        2);
}

static void takes_scales_wherever_they_stand(void **state) {
  (void)state;
  check(HEADS "stored f 1 f32 = 0.5\nstored g 1 f32 = 3\n" TRANSPOSED
              "a = Mul(q, f)\nb = Mul(t, f)\ns = MatMul(a, b)\nd = Div(s, g)\n"
              "p = Softmax(d) axis=3\ny = MatMul(p, v)\noutput y\n",
        2);
}

static void adds_masks_of_every_shape(void **state) {
  (void)state;
  static const char *const masks[] = {"9", "7x1", "1", "2x1x1x9", "3x7x9", "2x3x7x9", "1x1x7x9"};
  for (size_t at = 0; at < sizeof masks / sizeof *masks; at++) {
    for (int left = 0; left < 2; left++) {
      char text[512];
      (void)snprintf(text, sizeof text,
                     HEADS "input m %s\nstored f 1 f32 = 0.25\n" TRANSPOSED
                           "s = MatMul(q, t)\ns2 = Mul(s, f)\na = Add(%s)\n"
                           "p = Softmax(a) axis=-1\ny = MatMul(p, v)\noutput y\n",
                     masks[at], left ? "m, s2" : "s2, m");
      check(text, 2);
    }
  }
}

static void zeroes_rows_whose_keys_are_all_masked(void **state) {
  (void)state; /* Where(c, 0, -inf) makes the mask; row 1 has no key */
  check(
      "input q 1x2x3x4\ninput k 1x2x3x4\ninput v 1x2x3x4\n"
      "stored c 3x3 i64 = 1 0 1 0 0 0 1 1 1\nstored zero 1 f32 = 0\nstored low 1 f32 = -inf\n"
      "b = Cast(c) to=9\nm = Where(b, zero, low)\n" TRANSPOSED
      "s = MatMul(q, t)\na = Add(s, m)\np = Softmax(a) axis=-1\nn = IsNaN(p)\n"
      "w = Where(n, zero, p)\ny = MatMul(w, v)\noutput y\n",
      2);
}

static void writes_rows_where_the_transpose_wants_them(void **state) {
  (void)state;
  check(HEADS "stored r 3 i64 = 2 7 30\n" TRANSPOSED
              "s = MatMul(q, t)\np = Softmax(s) axis=-1\no = MatMul(p, v)\n"
              "z = Transpose(o) perm=0,2,1,3\ny = Reshape(z, r)\noutput y\n",
        2);
  check(HEADS TRANSPOSED
        "s = MatMul(q, t)\np = Softmax(s) axis=-1\no = MatMul(p, v)\n"
        "y = Transpose(o) perm=2,0,1,3\noutput y\n",
        2);
}

static void reads_heads_out_of_one_product(void **state) {
  (void)state; /* the product; attention; the output */
  check(
      "input x 2x5x12\nstored w 12x36\nstored r 5 i64 = 2 5 3 3 4\nstored i 0 i64 = 0\n"
      "stored j 1 i64 = 1\nstored l 1 i64 = 2\n"
      "stored c 3 i64 = 2 5 12\n"
      "a = MatMul(x, w)\nh = Reshape(a, r)\nu = Transpose(h) perm=2,0,3,1,4\n"
      "q, k, v = Split(u) axis=0 num_outputs=3\nstored s4 4 i64 = 2 3 5 4\n"
      "q4 = Reshape(q, s4)\nk4 = Reshape(k, s4)\nv4 = Reshape(v, s4)\n"
      "t = Transpose(k4) perm=0,1,3,2\ns = MatMul(q4, t)\np = Softmax(s) axis=-1\n"
      "o = MatMul(p, v4)\nz = Transpose(o) perm=0,2,1,3\ny = Reshape(z, c)\noutput y\n",
      3);
}

static void leaves_apart_what_others_read(void **state) {
  (void)state;
  static const char *const also[] = {"s", "p", "d"};
  for (size_t at = 0; at < sizeof also / sizeof *also; at++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   HEADS "stored f 1 f32 = 0.25\n" TRANSPOSED
                         "s = MatMul(q, t)\nd = Mul(s, f)\np = Softmax(d) axis=-1\n"
                         "y = MatMul(p, v)\noutput y\noutput %s\n",
                   also[at]);
    check(text, 0);
  }
}

static void leaves_apart_what_only_looks_like_attention(void **state) {
  (void)state;
  /* a softmax over the queries */
  check(HEADS TRANSPOSED "s = MatMul(q, t)\np = Softmax(s) axis=2\ny = MatMul(p, v)\noutput y\n",
        0);
  /* the mask is scaled, too */
  check(HEADS "input m 7x9\nstored f 1 f32 = 0.25\n" TRANSPOSED
              "s = MatMul(q, t)\na = Add(s, m)\nd = Mul(a, f)\np = Softmax(d) axis=-1\n"
              "y = MatMul(p, v)\noutput y\n",
        0);
  /* the weights are on the right */
  check(
      "input q 2x5x4\ninput k 2x5x4\ninput v 2x3x5\nt = Transpose(k) perm=0,2,1\n"
      "s = MatMul(q, t)\np = Softmax(s) axis=-1\ny = MatMul(v, p)\noutput y\n",
      0);
  /* keys that all heads share; values that all share */
  check(
      "input q 2x3x5x4\ninput k 4x6\ninput v 2x3x6x4\ns = MatMul(q, k)\np = Softmax(s) axis=-1\n"
      "y = MatMul(p, v)\noutput y\n",
      0);
  check(
      "input q 2x3x5x4\ninput k 2x3x4x6\ninput v 6x4\ns = MatMul(q, k)\np = Softmax(s) axis=-1\n"
      "y = MatMul(p, v)\noutput y\n",
      0);
  /* a mask that makes the scores larger */
  check(
      "input q 1x5x4\ninput k 1x4x6\ninput v 2x6x4\ninput m 2x5x6\ns = MatMul(q, k)\n"
      "a = Add(s, m)\np = Softmax(a) axis=-1\ny = MatMul(p, v)\noutput y\n",
      0);
}

static void takes_the_result_of_another_as_any_value(void **state) {
  (void)state; /* the scores of the second are what the first one makes */
  check(
      "input q 2x5x4\ninput k 2x4x6\ninput v 2x6x7\ninput w 2x7x3\ns = MatMul(q, k)\n"
      "p = Softmax(s) axis=-1\nt = MatMul(p, v)\nr = Softmax(t) axis=-1\ny = MatMul(r, w)\n"
      "output y\n",
      0);
}

static void attends_in_bf16_where_the_processor_can(void **state) {
  (void)state;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512bf16") || laci_cpu_level_in_force() != LACI_CPU_AVX512) skip();
  check_as(HEADS "input m 7x9\n" TRANSPOSED
                 "s = MatMul(q, t)\na = Add(s, m)\np = Softmax(a) axis=-1\ny = MatMul(p, v)\n"
                 "output y\n",
           (expectation){.tolerance = 0.03, .bf16 = true});
#else
  skip();
#endif
}

/* ---- Layer norms as single operators ---- */

#define LAYER_NORM                                                                             \
  "input x 2x5x24\nstored e 1 f32 = 0.00001\nstored two 1 f32 = 2\nstored g 24\nstored h 24\n" \
  "stored o 1 i64 = -1\nm = ReduceMean(x, o) keepdims=1\nd = Sub(x, m)\n"
#define REST "v = ReduceMean(s, o) keepdims=1\na = Add(v, e)\nr = Sqrt(a)\n"

static void finds_layer_norms_of_several_nodes(void **state) {
  (void)state;
  check(LAYER_NORM "s = Pow(d, two)\n" REST
                   "n = Div(d, r)\nt = Mul(n, g)\ny = Add(t, h)\noutput y\n",
        2);
  check(LAYER_NORM "s = Mul(d, d)\n" REST "n = Div(d, r)\nt = Mul(g, n)\ny = Add(h, t)\noutput y\n",
        2);
  check(LAYER_NORM "s = Pow(d, two)\n" REST "n = Div(d, r)\noutput n\n", 2);
  check(LAYER_NORM "s = Pow(d, two)\n" REST "n = Div(d, r)\ny = Add(n, x)\noutput y\n", 0);
}

static void leaves_apart_what_is_no_layer_norm(void **state) {
  (void)state;
  check(LAYER_NORM "s = Pow(d, two)\n" REST "n = Div(d, r)\ny = Mul(n, g)\noutput y\noutput d\n",
        0);
  check_as(LAYER_NORM "s = Pow(d, two)\n" REST "n = Div(r, d)\noutput n\n",
           (expectation){.tolerance = 1e-5, .plain = -1});
  check(LAYER_NORM "s = Pow(d, e)\nab = Abs(d)\n" REST "n = Div(d, r)\noutput n\noutput ab\n", 0);
  check(
      "input x 2x5x24\nstored e 1 f32 = 0.00001\nstored o 1 i64 = 1\n"
      "m = ReduceMean(x, o) keepdims=1\n"
      "d = Sub(x, m)\ns = Mul(d, d)\nv = ReduceMean(s, o) keepdims=1\na = Add(v, e)\n"
      "r = Sqrt(a)\ny = Div(d, r)\noutput y\n",
      0);
}

/* ---- Masks ---- */

static void makes_masks_without_the_plain_operator(void **state) {
  (void)state;
  check(
      "input a 2x1x4 i64\ninput b 3x1 i64\nstored s 3 i64 = 2 3 4\nstored one 1 f32 = 1\n"
      "stored none 1 f32 = 0\nc = Cast(a) to=9\nd = Cast(b) to=9\ne = And(c, d)\nf = Or(e, d)\n"
      "g = Xor(f, c)\nh = Not(g)\ni = Expand(h, s)\ny = Where(i, one, none)\n"
      "l = Less(a, b)\nle = LessOrEqual(a, b)\ngt = Greater(a, b)\nge = GreaterOrEqual(a, b)\n"
      "eq = Equal(a, b)\nz = Where(l, a, b)\nn = Cast(z) to=1\n"
      "output y\noutput le\noutput gt\noutput ge\noutput eq\noutput n\n",
      0);
  check(
      "input a 4x3 i64\nstored i 2x1 i64 = 3 -1\nstored p 2x2 i64 = 1 2 0 -1\n"
      "y = Gather(a, i) axis=0\nz = GatherND(a, p)\noutput y\noutput z\n",
      0);
}

static void refuses_elements_of_types_that_no_file_may_mix(void **state) {
  (void)state; /* each would be read as if its elements were of the other's size */
  static const char *const texts[] = {
      "input b 3x50\ninput x 3x50\ninput y 3x50\nz = Where(b, x, y)\noutput z\n",
      "input b 3x50 i64\ninput x 3x50 i64\ninput y 3x50\nz = Where(b, x, y)\noutput z\n",
      "input b 3x50 i64\ninput x 3x50\ninput y 3x50 i64\nz = Where(b, x, y)\noutput z\n"};
  static int64_t in[3 * 50], out[3 * 50];
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
    laci_graph *graph = NULL;
    laci_engine *engine = NULL;
    lac_error err = {0};
    laci_engine_options options = {.threads = 1};
    if (net_read(texts[at], &graph, &err)) fail_msg("%s", err.text);
    if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
    assert_int_equal(laci_engine_run(engine, (const void *[]){in, in, in}, (void *[]){out}, &err),
                     LAC_UNSUPPORTED);
    assert_non_null(strstr(err.text, "types"));
    laci_engine_destroy(engine);
    laci_graph_destroy(graph);
  }
}

static void takes_known_indices_as_views(void **state) {
  (void)state;
  check(
      "input x 3x4x5\nstored i 1 i64 = 1\nstored r 2 i64 = 4 5\ns = Slice(x, i, u, z)\n"
      "stored u 1 i64 = 2\nstored z 1 i64 = 0\ny = Reshape(s, r)\ne = Exp(y)\noutput e\n",
      0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_one_step_of_attention),
      cmocka_unit_test(takes_scales_wherever_they_stand),
      cmocka_unit_test(adds_masks_of_every_shape),
      cmocka_unit_test(zeroes_rows_whose_keys_are_all_masked),
      cmocka_unit_test(writes_rows_where_the_transpose_wants_them),
      cmocka_unit_test(reads_heads_out_of_one_product),
      cmocka_unit_test(leaves_apart_what_others_read),
      cmocka_unit_test(leaves_apart_what_only_looks_like_attention),
      cmocka_unit_test(takes_the_result_of_another_as_any_value),
      cmocka_unit_test(attends_in_bf16_where_the_processor_can),
      cmocka_unit_test(finds_layer_norms_of_several_nodes),
      cmocka_unit_test(leaves_apart_what_is_no_layer_norm),
      cmocka_unit_test(makes_masks_without_the_plain_operator),
      cmocka_unit_test(refuses_elements_of_types_that_no_file_may_mix),
      cmocka_unit_test(takes_known_indices_as_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

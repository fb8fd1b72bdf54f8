/* SPDX-License-Identifier: Apache-2.0
 * Products with a constant matrix in strips inside the fast engine: all forms against the plain
 * engine, which products are computed so, and the same bytes for any threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "support/engine_check.h"
#include "support/graph_build.h"

enum { TEXT = 2048, MANY_ROWS = 301 /* three blocks of rows */ };

static int plan_for_avx2(void **state) {
  (void)state;
  (void)laci_cpu_limit_level(LACI_CPU_AVX2);
  return 0;
}

static bool strips_are_used(void) { return laci_cpu_level_in_force() == LACI_CPU_AVX2; }

static laci_engine *plan_of(const char *text, int threads, laci_graph **graph) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.threads = threads};
  if (net_read(text, graph, &err)) fail_msg("%s\n%s", err.text, text);
  if (laci_engine_create(*graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  return engine;
}

static int count_steps(const char *text, const char *kernel) {
  laci_graph *graph;
  laci_engine *engine = plan_of(text, 1, &graph);
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++)
    n += strcmp(laci_engine_step_info(engine, at).kernel, kernel) == 0;
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return n;
}

/* %d: the number of rows. */
static const char *const products[] = {
    "input x %dx37\nstored w 37x29\ny = MatMul(x, w)\noutput y\n",
    "input x 1x%dx37\nstored w 37x32\nstored b 32\na = MatMul(x, w)\ny = Add(a, b)\noutput y\n",
    "input x %dx530\nstored w 9x530\nstored c 9\ny = Gemm(x, w, c) transB=1\noutput y\n",
    "input x %dx66\nstored w 66x170\nstored c 1 f32 = 3\n"
    "y = Gemm(x, w, c) alpha=0.5 beta=-2.0\noutput y\n",
    "input x %dx40\nstored w 40x24\nstored s 24\nstored t 24\na = MatMul(x, w)\nb = Mul(a, s)\n"
    "c = Sub(t, b)\ny = Relu(c)\noutput y\n",
    "input x %dx24\nstored w 24x24\na = MatMul(x, w)\nb = Relu(a)\nc = Add(b, x)\n"
    "y = Sigmoid(c)\noutput y\n",
    "input x %dx24\nstored w 24x100\nstored r 1 f32 = 1.41421356\nstored one 1 f32 = 1\n"
    "stored half 1 f32 = 0.5\na = MatMul(x, w)\nb = Div(a, r)\nc = Erf(b)\nd = Add(c, one)\n"
    "e = Mul(a, d)\ny = Mul(e, half)\noutput y\n",
    "input x %dx16\nstored w 16x1\ny = MatMul(x, w)\noutput y\n",
};

static void products_of_all_kinds(void **state) {
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof products / sizeof *products; at++) {
    for (int rows = 1; rows <= 14; rows++) {
      (void)snprintf(text, sizeof text, products[at], rows);
      check_as(text, (expectation){.tolerance = 1e-5});
    }
    (void)snprintf(text, sizeof text, products[at], MANY_ROWS);
    check_as(text, (expectation){.tolerance = 1e-5});
    assert_int_equal(count_steps(text, "strips"), strips_are_used());
  }
}

static void products_of_other_kinds_are_not_in_strips(void **state) {
  static const char *const nets[] = {
      "input x 12x8\nstored w 12x8\ny = Gemm(x, w) transA=1\noutput y\n",
      "input x 12x8\ninput w 8x16\ny = MatMul(x, w)\noutput y\n",
      "input x 2x12x8\nstored w 2x8x16\ny = MatMul(x, w)\noutput y\n",
  };
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    assert_int_equal(count_steps(nets[at], "strips"), 0);
    check_as(nets[at], (expectation){.tolerance = 1e-5});
  }
}

static float *result_of(const char *text, int threads, size_t *bytes) {
  const laci_engine_port *in, *out;
  lac_error err = {0};
  laci_graph *graph;
  laci_engine *engine = plan_of(text, threads, &graph);
  assert_int_equal(laci_engine_inputs(engine, &in), 1);
  assert_int_equal(laci_engine_outputs(engine, &out), 1);
  float *x = laci_alloc(in->size_bytes, 1), *y = laci_alloc(out->size_bytes, 1);
  for (size_t at = 0; at < in->size_bytes / sizeof *x; at++)
    x[at] = (float)net_number("x", (int64_t)at);
  *bytes = out->size_bytes;
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  laci_free(x);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return y;
}

static void threads_do_not_change_a_byte(void **state) {
  char text[TEXT];
  size_t bytes;
  (void)state;
  if (!strips_are_used()) return;
  for (size_t at = 0; at < sizeof products / sizeof *products; at++) {
    (void)snprintf(text, sizeof text, products[at], MANY_ROWS);
    float *want = result_of(text, 1, &bytes);
    for (int threads = 2; threads <= 5; threads++) {
      float *got = result_of(text, threads, &bytes);
      assert_memory_equal(want, got, bytes);
      laci_free(got);
    }
    laci_free(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_of_all_kinds),
      cmocka_unit_test(products_of_other_kinds_are_not_in_strips),
      cmocka_unit_test(threads_do_not_change_a_byte),
  };
  return cmocka_run_group_tests(tests, plan_for_avx2, NULL);
}

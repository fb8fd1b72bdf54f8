/* SPDX-License-Identifier: Apache-2.0
 * Products of few rows inside the fast engine, by kernel/sparse/vector: all forms against the plain
 * engine, pruned matrices against the dense plan, what declines, and the same bytes for any
 * threads. */
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

enum { TEXT = 2048 };

static void products_of_all_kinds(void **state) {
  static const char *const nets[] = {
      "input x %dx37\nstored w 37x29\ny = MatMul(x, w)\n",
      "input x 1x%dx37\nstored w 37x29\nstored b 29\na = MatMul(x, w)\ny = Add(a, b)\n",
      "input x %dx530\nstored w 9x530\nstored c 9\ny = Gemm(x, w, c) transB=1\n",
      "input x %dx66\nstored w 66x70\nstored c 1 f32 = 3\n"
      "y = Gemm(x, w, c) alpha=0.5 beta=-2.0\n",
      "input x 12x%d\nstored w 12x8\ny = Gemm(x, w) transA=1\n",
      "input x %dx40\nstored w 40x24\nstored s 24\nstored t 24\na = MatMul(x, w)\nb = Mul(a, s)\n"
      "c = Sub(t, b)\ny = Relu(c)\n",
      "input x %dx24\nstored w 24x24\na = MatMul(x, w)\nb = Relu(a)\nc = Add(b, x)\n"
      "y = Sigmoid(c)\n",
      "input x %dx24\nstored w 24x24\nstored r 1 f32 = 1.41421356\nstored one 1 f32 = 1\n"
      "stored half 1 f32 = 0.5\na = MatMul(x, w)\nb = Div(a, r)\nc = Erf(b)\nd = Add(c, one)\n"
      "e = Mul(a, d)\ny = Mul(e, half)\n",
      "input x %dx16\nstored w 16x16\nstored v 16x4\na = MatMul(x, w)\ns = Sigmoid(a)\n"
      "h = Mul(a, s)\nb = MatMul(h, v)\ny = Add(b, b)\noutput a\n",
      "input x %dx8x3x3\nstored w 8x8x1x1\nstored f 72x10\na = Conv(x, w)\nb = Flatten(a)\n"
      "y = MatMul(b, f)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int rows = 1; rows <= 5; rows++) {
      size_t used = (size_t)snprintf(text, sizeof text, nets[at], rows);
      (void)snprintf(text + used, sizeof text - used, "output y\n");
      check_as(text, (expectation){.tolerance = 1e-5});
    }
  }
}

/* ---- Pruned matrices ---- */

/* Keeps two of four rows of every matrix, others in each column. */
static void prune(laci_graph *graph) {
  for (int s = 0; s < graph->n_stored; s++) {
    laci_stored *stored = &graph->stored[s];
    if (stored->shape.rank != 2) continue;
    float *w = laci_alloc(stored->size_bytes, 1);
    memcpy(w, stored->bytes, stored->size_bytes);
    for (int64_t at = 0; at < laci_shape_count(&stored->shape); at++) {
      const int64_t row = at / stored->shape.dims[1], column = at % stored->shape.dims[1];
      if ((row + column + (row + column) / 4 % 3) % 4 < 2) w[at] = 0;
    }
    if (stored->owned) laci_free(stored->owned);
    stored->owned = (uint8_t *)w;
    stored->bytes = stored->owned;
  }
}

enum { N_PRODUCTS = 3, LARGE = 700, SMALL = 64 };

static laci_graph *pruned_graph(int rows, int width) {
  char text[TEXT];
  laci_graph *graph;
  lac_error err = {0};
  (void)snprintf(text, sizeof text,
                 "input x %dx%d\nstored p %dx%d\nstored q %dx%d\nstored b %d\nstored v %dx%d\n"
                 "a = MatMul(x, p)\nr = Relu(a)\nc = Gemm(r, q, b) transB=1\nd = Add(c, x)\n"
                 "y = MatMul(d, v)\noutput y\n",
                 rows, width, width, width, width, width, width, width, width / 2 + 1);
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  prune(graph);
  return graph;
}

static laci_engine *plan_of(const laci_graph *graph, int threads, bool dense_only) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.threads = threads, .dense_only = dense_only};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  return engine;
}

static int sparse_steps(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step step = laci_engine_step_info(engine, at);
    if (step.sparse) assert_string_equal(step.kernel, "sparse vector");
    n += step.sparse;
  }
  return n;
}

static float *result_of(laci_engine *engine, size_t *bytes) {
  const laci_engine_port *in, *out;
  lac_error err = {0};
  assert_int_equal(laci_engine_inputs(engine, &in), 1);
  assert_int_equal(laci_engine_outputs(engine, &out), 1);
  float *x = laci_alloc(in->size_bytes, 1), *y = laci_alloc(out->size_bytes, 1);
  for (size_t at = 0; at < in->size_bytes / sizeof *x; at++)
    x[at] = (float)net_number("x", (int64_t)at);
  *bytes = out->size_bytes;
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  laci_free(x);
  return y;
}

static int planned_sparse(int rows, int width, bool dense_only) {
  laci_graph *graph = pruned_graph(rows, width);
  laci_engine *engine = plan_of(graph, 1, dense_only);
  const int n = sparse_steps(engine);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return n;
}

static void few_rows_of_large_pruned_matrices_are_sparse(void **state) {
  const int all = laci_cpu_level_in_force() == LACI_CPU_ANY ? 0 : N_PRODUCTS;
  (void)state;
  for (int rows = 1; rows <= 4; rows++) assert_int_equal(planned_sparse(rows, LARGE, false), all);
  assert_int_equal(planned_sparse(5, LARGE, false), 0);
  assert_int_equal(planned_sparse(1, SMALL, false), 0);
  assert_int_equal(planned_sparse(1, LARGE, true), 0);
}

static void plans_agree_and_threads_do_not_change_a_byte(void **state) {
  laci_graph *graph = pruned_graph(3, LARGE);
  laci_engine *dense = plan_of(graph, 1, true);
  size_t bytes = 0;
  float *want = result_of(dense, &bytes), *first = NULL;
  double scale = 0;
  (void)state;
  for (size_t at = 0; at < bytes / sizeof *want; at++) {
    scale = scale > fabs((double)want[at]) ? scale : fabs((double)want[at]);
  }
  for (int threads = 1; threads <= 3; threads++) {
    laci_engine *engine = plan_of(graph, threads, false);
    assert_true(laci_cpu_level_in_force() == LACI_CPU_ANY || sparse_steps(engine) == N_PRODUCTS);
    float *got = result_of(engine, &bytes);
    for (size_t at = 0; at < bytes / sizeof *want; at++) {
      assert_true(fabs((double)got[at] - (double)want[at]) <= 1e-5 * scale);
    }
    if (first) assert_memory_equal(first, got, bytes);
    if (first) laci_free(got);
    else first = got;
    laci_engine_destroy(engine);
  }
  laci_free(want);
  laci_free(first);
  laci_engine_destroy(dense);
  laci_graph_destroy(graph);
}

/* Kept weights and their bits, and nothing of the dense matrix. */
static void a_plan_takes_less_memory(void **state) {
  laci_graph *graph = pruned_graph(1, LARGE);
  laci_engine *dense = plan_of(graph, 1, true), *sparse = plan_of(graph, 1, false);
  (void)state;
  if (laci_cpu_level_in_force() != LACI_CPU_ANY) {
    assert_true(laci_engine_planned_memory(sparse).weight_bytes * 100 <
                laci_engine_planned_memory(dense).weight_bytes * 60);
  }
  laci_engine_destroy(dense);
  laci_engine_destroy(sparse);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_of_all_kinds),
      cmocka_unit_test(few_rows_of_large_pruned_matrices_are_sparse),
      cmocka_unit_test(plans_agree_and_threads_do_not_change_a_byte),
      cmocka_unit_test(a_plan_takes_less_memory),
  };
  return cmocka_run_group_tests(tests, choose_one_table, NULL);
}

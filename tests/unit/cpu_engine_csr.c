/* SPDX-License-Identifier: Apache-2.0
 * Layers by CSR and by grouped rows inside the fast engine: against the plain engine, with all that
 * may be around them; the same bytes for any threads and for generated code; which of the two a
 * layer gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"
#include "support/programs.h"

enum { TEXT = 4096 };

static const int batches[] = {1, 16, 35};
enum { N_BATCHES = sizeof batches / sizeof *batches };
static int n_batches(void) { return is_emulated() ? 2 : N_BATCHES; }

static void algorithms_of_all_neighbours(void **state) {
  static const char *const nets[] = {
      /* a residual block, and one after a function */
      "a = Conv(x, p, b)\nra = Relu(a)\nc = Conv(ra, w) pads=1,1,1,1\nrc = Relu(c)\n"
      "d = Conv(rc, q)\nt = Add(d, x)\ns = Relu(t)\noutput s\n",
      "a = Conv(x, p, b)\ng = Gelu(a)\nc = Conv(g, q)\nh = Sigmoid(c)\nm = Mul(c, h)\n"
      "y = Add(m, x)\noutput y\n",
      /* strides, a window that is not padded alike, and tokens */
      "a = Conv(x, p) strides=2,2\nc = Conv(a, w) pads=1,1,1,1 strides=2,2\n"
      "d = Conv(c, w) pads=0,2,1,0\noutput d\n",
      "a = Conv(x, p, b)\nc = GlobalAveragePool(a)\nf = Flatten(c)\ng = Gemm(f, l) transB=1\n"
      "output g\noutput a\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int batch = 0; batch < n_batches(); batch++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx96x7x9\nstored p 72x96x1x1 pruned\nstored b 72\n"
                     "stored w 72x72x3x3 pruned\nstored q 96x72x1x1 pruned\n"
                     "stored l 130x72 pruned\n%s",
                     batches[batch], nets[at]);
      check_as(text, (expectation){.tolerance = 2e-5, .plain = -1});
    }
  }
}

static int count_of(const laci_engine *engine, const char *kernel) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    n += strcmp(laci_engine_step_info(engine, at).kernel, kernel) == 0;
  }
  return n;
}

/* 300 rows are two chunks, with one thread and with three. */
static const char chain[] =
    "input x %dx64x5x7\nstored p 300x64x1x1 pruned\nstored q 64x300x1x1 pruned\n"
    "a = Conv(x, p)\nra = Relu(a)\nb = Conv(ra, q)\nc = Add(b, x)\nd = Relu(c)\n"
    "e = Conv(d, p)\nf = Sigmoid(e)\noutput f\n";

static void bytes_are_those_of_code(void **state) {
  static const char *const algorithms[] = {"csr", "generated"};
  char text[TEXT];
  (void)state;
  for (int batch = 2; batch <= 16; batch += 14) {
    size_t bytes = 0;
    float *first = NULL;
    (void)snprintf(text, sizeof text, chain, batch);
    for (int at = 0; at < 6; at++) {
      assert_int_equal(setenv("LAC_ALGORITHM", algorithms[at / 3], 1), 0);
      planned p = plan_text(text, (laci_engine_options){.threads = at % 3 + 1});
      float *y = planned_result(p.engine, &bytes);
      if (first) assert_memory_equal(first, y, bytes);
      if (first) laci_free(y);
      else first = y;
      planned_clear(&p);
    }
    laci_free(first);
  }
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
}

/* Grouped rows need many rows that keep two of four, and AVX2, where they were measured. */
static void a_layer_is_grouped_or_csr(void **state) {
  const int grouped = laci_cpu_level_in_force() == LACI_CPU_AVX2 ? 2 : 0;
  planned p;
  (void)state;
  assert_int_equal(setenv("LAC_ALGORITHM", "csr", 1), 0);
  p = plan_text(
      "input x 1x64x7x7\nstored w 64x64x1x1 pruned\nstored v 32x64x1x1 pruned\n"
      "stored u 64x32x1x1\nstored t 64x64x3x3 pruned\na = Conv(x, w)\nb = Conv(a, v)\n"
      "c = Conv(b, u)\nd = Conv(c, t)\noutput d\n",
      (laci_engine_options){.threads = 1});
  assert_int_equal(
      count_of(p.engine, "sparse-1x1 grouped rows") + count_of(p.engine, "sparse-3x3 grouped rows"),
      grouped);
  assert_int_equal(count_of(p.engine, "sparse-1x1 csr") + count_of(p.engine, "sparse-3x3 csr"),
                   4 - grouped);
  planned_clear(&p);
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
}

/* Whoever asks for one is told which there are. */
static void a_name_of_no_algorithm_is_refused(void **state) {
  const laci_engine_options options = {.threads = 1};
  laci_graph *graph;
  laci_engine *engine = NULL;
  lac_error err = {0};
  (void)state;
  if (net_read("input x 1x8\ny = Relu(x)\noutput y\n", &graph, &err)) fail_msg("%s", err.text);
  assert_int_equal(setenv("LAC_ALGORITHM", "winograt", 1), 0);
  assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_BAD_ARGUMENT);
  assert_null(engine);
  assert_non_null(strstr(err.text, "winograt"));
  assert_non_null(strstr(
      err.text,
      "generated, amx, byte_pairs, depthwise, depthwise_int8, sum, pool, average_pool, table, "
      "shift, gate, move, grouped_rows, csr and winograd"));
  assert_int_equal(setenv("LAC_ALGORITHM", "", 1), 0); /* says nothing */
  assert_int_equal(setenv("LAC_SPARSE", "csr", 1), 0);
  assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "LAC_SPARSE=csr: wanted 0 or all");
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_OK);
  laci_engine_destroy(engine);
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
  laci_graph_destroy(graph);
}

/* Layers that it can do are done by it, whatever the weights are; others by what they have. */
static void a_named_algorithm_does_the_layers_that_it_can(void **state) {
  static const char net[] =
      "input x 1x16x12x12\nstored w 16x16x3x3\nstored v 16x16x1x1\n"
      "a = Conv(x, w) pads=1,1,1,1\nb = Conv(a, v)\noutput b\n";
  static const struct {
    const char *name;
    int n_winograd, n_csr, n_refused;
  } cases[] = {{"winograd", 1, 1, 1}, {"csr", 0, 2, 0}, {"dense", 0, 0, 0}};
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    assert_int_equal(setenv("LAC_ALGORITHM", cases[at].name, 1), 0);
    planned p = plan_text(net, (laci_engine_options){.threads = 1});
    assert_int_equal(count_text(laci_engine_plan_text(p.engine), "winograd-3x3"),
                     cases[at].n_winograd);
    assert_int_equal(count_text(laci_engine_plan_text(p.engine), " csr"), cases[at].n_csr);
    assert_int_equal(count_text(laci_engine_plan_text(p.engine), ": not by "), cases[at].n_refused);
    planned_clear(&p);
  }
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(algorithms_of_all_neighbours),
      cmocka_unit_test(bytes_are_those_of_code),
      cmocka_unit_test(a_layer_is_grouped_or_csr),
      cmocka_unit_test(a_name_of_no_algorithm_is_refused),
      cmocka_unit_test(a_named_algorithm_does_the_layers_that_it_can),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

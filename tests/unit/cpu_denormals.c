/* SPDX-License-Identifier: Apache-2.0
 * Denormals: a run flushes them in all its threads, and restores each thread's mode; loops have the
 * mode of the thread that posts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/denormals.h"
#include "cpu/openmp.h"
#include "cpu/pool.h"
#include "support/engine_check.h"

typedef struct seen {
  atomic_int n, flushed, results;
} seen;

static volatile float tiny = 1e-39F;

static void look_once(void *context) {
  seen *s = context;
  atomic_fetch_add(&s->n, 1);
  atomic_fetch_add(&s->flushed, laci_denormals_are_flushed());
  atomic_fetch_add(&s->results, tiny * 2 != 0);
}

static void look(int64_t begin, int64_t end, void *context) {
  for (int64_t at = begin; at < end; at++) look_once(context);
}

static void loops_have_the_mode_of_who_posts_them(void **state) {
  laci_pool *pool;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_pool_create(3, &pool, &err), LAC_OK);
  for (int flush = 0; flush < 2; flush++) {
    seen s = {0};
    assert_false(laci_denormals_set_flushed(flush));
    laci_pool_for(pool, 1000, 1, look, &s);
    assert_int_equal(laci_denormals_set_flushed(false), flush);
    assert_int_equal(s.n, 1000);
    assert_int_equal(s.flushed, flush ? 1000 : 0);
    assert_int_equal(s.results, flush ? 0 : 1000);
  }
  laci_pool_destroy(pool);
}

static const char net[] =
    "input x 1x16x9x9\nstored w 32x16x3x3 pruned\nstored l 24x32\na = Conv(x, w) pads=1,1,1,1\n"
    "r = Relu(a)\ng = GlobalAveragePool(r)\nf = Flatten(g)\nk = Gemm(f, l) transB=1\noutput "
    "k\noutput r\n";

/* Each third element of all weights, and of the input, is this number. */
static void run_with(float number, int threads, float *y) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *in, *out;
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  laci_buf *input = run_source(graph, graph->inputs[0]);
  for (int at = 0; at < graph->n_stored; at++) {
    float *w = (float *)(uintptr_t)graph->stored[at].bytes;
    for (size_t i = 0; i < graph->stored[at].size_bytes / sizeof *w; i += 3) w[i] = number;
  }
  if (laci_engine_create(graph, &(laci_engine_options){.threads = threads}, &engine, &err))
    fail_msg("%s", err.text);
  (void)laci_engine_inputs(engine, &in);
  assert_int_equal(laci_engine_outputs(engine, &out), 2);
  float *x = pack(&in[0], input);
  for (int64_t at = 0; at < input->count; at += 3) x[at] = number;
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y, (char *)y + out[0].size_bytes},
                      &err)) {
    fail_msg("%s", err.text);
  }
  laci_free(x);
  laci_buf_destroy(input);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void denormal_weights_and_inputs_are_zeros(void **state) {
  enum { N = 24 + 32 * 81 };
  static float zeros[N], tinies[N];
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    seen s = {0};
    run_with(0, threads, zeros);
    run_with(1e-40F, threads, tinies);
    assert_memory_equal(zeros, tinies, sizeof zeros);
    if (laci_openmp_has_team())
      laci_openmp_run(laci_openmp_available_threads(threads), look_once, &s);
    assert_int_equal(s.flushed, 0);
    assert_int_equal(s.results, s.n);
    assert_false(laci_denormals_are_flushed());
  }
}

static void a_caller_who_flushes_goes_on_so(void **state) {
  static float y[24 + 32 * 81];
  (void)state;
  assert_false(laci_denormals_set_flushed(true));
  run_with(1e-40F, 2, y);
  assert_true(laci_denormals_set_flushed(false));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_have_the_mode_of_who_posts_them),
      cmocka_unit_test(denormal_weights_and_inputs_are_zeros),
      cmocka_unit_test(a_caller_who_flushes_goes_on_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

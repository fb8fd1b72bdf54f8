/* SPDX-License-Identifier: Apache-2.0
 * What a plan says about its steps: names, work, traffic, and the time of each in a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

typedef struct planned {
  laci_graph *graph;
  laci_engine *engine;
} planned;

static planned plan(const char *text) {
  planned p = {0};
  lac_error err = {0};
  laci_engine_options options = {.threads = 1};
  if (net_read(text, &p.graph, &err)) fail_msg("%s", err.text);
  if (laci_engine_create(p.graph, &options, &p.engine, &err)) fail_msg("%s", err.text);
  return p;
}

static void planned_clear(planned *p) {
  laci_engine_destroy(p->engine);
  laci_graph_destroy(p->graph);
}

/* The only step of that operator that multiplies, or whatever it does where `flops` is 0. */
static laci_engine_step step_of(const planned *p, const char *op) {
  for (size_t at = 0; at < laci_engine_step_count(p->engine); at++) {
    laci_engine_step info = laci_engine_step_info(p->engine, at);
    if (strcmp(info.op, op) == 0) return info;
  }
  fail_msg("no step of operator %s", op);
  return (laci_engine_step){0};
}

static void a_convolution_counts_its_products(void **state) {
  (void)state;
  planned p =
      plan("input x 2x16x8x8\nstored w 32x16x3x3\nc = Conv(x, w) name=\"first\"\noutput c\n");
  laci_engine_step info = step_of(&p, "Conv");
  assert_string_equal(info.name, "first");
  assert_int_equal(info.flops, 2 * (2 * 32 * 6 * 6) * (16 * 9));
  assert_true(info.kernel[0] && !info.plain);
  assert_true(info.bytes_written >= 2 * 32 * 6 * 6 * 4);
  assert_true(info.bytes_read >= (2 * 16 * 8 * 8 + 32 * 16 * 9) * 4);
  planned_clear(&p);
}

static void groups_divide_the_products(void **state) {
  (void)state;
  planned p = plan("input x 1x16x8x8\nstored w 16x1x3x3\nc = Conv(x, w) group=16\noutput c\n");
  assert_int_equal(step_of(&p, "Conv").flops, 2 * (16 * 6 * 6) * 9);
  planned_clear(&p);
}

static void matrix_products_count_by_their_common_axis(void **state) {
  (void)state;
  planned p = plan(
      "input x 5x24\nstored w 24x7\nstored v 7x9\ng = Gemm(x, w)\nm = MatMul(g, v)\noutput m\n");
  assert_int_equal(step_of(&p, "Gemm").flops, 2 * 5 * 7 * 24);
  assert_int_equal(step_of(&p, "MatMul").flops, 2 * 5 * 9 * 7);
  planned_clear(&p);
}

static void a_plain_step_is_known_as_such(void **state) {
  (void)state;
  planned p = plan("input x 2x10\ny = CumSum(x, a)\nstored a 1 i64 = 1\noutput y\n");
  laci_engine_step info = step_of(&p, "CumSum");
  assert_true(info.plain);
  assert_int_equal(info.flops, 0);
  assert_int_equal(info.bytes_written, 2 * 10 * 4);
  assert_int_equal(info.bytes_read, 2 * 10 * 4 + 8);
  planned_clear(&p);
}

static void attention_counts_both_products_and_no_scratch(void **state) {
  (void)state;
  planned p = plan(
      "input q 2x5x4\ninput k 2x4x6\ninput v 2x6x7\ninput m 5x6\ns = MatMul(q, k)\n"
      "a = Add(s, m)\np = Softmax(a) axis=-1\ny = MatMul(p, v)\nr = Relu(y)\noutput r\n");
  laci_engine_step info = step_of(&p, "MatMul");
  assert_string_equal(info.kernel, "attention");
  assert_int_equal(info.flops, 2 * 2 * 5 * 6 * (4 + 7));
  assert_int_equal(info.bytes_written, 2 * 5 * 7 * 4);
  assert_int_equal(info.bytes_read, (2 * 5 * 4 + 2 * 4 * 6 + 2 * 6 * 7 + 5 * 6) * 4);
  planned_clear(&p);
}

static void steps_of_our_own_count_what_they_read(void **state) {
  (void)state;
  planned p = plan(
      "input t 1000x8\ninput i 3 i64\ninput c 3x8 i64\ninput z 8\ng = Gather(t, i)\n"
      "b = Cast(c) to=9\nw = Where(b, g, z)\noutput w\n");
  laci_engine_step picked = step_of(&p, "Gather"), chosen = step_of(&p, "Where");
  assert_int_equal(picked.bytes_written, 3 * 8 * 4);
  assert_int_equal(picked.bytes_read, 3 * 8 * 4 + 3 * 8);
  assert_int_equal(chosen.bytes_written, 3 * 8 * 4);
  assert_int_equal(chosen.bytes_read, 3 * 8 * 8 + 3 * 8 * 4 + 8 * 4);
  planned_clear(&p);
}

static void a_timed_run_computes_the_same(void **state) {
  (void)state;
  planned p = plan("input x 1x16x8x8\nstored w 32x16x3x3\nc = Conv(x, w)\nr = Relu(c)\noutput r\n");
  static float in[16 * 64], one[32 * 36], two[32 * 36];
  double seconds[16];
  lac_error err = {0};
  size_t n = laci_engine_step_count(p.engine);
  assert_true(n > 0 && n <= 16);
  for (size_t at = 0; at < sizeof in / sizeof *in; at++) in[at] = (float)(at % 13) - 6;
  for (size_t at = 0; at < n; at++) seconds[at] = -1;
  assert_int_equal(laci_engine_run(p.engine, (const void *[]){in}, (void *[]){one}, &err), LAC_OK);
  assert_int_equal(laci_engine_run_watched(p.engine, (const void *[]){in}, (void *[]){two},
                                           &(laci_engine_watch){.seconds = seconds}, &err),
                   LAC_OK);
  assert_memory_equal(one, two, sizeof one);
  for (size_t at = 0; at < n; at++) assert_true(seconds[at] >= 0);
  planned_clear(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_convolution_counts_its_products),
      cmocka_unit_test(groups_divide_the_products),
      cmocka_unit_test(matrix_products_count_by_their_common_axis),
      cmocka_unit_test(a_plain_step_is_known_as_such),
      cmocka_unit_test(attention_counts_both_products_and_no_scratch),
      cmocka_unit_test(steps_of_our_own_count_what_they_read),
      cmocka_unit_test(a_timed_run_computes_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

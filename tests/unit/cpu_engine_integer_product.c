/* SPDX-License-Identifier: Apache-2.0
 * Products of integers that are found in each run: the plan has one step of bytes for each, with
 * what follows fused to it, and computes what the plain engine does. */
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
#include "graph/graph.h"
#include "support/engine_check.h"

#define X "input x 3x5x20\n"
#define QUANTIZED "q, a, z = DynamicQuantizeLinear(x)\n"
#define W                                                                     \
  "stored w 20x18 i8\nstored o 18 i8 = 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n" \
  "stored s 18 positive\n"
#define PRODUCT "p = MatMulInteger(q, w, z, o)\nf = Cast(p) to=1\nm = Mul(a, s)\n"

static const struct {
  const char *name, *text;
  int bytes; /* steps of bytes */
  int steps; /* all steps; 0: any */
} networks[] = {
    {"with a bias and Relu",
     X W "stored b 18\n" QUANTIZED PRODUCT
         "y0 = Mul(f, m)\ny1 = Add(b, y0)\ny = Relu(y1)\noutput y\n",
     1, 3},
    {"with gelu, operands in the other order",
     X W
     "stored b 18\nstored r \"\" f32 = 1.4142135\nstored one \"\" f32 = 1\nstored half \"\" f32 "
     "= 0.5\n" QUANTIZED PRODUCT
     "y0 = Mul(m, f)\ny1 = Add(y0, b)\nd = Div(y1, r)\ne = Erf(d)\ng = Add(e, one)\nh = Mul(y1, "
     "g)\ny = Mul(h, half)\noutput y\n",
     1, 3},
    {"with a function that our kernels lack",
     X W QUANTIZED PRODUCT "y0 = Mul(f, m)\ny1 = Relu(y0)\ny = Softplus(y1)\noutput y\n", 1, 0},
    {"of unsigned bytes with zero points",
     X "stored w 20x18 u8\nstored o 18 u8 = 0 128 255 3 9 200 127 129 4 77 0 1 2 250 251 252 6 7\n"
       "stored s \"\" f32 = 0.02\n" QUANTIZED PRODUCT "y = Mul(f, m)\noutput y\n",
     1, 3},
    {"of signed bytes with one zero point, scaled by nothing else",
     X "stored w 20x18 i8\nstored o \"\" i8 = -100\n" QUANTIZED
       "p = MatMulInteger(q, w, z, o)\nf = Cast(p) to=1\ny = Mul(f, a)\noutput y\n",
     1, 3},
    {"that share their bytes",
     X W "stored v 20x7 i8\nstored t 7 positive\n" QUANTIZED PRODUCT
         "y = Mul(f, m)\np2 = MatMulInteger(q, v, z)\nf2 = Cast(p2) to=1\nm2 = Mul(a, t)\n"
         "y2 = Mul(f2, m2)\noutput y\noutput y2\n",
     2, 5},
    {"whose integers other nodes read, too",
     X W "stored v 20x7 i8\n" QUANTIZED PRODUCT
         "y = Mul(f, m)\np2 = MatMulInteger(q, v, z)\ny2 = Cast(p2) to=1\nd = DequantizeLinear(q, "
         "a, z)\noutput y\noutput y2\noutput d\n",
     1, 0},
    {"that are outputs before their scale",
     X W QUANTIZED PRODUCT "y = Mul(f, m)\noutput f\noutput y\n", 0, 0},
    {"of one vector", "input x 20\n" W QUANTIZED PRODUCT "y = Mul(f, m)\noutput y\n", 1, 3},
    {"in fused operators",
     X "stored w 20x6 i8\nstored s \"\" f32 = 0.03\nstored c 6\nstored v 6x40 u8\nstored t 40 "
       "positive\nstored u 40 u8\n"
       "p = com.microsoft.DynamicQuantizeMatMul(x, w, s, _, c)\nr = Relu(p)\n"
       "q, a, z = DynamicQuantizeLinear(r)\n"
       "y = com.microsoft.MatMulIntegerToFloat(q, v, a, t, z, u)\noutput y\n",
     2, 5},
    {"that are followed by a constant factor",
     X W "stored k \"\" f32 = 0.125\n" QUANTIZED PRODUCT
         "y0 = Mul(f, m)\ny = Mul(y0, k)\noutput y\n",
     1, 3},
    {"of another scale than that of the integers",
     X W "stored k \"\" f32 = 0.125\n" QUANTIZED
         "p = MatMulInteger(q, w, z, o)\nf = Cast(p) to=1\nb = Mul(a, k)\nm = Mul(b, s)\n"
         "y = Mul(f, m)\noutput y\n",
     0, 0},
};

static int count_byte_steps(const char *text) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  const laci_engine_options options = {.threads = 2};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  const int n = count_text(laci_engine_plan_text(engine), " bytes:");
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return n;
}

static void each_product_is_one_step(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof networks / sizeof *networks; at++) {
    const int found = count_byte_steps(networks[at].text);
    if (found != networks[at].bytes)
      fail_msg("%s: %d steps of bytes, want %d", networks[at].name, found, networks[at].bytes);
    check_as(networks[at].text,
             (expectation){.tolerance = 1e-6, .plain = -1, .steps = networks[at].steps});
  }
}

static void every_instruction_set_computes_the_same(void **state) {
  static const laci_cpu_level levels[] = {LACI_CPU_ANY, LACI_CPU_AVX2, LACI_CPU_AVX512};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (size_t level = 0; level < sizeof levels / sizeof *levels; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (size_t at = 0; at < sizeof networks / sizeof *networks; at++) {
      assert_int_equal(count_byte_steps(networks[at].text), networks[at].bytes);
      check_plan(networks[at].text, (expectation){.tolerance = 1e-6, .plain = -1});
    }
  }
  (void)laci_cpu_limit_level(start);
}

static void zeros_and_no_elements_are_products_too(void **state) {
  (void)state;
  check_as("input x 4x20\nstored k \"\" f32 = 0\n" W
           "n = Mul(x, k)\nq, a, z = DynamicQuantizeLinear(n)\n" PRODUCT
           "y = Mul(f, m)\noutput y\n",
           (expectation){.tolerance = 1e-6, .plain = -1});
  check_as("input x 0x20\n" W QUANTIZED PRODUCT "y = Mul(f, m)\noutput y\n",
           (expectation){.tolerance = 1e-6, .plain = -1});
  check_as("input x 3x0\nstored w 0x4 i8\nstored s 4 positive\n" QUANTIZED
           "p = MatMulInteger(q, w, z)\nf = Cast(p) to=1\nm = Mul(a, s)\ny = Mul(f, m)\noutput y\n",
           (expectation){.tolerance = 1e-6, .plain = -1});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_product_is_one_step),
                                     cmocka_unit_test(every_instruction_set_computes_the_same),
                                     cmocka_unit_test(zeros_and_no_elements_are_products_too)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

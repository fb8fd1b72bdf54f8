/* SPDX-License-Identifier: Apache-2.0
 * Functions that a network writes as several operators, where no product is before them: they are
 * one step, and compute what the plain engine does. */
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

#define CONSTANTS                                                                                 \
  "stored r \"\" f32 = 1.4142135\nstored one \"\" f32 = 1\nstored half \"\" f32 = 0.5\nstored 3 " \
  "\"\" f32 = 3\nstored none \"\" f32 = 0\nstored 6 \"\" f32 = 6\n"
#define GELU \
  "d = Div(v, r)\ne = Erf(d)\ng = Add(e, one)\nh = Mul(v, g)\ny = Mul(h, half)\noutput y\n"

/* Gelu with tanh, as JAX and as GPT-2's exporters write it. */
#define NUMBERS                                                                            \
  "stored a \"\" f32 = 0.044715\nstored b \"\" f32 = 0.7978846\nstored one \"\" f32 = 1\n" \
  "stored half \"\" f32 = 0.5\nstored k \"\" f32 = 3\n"
#define GELU_OF_PRODUCTS                                                                     \
  "c = Mul(a, v)\nd = Mul(v, c)\ne = Mul(v, d)\ng = Add(v, e)\nh = Mul(b, g)\nt = Tanh(h)\n" \
  "p = Add(one, t)\nq = Mul(half, p)\ny = Mul(v, q)\noutput y\n"
#define GELU_OF_POWER                                                                           \
  "q = Mul(v, half)\nc = Pow(v, k)\nd = Mul(c, a)\ng = Add(v, d)\nh = Mul(g, b)\nt = Tanh(h)\n" \
  "p = Add(t, one)\ny = Mul(q, p)\noutput y\n"

static const struct {
  const char *name, *text;
  int steps; /* all steps; 0: any */
} networks[] = {
    {"gelu of a value in another shape",
     "input x 2x5x8\nstored w 8x6\nstored s 2 i64 = 10 6\n" CONSTANTS
     "p = MatMul(x, w)\nv = Reshape(p, s)\n" GELU,
     0},
    {"gelu of a sum", "input x 2x3x37\ninput z 2x3x37\n" CONSTANTS "v = Add(x, z)\n" GELU, 2},
    {"gelu of an input", "input v 3x1000\n" CONSTANTS GELU, 2},
    {"gelu with tanh of an input", "input v 3x1000\n" NUMBERS GELU_OF_PRODUCTS, 2},
    {"gelu with tanh and a power", "input v 3x7x9\n" NUMBERS GELU_OF_POWER, 2},
    {"gelu with tanh of a product",
     "input x 4x8\nstored w 8x24\n" NUMBERS "v = MatMul(x, w)\n" GELU_OF_PRODUCTS, 2},
    {"gelu with tanh, of which a part is an output",
     "input v 3x20\noutput t\n" NUMBERS GELU_OF_PRODUCTS, 0},
    {"no gelu, for another factor",
     "input v 3x20\n"
     "stored a \"\" f32 = 0.05\nstored b \"\" f32 = 0.7978846\nstored one \"\" f32 = 1\n"
     "stored half \"\" f32 = 0.5\n" GELU_OF_PRODUCTS,
     0},
    {"gelu with tanh whose value is read once more",
     "input v 3x20\n" NUMBERS "k2 = Relu(v)\noutput k2\n" GELU_OF_POWER, 0},
    {"gelu whose half comes first",
     "input v 3x50\n" CONSTANTS "q = Mul(half, v)\nd = Div(v, r)\ne = Erf(d)\ng = Add(one, e)\n"
     "y = Mul(g, q)\noutput y\n",
     2},
    {"swish with a factor",
     "input v 3x50\nstored f \"\" f32 = 1.702\nm = Mul(f, v)\ns = Sigmoid(m)\ny = Mul(v, s)\n"
     "output y\n",
     2},
    {"swish of an input", "input x 4x5\ns = Sigmoid(x)\ny = Mul(s, x)\noutput y\n", 2},
    {"hard swish of an input",
     "input x 4x5\n" CONSTANTS
     "a = Add(x, 3)\nc = Clip(a, none, 6)\nm = Mul(x, c)\ny = Div(m, 6)\noutput y\n",
     2},
    {"gelu of blocks of channels",
     "input x 1x16x9x9\nstored w 16x16x1x1\nstored b 16x16x3x3\n" CONSTANTS
     "c = Conv(x, w)\nk = MaxPool(c) kernel_shape=2,2\nv = Add(k, k)\ny0 = Div(v, r)\n"
     "e = Erf(y0)\ng = Add(e, one)\nh = Mul(v, g)\ny1 = Mul(h, half)\ny = Conv(y1, b)\noutput y\n",
     0},
    {"a value that is read once more", "input v 3x20\n" CONSTANTS "k = Relu(v)\noutput k\n" GELU,
     0},
    {"a part that is an output", "input v 3x20\n" CONSTANTS "output e\n" GELU, 0},
};

static void each_function_is_one_step(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof networks / sizeof *networks; at++) {
    check_as(networks[at].text,
             (expectation){.tolerance = 1e-5, .plain = -1, .steps = networks[at].steps});
  }
}

static void stays_several_steps_in_bf16(void **state) {
  (void)state;
  if (!laci_cpu_has_avx512bf16()) skip();
  check_plan(networks[1].text, (expectation){.tolerance = 0.03, .bf16 = true, .plain = -1});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_function_is_one_step),
                                     cmocka_unit_test(stays_several_steps_in_bf16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

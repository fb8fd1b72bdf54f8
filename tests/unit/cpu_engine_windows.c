/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and pools whose form has no quick kernel by itself, against the plain engine: one
 * pixel wide, with pads wider than a kernel's registers, and with values added after a function.
 * Attributes are drawn; the plans must have the quick kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"

enum { TEXT = 2048, N_DRAWN = 30 };

/** A number from `least` to `most`, another one for every call. */
static int drawn(uint64_t *state, int least, int most) {
  return least + (int)laci_rng_integer_below(1, 2, (*state)++, (uint64_t)(most - least + 1));
}

static void check(const char *text) {
  check_plan(text, (expectation){.tolerance = 1e-5, .plain = 0});
}

static void fail_where_a_kernel_is_named(const char *text, const char *kernel) {
  planned p = plan_text(text, (laci_engine_options){.threads = 2});
  if (planned_steps(p.engine, kernel) > 0) {
    fail_msg("%s\n%s", text, laci_engine_plan_text(p.engine));
  }
  planned_clear(&p);
}

/** A convolution along axis 2, which is 1 wide, with a pool and what else reads its values. */
static void write_upright(char *text, uint64_t *state) {
  static const char *const tails[] = {
      "y = Relu(a)\n",
      "s = Sigmoid(a)\ny = Mul(a, s)\n",
      "b = Relu(a)\ny = MaxPool(b) kernel_shape=2,1 strides=2,1\n",
      "y = AveragePool(a) kernel_shape=3,1 strides=2,1 pads=1,0,1,0\n",
      "b = Relu(a)\nd = Conv(b, w2) pads=1,0,1,0\ne = Add(d, a)\ny = Relu(e)\n",
      "y = Transpose(a) perm=0,2,1,3\n",
  };
  const int group = drawn(state, 0, 3) ? 1 : 2, kernel = drawn(state, 1, 9);
  const int in = group * drawn(state, 1, 9), out = 8 * group * drawn(state, 1, 3);
  const int dilation = drawn(state, 1, 2), before = drawn(state, 0, kernel - 1);
  (void)snprintf(text, TEXT,
                 "input x %dx%dx%dx1\nstored w %dx%dx%dx1\nstored h %d\nstored w2 %dx%dx3x1\n"
                 "a = Conv(x, w, h) group=%d strides=%d,%d dilations=%d,1 pads=%d,0,%d,0\n"
                 "%soutput y\n",
                 drawn(state, 1, 2), in, drawn(state, 20, 40), out, in / group, kernel, out, out,
                 out, group, drawn(state, 1, 3), drawn(state, 1, 3), dilation, before,
                 drawn(state, 0, kernel - 1), tails[drawn(state, 0, 5)]);
}

static void matches_one_pixel_wide(void **state) {
  char text[TEXT];
  uint64_t at = 0;
  (void)state;
  for (int n = 0; n < N_DRAWN; n++) {
    write_upright(text, &at);
    check(text);
  }
}

/* The same bytes, whichever of height and width is 1. */
static void is_the_same_upright_and_lying(void **state) {
  static const char *const nets[] = {
      "input x 2x16x40x1\nstored w 16x16x5x1\na = Conv(x, w) pads=2,0,2,0\nb = Relu(a)\n"
      "y = MaxPool(b) kernel_shape=2,1 strides=2,1\noutput y\n",
      "input x 2x16x1x40\nstored w 16x16x1x5\na = Conv(x, w) pads=0,2,0,2\nb = Relu(a)\n"
      "y = MaxPool(b) kernel_shape=1,2 strides=1,2\noutput y\n",
  };
  float *y[2];
  size_t bytes[2];
  (void)state;
  for (int at = 0; at < 2; at++) {
    planned p = plan_text(nets[at], (laci_engine_options){.threads = 2});
    y[at] = planned_result(p.engine, &bytes[at]);
    planned_clear(&p);
  }
  assert_int_equal(bytes[0], bytes[1]);
  assert_memory_equal(y[0], y[1], bytes[0]);
  laci_free(y[0]);
  laci_free(y[1]);
}

static void matches_with_pads_as_wide_as_the_window(void **state) {
  char text[TEXT];
  uint64_t at = 1000;
  (void)state;
  for (int n = 0; n < N_DRAWN; n++) {
    const int kernel = drawn(&at, 9, 40), before = drawn(&at, 0, kernel - 1);
    const int after = drawn(&at, 0, kernel - 1), upright = drawn(&at, 0, 1);
    const int in = drawn(&at, 1, 20), out = drawn(&at, 1, 20), long_side = drawn(&at, kernel, 70);
    const int rows = upright ? long_side : drawn(&at, 1, 5), columns = upright ? 1 : long_side;
    (void)snprintf(text, sizeof text,
                   "input x 2x%dx%dx%d\nstored w %dx%dx%dx%d\nstored b %d\n"
                   "a = Conv(x, w, b) pads=%d,%d,%d,%d\ny = Relu(a)\noutput y\n",
                   in, rows, columns, out, in, upright ? kernel : 1, upright ? 1 : kernel, out,
                   upright ? before : 0, upright ? 0 : before, upright ? after : 0,
                   upright ? 0 : after);
    check(text);
  }
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() < LACI_CPU_AVX2) return;
  fail_where_a_kernel_is_named(
      "input x 1x16x100x1\nstored w 16x16x64x1\ny = Conv(x, w) pads=31,0,32,0\noutput y\n",
      "x64:gemm");
#endif
}

/* YOLO's residuals: a value is added to a swish. */
static void adds_values_after_functions_quickly(void **state) {
  static const char *const tails[] = {
      "s = Sigmoid(a)\nb = Mul(a, s)\ny = Add(b, x)\n",
      "s = Sigmoid(a)\nb = Mul(a, s)\ny = Add(x, b)\n",
      "b = Relu(a)\nc = Add(b, x)\ny = Relu(c)\n",
      "b = Tanh(a)\nc = Add(b, x)\nd = LeakyRelu(c) alpha=0.1\ny = Neg(d)\n",
      "b = Relu(a)\nc = Add(b, x)\nd = Add(c, x)\ns = Sigmoid(d)\ny = Mul(d, s)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof tails / sizeof *tails; at++) {
    for (int channels = 8; channels <= 40; channels += 16) {
      (void)snprintf(text, sizeof text,
                     "input x 1x%dx9x9\nstored w %dx%dx3x3\na = Conv(x, w) pads=1,1,1,1\n"
                     "%soutput y\n",
                     channels, channels, channels, tails[at]);
      check(text);
#if defined(__x86_64__)
      if (laci_cpu_level_in_force() < LACI_CPU_AVX2) continue;
      fail_where_a_kernel_is_named(text, "ref");
#endif
    }
  }
}

/* As exporters write it that have no such operator, and what only looks like it. */
static void fuses_hard_swish_of_single_operators(void **state) {
  static const struct {
    const char *tail;
    bool fused;
  } cases[] = {
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nm = Mul(a, t)\ny = Div(m, c6)\n", true},
      {"s = Add(c3, a)\nt = Clip(s, c0, c6)\nm = Mul(t, a)\nd = Div(m, c6)\ne = Mul(d, c3)\n"
       "y = Add(e, c6)\n",
       true},
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nd = Mul(t, sixth)\ny = Mul(a, d)\n", true},
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nd = Div(t, c6)\ny = Mul(d, a)\n", true},
      {"s = Add(a, c3)\nt = Clip(s, c0, c3)\nm = Mul(a, t)\ny = Div(m, c6)\n", false},
      {"s = Add(a, c6)\nt = Clip(s, c0, c6)\nm = Mul(a, t)\ny = Div(m, c6)\n", false},
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nm = Mul(a, t)\ny = Div(m, c3)\n", false},
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nm = Mul(a, t)\nd = Div(m, c6)\ny = Add(d, t)\n",
       false},
      {"s = Add(a, c3)\nt = Clip(s, c0, c6)\nm = Mul(s, t)\nd = Div(m, c6)\ny = Add(d, a)\n",
       false},
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 1x16x9x9\nstored c0 1 = 0\nstored c3 1 = 3\nstored c6 1 = 6\n"
                   "stored sixth 1 = 0.16666667\nstored w 16x16x1x1\na = Conv(x, w)\n%soutput y\n",
                   cases[at].tail);
    check(text);
#if defined(__x86_64__)
    planned p = plan_text(text, (laci_engine_options){.threads = 1});
    const char *plan = laci_engine_plan_text(p.engine);
    if (cases[at].fused && (count_text(plan, "Add") || count_text(plan, "Mul  "))) {
      fail_msg("%s\n%s", text, plan);
    }
    planned_clear(&p);
#endif
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_one_pixel_wide),
      cmocka_unit_test(is_the_same_upright_and_lying),
      cmocka_unit_test(matches_with_pads_as_wide_as_the_window),
      cmocka_unit_test(adds_values_after_functions_quickly),
      cmocka_unit_test(fuses_hard_swish_of_single_operators),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

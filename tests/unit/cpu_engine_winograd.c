/* SPDX-License-Identifier: Apache-2.0
 * Windows by Winograd's algorithm, and pools between them, inside the fast engine: against
 * the plain engine, without a reorder between them, the same bytes for any threads, and what the
 * rule makes of networks without zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
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
      /* pools of all kinds between windows, and one after what is dense */
      "a = Conv(x, w) pads=1,1,1,1\nb = Relu(a)\np = MaxPool(b) kernel_shape=2,2 strides=2,2\n"
      "c = Conv(p, v) pads=1,1,1,1\nq = MaxPool(c) kernel_shape=3,3 strides=2,2 pads=1,1,1,1\n"
      "d = Conv(q, v)\nr = MaxPool(d) kernel_shape=2,3\noutput r\n",
      "a = Sigmoid(x)\np = MaxPool(a) kernel_shape=3,2 strides=1,3 pads=1,0,0,1\n"
      "b = Conv(p, w) pads=1,1,1,1\noutput b\n",
      "a = Conv(x, w) pads=1,1,1,1\np = MaxPool(a) kernel_shape=2,2 strides=2,2 ceil_mode=1\n"
      "b = Conv(p, v) pads=1,1,1,1\noutput b\noutput p\n",
      /* a pool whose windows are apart, one that oneDNN gets, and a value that both read */
      "a = Conv(x, w) pads=1,1,1,1\np = MaxPool(a) kernel_shape=2,2 dilations=2,2\n"
      "q = MaxPool(a) kernel_shape=1,1 strides=2,2\nb = Conv(q, v) pads=1,1,1,1\noutput b\n"
      "output p\n",
      /* residuals before and after a function; strides, groups and one pixel next to them */
      "a = Conv(x, w) pads=1,1,1,1\nb = Conv(a, v, h) pads=1,1,1,1\nc = Add(b, a)\nd = Relu(c)\n"
      "e = Conv(d, v) pads=1,1,1,1\nf = Sigmoid(e)\ng = Mul(e, f)\ny = Add(g, d)\noutput y\n",
      "a = Conv(x, w) pads=1,1,1,1 strides=2,2\nb = Conv(a, v) pads=1,1,1,1\nc = Clip(b, _, _)\n"
      "d = Conv(c, k) pads=1,1,1,1 group=4\ne = Conv(d, o)\nf = Conv(e, v) pads=0,2,1,0\noutput "
      "f\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx5x19x22\nstored w 8x5x3x3\nstored v 8x8x3x3\nstored h 8\n"
                     "stored k 8x2x3x3\nstored o 8x8x1x1\n%s",
                     batches[b], nets[at]);
      check_as(text, (expectation){.tolerance = 2e-5, .plain = -1});
    }
  }
}

/* First layers, which read the network's input as it is, and others with stride, after values of
 * any layout. */
static void windows_that_stride(void **state) {
  static const char *const nets[] = {
      "stored w 8x5x7x7\na = Conv(x, w) pads=3,3,3,3 strides=2,2\nb = Relu(a)\n"
      "y = MaxPool(b) kernel_shape=3,3 strides=2,2 pads=1,1,1,1\noutput y\n",
      "stored w 8x5x7x7\na = Conv(x, w) pads=2,3,3,2 strides=2,2\noutput a\nb = Conv(a, v)\n"
      "c = Add(b, a)\noutput c\n",
      "stored w 8x5x6x6\ny = Conv(x, w) pads=2,2,2,2 strides=2,2\noutput y\n",
      "stored w 8x5x8x8\ns = Sigmoid(x)\ny = Conv(s, w) auto_pad=\"SAME_UPPER\" strides=2,2\n"
      "output y\n",
      "stored w 8x8x7x7\nstored u 8x5x3x3\na = Conv(x, u) pads=1,1,1,1\n"
      "b = Conv(a, w) pads=3,3,3,3 strides=2,2\nc = Conv(b, v)\noutput c\noutput a\n",
      "stored w 8x5x4x4\na = Conv(x, w) pads=1,1,2,2\ny = Conv(a, v)\noutput y\n",
      "stored t 5x5x1x1\nstored w 8x5x5x5\na = Transpose(x) perm=0,1,3,2\nb = Conv(a, t)\n"
      "y = Conv(b, w) pads=2,2,2,2 strides=2,2\noutput y\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text, "input x %dx5x21x38\nstored v 8x8x1x1\n%s", batches[b],
                     nets[at]);
      check_as(text, (expectation){.tolerance = 4e-5, .plain = -1});
    }
  }
}

/* Between Winograd's windows rows need no zeros: their stride is their width, or that of a strided
 * window's phases. Before and next to them are windows that do need zeros. */
static void rows_are_unpadded_where_they_can_be(void **state) {
  static const char *const nets[] = {
      /* phases; all after them has one pixel, or is Winograd's */
      "a = Conv(x, p)\nb = Conv(a, v) strides=2,2 pads=1,1,1,1\nc = Conv(b, u)\nd = Relu(c)\n"
      "e = Conv(d, q)\nf = Conv(e, v) pads=1,1,1,1\ng = Conv(f, u)\ny = Add(g, d)\noutput y\n",
      /* two readers of one value, of which one needs zeros; one copies it */
      "a = Conv(x, v) pads=1,1,1,1\nb = Conv(a, v) pads=1,1,1,1\nc = Conv(a, r) pads=2,2,2,2\n"
      "d = Add(b, c)\ne = Conv(d, p) strides=2,2\nf = Conv(d, v) strides=2,2 pads=1,1,1,1\n"
      "y = Add(e, f)\noutput y\n",
      /* zeros on one side alone, and more than the row above has */
      "a = Conv(x, v) pads=0,2,2,0\nb = Conv(a, v) pads=2,0,0,2\nc = Conv(b, v) pads=1,2,1,2\n"
      "y = Conv(c, p)\noutput y\n",
  };
  static const int widths[] = {28, 27, 16, 14, 5};
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx16x%dx%d\nstored p 16x16x1x1 pruned\n"
                     "stored u 64x16x1x1 pruned\nstored q 16x64x1x1 pruned\n"
                     "stored v 16x16x3x3\nstored r 16x16x5x5 pruned\n%s",
                     1 + (int)w % 3, widths[w] + 3, widths[w], nets[at]);
      check_as(text, (expectation){.tolerance = 4e-5, .plain = -1});
    }
  }
}

/* oneDNN has no such algorithm for them. By the tables of a Zen 3 and a Zen 4 it is taken, and the
 * input is not copied. */
static void the_rule_takes_it_for_first_layers(void **state) {
  static const char text[] =
      "input x 1x3x224x224\nstored w 64x3x7x7\nstored v 64x64x1x1 pruned\n"
      "a = Conv(x, w) pads=3,3,3,3 strides=2,2\nb = Relu(a)\n"
      "p = MaxPool(b) kernel_shape=3,3 strides=2,2 pads=1,1,1,1\nc = Conv(p, v)\nd = Relu(c)\n"
      "y = Conv(d, v)\noutput y\n";
  (void)state;
  const laci_cpu_level level = laci_cpu_level_in_force();
  const bool chooses = level == LACI_CPU_AVX2 || level == LACI_CPU_AVX512;
  assert_int_equal(setenv("LAC_COSTS", level == LACI_CPU_AVX512 ? "zen4" : "zen3", 1), 0);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  assert_int_equal(unsetenv("LAC_COSTS"), 0);
  assert_int_equal(planned_steps(p.engine, "winograd-7x7"), chooses);
  if (chooses) assert_string_equal(laci_engine_step_info(p.engine, 0).op, "Conv");
  planned_clear(&p);
}

/* VGG's shape: 4 windows and 2 pools, with blocks of tiles that each thread has of its own, and
 * blocks that all share. */
static const char chain[] =
    "input x %dx3x%dx%d\nstored u 64x3x3x3\nstored v 64x64x3x3\nstored w 128x64x3x3\n"
    "stored z 128x128x3x3\na = Conv(x, u) pads=1,1,1,1\nb = Relu(a)\nc = Conv(b, v) pads=1,1,1,1\n"
    "d = Relu(c)\np = MaxPool(d) kernel_shape=2,2 strides=2,2\ne = Conv(p, w) pads=1,1,1,1\n"
    "f = Relu(e)\ng = Conv(f, z) pads=1,1,1,1\nh = Relu(g)\n"
    "q = MaxPool(h) kernel_shape=2,2 strides=2,2\noutput q\n";

static void pools_need_no_reorder(void **state) {
  char text[TEXT];
  (void)state;
  assert_int_equal(setenv("LAC_ALGORITHM", "winograd", 1), 0);
  for (int batch = 1; batch <= 16; batch += 15) {
    (void)snprintf(text, sizeof text, chain, batch, 20, 28);
    planned p = plan_text(text, (laci_engine_options){.threads = 2});
    assert_int_equal(planned_steps(p.engine, "winograd-3x3"), 4);
    assert_int_equal(planned_steps(p.engine, "native pool"), 2);
    assert_in_range(laci_engine_step_count(p.engine), 4 + 2 + 2,
                    4 + 2 + 3); /* and what is outside */
    planned_clear(&p);
  }
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
}

static void threads_do_not_change_a_byte(void **state) {
  char text[TEXT];
  (void)state;
  assert_int_equal(setenv("LAC_ALGORITHM", "winograd", 1), 0);
  for (int batch = 2; batch <= 16; batch += 14) {
    size_t bytes = 0;
    float *first = NULL;
    (void)snprintf(text, sizeof text, chain, batch, 40, 44);
    for (int threads = 1; threads <= 3; threads++) {
      planned p = plan_text(text, (laci_engine_options){.threads = threads});
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

/* Without zeros, by the rule: with AVX2, where it was measured, and nowhere if dense kernels are
 * asked for. */
static void the_rule_takes_it_with_avx2(void **state) {
  char text[TEXT];
  (void)state;
  (void)snprintf(text, sizeof text, chain, 16, 56, 56);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  const int n = planned_steps(p.engine, "winograd-3x3"),
            pools = planned_steps(p.engine, "native pool");
  assert_true(laci_cpu_level_in_force() == LACI_CPU_AVX2 ? n >= 3 && pools == 2
                                                         : n == 0 && pools == 0);
  planned_clear(&p);
  p = plan_text(text, (laci_engine_options){.threads = 1, .dense_only = true});
  assert_int_equal(planned_steps(p.engine, "winograd-3x3") + planned_steps(p.engine, "native pool"),
                   0);
  planned_clear(&p);
}

/* Its weights are four times as large. With AVX-512 dense kernels have such, too. */
static void it_is_left_where_memory_is_short(void **state) {
  char text[TEXT];
  laci_budget budget = laci_budget_with_limit(6 << 20);
  (void)state;
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512) skip();
  (void)snprintf(text, sizeof text, chain, 1, 56, 56);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  assert_true(laci_cpu_level_in_force() != LACI_CPU_AVX2 ||
              planned_steps(p.engine, "winograd-3x3") >= 3);
  planned_clear(&p);
  p = plan_text(text, (laci_engine_options){.threads = 1, .budget = &budget});
  assert_int_equal(planned_steps(p.engine, "winograd-3x3"), 0);
  planned_clear(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(algorithms_of_all_neighbours),
      cmocka_unit_test(windows_that_stride),
      cmocka_unit_test(rows_are_unpadded_where_they_can_be),
      cmocka_unit_test(the_rule_takes_it_for_first_layers),
      cmocka_unit_test(pools_need_no_reorder),
      cmocka_unit_test(threads_do_not_change_a_byte),
      cmocka_unit_test(the_rule_takes_it_with_avx2),
      cmocka_unit_test(it_is_left_where_memory_is_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Operators that have one kernel of the fast engine each, against the plain engine: PRelu,
 * InstanceNormalization, blocks of places, tiles, functions, and two operands that are both
 * broadcast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/engine_check.h"
#include "support/engine_plan.h"

static void check_all(const char *const *texts, size_t n) {
  for (size_t at = 0; at < n; at++) {
    check_plan(texts[at], (expectation){.tolerance = 2e-6, .plain = 0});
  }
}
#define CHECK_ALL(texts) check_all(texts, sizeof(texts) / sizeof *(texts))

static void slopes_of_every_kind(void **state) {
  static const char *const texts[] = {
      "input x 2x5x4x3\nstored s 5x1x1\ny = PRelu(x, s)\noutput y\n",
      ("input x 2x16x4x3\nstored w 16x16x1x1\nstored s 16x1x1\na = Conv(x, w)\nb = PRelu(a, s)\n"
       "y = Conv(b, w)\noutput y\n"),
      "input x 3x7\nstored s 7\ny = PRelu(x, s)\noutput y\n",
      "input x 3x7\nstored s 1\ny = PRelu(x, s)\noutput y\n",
      "input x 2x5x4\ninput s 1x5x1\ny = PRelu(x, s)\nz = Add(x, y)\noutput y\noutput z\n",
      "input x 2x3x4\nstored s 2x1x1\ny = PRelu(x, s)\noutput y\n",
  };
  (void)state;
  CHECK_ALL(texts);
}

static void normalizes_instances(void **state) {
  static const char *const texts[] = {
      "input x 2x5x4x3\nstored s 5\nstored b 5\ny = InstanceNormalization(x, s, b)\noutput y\n",
      ("input x 1x16x9x7\nstored w 16x16x3x3\nstored s 16\nstored b 16\na = Conv(x, w)\n"
       "n = InstanceNormalization(a, s, b) epsilon=0.01\ny = Relu(n)\noutput y\n"),
      "input x 3x4x50\nstored s 4\nstored b 4\ny = InstanceNormalization(x, s, b)\noutput y\n",
  };
  (void)state;
  CHECK_ALL(texts);
}

static void moves_blocks_and_repeats(void **state) {
  static const char *const texts[] = {
      "input x 2x12x3x5\ny = DepthToSpace(x) blocksize=2\noutput y\n",
      "input x 2x12x3x5\ny = DepthToSpace(x) blocksize=2 mode=\"CRD\"\noutput y\n",
      "input x 1x18x4x1\ny = DepthToSpace(x) blocksize=3 mode=\"DCR\"\noutput y\n",
      "input x 2x3x6x4\ny = SpaceToDepth(x) blocksize=2\noutput y\n",
      "input x 1x16x5x6\nstored w 16x16x1x1\na = Conv(x, w)\ny = DepthToSpace(a) blocksize=4\n"
      "output y\n",
      "input x 2x3x4\nstored r 3 i64 = 2 1 3\ny = Tile(x, r)\noutput y\n",
      "input x 2x16x4x4\nstored w 16x16x1x1\nstored r 4 i64 = 1 2 2 3\na = Conv(x, w)\n"
      "y = Tile(a, r)\noutput y\n",
      "input x 5\nstored r 1 i64 = 1\ny = Tile(x, r)\nz = Relu(y)\noutput z\n",
  };
  (void)state;
  CHECK_ALL(texts);
}

static void computes_functions(void **state) {
  static const char *const texts[] = {
      "input x 3x50\ny = Erf(x)\noutput y\n",
      "input x 3x50\ny = Sign(x)\noutput y\n",
      "input x 3x50\ny = Softsign(x)\noutput y\n",
      "input x 3x50\ny = Floor(x)\noutput y\n",
      "input x 3x50\ny = Ceil(x)\noutput y\n",
      "input x 3x50\ny = Round(x)\noutput y\n",
      "input x 3x50\na = Log(x)\nb = Abs(a)\ny = Erf(b)\nz = Softplus(x)\noutput z\n",
  };
  (void)state;
  CHECK_ALL(texts);
}

static void broadcasts_both_operands(void **state) {
  static const char *const texts[] = {
      "input x 1x1x9\ninput z 1x7x1\ny = Mul(x, z)\noutput y\n",
      "input x 1x1x9\ninput z 7x1\ny = Sub(z, x)\noutput y\n",
      "input x 2x1x1x6\ninput z 3x4x1\na = Add(x, z)\ny = Relu(a)\noutput y\n",
      "input x 2x1x6\ninput z 4x1\ny = Max(x, z)\noutput y\n",
      "input x 2x16x1x6\nstored c 16x4x1\ny = Div(x, c)\noutput y\n",
      "input x 2x1\nstored c 1x3\ny = Div(c, x)\noutput y\n",
  };
  (void)state;
  CHECK_ALL(texts);
}

/* A form that is not taken for want of memory would give other numbers: the plan fails instead. */
static void one_failed_allocation_changes_no_result(void **state) {
  static const char *const texts[] = {
      "input x 1x8x6x6\nstored w 8x8x3x3\nstored u 8x8x2x2\nstored roi 0\nstored s 4 = 1 1 2 1.5\n"
      "a = Conv(x, w) pads=1,1,1,1\nt = ConvTranspose(a, u) strides=2,2\n"
      "y = Resize(t, roi, s) mode=\"linear\" coordinate_transformation_mode=\"align_corners\"\n"
      "output y\n",
      "input x 1x8x40x1\nstored w 8x8x16x1\nstored p 8 i64 = 0 0 2 0 0 0 2 0\n"
      "a = Pad(x, p) mode=\"reflect\"\nb = Conv(a, w) pads=7,0,8,0\nc = Softmax(b) axis=1\n"
      "y = Exp(c)\noutput y\n",
      ("input x 1x8x4x4\nstored s 8x1x1\nstored w 16x8x1x1\na = PRelu(x, s)\nb = Conv(a, w)\n"
       "y = DepthToSpace(b) blocksize=2\noutput y\n"),
  };
  (void)state;
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
    size_t bytes;
    planned p = plan_text(texts[at], (laci_engine_options){.threads = 1});
    float *want = planned_result(p.engine, &bytes);
    laci_engine_destroy(p.engine);
    long n = 1;
    for (bool pending = false; !pending; n++) {
      laci_engine *engine;
      lac_error err = {0};
      laci_memory_fail_once(n);
      lac_status st =
          laci_engine_create(p.graph, &(laci_engine_options){.threads = 1}, &engine, &err);
      pending = laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
      if (st) continue;
      float *got = planned_result(engine, &bytes);
      if (memcmp(got, want, bytes) != 0) {
        fail_msg("allocation %ld: other numbers\n%s", n, laci_engine_plan_text(engine));
      }
      laci_free(got);
      laci_engine_destroy(engine);
    }
    assert_true(n > 30);
    laci_free(want);
    laci_graph_destroy(p.graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slopes_of_every_kind),
      cmocka_unit_test(normalizes_instances),
      cmocka_unit_test(moves_blocks_and_repeats),
      cmocka_unit_test(computes_functions),
      cmocka_unit_test(broadcasts_both_operands),
      cmocka_unit_test(one_failed_allocation_changes_no_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

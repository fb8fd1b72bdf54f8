/* SPDX-License-Identifier: Apache-2.0
 * Softmax, sums and pads along any axis, by the fast engine against the plain one; and that sums do
 * not depend on the number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"

enum { TEXT = 1024 };

static int drawn(uint64_t *state, int least, int most) {
  return least + (int)laci_rng_integer_below(9, 8, (*state)++, (uint64_t)(most - least + 1));
}

static void check(const char *text) {
  check_plan(text, (expectation){.tolerance = 1e-5, .plain = 0});
}

/** Writes an input of a drawn shape, and a value v. */
static void write_value(char *text, uint64_t *state, int rank) {
  char *at = text + snprintf(text, 40, "input x %d", drawn(state, 1, 3));
  for (int axis = 1; axis < rank; axis++) {
    at += snprintf(at, 40, "x%d", axis == 1 ? 8 * drawn(state, 1, 2) : drawn(state, 1, 9));
  }
  (void)snprintf(at, 40, "\nv = Relu(x)\n");
}

static void softmaxes_along_any_axis(void **state) {
  char text[TEXT];
  uint64_t at = 0;
  (void)state;
  for (int n = 0; n < 24; n++) {
    const int rank = drawn(&at, 1, 5);
    write_value(text, &at, rank);
    (void)snprintf(text + strlen(text), TEXT / 2, "y = %s(v) axis=%d\noutput y\n",
                   drawn(&at, 0, 2) ? "Softmax" : "LogSoftmax", drawn(&at, -rank, rank - 1));
    check(text);
  }
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() < LACI_CPU_AVX2) return;
  planned p = plan_text("input x 1x16x4x50\ny = Softmax(x) axis=1\noutput y\n",
                        (laci_engine_options){.threads = 2});
  assert_int_equal(planned_steps(p.engine, "ref"), 0);
  planned_clear(&p);
#endif
}

static void sums_along_any_axes(void **state) {
  static const char *const axes[] = {"1 i64 = 0",   "1 i64 = 1",     "1 i64 = -1", "2 i64 = 1 2",
                                     "2 i64 = 0 1", "2 i64 = -1 -2", "2 i64 = 0 2"};
  char text[TEXT];
  uint64_t at = 500;
  (void)state;
  for (int n = 0; n < 28; n++) {
    write_value(text, &at, drawn(&at, 3, 5));
    (void)snprintf(text + strlen(text), TEXT / 2,
                   "stored a %s\ny = Reduce%s(v, a) keepdims=%d\noutput y\n", axes[n % 7],
                   drawn(&at, 0, 1) ? "Sum" : "Mean", drawn(&at, 0, 1));
    check(text);
  }
}

static void sums_alike_on_any_number_of_threads(void **state) {
  static const char *const nets[] = {
      "input x 2x9000x3\nstored a 1 i64 = 1\ny = ReduceSum(x, a)\noutput y\n",
      "input x 1x5000x200\nstored a 1 i64 = 1\ny = ReduceMean(x, a)\noutput y\n",
  };
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
      size_t bytes;
      planned p = plan_text(nets[at], (laci_engine_options){.threads = threads});
      float *y = planned_result(p.engine, &bytes);
      if (first) assert_memory_equal(y, first, bytes);
      if (first) laci_free(y);
      else first = y;
      planned_clear(&p);
    }
    laci_free(first);
    check(nets[at]);
  }
}

static void pads_with_elements_of_the_value(void **state) {
  static const char *const modes[] = {"reflect", "edge", "wrap"};
  char text[TEXT];
  uint64_t at = 900;
  (void)state;
  for (int n = 0; n < 30; n++) {
    const int rank = drawn(&at, 2, 5), conv = rank == 4 && drawn(&at, 0, 1);
    char *end = text + snprintf(text, 40, "input x 2x8");
    for (int axis = 2; axis < rank; axis++) end += snprintf(end, 20, "x%d", drawn(&at, 3, 9));
    end += snprintf(end, 100, conv ? "\nstored w 8x8x1x1\nv = Conv(x, w)\n" : "\nv = Relu(x)\n");
    end += snprintf(end, 40, "stored p %d i64 =", 2 * rank);
    for (int side = 0; side < 2; side++) {
      for (int axis = 0; axis < rank; axis++) {
        const int most = axis == 0 ? 0 : axis == 1 ? drawn(&at, 0, 3) / 3 : 2;
        end += snprintf(end, 20, " %d", drawn(&at, axis > 1 ? -1 : 0, most));
      }
    }
    (void)snprintf(end, 200, "\nz = Pad(v, p) mode=\"%s\"\ny = Relu(z)\noutput y\n", modes[n % 3]);
    check(text);
  }
}

/** Writes a name and a shape of `rank` axes, the last of which has this size. */
static char *write_shape(char *at, const char *word, int rank, int last) {
  at += snprintf(at, 60, "%s ", word);
  for (int axis = 0; axis < rank; axis++)
    at += snprintf(at, 20, "%s%d", axis ? "x" : "", axis + 1 < rank ? axis + 2 : last);
  return at + snprintf(at, 4, "\n");
}

static void joins_short_rows(void **state) {
  char text[TEXT];
  uint64_t at = 1300;
  (void)state;
  for (int n = 0; n < 24; n++) {
    const int rank = drawn(&at, 2, 5);
    char *end = write_shape(text, "input x", rank, drawn(&at, 1, 3));
    end = write_shape(end, "input z", rank, drawn(&at, 1, 40));
    (void)snprintf(end, 200,
                   "a = Relu(x)\nb = Sigmoid(z)\ny = Concat(a, b, a, x) axis=-1\noutput y\n");
    check(text);
  }
  check("input x 2x40x50x2\na = Relu(x)\ny = Concat(a, x) axis=2\noutput y\n");
  check(
      "input x 1x16x5x5\nstored w 16x16x1x1\na = Conv(x, w)\nb = Conv(a, w)\n"
      "y = Concat(a, b) axis=3\noutput y\n");
}

static void finds_the_largest_of_each_channel(void **state) {
  (void)state;
  check("input x 2x7x9x11\na = Relu(x)\ny = GlobalMaxPool(a)\noutput y\n");
  check("input x 1x40x300\na = Sigmoid(x)\ny = GlobalMaxPool(a)\nz = Relu(y)\noutput z\n");
  check("input x 1x3x40x50x4\ny = GlobalMaxPool(x)\noutput y\n");
  check("input x 2x16x6x6\nstored w 32x16x3x3\na = Conv(x, w)\ny = GlobalMaxPool(a)\noutput y\n");
}

static void compares_broadcast_operands(void **state) {
  static const char *const shapes[][2] = {{"3x1x5", "4x1"},   {"6", "2x3x6"},
                                          {"2x3x4", "2x3x4"}, {"1x1", "7x9"},
                                          {"5x1", "1x300"},   {"2x1x3x1", "5x1x9000"}};
  char text[TEXT];
  (void)state;
  for (int n = 0; n < 6; n++) {
    (void)snprintf(text, TEXT,
                   "input p %s\ninput q %s\ni = Cast(p) to=7\nj = Cast(q) to=7\n"
                   "e = Equal(i, j)\nl = Less(i, j)\no = Or(e, l)\nr = Where(o, p, q)\n"
                   "t = Cast(e) to=1\ny = Add(r, t)\noutput y\n",
                   shapes[n][0], shapes[n][1]);
    check_plan(text, (expectation){.tolerance = 1e-5, .plain = 2}); /* the two Casts to integers */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmaxes_along_any_axis),
      cmocka_unit_test(sums_along_any_axes),
      cmocka_unit_test(sums_alike_on_any_number_of_threads),
      cmocka_unit_test(pads_with_elements_of_the_value),
      cmocka_unit_test(joins_short_rows),
      cmocka_unit_test(finds_the_largest_of_each_channel),
      cmocka_unit_test(compares_broadcast_operands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

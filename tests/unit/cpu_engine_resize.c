/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample by the fast engine, in all modes, against the plain one: drawn at random, in
 * every layout that a neighbour leaves; and kernel/image/resample.h, every variant against the
 * scalar one, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/image/resample.h"
#include "support/engine_check.h"

enum { TEXT = 2048, N_DRAWN = 90, MOST = 1024 };

static int drawn(uint64_t *state, int least, int most) {
  return least + (int)laci_rng_integer_below(5, 6, (*state)++, (uint64_t)(most - least + 1));
}

static const char *drawn_name(uint64_t *state, const char *const *names, int n) {
  return names[drawn(state, 0, n - 1)];
}

static void write_sizes(char *text, uint64_t *state, const int *in, int rank) {
  char *at = text;
  if (drawn(state, 0, 1)) {
    static const char *const scales[] = {"2", "1", "0.5", "3", "1.5", "0.7", "2.6"};
    at += snprintf(at, 200, "stored roi 0\nstored scales %d = 1 1", rank);
    for (int axis = 2; axis < rank; axis++) {
      at += snprintf(at, 200, " %s", drawn_name(state, scales, 7));
    }
    (void)snprintf(at, 200, "\n");
    return;
  }
  at += snprintf(at, 200, "stored sizes %d i64 = %d %d", rank, in[0], in[1]);
  for (int axis = 2; axis < rank; axis++) at += snprintf(at, 200, " %d", drawn(state, 1, 17));
  (void)snprintf(at, 200, "\n");
}

/** A Resize of the value of a convolution, of a pool or of the input itself. */
static void write_drawn(char *text, uint64_t *state) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const places[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                       "asymmetric", "half_pixel_symmetric"};
  static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const int rank = drawn(state, 0, 3) ? 4 : drawn(state, 3, 5);
  const int channels = drawn(state, 0, 1) ? 8 * drawn(state, 1, 3) : drawn(state, 1, 9);
  int in[5] = {drawn(state, 1, 2), channels};
  char *at = text, sizes[400], shape[100], *s = shape;
  for (int axis = 2; axis < rank; axis++) in[axis] = drawn(state, 2, 9);
  for (int axis = 0; axis < rank; axis++) s += snprintf(s, 20, axis ? "x%d" : "%d", in[axis]);
  write_sizes(sizes, state, in, rank);
  const bool by_sizes = strstr(sizes, " i64 ") != NULL;
  at += snprintf(at, 500, "input x %s\n%s", shape, sizes);
  if (rank == 4 && drawn(state, 0, 2)) {
    at +=
        snprintf(at, 300, "stored w %dx%dx3x3\nf = Conv(x, w) pads=1,1,1,1\n", channels, channels);
  } else {
    at += snprintf(at, 300, "f = Abs(x)\n");
  }
  at += snprintf(at, 400,
                 "a = Resize(f, %s) mode=\"%s\" coordinate_transformation_mode=\"%s\" "
                 "nearest_mode=\"%s\"",
                 by_sizes ? "_, _, sizes" : "roi, scales", drawn_name(state, modes, 3),
                 drawn_name(state, places, 5), drawn_name(state, rounds, 4));
  if (drawn(state, 0, 4) == 0) at += snprintf(at, 100, " exclude_outside=1");
  if (drawn(state, 0, 4) == 0) at += snprintf(at, 100, " antialias=1");
  (void)snprintf(at, 100, "\ny = Relu(a)\noutput y\n");
}

static void matches_in_all_modes(void **state) {
  char text[TEXT];
  uint64_t at = 0;
  (void)state;
  for (int n = 0; n < N_DRAWN; n++) {
    write_drawn(text, &at);
    check_plan(text, (expectation){.tolerance = 2e-6, .plain = 0});
  }
}

/* Old exporters and Paddle's write an empty roi, which is no reason for anything. */
static void is_fast_with_empty_operands(void **state) {
  (void)state;
  check_plan(
      "input x 1x16x5x5\nstored roi 0\nstored scales 4 = 1 1 2 2\n"
      "y = Resize(x, roi, scales) mode=\"nearest\" coordinate_transformation_mode=\"asymmetric\" "
      "nearest_mode=\"floor\"\noutput y\n",
      (expectation){.tolerance = 1e-6, .plain = 0});
  check_plan(
      "input x 1x16x5x5\nstored roi 0\nstored none 0\nstored sizes 4 i64 = 1 16 9 13\n"
      "y = Resize(x, roi, none, sizes) mode=\"linear\" "
      "coordinate_transformation_mode=\"align_corners\"\noutput y\n",
      (expectation){.tolerance = 1e-6, .plain = 0});
}

static void every_variant_gives_the_same_bits(void **state) {
  static float x[MOST], want[MOST], got[MOST], weight[MOST];
  static int32_t index[MOST];
  laci_cpu_level start = laci_cpu_level_in_force();
  uint64_t at = 0;
  (void)state;
  for (int n = 0; n < MOST; n++) {
    x[n] = (float)laci_rng_unit_interval(7, 1, (uint64_t)n) - 0.5f;
    weight[n] = (float)laci_rng_unit_interval(7, 2, (uint64_t)n) - 0.3f;
  }
  for (int n = 0; n < 200; n++) {
    laci_resample_pass p = {.in = drawn(&at, 1, 9),
                            .out = drawn(&at, 1, 9),
                            .inner = drawn(&at, 0, 1) ? 1 : drawn(&at, 1, 33),
                            .width = drawn(&at, 1, 5),
                            .index = index};
    const int64_t outer = drawn(&at, 1, 3), lines = outer * p.out;
    for (int64_t i = 0; i < p.out * p.width; i++) index[i] = drawn(&at, 0, (int)p.in - 1);
    p.weight = p.width == 1 && drawn(&at, 0, 1) ? NULL : weight;
    const int64_t begin = drawn(&at, 0, (int)lines), end = drawn(&at, (int)begin, (int)lines);
    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    laci_resample_scalar(&p, x, want, begin, end);
#define CHECK(name, level)                        \
  if (laci_cpu_limit_level(level) == level) {     \
    laci_resample_##name(&p, x, got, begin, end); \
    assert_memory_equal(got, want, sizeof want);  \
  }
    LACI_KERNEL_VARIANTS(CHECK)
#undef CHECK
    (void)laci_cpu_limit_level(start);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_in_all_modes),
      cmocka_unit_test(is_fast_with_empty_operands),
      cmocka_unit_test(every_variant_gives_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

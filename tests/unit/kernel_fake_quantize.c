/* SPDX-License-Identifier: Apache-2.0
 * kernel/pointwise/fake_quantize: every variant against what the standard says of the two
 * operators, bit by bit, at any alignment and in place. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/pointwise/fake_quantize.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 1000 };

/* Through an integer of 8 bits, as the two operators do it. */
static float through(float x, float scale, int zero, int least) {
  const float quotient = x / scale;
  const double y = (double)rintf(quotient) + zero;
  const int integer = isnan(y) ? least
                               : (int)(y < least         ? least
                                       : y > least + 255 ? least + 255
                                                         : y);
  return (float)(integer - zero) * scale;
}

static void compare(const laci_fake_quantized *q, const float *x, const float *want, int64_t n) {
  float room[MOST + 4];
  for (int shift = 0; shift < 3; shift++) {
    memset(room, 0x5A, sizeof room);
    laci_fake_quantize_variant()(q, x, n, room + shift);
    assert_memory_equal(room + shift, want, (size_t)n * sizeof *want);
    memcpy(room + shift, x, (size_t)n * sizeof *x);
    const float after = room[shift + n];
    laci_fake_quantize_variant()(q, room + shift, n, room + shift);
    assert_memory_equal(room + shift, want, (size_t)n * sizeof *want);
    assert_memory_equal(&room[shift + n], &after, sizeof after);
  }
}

static void every_variant_goes_through_integers(void **state) {
  static const float edges[] = {0,      -0.0F,   0.5F,     -0.5F,     1.5F,   2.5F,    -2.5F,
                                127.5F, 128.5F,  -128.5F,  254.5F,    255.5F, 1e30F,   -1e30F,
                                1e-40F, -1e-40F, INFINITY, -INFINITY, NAN,    FLT_MAX, -FLT_MAX};
  static const struct {
    float scale;
    int zero, least;
  } cases[] = {{1, 0, 0},         {1, 0, -128},   {0.25F, 128, 0},    {0.1F, 3, 0},
               {1e-3F, -7, -128}, {3.7F, 255, 0}, {1e30F, 127, -128}, {0.0078125F, -128, -128}};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  float x[MOST], want[MOST];
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const float scale = cases[at].scale;
    const int zero = cases[at].zero, least = cases[at].least;
    const laci_fake_quantized q = {scale, (float)(least - zero), (float)(least + 255 - zero)};
    for (int i = 0; i < MOST; i++) {
      const int n_edges = sizeof edges / sizeof *edges;
      const float unit = (float)laci_rng_unit_interval(1, at, (uint64_t)i) - 0.5F;
      x[i] = i < n_edges       ? edges[i]
             : i < 2 * n_edges ? edges[i - n_edges] * scale
                               : unit * 700 * scale;
      want[i] = through(x[i], scale, zero, least);
    }
    for (int level = 0; level < N_LEVELS; level++) {
      if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
      for (int n = 0; n < 70; n++) compare(&q, x, want, n);
      compare(&q, x, want, MOST);
    }
    (void)laci_cpu_limit_level(start);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_variant_goes_through_integers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

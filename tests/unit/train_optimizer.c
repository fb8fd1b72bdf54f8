/* SPDX-License-Identifier: Apache-2.0
 * train: optimizers against what PyTorch computed (tests/fixtures/train), LARS against its formula,
 * masks, decay, accumulation; the same bits from every variant and any number of threads. */
#include "train/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "data/npy.h"
#include "kernel/optimizer/update.h"

enum { MATRIX = 37, VECTOR = 6, N = MATRIX + VECTOR, STEPS = 6, MOST = 100003 };
static const float rates[STEPS] = {0.1F, 0.1F, 0.05F, 0.2F, 0.01F, 0.1F};

static const laci_parameter network[2] = {
    {.name = "matrix", .offset = 0, .count = MATRIX},
    {.name = "vector", .offset = MATRIX, .count = VECTOR, .is_vector = true},
};

static laci_npy fixture(const char *name) {
  char path[512];
  laci_npy array;
  (void)snprintf(path, sizeof path, "%s/tests/fixtures/train/%s.npy", LAC_SOURCE_DIR, name);
  assert_int_equal(laci_npy_read(path, &array, NULL), LAC_OK);
  return array;
}

static laci_optimizer *create(const laci_optimizer_options *options) {
  laci_optimizer *o = NULL;
  assert_int_equal(laci_optimizer_create(options, network, 2, NULL, &o, NULL), LAC_OK);
  assert_int_equal(laci_optimizer_count_floats(o), N);
  return o;
}

static void expect_close(float found, float wanted, double tolerance) {
  double off = fabs((double)found - (double)wanted);
  if (!(off <= tolerance * (1 + fabs((double)wanted)))) {
    fail_msg("got %.9g, want %.9g", (double)found, (double)wanted);
  }
}

static void steps_are_those_of_pytorch(void **state) {
  (void)state;
  laci_optimizer_options cases[5];
  for (int k = 0; k < 4; k++) cases[k] = laci_optimizer_options_default(LACI_OPTIMIZER_SGD);
  cases[1].momentum = 0.875F;
  cases[1].decay = cases[2].decay = 0.01F;
  cases[2].nesterov = true;
  cases[3].momentum = 0;
  cases[3].decay = 0.1F;
  cases[4] = laci_optimizer_options_default(LACI_OPTIMIZER_ADAMW);
  cases[4].decay = 0.05F;
  laci_npy start = fixture("start"), gradients = fixture("gradients");
  laci_npy wanted = fixture("optimizers");
  assert_int_equal(wanted.size_bytes, sizeof(float) * 5 * STEPS * N);
  for (int k = 0; k < 5; k++) {
    laci_optimizer *o = create(&cases[k]);
    float w[N], g[N];
    memcpy(w, start.bytes, sizeof w);
    for (int at = 0; at < STEPS; at++) {
      const float *want =
          (const float *)(void *)wanted.bytes + ((size_t)k * STEPS + (size_t)at) * N;
      memcpy(g, gradients.bytes + (size_t)at * sizeof g, sizeof g);
      laci_optimizer_step(o, rates[at], 1, w, g);
      for (int i = 0; i < N; i++) expect_close(w[i], want[i], k == 4 ? 3e-6 : 5e-7);
    }
    assert_int_equal(laci_optimizer_steps(o), STEPS);
    laci_optimizer_destroy(o);
  }
  laci_npy_clear(&start);
  laci_npy_clear(&gradients);
  laci_npy_clear(&wanted);
}

static void fill(float *x, size_t n, uint64_t stream) {
  for (size_t i = 0; i < n; i++) x[i] = (float)laci_rng_unit_interval(7, stream, i) * 2 - 1;
}

static double norm(const float *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sqrt(sum);
}

static void lars_takes_its_rate_from_the_norms_of_matrices(void **state) {
  (void)state;
  laci_optimizer_options options = laci_optimizer_options_default(LACI_OPTIMIZER_LARS);
  options.decay = 1e-2F;
  for (int all = 0; all < 2; all++) {
    options.decay_all = all;
    laci_optimizer *o = create(&options);
    float w[N], g[N];
    double want[N], speed[N] = {0};
    fill(w, N, 1);
    for (int i = 0; i < N; i++) want[i] = (double)w[i];
    for (int at = 0; at < STEPS; at++) {
      fill(g, N, 2 + (uint64_t)at);
      double size = norm(w, MATRIX), decay = (double)options.decay;
      double ratio = 0.001 * size / (norm(g, MATRIX) + decay * size);
      for (int i = 0; i < N; i++) {
        double local = (double)rates[at] * 10 * (i < MATRIX ? ratio : 1);
        double d = (double)g[i] + (i < MATRIX || all ? decay * want[i] : 0);
        speed[i] = 0.9 * speed[i] + local * d;
        want[i] -= speed[i];
      }
      laci_optimizer_step(o, rates[at] * 10, 1, w, g);
      for (int i = 0; i < N; i++) expect_close(w[i], (float)want[i], 1e-5);
    }
    laci_optimizer_destroy(o);
  }
}

static void lars_without_a_norm_takes_the_plain_rate(void **state) {
  (void)state;
  laci_optimizer_options options = laci_optimizer_options_default(LACI_OPTIMIZER_LARS);
  laci_optimizer *o = create(&options);
  float w[N] = {0}, g[N];
  fill(g, N, 3);
  laci_optimizer_step(o, 0.5F, 1, w, g);
  for (int i = 0; i < N; i++) assert_true(w[i] == -0.5F * g[i]);
  laci_optimizer_destroy(o);
}

static void rates_inside_and_outside_agree_while_they_stay(void **state) {
  (void)state;
  for (int nesterov = 0; nesterov < 2; nesterov++) {
    laci_optimizer_options options = laci_optimizer_options_default(LACI_OPTIMIZER_SGD);
    options.nesterov = nesterov;
    laci_optimizer *outside = create(&options);
    options.rate_inside = true;
    laci_optimizer *inside = create(&options);
    float a[N], b[N], g[N];
    fill(a, N, 1);
    memcpy(b, a, sizeof b);
    for (int at = 0; at < STEPS; at++) {
      fill(g, N, 2 + (uint64_t)at);
      laci_optimizer_step(outside, 0.1F, 1, a, g);
      laci_optimizer_step(inside, 0.1F, 1, b, g);
      for (int i = 0; i < N; i++) expect_close(a[i], b[i], 1e-6);
    }
    laci_optimizer_destroy(outside);
    laci_optimizer_destroy(inside);
  }
}

static void masked_weights_stay_zero_and_the_others_do_not_notice(void **state) {
  (void)state;
  for (int kind = 0; kind < LACI_OPTIMIZER_COUNT; kind++) {
    laci_optimizer_options options = laci_optimizer_options_default((laci_optimizer_kind)kind);
    options.decay = 0.01F;
    laci_optimizer *masked = create(&options), *free_one = create(&options);
    uint8_t mask[MATRIX];
    float w[N], g[N], w2[N], g2[N];
    for (int i = 0; i < MATRIX; i++) mask[i] = i % 4 < 2;
    fill(w, N, 1);
    memcpy(w2, w, sizeof w);
    laci_optimizer_step(masked, 0.1F, 1, w, (fill(g, N, 9), g));
    laci_optimizer_step(free_one, 0.1F, 1, w2, (fill(g2, N, 9), g2));
    laci_optimizer_set_mask(masked, 0, mask, w);
    for (int at = 0; at < STEPS; at++) {
      fill(g, N, 20 + (uint64_t)at);
      memcpy(g2, g, sizeof g);
      for (int i = 0; i < MATRIX; i++) {
        if (!mask[i]) g[i] = i % 8 < 4 ? NAN : INFINITY;
      }
      laci_optimizer_step(masked, rates[at], 1, w, g);
      laci_optimizer_step(free_one, rates[at], 1, w2, g2);
      for (int i = 0; i < N; i++) {
        bool is_kept = i >= MATRIX || mask[i];
        if (!is_kept) {
          assert_true(w[i] == 0 && g[i] == 0);
          for (int k = 0; k < laci_optimizer_count_slots(masked); k++) {
            assert_true(laci_optimizer_slot(masked, k)[i] == 0);
          }
        } else if (kind != LACI_OPTIMIZER_LARS) {
          assert_true(w[i] == w2[i]); /* LARS: the norm is that of the kept weights */
        }
      }
    }
    laci_optimizer_destroy(masked);
    laci_optimizer_destroy(free_one);
  }
}

static void the_mean_over_batches_is_a_scale(void **state) {
  (void)state;
  for (int kind = 0; kind < LACI_OPTIMIZER_COUNT; kind++) {
    laci_optimizer_options options = laci_optimizer_options_default((laci_optimizer_kind)kind);
    options.decay = 0.01F;
    laci_optimizer *one = create(&options), *four = create(&options);
    float a[N], b[N], g[N], g4[N];
    fill(a, N, 1);
    memcpy(b, a, sizeof b);
    for (int at = 0; at < STEPS; at++) {
      fill(g, N, 2 + (uint64_t)at);
      for (int i = 0; i < N; i++) g4[i] = 4 * g[i];
      laci_optimizer_step(one, 0.1F, 1, a, g);
      laci_optimizer_step(four, 0.1F, 0.25F, b, g4);
    }
    assert_memory_equal(a, b, sizeof a); /* powers of two round nothing */
    laci_optimizer_destroy(one);
    laci_optimizer_destroy(four);
  }
}

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL

/* Two steps of every optimizer over a large buffer with a mask and a gap: a hash would do, but the
 * buffer tells where. */
static void run_large(laci_optimizer_kind kind, int threads, float *w) {
  static const laci_parameter parts[3] = {
      {.name = "a", .offset = 0, .count = 70001},
      {.name = "b", .offset = 70004, .count = 7, .is_vector = true},
      {.name = "c", .offset = 70013, .count = MOST - 70013},
  };
  laci_optimizer_options options = laci_optimizer_options_default(kind);
  laci_optimizer *o = NULL;
  laci_pool *pool = NULL;
  float *g = malloc(MOST * sizeof *g);
  uint8_t *mask = malloc(70001);
  assert_true(g && mask);
  options.decay = 1e-3F;
  options.nesterov = kind == LACI_OPTIMIZER_SGD;
  for (int i = 0; i < 70001; i++) mask[i] = laci_rng(1, 1, (uint64_t)i) % 2;
  assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
  assert_int_equal(laci_optimizer_create(&options, parts, 3, pool, &o, NULL), LAC_OK);
  fill(w, MOST, 1);
  laci_optimizer_set_mask(o, 0, mask, w);
  for (int at = 0; at < 2; at++) {
    fill(g, MOST, 5 + (uint64_t)at);
    laci_optimizer_step(o, 0.37F, 0.5F, w, g);
  }
  laci_optimizer_destroy(o);
  laci_pool_destroy(pool);
  free(mask);
  free(g);
}

static void every_variant_and_any_threads_give_the_same_bits(void **state) {
  (void)state;
  float *want = malloc(MOST * sizeof *want), *found = malloc(MOST * sizeof *found);
  assert_true(want && found);
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int kind = 0; kind < LACI_OPTIMIZER_COUNT; kind++) {
    laci_cpu_limit_level(LACI_CPU_ANY);
    run_large((laci_optimizer_kind)kind, 1, want);
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
      if (laci_cpu_limit_level(levels[k]) != levels[k]) continue;
      run_large((laci_optimizer_kind)kind, 3, found);
      assert_memory_equal(found, want, MOST * sizeof *want);
    }
    laci_cpu_limit_level(start);
  }
  free(want);
  free(found);
}

static void kernels_touch_nothing_next_to_their_range(void **state) {
  (void)state;
  enum { STACK_RESERVE = 80 };
  laci_cpu_level start = laci_cpu_level_in_force();
  for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
    if (laci_cpu_limit_level(levels[k]) != levels[k]) continue;
    for (size_t n = 0; n < 70; n++) {
      float a[4][STACK_RESERVE], want[4][STACK_RESERVE];
      uint8_t mask[STACK_RESERVE] = {0};
      for (uint64_t row = 0; row < 4; row++) fill(a[row], STACK_RESERVE, row);
      for (int i = 0; i < STACK_RESERVE; i++) a[3][i] = fabsf(a[3][i]);
      memcpy(want, a, sizeof a);
      const laci_update_kernels *u = laci_update_variant();
      laci_adam_rule adam = {1, 1, 1, 1, 1, 0.1F, 0.9F, 0.1F};
      laci_sgd_rule sgd = {.rate = 0.1F, .momentum = 0.9F, .scale = 1};
      u->adam(&adam, a[0] + 3, a[1] + 3, a[2] + 3, a[3] + 3, n);
      u->sgd(&sgd, a[0] + 3, a[1] + 3, a[2] + 3, n);
      u->mask(a[3] + 3, mask, n);
      for (int row = 0; row < 4; row++) {
        assert_memory_equal(a[row], want[row], 3 * sizeof(float));
        assert_memory_equal(a[row] + 3 + n, want[row] + 3 + n,
                            (STACK_RESERVE - 3 - n) * sizeof(float));
      }
      for (size_t i = 0; i < n; i++) assert_true(a[3][3 + i] == 0);
      double sum = 0;
      for (size_t i = 0; i < n; i++) sum += (double)a[1][3 + i] * (double)a[1][3 + i];
      assert_true(fabs(u->squares(a[1] + 3, n) - sum) <= 1e-12 * (1 + sum));
    }
  }
  laci_cpu_limit_level(start);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  laci_optimizer_options good = laci_optimizer_options_default(LACI_OPTIMIZER_ADAMW);
  laci_optimizer_options bad[6] = {good, good, good, good, good, good};
  laci_parameter overlapping[2] = {network[0], network[1]};
  laci_optimizer *o = NULL;
  laci_optimizer_kind kind;
  bad[0].momentum = 1;
  bad[1].decay = NAN;
  bad[2].beta2 = 1;
  bad[3].epsilon = 0;
  bad[4].nesterov = true;
  bad[5].kind = LACI_OPTIMIZER_LARS;
  bad[5].trust = 0;
  for (int k = 0; k < 6; k++) {
    lac_error err = {0};
    assert_int_equal(laci_optimizer_create(&bad[k], network, 2, NULL, &o, &err), LAC_BAD_ARGUMENT);
    assert_null(o);
    assert_int_not_equal(err.text[0], 0);
  }
  overlapping[1].offset--;
  assert_int_equal(laci_optimizer_create(&good, overlapping, 2, NULL, &o, NULL), LAC_BAD_ARGUMENT);
  overlapping[1].offset = INT64_MAX / 4;
  assert_int_equal(laci_optimizer_create(&good, overlapping, 2, NULL, &o, NULL), LAC_BAD_ARGUMENT);
  assert_true(laci_optimizer_find_kind("lars", &kind) && kind == LACI_OPTIMIZER_LARS);
  assert_false(laci_optimizer_find_kind("adam", &kind));
  assert_string_equal(laci_optimizer_kind_name(LACI_OPTIMIZER_ADAMW), "adamw");
}

static void without_memory_it_fails_cleanly(void **state) {
  (void)state;
  laci_optimizer_options options = laci_optimizer_options_default(LACI_OPTIMIZER_ADAMW);
  lac_status st = LAC_NO_MEMORY;
  for (long n = 1; st && n < 20; n++) {
    laci_optimizer *o = NULL;
    laci_memory_fail_from(n);
    st = laci_optimizer_create(&options, network, 2, NULL, &o, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || (st == LAC_NO_MEMORY && !o));
    laci_optimizer_destroy(o);
  }
  assert_int_equal(st, LAC_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_those_of_pytorch),
      cmocka_unit_test(lars_takes_its_rate_from_the_norms_of_matrices),
      cmocka_unit_test(lars_without_a_norm_takes_the_plain_rate),
      cmocka_unit_test(rates_inside_and_outside_agree_while_they_stay),
      cmocka_unit_test(masked_weights_stay_zero_and_the_others_do_not_notice),
      cmocka_unit_test(the_mean_over_batches_is_a_scale),
      cmocka_unit_test(every_variant_and_any_threads_give_the_same_bits),
      cmocka_unit_test(kernels_touch_nothing_next_to_their_range),
      cmocka_unit_test(bad_options_are_refused),
      cmocka_unit_test(without_memory_it_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

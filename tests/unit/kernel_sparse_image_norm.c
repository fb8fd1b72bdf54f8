/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/image_norm.h, of floats and of bf16: the definition against batch normalization in
 * double, forward and backward, also where the mean is much larger than what is around it; every
 * variant against the definition, bit by bit, and nothing outside of the results. */
#include "kernel/sparse/image_norm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/sparse/bf16_pairs.h"

enum { GUARD = 32, LANES = 16 };

typedef struct norm_case {
  const char *what;
  int64_t rows, pixels, places, all_places, gap; /* gap: floats between rows */
  float mean;
  bool relu;
} norm_case;

enum { MOST = LACI_IMAGE_NORM_CHANNELS };

static const norm_case cases[] = {
    {"one pixel", 1, 1, 1, 1, 0, 0, false},
    {"small", 2, 3, 5, 5, 0, 0.5F, true},
    {"some of the places", 3, 7, 8, 20, 0, -1, true},
    {"rows with a border", 4, 5, 3, 3, 96, 2, false},
    {"whole groups of pixels", 2, 8, 16, 16, 0, 0, true},
    {"as many channels as can be", 2, 9, MOST, MOST + 2, 33, 0, true},
    {"a large mean", 3, 13, 4, 4, 0, 1000, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct fixture {
  norm_case c;
  int each; /* 1: floats; 2: bf16 */
  int64_t channels;
  laci_norm_tile tile;
  int64_t row_stride, n;
  float *x, *dy, *to; /* [n] with guards around, any alignment */
  float *memory[3];
  float mean[2 * MOST], scale[MOST], shift[MOST], level[MOST], slope[MOST];
} fixture;

static float draw(uint64_t memory, uint64_t at, float mean) {
  return mean + (float)laci_rng_unit_interval(3, memory, at) - 0.5F;
}

static void set_up(fixture *f, const norm_case *c, int each, int shift) {
  *f = (fixture){.c = *c, .each = each, .row_stride = c->pixels * c->all_places * LANES + c->gap};
  if (f->c.places > MOST / each) f->c.places = MOST / each;
  f->channels = f->c.places * each;
  f->tile = (laci_norm_tile){.n_rows = c->rows,
                             .n_pixels = c->pixels,
                             .n_places = f->c.places,
                             .pixel_stride = c->all_places * LANES};
  f->n = c->rows * f->row_stride;
  for (int k = 0; k < 3; k++) {
    f->memory[k] = malloc((size_t)(f->n + 2 * GUARD) * sizeof(float));
    assert_non_null(f->memory[k]);
    for (int64_t i = 0; i < f->n + 2 * GUARD; i++) {
      const float mean = k == 0 ? c->mean : 0;
      const float one = draw((uint64_t)k, (uint64_t)i, mean);
      const uint32_t pair = laci_bf16_pair(one, draw((uint64_t)k + 3, (uint64_t)i, mean));
      if (each == 1) f->memory[k][i] = one;
      else memcpy(f->memory[k] + i, &pair, sizeof pair);
    }
  }
  f->x = f->memory[0] + GUARD + shift;
  f->dy = f->memory[1] + GUARD + shift;
  f->to = f->memory[2] + GUARD + shift;
  for (int64_t i = 0; i < f->channels; i++) {
    f->mean[i] = c->mean + 0.01F * (float)i;
    f->scale[i] = 0.5F + 0.1F * (float)(i % 7);
    f->shift[i] = 0.05F * (float)(i % 5) - 0.1F;
    f->level[i] = 0.02F * (float)(i % 3);
    f->slope[i] = 0.3F - 0.1F * (float)(i % 4);
  }
}

static void clear(fixture *f) {
  for (int k = 0; k < 3; k++) free(f->memory[k]);
}

static laci_norm_scales scales_of(const fixture *f) {
  return (laci_norm_scales){f->mean, f->scale, f->shift, f->c.relu};
}

static laci_norm_source from_of(const fixture *f, const float *at) {
  return (laci_norm_source){at, f->row_stride};
}

/* Value `i` of a channel's, which are rows * pixels * 16. */
static float value_of(const fixture *f, const float *from, int64_t channel, int64_t i) {
  const int64_t pixel = i / LANES;
  const float *at = from + pixel / f->c.pixels * f->row_stride +
                    pixel % f->c.pixels * f->tile.pixel_stride + channel / f->each * LANES +
                    i % LANES;
  uint32_t pair;
  if (f->each == 1) return *at;
  memcpy(&pair, at, sizeof pair);
  return channel % 2 ? laci_bf16_pair_high(pair) : laci_bf16_pair_low(pair);
}

static int64_t n_of(const fixture *f) { return f->c.rows * f->c.pixels * LANES; }

/* The gradient before the Relu, in double. */
static double back_of(const fixture *f, int64_t channel, int64_t i) {
  const float off = value_of(f, f->x, channel, i) - f->mean[channel];
  const float v = off * f->scale[channel] + f->shift[channel];
  return f->c.relu && !(v > 0) ? 0 : (double)value_of(f, f->dy, channel, i);
}

static void expect_near(const char *what, double got, double want, double scale) {
  if (!(fabs(got - want) <= 2e-6 * scale)) fail_msg("%s: %.9g, not %.9g", what, got, want);
}

/* A result: of bf16, rounded at the end. */
static void expect_result(const fixture *f, int64_t channel, int64_t i, double want) {
  const double bf16 = 1.0 / 256 * fabs(want);
  const double off = fabs((double)value_of(f, f->to, channel, i) - want);
  if (!(off <= 4e-6 + (f->each == 1 ? 0 : bf16))) fail_msg("%s: off by %g", f->c.what, off);
}

/* ---- The definition ---- */

static const laci_image_norm *definition(const fixture *f) {
  return f->each == 1 ? &laci_image_norm_scalar : &laci_image_norm_bf16_scalar;
}

static void expect_moments(fixture *f) {
  float mean[MOST], squares[MOST];
  definition(f)->moments(&f->tile, from_of(f, f->x), mean, squares);
  for (int64_t c = 0; c < f->channels; c++) {
    double sum = 0, around = 0;
    for (int64_t i = 0; i < n_of(f); i++) sum += (double)value_of(f, f->x, c, i);
    sum /= (double)n_of(f);
    for (int64_t i = 0; i < n_of(f); i++) {
      const double off = (double)value_of(f, f->x, c, i) - sum;
      around += off * off;
    }
    expect_near(f->c.what, (double)mean[c], sum, fabs(sum) + 1);
    expect_near(f->c.what, (double)squares[c], around, around + 1e-3);
  }
}

static void expect_forward(fixture *f) {
  const laci_norm_scales s = scales_of(f);
  definition(f)->apply(&f->tile, &s, from_of(f, f->x), (laci_norm_target){f->to, f->row_stride});
  for (int64_t c = 0; c < f->channels; c++) {
    for (int64_t i = 0; i < n_of(f); i++) {
      const double off = (double)value_of(f, f->x, c, i) - (double)f->mean[c];
      const double v = off * (double)f->scale[c] + (double)f->shift[c];
      expect_result(f, c, i, f->c.relu && v < 0 ? 0 : v);
    }
  }
}

static void expect_backward(fixture *f) {
  const laci_norm_scales s = scales_of(f);
  const laci_norm_slopes off = {f->level, f->slope};
  float levels[MOST], slopes[MOST];
  definition(f)->sums(&f->tile, &s, from_of(f, f->x), from_of(f, f->dy),
                      (float *const[]){levels, slopes});
  definition(f)->gradient(&f->tile, &s, &off, from_of(f, f->x), from_of(f, f->dy),
                          (laci_norm_target){f->to, f->row_stride});
  for (int64_t c = 0; c < f->channels; c++) {
    double level = 0, slope = 0;
    for (int64_t i = 0; i < n_of(f); i++) {
      const double m = back_of(f, c, i);
      const double x = (double)value_of(f, f->x, c, i) - (double)f->mean[c];
      level += m;
      slope += m * x;
      expect_result(f, c, i,
                    (double)f->scale[c] * (m - (double)f->level[c] - x * (double)f->slope[c]));
    }
    expect_near(f->c.what, (double)levels[c], level, (double)n_of(f) / 4);
    expect_near(f->c.what, (double)slopes[c], slope, (double)n_of(f) / 4);
  }
}

static void the_definition_is_a_batch_normalization(void **state) {
  (void)state;
  for (int at = 0; at < 2 * N_CASES; at++) {
    fixture f;
    set_up(&f, &cases[at / 2], 1 + at % 2, 0);
    expect_moments(&f);
    expect_forward(&f);
    expect_backward(&f);
    clear(&f);
  }
}

static void a_relu_lets_no_number_through_as_one(void **state) {
  float a[3] = {NAN, -1, 1}, b[3] = {1, 0.5F, 2}, to[3];
  (void)state;
  laci_image_norm_scalar.add(a, b, true, 3, to);
  assert_true(isnan(to[0]));
  assert_true(to[1] == 0 && to[2] == 3);
  laci_image_norm_scalar.add(a, b, false, 3, to);
  assert_true(isnan(to[0]) && to[1] == -0.5F && to[2] == 3);
}

/* A tie to the even one, one above it, a zero, and no number. */
static void sums_of_pairs_are_rounded(void **state) {
  const uint32_t a[2] = {laci_bf16_pair(1, -1), laci_bf16_pair(NAN, -2)};
  const uint32_t b[2] = {laci_bf16_pair(0x1p-8F, 0x1.02p-8F), laci_bf16_pair(1, 2)};
  float in[2][2], to[2];
  uint32_t got[2];
  (void)state;
  memcpy(in[0], a, sizeof a);
  memcpy(in[1], b, sizeof b);
  laci_image_norm_bf16_scalar.add(in[0], in[1], false, 2, to);
  memcpy(got, to, sizeof got);
  assert_int_equal(got[0], laci_bf16_pair(1, -1 + 0x1.02p-8F));
  assert_true(isnan(laci_bf16_pair_low(got[1])) && laci_bf16_pair_high(got[1]) == 0);
  laci_image_norm_bf16_scalar.add(in[0], in[1], true, 2, to);
  memcpy(got, to, sizeof got);
  assert_int_equal(got[0], laci_bf16_pair(1, 0));
  assert_true(isnan(laci_bf16_pair_low(got[1])));
}

/* ---- Variants ---- */

typedef struct answers {
  float sums[4][MOST];
  float *to[3]; /* with guards */
} answers;

static void run(fixture *f, const laci_image_norm *k, answers *a) {
  const size_t bytes = (size_t)(f->n + 2 * GUARD) * sizeof(float);
  const laci_norm_scales s = scales_of(f);
  const laci_norm_slopes off = {f->level, f->slope};
  const laci_norm_target to = {f->to, f->row_stride};
  memset(a->sums, 0, sizeof a->sums);
  k->moments(&f->tile, from_of(f, f->x), a->sums[0], a->sums[1]);
  k->sums(&f->tile, &s, from_of(f, f->x), from_of(f, f->dy),
          &(float *[]){a->sums[2], a->sums[3]}[0]);
  for (int call = 0; call < 3; call++) {
    a->to[call] = malloc(bytes);
    assert_non_null(a->to[call]);
    memset(f->memory[2], 0x5A, bytes);
    if (call == 0) k->apply(&f->tile, &s, from_of(f, f->x), to);
    if (call == 1) k->gradient(&f->tile, &s, &off, from_of(f, f->x), from_of(f, f->dy), to);
    if (call == 2) k->add(f->x, f->dy, f->c.relu, f->n, f->to);
    memcpy(a->to[call], f->memory[2], bytes);
  }
}

/* What an instruction set has: of floats, and of bf16. */
static const struct {
  laci_cpu_level level;
  const laci_image_norm *kernels[2];
} variants[] = {
#define VARIANT(name, level) {level, {&laci_image_norm_##name, &laci_image_norm_bf16_##name}},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

/* Of the floats of `to` those that the definition leaves alone are between channels and rows, and
 * around: both hold what was there before. */
static void expect_guards(const fixture *f, const answers *a, int shift) {
  float guard[GUARD];
  memset(guard, 0x5A, sizeof guard);
  for (int call = 0; call < 3; call++) {
    assert_memory_equal(a->to[call], guard, sizeof guard);
    assert_memory_equal(a->to[call] + GUARD + shift + f->n, guard,
                        sizeof guard - (size_t)shift * sizeof *guard);
  }
}

static void free_answers(answers *a) {
  for (int call = 0; call < 3; call++) free(a->to[call]);
}

static void compare_variants(const norm_case *c, int each, int shift) {
  fixture f;
  answers want, got;
  set_up(&f, c, each, shift);
  const size_t bytes = (size_t)(f.n + 2 * GUARD) * sizeof(float);
  run(&f, definition(&f), &want);
  expect_guards(&f, &want, shift);
  for (size_t v = 1; v < sizeof variants / sizeof *variants; v++) {
    if (variants[v].level > laci_cpu_level_in_force()) continue;
    run(&f, variants[v].kernels[each - 1], &got);
    assert_memory_equal(got.sums, want.sums, sizeof want.sums);
    for (int call = 0; call < 3; call++) {
      if (memcmp(got.to[call], want.to[call], bytes) != 0) fail_msg("%s, call %d", f.c.what, call);
    }
    free_answers(&got);
  }
  free_answers(&want);
  clear(&f);
}

static void variants_have_the_same_bits(void **state) {
  (void)state;
  for (int at = 0; at < 4 * N_CASES; at++) {
    compare_variants(&cases[at / 4], 1 + at % 2, at / 2 % 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_batch_normalization),
      cmocka_unit_test(a_relu_lets_no_number_through_as_one),
      cmocka_unit_test(sums_of_pairs_are_rounded),
      cmocka_unit_test(variants_have_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

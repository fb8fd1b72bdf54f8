/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/reorder: between all layouts, the definition against where laci_sparse_offset says
 * that values are, and every variant against the definition: bit by bit, all of the target written
 * and nothing outside of it, in one part or several, normalized or not; borders on their own. */
#include "kernel/sparse/reorder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"

enum { GUARD = 64, LANES = LACI_SPARSE_LANES, N_LAYOUTS = 11 };
#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

typedef struct reorder_case {
  const char *what;
  laci_sparse_size size; /* of the target */
  int64_t stride_h, stride_w;
} reorder_case;

static const reorder_case cases[] = {
    {"one value", {1, 1, 1, 1}, 1, 1},
    {"small", {16, 7, 7, 1}, 1, 1},
    {"odd", {5, 3, 9, 2}, 1, 1},
    {"odd channels and wide rows", {37, 3, 33, 1}, 1, 1},
    {"many channels", {144, 4, 5, 3}, 1, 1},
    {"blocks and a few", {131, 2, 3, 17}, 1, 1},
    {"17 images", {32, 5, 6, 17}, 1, 1},
    {"a full group", {48, 4, 9, 16}, 1, 1},
    {"two groups and one", {3, 2, 2, 33}, 1, 1},
    {"one axis", {16, 1, 300, 2}, 1, 1},
    {"one axis of 18 images", {20, 1, 35, 18}, 1, 1},
    {"Gemm", {80, 1, 1, 21}, 1, 1},
    {"tokens", {64, 1, 50, 1}, 1, 1},
    {"thinned", {16, 7, 7, 1}, 2, 2},
    {"thinned, odd", {19, 5, 23, 2}, 2, 3},
    {"thinned rows of images", {32, 4, 5, 19}, 3, 1},
    {"more than a chunk", {16, 20, 21, 1}, 1, 1},
    {"thinned, more than a chunk", {16, 19, 20, 1}, 2, 2},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Every kind of layout with borders, gaps and phases; false: there is none of so many channels. */
static bool layout_of(int kind, const laci_sparse_size *s, laci_sparse_layout *l) {
  static const struct {
    laci_memory_format format;
    laci_sparse_border border;
  } kinds[N_LAYOUTS - 3] = {
      {LACI_FORMAT_CHW, {0, 0, 0, 0, 1, 1}},    {LACI_FORMAT_CHW, {1, 1, 1, 1, 1, 1}},
      {LACI_FORMAT_CHW, {1, 1, 1, 1, 2, 2}},    {LACI_FORMAT_CHW, {3, 0, 1, 5, 3, 2}},
      {LACI_FORMAT_PC16P, {0, 0, 0, 0, 1, 1}},  {LACI_FORMAT_PC16P, {0, 2, 0, 1, 1, 1}},
      {LACI_FORMAT_HWC16N, {0, 0, 0, 0, 1, 1}}, {LACI_FORMAT_HWC16N, {1, 2, 3, 1, 1, 1}},
  };
  static const laci_memory_format contiguous[3] = {LACI_FORMAT_CHW, LACI_FORMAT_HWC,
                                                   LACI_FORMAT_CHW16C};
  if (kind < N_LAYOUTS - 3) {
    *l = laci_sparse_padded_layout(kinds[kind].format, s->channels, s->h, s->w, kinds[kind].border);
    return true;
  }
  const laci_memory_format format = contiguous[kind - N_LAYOUTS + 3];
  if (format == LACI_FORMAT_CHW16C && s->channels % LANES) return false;
  *l = laci_sparse_layout_contiguous(format, s->channels, s->h, s->w);
  return true;
}

static int64_t floats_of(const laci_sparse_layout *l, int64_t n_images) {
  return (l->format == LACI_FORMAT_HWC16N ? (n_images + LANES - 1) / LANES : n_images) *
         l->n_floats;
}

static int64_t place_of(const laci_sparse_layout *l, int64_t image, int64_t channel, int64_t y,
                        int64_t x) {
  const int64_t at = laci_sparse_offset(l, channel, y, x);
  if (l->format == LACI_FORMAT_HWC16N) return image / LANES * l->n_floats + at + image % LANES;
  return image * l->n_floats + at;
}

/* Tensors in memory that ends with them, so that the sanitizers see what is read beyond; they begin
 * at an odd float. */
typedef struct guarded {
  float *memory, *at;
  int64_t n;
} guarded;

static guarded guarded_of(int64_t n) {
  guarded p = {malloc((size_t)(n + GUARD + 1) * sizeof(float)), NULL, n};
  assert_non_null(p.memory);
  memset(p.memory, 0x5A, (size_t)(n + GUARD + 1) * sizeof(float));
  p.at = p.memory + GUARD + 1;
  return p;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* For memory with a second guard after it. */
static void expect_guards(const guarded *p) {
  for (int64_t at = 0; at <= GUARD; at++) assert_int_equal(bits_of(p->memory[at]), 0x5A5A5A5AU);
  for (int64_t at = 0; at < GUARD; at++) {
    assert_int_equal(bits_of(p->at[p->n + at]), 0x5A5A5A5AU);
  }
}

/* Distinct values, exact in f32; never 0. */
static float value_of(const laci_sparse_size *s, int64_t image, int64_t channel, int64_t y,
                      int64_t x) {
  return (float)(1 + ((image * s->channels + channel) * s->h + y) * s->w + x);
}

typedef struct trial {
  const reorder_case *c;
  int from_kind, to_kind;
  laci_sparse_reorder r;
  guarded from, want, got; /* the last two followed by a guard */
} trial;

enum { MOST_CHANNELS = 144 };
static float scales[MOST_CHANNELS], shifts[MOST_CHANNELS];

/* Of both signs, so that some results are below the bound; one is no number. */
static laci_sparse_norm make_norm(void) {
  for (int c = 0; c < MOST_CHANNELS; c++) {
    scales[c] = 0.37F * (float)(c % 7) - 1;
    shifts[c] = c == 2 ? NAN : 0.11F * (float)c - 3;
  }
  return (laci_sparse_norm){scales, shifts, -50};
}

static float normalized(const laci_sparse_norm *n, int64_t channel, float x) {
  if (!n->scale) return x;
  const volatile float product = n->scale[channel] * x; /* rounded */
  const float y = product + n->shift[channel];
  return y < n->low ? n->low : y;
}

static bool trial_init(trial *t, const reorder_case *c, int from_kind, int to_kind) {
  const laci_sparse_size source = {c->size.channels, (c->size.h - 1) * c->stride_h + 1,
                                   c->size.w * c->stride_w, c->size.n_images};
  *t = (trial){.c = c, .from_kind = from_kind, .to_kind = to_kind};
  t->r = (laci_sparse_reorder){.size = c->size, .stride_h = c->stride_h, .stride_w = c->stride_w};
  if (!layout_of(from_kind, &source, &t->r.from)) return false;
  if (!layout_of(to_kind, &c->size, &t->r.to)) return false;
  t->from = guarded_of(floats_of(&t->r.from, source.n_images));
  t->want = guarded_of(floats_of(&t->r.to, source.n_images) + GUARD);
  t->got = guarded_of(floats_of(&t->r.to, source.n_images) + GUARD);
  t->want.n -= GUARD;
  t->got.n -= GUARD;
  for (int64_t row = 0; row < source.n_images * source.channels * source.h; row++) {
    const int64_t image = row / source.h / source.channels, y = row % source.h;
    const int64_t channel = row / source.h % source.channels;
    for (int64_t x = 0; x < source.w; x++) {
      t->from.at[place_of(&t->r.from, image, channel, y, x)] =
          value_of(&source, image, channel, y, x);
    }
  }
  return true;
}

static void trial_clear(trial *t) {
  free(t->from.memory);
  free(t->want.memory);
  free(t->got.memory);
}

static void forget(const guarded *p) { memset(p->at, 0x5A, (size_t)p->n * sizeof *p->at); }

static void each_trial(void (*body)(trial *t)) {
  for (int at = 0; at < N_CASES * N_LAYOUTS * N_LAYOUTS; at++) {
    trial t;
    const int from = at / N_LAYOUTS % N_LAYOUTS, to = at % N_LAYOUTS;
    if (!trial_init(&t, &cases[at / N_LAYOUTS / N_LAYOUTS], from, to)) continue;
    body(&t);
    expect_guards(&t.want);
    expect_guards(&t.got);
    trial_clear(&t);
  }
}

/* Every pixel by laci_sparse_offset, everything else zero. */
static void fill_want(trial *t) {
  const laci_sparse_size *s = &t->c->size;
  const laci_sparse_size source = {s->channels, (s->h - 1) * t->c->stride_h + 1,
                                   s->w * t->c->stride_w, s->n_images};
  memset(t->want.at, 0, (size_t)t->want.n * sizeof(float));
  for (int64_t row = 0; row < s->n_images * s->channels * s->h; row++) {
    const int64_t image = row / s->h / s->channels, channel = row / s->h % s->channels;
    const int64_t y = row % s->h;
    for (int64_t x = 0; x < s->w; x++) {
      t->want.at[place_of(&t->r.to, image, channel, y, x)] =
          normalized(&t->r.norm, channel,
                     value_of(&source, image, channel, y * t->c->stride_h, x * t->c->stride_w));
    }
  }
}

static void expect_want(const trial *t, const char *how) {
  if (!memcmp(t->got.at, t->want.at, (size_t)t->got.n * sizeof(float))) return;
  for (int64_t at = 0; at < t->got.n; at++) {
    if (bits_of(t->got.at[at]) == bits_of(t->want.at[at])) continue;
    fail_msg("%s, %s, layout %d to %d: float %lld is %g, want %g", t->c->what, how, t->from_kind,
             t->to_kind, (long long)at, (double)t->got.at[at], (double)t->want.at[at]);
  }
}

static void expect_definition(trial *t) {
  fill_want(t);
  laci_sparse_reorder_scalar(&t->r, t->from.at, t->got.at, 0, laci_sparse_reorder_n_items(&t->r));
  expect_want(t, "the definition");
}

static void the_definition_moves_every_value(void **state) {
  (void)state;
  each_trial(expect_definition);
}

/* In one part, and by as many threads, of which the last begins. */
static void expect_same(trial *t) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  const int64_t n = laci_sparse_reorder_n_items(&t->r);
  fill_want(t);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    /* The definition is slow, and was tested in one part. */
    for (int64_t threads = levels[level] == LACI_CPU_ANY ? 3 : 1; threads <= 3; threads++) {
      forget(&t->got);
      for (int64_t thread = threads - 1; thread >= 0; thread--) {
        laci_sparse_reorder_variant()(&t->r, t->from.at, t->got.at, n * thread / threads,
                                      n * (thread + 1) / threads);
      }
      expect_want(t, laci_cpu_level_name(levels[level]));
    }
  }
  (void)laci_cpu_limit_level(start);
}

static void every_variant_moves_every_value(void **state) {
  (void)state;
  each_trial(expect_same);
}

/* Into what windows read. */
static void expect_norm(trial *t) {
  if (t->r.to.format == LACI_FORMAT_CHW16C || t->r.to.format == LACI_FORMAT_HWC) return;
  t->r.norm = make_norm();
  expect_definition(t);
  expect_same(t);
}

static void every_variant_normalizes(void **state) {
  (void)state;
  each_trial(expect_norm);
}

/* Items write each float once: done one by one, each after all was forgotten, what they write is
 * apart and makes the whole. */
static void items_share_no_float(void **state) {
  static const int kinds[][2] = {{8, 1}, {10, 3}, {0, 5}, {9, 7}, {7, 8}, {5, 10}, {2, 9}};
  (void)state;
  for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
    trial t;
    assert_true(trial_init(&t, &cases[4], kinds[at][0], kinds[at][1]));
    const int64_t n = laci_sparse_reorder_n_items(&t.r);
    int64_t n_written = 0;
    assert_true(n > 1);
    for (int64_t item = 0; item < n; item++) {
      forget(&t.got);
      laci_sparse_reorder_variant()(&t.r, t.from.at, t.got.at, item, item + 1);
      for (int64_t i = 0; i < t.got.n; i++) n_written += bits_of(t.got.at[i]) != 0x5A5A5A5AU;
    }
    assert_int_equal(n_written, t.got.n);
    trial_clear(&t);
  }
}

/* What is no pixel becomes that word; pixels stay, and so do lanes of images that are not there. */
static void expect_border_of(trial *t, uint32_t word) {
  const laci_sparse_layout *l = &t->r.to;
  const laci_sparse_size *s = &t->c->size;
  const int64_t n = laci_sparse_border_n_items(l, s);
  const int64_t lanes = l->format == LACI_FORMAT_HWC16N ? LANES : 1;
  const int64_t n_images = (s->n_images + lanes - 1) / lanes * lanes;
  if (t->from_kind) return; /* the target's kind is all that counts */
  forget(&t->got);
  for (int64_t at = 0; at < t->want.n; at++) memcpy(t->want.at + at, &word, sizeof word);
  for (int64_t row = 0; row < n_images * s->channels * s->h; row++) {
    const int64_t image = row / s->h / s->channels, channel = row / s->h % s->channels;
    for (int64_t x = 0; x < s->w; x++) {
      const int64_t at = place_of(l, image, channel, row % s->h, x);
      t->want.at[at] = t->got.at[at];
    }
  }
  laci_sparse_fill_border(l, s, word, t->got.at, n / 2, n);
  laci_sparse_fill_border(l, s, word, t->got.at, 0, n / 2);
  expect_want(t, "zeros");
}

static void expect_border(trial *t) {
  expect_border_of(t, 0);
  expect_border_of(t, 0x80808080U);
}

static void borders_are_filled_alone(void **state) {
  (void)state;
  each_trial(expect_border);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_moves_every_value),
      cmocka_unit_test(every_variant_moves_every_value),
      cmocka_unit_test(every_variant_normalizes),
      cmocka_unit_test(items_share_no_float),
      cmocka_unit_test(borders_are_filled_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/gradient.h: the definition against a convolution's gradient in double, for windows
 * of all kinds in all layouts; every variant and every cut of the work against the definition, bit
 * by bit, guards included. */
#include "support/sparse_case.h"

#include "base/memory.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "kernel/sparse/gradient.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

/* More rows than an item has, more tiles than a block, few rows, and what keeps one, three or four
 * of four. */
static const sparse_case more_cases[] = {
    {"blocks", SPARSE_WINDOW(12, 75, 1, 9, 13, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 2},
    {"two items of rows", SPARSE_WINDOW(19, 270, 1, 2, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 2,
     2},
    {"3x3, stride 2, blocks", SPARSE_WINDOW(8, 44, 1, 19, 17, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), IMAGES,
     1, 2},
    {"50 tiles", SPARSE_WINDOW(8, 30, 1, 1, 50, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 2},
    {"one of four", SPARSE_WINDOW(16, 90, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 1},
    {"three of four", SPARSE_WINDOW(16, 20, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 3},
    {"all of many", SPARSE_WINDOW(16, 50, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 4},
    {"no pattern, many rows", SPARSE_WINDOW(24, 250, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES,
     1, 5},
    {"depthwise", SPARSE_WINDOW(6, 6, 6, 5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 1, 4},
    {"groups of two rows", SPARSE_WINDOW(8, 4, 2, 5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXEL_BLOCKS,
     1, 2},
};
enum { N_MORE = sizeof more_cases / sizeof *more_cases, N_CASES = N_SPARSE_CASES + N_MORE };

static sparse_case case_of(int at) {
  sparse_case c = at < N_SPARSE_CASES ? sparse_cases[at] : more_cases[at - N_SPARSE_CASES];
  if (c.format != LACI_FORMAT_PC16P || c.window.kernel_h == 1) return c;
  c.format = c.format_out = LACI_FORMAT_CHW; /* PC16P is for windows of one pixel */
  return c;
}

/* A case with its plan; the gradient is somewhere in its memory. */
typedef struct fixture {
  sparse_case c;
  sparse_operands o;
  laci_sparse_gradient g;
  float *memory, *gradient, *memory_scratch, *scratch;
  size_t bytes;
} fixture;

static void set_up(fixture *f, int which, bool bf16, int shift) {
  lac_error err = {0};
  float *dy;
  f->c = case_of(which);
  if (bf16 && f->c.window.groups < 6)
    f->c.window.values = LACI_SPARSE_BF16; /* not of single channels */
  sparse_operands_init(&f->c, shift, &f->o);
  dy = f->o.residual;
  for (int64_t at = 0; at < f->o.n_y; at++) { /* what is no result counts for nothing */
    if (dy[at] == 0) dy[at] = 1e9F;
  }
  if (laci_sparse_gradient_init(&f->o.convolution.product, f->o.convolution.tiles,
                                f->o.convolution.n_tiles, &f->g, &err)) {
    fail_msg("%s: %s", f->c.what, err.text);
  }
  f->gradient = sparse_guarded(f->o.convolution.n_kept, shift, &f->memory);
  f->bytes = (size_t)(f->o.convolution.n_kept + 2 * SPARSE_GUARD_FLOATS) * sizeof(float);
  f->scratch = sparse_guarded((int64_t)laci_sparse_gradient_scratch_floats(&f->g), shift,
                              &f->memory_scratch);
}

static void clear(fixture *f) {
  laci_sparse_gradient_clear(&f->g);
  sparse_operands_clear(&f->o);
  free(f->memory);
  free(f->memory_scratch);
}

static laci_sparse_gradient_run *now_of(const fixture *f) {
  return f->g.bf16 ? laci_sparse_gradient_bf16_variant() : laci_sparse_gradient_variant();
}

/* In `parts` cuts, the last one first. */
static void run_all(const fixture *f, laci_sparse_gradient_run *run, int64_t parts) {
  const laci_sparse_gradient_operands s = {f->o.x, f->o.residual, f->gradient, f->scratch};
  const int64_t n = f->g.n_items;
  memset(f->memory, 0x5A, f->bytes);
  for (int64_t part = parts - 1; part >= 0; part--) {
    run(&f->g, &s, n * part / parts, n * (part + 1) / parts);
  }
}

/* One weight's gradient in double: [row][channel of the group][tap]. */
static double want_of(const fixture *f, int64_t row, int64_t dense) {
  const laci_sparse_window *g = &f->c.window;
  const int64_t taps = g->kernel_h * g->kernel_w, tap = dense % taps;
  const int64_t channels = g->channels_in / g->groups;
  const int64_t channel = row / (g->channels_out / g->groups) * channels + dense / taps;
  const int lanes = f->c.format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  double sum = 0;
  for (int64_t at = 0; at < f->c.n_images * g->out_h * g->out_w; at++) {
    const int64_t image = at / (g->out_h * g->out_w);
    const int64_t out_y = at / g->out_w % g->out_h, out_x = at % g->out_w;
    const int64_t y = out_y * g->stride_h + tap / g->kernel_w * g->dilation_h - g->pad_top;
    const int64_t x = out_x * g->stride_w + tap % g->kernel_w * g->dilation_w - g->pad_left;
    if (y < 0 || y >= g->h || x < 0 || x >= g->w) continue;
    const sparse_place in =
        sparse_place_of(&f->o.convolution.in, g->values, channel, (const int64_t[]){y, x});
    const sparse_place out =
        sparse_place_of(&f->o.convolution.out, g->values, row, (const int64_t[]){out_y, out_x});
    const float *from = f->o.x + image * f->o.convolution.in.n_floats;
    const float *slope = f->o.residual + image * f->o.convolution.out.n_floats;
    for (int lane = 0; lane < lanes; lane++) {
      sum += (double)sparse_get(from + lane, in) * (double)sparse_get(slope + lane, out);
    }
  }
  return sum;
}

static void expect_guards(const fixture *f) {
  float expected[2 * SPARSE_GUARD_FLOATS];
  const size_t before = (size_t)(f->gradient - f->memory);
  memset(expected, 0x5A, sizeof expected);
  assert_memory_equal(f->memory, expected, before * sizeof *expected);
  assert_memory_equal(f->gradient + f->o.convolution.n_kept, expected,
                      (2 * SPARSE_GUARD_FLOATS - before) * sizeof *expected);
}

static void the_definition_is_a_gradient(void **state) {
  (void)state;
  for (int which = 0; which < 2 * N_CASES; which++) {
    fixture f;
    set_up(&f, which / 2, which % 2 > 0, 0);
    run_all(&f, laci_sparse_gradient_scalar, 1);
    const laci_sparse_convolution *convolution = &f.o.convolution;
    for (int64_t row = 0; row < convolution->product.n_rows; row++) {
      const int64_t first = row / convolution->product.rows_together * convolution->row_length;
      for (int64_t k = convolution->kept.row_begin[row]; k < convolution->kept.row_begin[row + 1];
           k++) {
        const double got = (double)f.gradient[k];
        const double want =
            want_of(&f, row, convolution->dense_at[convolution->kept.column[k] - first]);
        if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want)))) {
          fail_msg("%s: row %lld, weight %lld: got %g, want %g", f.c.what, (long long)row,
                   (long long)k, got, want);
        }
      }
    }
    expect_guards(&f);
    clear(&f);
  }
}

/* Whatever the instruction set, where memory begins and how the work is cut. */
static void every_variant_and_cut_has_the_same_bits(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int which = 0; which < 2 * N_CASES; which++) {
    fixture f;
    set_up(&f, which / 2, which % 2 > 0, which / 2 % 4);
    run_all(&f, laci_sparse_gradient_scalar, 1);
    float *want = malloc(f.bytes);
    assert_non_null(want);
    memcpy(want, f.memory, f.bytes);
    for (int level = 0; level < N_LEVELS; level++) {
      if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
      for (int64_t parts = 1; parts <= 3; parts++) {
        run_all(&f, now_of(&f), parts);
        assert_memory_equal(f.memory, want, f.bytes);
      }
    }
    (void)laci_cpu_limit_level(start);
    free(want);
    clear(&f);
  }
}

static void run_some(int64_t first, int64_t last, void *context) {
  const fixture *f = context;
  float *memory,
      *scratch = sparse_guarded((int64_t)laci_sparse_gradient_scratch_floats(&f->g), 0, &memory);
  const laci_sparse_gradient_operands s = {f->o.x, f->o.residual, f->gradient, scratch};
  now_of(f)(&f->g, &s, first, last);
  free(memory);
}

static void threads_make_the_same(void **state) {
  (void)state;
  for (int which = 0; which < 2 * N_CASES; which += 7) {
    fixture f;
    set_up(&f, which / 2, which % 2 > 0, 0);
    run_all(&f, now_of(&f), 1);
    float *want = malloc(f.bytes);
    assert_non_null(want);
    memcpy(want, f.memory, f.bytes);
    for (int threads = 1; threads <= 3; threads++) {
      laci_pool *pool;
      lac_error err = {0};
      assert_int_equal(laci_pool_create(threads, &pool, &err), LAC_OK);
      memset(f.memory, 0x5A, f.bytes);
      laci_pool_for(pool, f.g.n_items, 1, run_some, &f);
      assert_memory_equal(f.memory, want, f.bytes);
      laci_pool_destroy(pool);
    }
    free(want);
    clear(&f);
  }
}

/* Scratch memory holds what it holds. */
static void scratch_memory_is_enough(void **state) {
  (void)state;
  for (int which = 0; which < 2 * N_CASES; which++) {
    fixture f;
    set_up(&f, which / 2, which % 2 > 0, which / 2 % 4);
    run_all(&f, now_of(&f), 1);
    const float *end = f.scratch + laci_sparse_gradient_scratch_floats(&f.g);
    float expected[SPARSE_GUARD_FLOATS / 4];
    memset(expected, 0x5A, sizeof expected);
    assert_memory_equal(end, expected, sizeof expected);
    clear(&f);
  }
}

/* A product without a tile has a gradient: zeros. */
static void nothing_has_a_gradient_of_zeros(void **state) {
  (void)state;
  fixture f;
  set_up(&f, 0, false, 0);
  f.g.n_tiles = 0;
  run_all(&f, now_of(&f), 2);
  for (int64_t k = 0; k < f.o.convolution.n_kept; k++) assert_true(f.gradient[k] == 0);
  clear(&f);
}

static void too_little_memory_is_told(void **state) {
  sparse_operands o;
  laci_sparse_gradient g;
  long n = 0;
  (void)state;
  sparse_operands_init(&sparse_cases[0], 0, &o);
  for (lac_status st = LAC_NO_MEMORY; st; n++) {
    lac_error err = {0};
    laci_memory_fail_from(n + 1);
    st = laci_sparse_gradient_init(&o.convolution.product, o.convolution.tiles,
                                   o.convolution.n_tiles, &g, &err);
    laci_memory_fail_from(0);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_null(g.items);
  }
  assert_true(n > 3);
  laci_sparse_gradient_clear(&g);
  sparse_operands_clear(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_gradient),
      cmocka_unit_test(every_variant_and_cut_has_the_same_bits),
      cmocka_unit_test(threads_make_the_same),
      cmocka_unit_test(scratch_memory_is_enough),
      cmocka_unit_test(nothing_has_a_gradient_of_zeros),
      cmocka_unit_test(too_little_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse: the definition against a convolution in double, for windows of all kinds in both
 * layouts; every variant against the definition, bit by bit, guards included. */
#include "support/sparse_case.h"

#include "cpu/cpu.h"
#include "kernel/sparse/grouped_rows.h"
#include "kernel/sparse/csr.h"
#include "kernel/sparse/gradient.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

static void multiply_all(laci_sparse_multiply *multiply, const sparse_operands *o,
                         const laci_sparse_operands *run) {
  const laci_sparse_part all = {o->convolution.tiles, 0, o->convolution.n_tiles, 0,
                                o->convolution.product.n_rows};
  sparse_forget_result(o);
  multiply(&o->convolution.product, run, &all);
}

/* One result in double. */
typedef struct place {
  int64_t image, row, y, x;
  int lane;
} place;

static double value_of(const sparse_case *c, const sparse_operands *o, place p) {
  const laci_sparse_window *g = &c->window;
  const int64_t channels = g->channels_in / g->groups, taps = g->kernel_h * g->kernel_w;
  const int64_t first = p.row / (g->channels_out / g->groups) * channels;
  double sum = (double)o->bias[p.row];
  for (int64_t at = 0; at < channels * taps; at++) {
    const int64_t dense = p.row * channels * taps + at, tap = at % taps;
    const int64_t y = p.y * g->stride_h + tap / g->kernel_w * g->dilation_h - g->pad_top;
    const int64_t x = p.x * g->stride_w + tap % g->kernel_w * g->dilation_w - g->pad_left;
    if (!o->kept[dense] || y < 0 || y >= g->h || x < 0 || x >= g->w) continue;
    const sparse_place from =
        sparse_place_of(&o->convolution.in, g->values, first + at / taps, (const int64_t[]){y, x});
    const float value = sparse_get(o->x + p.image * o->convolution.in.n_floats + p.lane, from);
    const float weight = o->dense[dense];
    sum += (double)(g->values ? laci_bf16_value(laci_bf16_round(weight)) : weight) * (double)value;
  }
  return sum;
}

static double finished(const laci_sparse_operands *run, double v, double residual) {
  if (!run->residual_last) v += residual;
  v = v < (double)run->low ? (double)run->low : v > (double)run->high ? (double)run->high : v;
  if (run->n_functions > 0) v = v / (1 + exp(-1.5 * v));
  if (run->n_functions > 1) v = -2 * v + 0.25;
  if (run->n_functions > 2)
    v = v < (double)-0.3F ? (double)-0.3F : v > (double)0.4F ? (double)0.4F : v;
  return run->residual_last ? v + residual : v;
}

static void expect_values(const sparse_case *c, const sparse_operands *o,
                          const laci_sparse_operands *run) {
  const laci_sparse_window *g = &c->window;
  const int lanes = c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  for (int64_t at = 0; at < c->n_images * g->channels_out * g->out_h * g->out_w * lanes; at++) {
    const int64_t pixel = at / lanes, channel = pixel / g->out_w / g->out_h;
    const place p = {channel / g->channels_out, channel % g->channels_out,
                     pixel / g->out_w % g->out_h, pixel % g->out_w, (int)(at % lanes)};
    const int64_t image_at = p.image * o->convolution.out.n_floats + p.lane;
    const sparse_place out =
        sparse_place_of(&o->convolution.out, g->values, p.row, (const int64_t[]){p.y, p.x});
    const double residual = run->residual ? (double)sparse_get(run->residual + image_at, out) : 0.0;
    const double want = finished(run, value_of(c, o, p), residual);
    const double got = (double)sparse_get(o->y + image_at, out);
    if (!(fabs(got - want) <= 1e-5 + (g->values ? fabs(want) / 256 : 0))) {
      fail_msg("%s: image %lld row %lld pixel %lld, %lld: got %g, want %g", c->what,
               (long long)p.image, (long long)p.row, (long long)p.y, (long long)p.x, got, want);
    }
  }
}

/* Of the result, guards included: floats that are no guard. */
static int64_t count_written(const sparse_operands *o) {
  int64_t n = 0;
  for (size_t at = 0; at < sparse_result_bytes(o) / sizeof(float); at++) {
    uint32_t bits;
    memcpy(&bits, o->memory_y + at, sizeof bits);
    n += bits != 0x5A5A5A5AU;
  }
  return n;
}

/* How many floats of the result are written: those that are results, and no others. */
static void expect_written(const sparse_case *c, const sparse_operands *o, int64_t before) {
  const laci_sparse_window *g = &c->window;
  const int lanes = c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  const int64_t n = count_written(o) - before;
  const int64_t channels = laci_sparse_layout_channels(g->channels_out, g->values);
  assert_int_equal(n, c->n_images * lanes * channels * g->out_h * g->out_w);
}

/* The at-th case, which decides what follows sums. */
static void expect_convolution(const sparse_case *c, sparse_operands *o, int at) {
  laci_sparse_operands run = sparse_run_of(o, at % 5 != 4, -0.25F, 0.75F);
  for (int n = 0; n <= 3; n++) {
    sparse_follow(&run, n, (at / 2 + n) % 2 == 0);
    sparse_forget_result(o);
    const int64_t before = count_written(o);
    multiply_all(laci_sparse_multiply_scalar, o, &run);
    expect_values(c, o, &run);
    expect_written(c, o, before);
  }
  sparse_operands_clear(o);
}

static void the_definition_is_a_convolution(void **state) {
  sparse_operands o;
  (void)state;
  for (int at = 0; at < 2 * N_SPARSE_CASES; at++) {
    const sparse_case c = sparse_case_of(&sparse_cases[at / 2], (laci_sparse_values)(at % 2));
    sparse_operands_init(&c, 0, &o);
    expect_convolution(&c, &o, at);
  }
  for (int at = 0; at < N_SPARSE_UNPADDED_CASES; at++) {
    sparse_unpadded_operands_init(&sparse_unpadded_cases[at], 0, &o);
    expect_convolution(&sparse_unpadded_cases[at], &o, at);
  }
}

/* Drawn sums of all rows and tiles, some of them large, become results. */
static void finish_all(laci_sparse_finish *finish, sparse_operands *o,
                       const laci_sparse_operands *run) {
  enum { ROWS = 4 }; /* share places of int8 */
  const laci_sparse_product *p = &o->convolution.product;
  const int64_t n = o->convolution.n_tiles * ROWS * LACI_SPARSE_LANES;
  float *sums = malloc((size_t)n * sizeof *sums);
  assert_non_null(sums);
  for (int64_t row = 0; row < p->n_rows; row += ROWS) {
    const int64_t last = row + ROWS < p->n_rows ? row + ROWS : p->n_rows;
    const laci_sparse_part part = {o->convolution.tiles, 0, o->convolution.n_tiles, row, last};
    for (int64_t at = 0; at < n; at++) {
      const double v = laci_rng_unit_interval(3, (uint64_t)row, (uint64_t)at);
      const int32_t integer = (int32_t)(v * 4e9 - 2e9);
      sums[at] = v < 0.01 ? 1e9F : (float)v * 4 - 2;
      if (p->values == LACI_SPARSE_S8) memcpy(&sums[at], &integer, sizeof integer);
    }
    finish(run, p->row_stride, p->values, &part, sums);
  }
  free(sums);
}

static void expect_same_bits(sparse_operands *o, int at) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  laci_sparse_operands run = sparse_run_of(o, at % 2 > 0, at % 4 ? 0 : -INFINITY, 1);
  void *want = malloc(sparse_result_bytes(o));
  assert_non_null(want);
  sparse_follow(&run, at % 4, at % 3 == 0);
  sparse_forget_result(o);
  finish_all(laci_sparse_finish_scalar, o, &run);
  memcpy(want, o->memory_y, sparse_result_bytes(o));
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    sparse_forget_result(o);
    finish_all(laci_sparse_finish_variant(), o, &run);
    assert_memory_equal(o->memory_y, want, sparse_result_bytes(o));
  }
  (void)laci_cpu_limit_level(start);
  free(want);
  sparse_operands_clear(o);
}

static void every_variant_finishes_with_the_same_bits(void **state) {
  sparse_operands o;
  (void)state;
  for (int which = 0; which < 3 * N_SPARSE_CASES; which++) {
    const int at = which / 3;
    const sparse_case c = sparse_case_of(&sparse_cases[at], (laci_sparse_values)(which % 3));
    sparse_operands_init(&c, at % 3, &o);
    expect_same_bits(&o, at);
  }
  for (int at = 0; at < N_SPARSE_UNPADDED_CASES; at++) {
    sparse_unpadded_operands_init(&sparse_unpadded_cases[at], at % 3, &o);
    expect_same_bits(&o, at);
  }
}

/* It may be no number. */
static void what_is_next_to_rows_is_not_read(void **state) {
  const sparse_case *c = &sparse_unpadded_cases[0];
  sparse_operands o;
  (void)state;
  sparse_unpadded_operands_init(c, 0, &o);
  const laci_sparse_operands run = sparse_run_of(&o, false, -INFINITY, INFINITY);
  const laci_sparse_layout *in = &o.convolution.in;
  for (int64_t channel = 0; channel < c->window.channels_in; channel++) { /* each row's last one */
    for (int64_t y = 0; y < c->window.h; y++) {
      o.x[laci_sparse_offset(in, channel, y, c->window.w - 1)] = NAN;
    }
  }
  multiply_all(laci_sparse_multiply_scalar, &o, &run);
  for (int64_t row = 0; row < c->window.channels_out; row++) {
    for (int64_t y = 0; y < c->window.out_h; y++) {
      assert_true(isfinite(o.y[laci_sparse_offset(&o.convolution.out, row, y, 0)]));
    }
  }
  sparse_operands_clear(&o);
}

static void some_windows_need_zeros_between_rows(void **state) {
  static const laci_sparse_window windows[] = {
      SPARSE_WINDOW(4, 8, 1, 9, 9, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2), /* two pixels are missing */
      SPARSE_WINDOW(4, 8, 1, 9, 9, 3, 3, 1, 1, 1, 2, 1, 2, 1, 2),
      SPARSE_WINDOW(4, 8, 1, 9, 6, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0), /* more results than pixels */
      SPARSE_WINDOW(4, 8, 1, 9, 6, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1),
      SPARSE_WINDOW(4, 8, 1, 9, 9, 3, 3, 2, 2, 1, 1, 2, 2, 2, 2),
      SPARSE_WINDOW(4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1)};
  (void)state;
  for (size_t at = 0; at < sizeof windows / sizeof *windows; at++) {
    if (laci_sparse_may_be_unpadded(&windows[at])) fail_msg("window %zu", at);
  }
  assert_true(laci_sparse_may_be_unpadded(&sparse_unpadded_cases[0].window));
  const sparse_case pairs = sparse_case_of(&sparse_unpadded_cases[0], LACI_SPARSE_BF16);
  assert_false(laci_sparse_may_be_unpadded(&pairs.window));
}

static void others_do_not_read_such_rows(void **state) {
  sparse_operands o;
  laci_csr csr;
  laci_grouped_rows grouped;
  laci_sparse_gradient gradient;
  lac_error err = {0};
  (void)state;
  sparse_unpadded_operands_init(&sparse_unpadded_cases[0], 0, &o);
  const laci_sparse_product *p = &o.convolution.product;
  const laci_csr_cut cut = {o.convolution.tiles, o.convolution.n_tiles, 8};
  assert_int_equal(laci_csr_init(p, o.convolution.kept.weight, &cut, &csr, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "without zeros between"));
  assert_int_equal(laci_grouped_rows_init(p, o.convolution.kept.weight, 8, &grouped, &err),
                   LAC_UNSUPPORTED);
  assert_int_equal(
      laci_sparse_gradient_init(p, o.convolution.tiles, o.convolution.n_tiles, &gradient, &err),
      LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "without zeros between"));
  sparse_operands_clear(&o);
}

static void parts_make_the_whole(void **state) {
  (void)state;
  sparse_operands o;
  sparse_operands_init(&sparse_cases[0], 0, &o);
  const laci_sparse_operands run = sparse_run_of(&o, false, 0, 6);
  multiply_all(laci_sparse_multiply_scalar, &o, &run);
  void *want = malloc(sparse_result_bytes(&o));
  assert_non_null(want);
  memcpy(want, o.memory_y, sparse_result_bytes(&o));
  sparse_forget_result(&o);
  for (int64_t tile = 0; tile < o.convolution.n_tiles; tile++) {
    for (int64_t row = 0; row < o.convolution.product.n_rows; row += 9) {
      const int64_t rest = o.convolution.product.n_rows - row, last = row + (rest < 9 ? rest : 9);
      laci_sparse_multiply_scalar(
          &o.convolution.product, &run,
          &(laci_sparse_part){o.convolution.tiles, tile, tile + 1, row, last});
    }
  }
  assert_memory_equal(o.memory_y, want, sparse_result_bytes(&o));
  free(want);
  sparse_operands_clear(&o);
}

static void pixel_blocks_need_equal_row_strides(void **state) {
  const laci_sparse_window g = SPARSE_WINDOW(4, 4, 1, 3, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  const laci_sparse_border none = {.stride_h = 1, .stride_w = 1}, one = {1, 1, 1, 1, 1, 1};
  const laci_sparse_layouts layouts = {laci_sparse_padded_layout(LACI_FORMAT_PC16P, 4, 3, 5, none),
                                       laci_sparse_padded_layout(LACI_FORMAT_CHW, 4, 3, 5, one), 1};
  const uint8_t kept[16] = {0};
  laci_sparse_convolution convolution;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_sparse_convolution_init(&g, kept, &layouts, &convolution, &err),
                   LAC_UNSUPPORTED);
  assert_string_equal(err.text, "PC16P of a sparse convolution: rows 5 and 6 apart");
  assert_null(convolution.tiles);
}

static void a_nan_stays(void **state) {
  (void)state;
  sparse_operands o;
  sparse_operands_init(&sparse_cases[2], 0, &o);
  o.x[0] = NAN;
  const laci_sparse_operands run = sparse_run_of(&o, false, 0, 6);
  multiply_all(laci_sparse_multiply_scalar, &o, &run);
  assert_true(isnan(o.y[o.convolution.tiles[0].out]));
  sparse_operands_clear(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_convolution),
      cmocka_unit_test(every_variant_finishes_with_the_same_bits),
      cmocka_unit_test(what_is_next_to_rows_is_not_read),
      cmocka_unit_test(some_windows_need_zeros_between_rows),
      cmocka_unit_test(others_do_not_read_such_rows),
      cmocka_unit_test(parts_make_the_whole),
      cmocka_unit_test(pixel_blocks_need_equal_row_strides),
      cmocka_unit_test(a_nan_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

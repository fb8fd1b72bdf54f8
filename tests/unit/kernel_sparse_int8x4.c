/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/int8x4.h: the definition against a convolution in integers of 64 bits and, bit by
 * bit, what follows it: scales, a residual, a zero point, a clip; sums that wrap and results that
 * no integer holds among them; results that are floats, with functions after the clip. */
#include "support/sparse_case.h"

/* One result. */
typedef struct place {
  int64_t image, row, y, x;
  int lane;
} place;

static int64_t sum_of(const sparse_case *c, const sparse_operands *o, place p) {
  const laci_sparse_window *g = &c->window;
  const int64_t channels = g->channels_in / g->groups, taps = g->kernel_h * g->kernel_w;
  const int64_t first = p.row / (g->channels_out / g->groups) * channels;
  int64_t sum = o->whole_bias[p.row];
  for (int64_t at = 0; at < channels * taps; at++) {
    const int64_t dense = p.row * channels * taps + at, tap = at % taps;
    const int64_t y = p.y * g->stride_h + tap / g->kernel_w * g->dilation_h - g->pad_top;
    const int64_t x = p.x * g->stride_w + tap % g->kernel_w * g->dilation_w - g->pad_left;
    if (!o->kept[dense] || y < 0 || y >= g->h || x < 0 || x >= g->w) continue;
    const sparse_place from =
        sparse_place_of(&o->convolution.in, g->values, first + at / taps, (const int64_t[]){y, x});
    sum += (int64_t)o->dense[dense] *
           (int64_t)sparse_get(o->x + p.image * o->convolution.in.n_floats + p.lane, from);
  }
  return (int32_t)(uint32_t)(uint64_t)sum;
}

static float scaled(const sparse_operands *o, int64_t row, int64_t sum) {
  const float rest = o->quantized.rest ? o->quantized.rest[row] : 0;
  return fmaf((float)sum, o->scale[row], rest);
}

/* The byte that v becomes, as QuantizeLinear has it. */
static double byte_of(const laci_sparse_quantized *q, double v) {
  if (isnan(v)) return q->low;
  return fmax(q->low, fmin(q->high, nearbyint(v) + q->zero));
}

/* v with a value of the residual. */
static float added(const laci_sparse_quantized *q, float v, float residual) {
  const laci_sparse_middle *m = q->middle;
  if (!m) return fmaf(residual, q->residual_scale, v);
  const laci_sparse_quantized of_sums = {.zero = m->zero, .low = m->low, .high = m->high};
  const float sum = (float)byte_of(&of_sums, (double)v) - (float)m->zero;
  return m->last ? fmaf(sum, m->scale, residual * q->residual_scale)
                 : fmaf(residual, q->residual_scale, sum * m->scale);
}

static void for_each_result(const sparse_case *c, sparse_operands *o,
                            const laci_sparse_operands *run,
                            void (*expect)(const sparse_case *c, const sparse_operands *o,
                                           const laci_sparse_operands *run, place p)) {
  const laci_sparse_window *g = &c->window;
  const int lanes = c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  const laci_sparse_part all = {o->convolution.tiles, 0, o->convolution.n_tiles, 0,
                                o->convolution.product.n_rows};
  sparse_forget_result(o);
  laci_sparse_multiply_scalar(&o->convolution.product, run, &all);
  for (int64_t at = 0; at < c->n_images * g->channels_out * g->out_h * g->out_w * lanes; at++) {
    const int64_t pixel = at / lanes, channel = pixel / g->out_w / g->out_h;
    expect(c, o, run,
           (place){channel / g->channels_out, channel % g->channels_out,
                   pixel / g->out_w % g->out_h, pixel % g->out_w, (int)(at % lanes)});
  }
}

static int n_beyond, n_below, n_nan; /* results that 32 bits do not hold */

static void expect_byte(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_operands *run, place p) {
  const laci_sparse_quantized *q = run->quantized;
  const int64_t at = p.image * o->convolution.out.n_floats + p.lane;
  const sparse_place out =
      sparse_place_of(&o->convolution.out, LACI_SPARSE_S8, p.row, (const int64_t[]){p.y, p.x});
  float v = scaled(o, p.row, sum_of(c, o, p));
  if (run->residual) v = added(q, v, sparse_get(run->residual + at, out) - (float)q->residual_zero);
  const double got = (double)sparse_get(o->y + at, out), want = byte_of(q, (double)v);
  n_beyond += v >= 2147483648.0F;
  n_below += v < -2147483648.0F;
  n_nan += isnan(v);
  if (!(got == want)) {
    fail_msg("%s: row %lld pixel %lld, %lld: got %g, want %g", c->what, (long long)p.row,
             (long long)p.y, (long long)p.x, got, want);
  }
}

static void the_definition_is_a_convolution(void **state) {
  (void)state;
  for (int at = 0; at < N_SPARSE_CASES; at++) {
    const sparse_case c = sparse_case_of(&sparse_cases[at], LACI_SPARSE_S8);
    sparse_operands o;
    sparse_operands_init(&c, 0, &o);
    for (int with = 0; with < 4; with++) {
      const laci_sparse_operands run =
          sparse_run_of(&o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0 : INFINITY);
      for_each_result(&c, &o, &run, expect_byte);
      o.quantized.middle = &sparse_middles[with % 2];
      if (run.residual) for_each_result(&c, &o, &run, expect_byte);
      o.quantized.middle = NULL;
    }
    sparse_operands_clear(&o);
  }
}

/* The definition's test has numbers on both sides that no conversion of a processor may see. */
static void numbers_beyond_32_bits_were_among_them(void **state) {
  (void)state;
  assert_true(n_beyond > 0 && n_below > 0 && n_nan > 0);
}

/* Places of the last rows that are not there hold what v = 0 would be. */
static void bytes_of_no_row_are_zero_points(void **state) {
  const sparse_case five = {"five rows", SPARSE_WINDOW(8, 5, 1, 3, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
                            PIXELS, 1, 2};
  const sparse_case c = sparse_case_of(&five, LACI_SPARSE_S8);
  sparse_operands o;
  (void)state;
  sparse_operands_init(&c, 0, &o);
  const laci_sparse_operands run = sparse_run_of(&o, true, -INFINITY, INFINITY);
  for_each_result(&c, &o, &run, expect_byte);
  for (int64_t row = 5; row < 8; row++) {
    const sparse_place none =
        sparse_place_of(&o.convolution.out, LACI_SPARSE_S8, row, (const int64_t[]){1, 2});
    assert_int_equal((int)sparse_get(o.y, none), o.quantized.zero);
  }
  sparse_operands_clear(&o);
}

static double after(const laci_sparse_operands *run, double v) {
  v = v < (double)run->low ? (double)run->low : v > (double)run->high ? (double)run->high : v;
  v = v / (1 + exp(-1.5 * v));
  return -2 * v + 0.25;
}

static void expect_float(const sparse_case *c, const sparse_operands *o,
                         const laci_sparse_operands *run, place p) {
  const int64_t at = laci_sparse_offset(&o->convolution.out, p.row, p.y, p.x);
  const double got = (double)o->y[p.image * o->convolution.out.n_floats + p.lane + at];
  const double want = after(run, (double)scaled(o, p.row, sum_of(c, o, p)));
  if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-5 * (1 + fabs(want)))) {
    fail_msg("%s: row %lld: got %g, want %g", c->what, (long long)p.row, got, want);
  }
}

static void results_can_be_floats(void **state) {
  (void)state;
  for (int at = 0; at < N_SPARSE_CASES; at++) {
    sparse_case c = sparse_case_of(&sparse_cases[at], LACI_SPARSE_S8);
    sparse_operands o;
    lac_error err = {0};
    sparse_operands_init(&c, 0, &o);
    laci_sparse_window floats = c.window;
    floats.values = LACI_SPARSE_F32;
    const laci_sparse_layout in = o.convolution.in, out = laci_sparse_output_layout(
                                                        c.format_out, &floats, &in,
                                                        (laci_sparse_border){1, 1, 1, 1, 1, 1});
    laci_sparse_convolution_clear(&o.convolution);
    assert_int_equal(
        laci_sparse_convolution_init(&c.window, o.kept, &(laci_sparse_layouts){in, out, c.n_images},
                                     &o.convolution, &err),
        LAC_OK);
    laci_sparse_convolution_set_weights(&o.convolution, o.dense);
    free(o.memory_y);
    o.n_y = out.n_floats * c.n_images;
    o.y = sparse_guarded(o.n_y, 1, &o.memory_y);
    laci_sparse_operands run = sparse_run_of(&o, false, -3, 5);
    o.quantized.floats = true;
    sparse_follow(&run, 2, false);
    for_each_result(&c, &o, &run, expect_float);
    sparse_operands_clear(&o);
  }
}

static void groups_share_no_place(void **state) {
  sparse_case c = {"groups of two channels",
                   SPARSE_WINDOW(4, 8, 2, 3, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2};
  const uint8_t kept[16] = {0};
  laci_sparse_convolution convolution;
  lac_error err = {0};
  (void)state;
  c.window.values = LACI_SPARSE_S8;
  const laci_sparse_layout in = laci_sparse_input_layout(c.format, &c.window);
  const laci_sparse_layouts layouts = {in, in, 1};
  assert_int_equal(laci_sparse_convolution_init(&c.window, kept, &layouts, &convolution, &err),
                   LAC_UNSUPPORTED);
  assert_string_equal(err.text, "channels by 4 in groups of 2 to 4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_convolution),
      cmocka_unit_test(numbers_beyond_32_bits_were_among_them),
      cmocka_unit_test(bytes_of_no_row_are_zero_points),
      cmocka_unit_test(results_can_be_floats),
      cmocka_unit_test(groups_share_no_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/depthwise: every variant, in any parts and any layouts, against the product that
 * defines it, bit by bit; and nothing is written but results. */
#include "cpu/cpu.h"
#include "kernel/sparse/depthwise.h"
#include "support/sparse_case.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

static const sparse_case cases[] = {
    {"3x3", SPARSE_WINDOW(5, 5, 5, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"3x3, wide", SPARSE_WINDOW(2, 2, 2, 7, 150, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"3x3, two images", SPARSE_WINDOW(9, 9, 9, 40, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"stride 2", SPARSE_WINDOW(5, 5, 5, 14, 14, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"stride 2, odd", SPARSE_WINDOW(3, 3, 3, 9, 31, 3, 3, 2, 2, 1, 1, 0, 1, 0, 1), PIXELS, 1, 4},
    {"stride 2, wide", SPARSE_WINDOW(2, 2, 2, 5, 601, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"stride 2, 5x5", SPARSE_WINDOW(3, 3, 3, 28, 28, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2), PIXELS, 1, 4},
    {"down by 3", SPARSE_WINDOW(3, 3, 3, 20, 9, 4, 3, 3, 1, 1, 1, 0, 1, 0, 1), PIXELS, 1, 4},
    {"dilated", SPARSE_WINDOW(3, 3, 3, 20, 21, 3, 3, 1, 2, 2, 3, 2, 3, 2, 3), PIXELS, 1, 4},
    {"no border", SPARSE_WINDOW(4, 4, 4, 8, 19, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 4},
    {"1-D", SPARSE_WINDOW(4, 4, 4, 1, 70, 1, 31, 1, 1, 1, 1, 0, 15, 0, 15), PIXELS, 2, 4},
    {"dilated, stride 2", SPARSE_WINDOW(2, 2, 2, 40, 41, 3, 3, 2, 2, 5, 7, 5, 7, 5, 7), PIXELS, 1,
     4},
    {"11x11", SPARSE_WINDOW(1, 1, 1, 13, 12, 11, 11, 1, 2, 1, 1, 5, 5, 5, 5), PIXELS, 1, 4},
    {"7x7", SPARSE_WINDOW(19, 19, 19, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"14x14, 5x5", SPARSE_WINDOW(19, 19, 19, 14, 14, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2), PIXELS, 2, 4},
    {"16 pixels", SPARSE_WINDOW(3, 3, 3, 19, 15, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"images", SPARSE_WINDOW(19, 19, 19, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 2, 4},
    {"images, 2", SPARSE_WINDOW(19, 19, 19, 9, 8, 5, 3, 2, 2, 1, 2, 2, 2, 2, 2), IMAGES, 1, 4},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* The same convolution between layouts of its own. */
typedef struct depthwise_case {
  const sparse_case *c;
  laci_sparse_layout in, out;
  laci_depthwise d;
  float *x, *residual, *y, *memory[3];
  int64_t n_y;
} depthwise_case;

static void make(const sparse_case *c, laci_memory_format format_out, int shift,
                 depthwise_case *made) {
  const laci_sparse_window *g = &c->window;
  const laci_sparse_border one = {1, 1, 1, 1, 1, 1};
  laci_sparse_border around = laci_sparse_needed_border(g);
  lac_error err = {0};
  around.stride_h = around.stride_w = 1;
  around.right += shift; /* rows may be further apart than this window wants */
  *made = (depthwise_case){
      .c = c,
      .in = laci_sparse_padded_layout(c->format, g->channels_in, g->h, g->w, around),
      .out = laci_sparse_padded_layout(format_out, g->channels_out, g->out_h, g->out_w, one)};
  const laci_sparse_layouts layouts = {made->in, made->out, c->n_images};
  assert_true(laci_depthwise_can_compute(g));
  assert_int_equal(laci_depthwise_init(g, &layouts, &made->d, &err), LAC_OK);
  made->n_y = made->out.n_floats * c->n_images;
  made->x = sparse_guarded(made->in.n_floats * c->n_images, shift, &made->memory[0]);
  made->residual = sparse_guarded(made->n_y, shift, &made->memory[1]);
  made->y = sparse_guarded(made->n_y, shift, &made->memory[2]);
  sparse_draw(c, &made->in, (const int64_t[]){g->channels_in, g->h, g->w}, 6, made->x);
  sparse_draw(c, &made->out, (const int64_t[]){g->channels_out, g->out_h, g->out_w}, 7,
              made->residual);
}

static void clear(depthwise_case *made) {
  laci_depthwise_clear(&made->d);
  for (int at = 0; at < 3; at++) free(made->memory[at]);
}

/* Every byte is a guard; how many zeros will be written around results. */
static int64_t forget(const depthwise_case *made) {
  const laci_depthwise *d = &made->d;
  int64_t n = 0;
  memset(made->memory[2], 0x5A, (size_t)(made->n_y + 2 * SPARSE_GUARD_FLOATS) * sizeof(float));
  for (int64_t at = 0; at < d->tiles_per_block * d->n_images; at++) {
    const laci_sparse_tile *tile = &d->tiles[at];
    for (int64_t c = 0; c < d->window.channels_out && tile->lanes & LACI_SPARSE_ZEROS_AROUND; c++) {
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) { n += !(tile->lanes >> lane & 1); }
    }
  }
  return n;
}

/* Results are those of the product, and all else is as it was. */
static void compare(const depthwise_case *made, const sparse_operands *o, int64_t zeros) {
  const laci_sparse_window *g = &made->c->window;
  const int lanes = made->c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  const int64_t pixels = g->out_h * g->out_w, each = g->channels_out * pixels;
  const laci_depthwise *d = &made->d;
  int64_t written = 0;
  for (int64_t at = 0; at < made->c->n_images * each * lanes; at++) {
    const int64_t image = at / lanes / each, lane = at % lanes, c = at / lanes % each / pixels;
    const int64_t y = at / lanes % pixels / g->out_w, x = at / lanes % g->out_w;
    const float want = o->y[image * o->convolution.out.n_floats + lane +
                            laci_sparse_offset(&o->convolution.out, c, y, x)];
    const float got =
        made->y[image * made->out.n_floats + lane + laci_sparse_offset(&made->out, c, y, x)];
    if (memcmp(&want, &got, sizeof want) != 0) {
      fail_msg("%s: channel %lld, pixel %lld, %lld: got %g, want %g", made->c->what, (long long)c,
               (long long)y, (long long)x, (double)got, (double)want);
    }
  }
  for (int64_t at = 0; at < made->n_y + 2 * SPARSE_GUARD_FLOATS; at++) {
    uint32_t bits;
    memcpy(&bits, made->memory[2] + at, sizeof bits);
    written += bits != 0x5A5A5A5AU;
  }
  for (int64_t at = 0; at < d->tiles_per_block * d->n_images; at++) {
    const laci_sparse_tile *tile = &d->tiles[at];
    for (int64_t c = 0; c < g->channels_out && tile->lanes & LACI_SPARSE_ZEROS_AROUND; c++) {
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
        if (tile->lanes >> lane & 1) continue;
        assert_true(made->y[tile->out + c * d->out.channel_stride + lane] == 0);
      }
    }
  }
  assert_int_equal(written, zeros + made->c->n_images * each * lanes);
}

/* In parts of so many tiles and channels. */
static void run_parts(const depthwise_case *made, const laci_sparse_operands *o, int64_t tiles,
                      int64_t channels) {
  const int64_t n = made->d.tiles_per_block * made->d.n_images,
                n_channels = made->d.window.channels_out;
  for (int64_t t = 0; t < n; t += tiles) {
    for (int64_t c = 0; c < n_channels; c += channels) {
      const laci_sparse_part part = {made->d.tiles, t, t + tiles < n ? t + tiles : n, c,
                                     c + channels < n_channels ? c + channels : n_channels};
      laci_depthwise_multiply_variant()(&made->d, o, &part);
    }
  }
}

static void every_level(const sparse_case *c, laci_memory_format format_out, int follow) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  sparse_operands o;
  depthwise_case made;
  sparse_operands_init(c, 0, &o);
  make(c, format_out, follow, &made);
  laci_sparse_operands run = sparse_run_of(&o, follow % 2 == 1, -0.25F, 0.5F);
  sparse_follow(&run, follow, follow == 3);
  sparse_forget_result(&o);
  laci_sparse_multiply_scalar(&o.convolution.product, &run,
                              &(laci_sparse_part){o.convolution.tiles, 0, o.convolution.n_tiles, 0,
                                                  o.convolution.product.n_rows});
  run.weight = o.dense;
  run.x = made.x;
  run.y = made.y;
  if (run.residual) run.residual = made.residual;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    int64_t zeros = forget(&made);
    run_parts(&made, &run, INT32_MAX, INT32_MAX);
    compare(&made, &o, zeros);
    zeros = forget(&made);
    run_parts(&made, &run, 3, 2);
    compare(&made, &o, zeros);
  }
  (void)laci_cpu_limit_level(start);
  clear(&made);
  sparse_operands_clear(&o);
}

static void all_are_the_product(void **state) {
  (void)state;
  for (int at = 0; at < N_CASES; at++) {
    for (int follow = 0; follow < 4; follow++) {
      every_level(&cases[at], cases[at].format_out, follow);
      if (cases[at].format == LACI_FORMAT_CHW) every_level(&cases[at], LACI_FORMAT_PC16P, follow);
    }
  }
}

static void others_do_not_fit(void **state) {
  static const laci_sparse_window windows[] = {
      SPARSE_WINDOW(4, 8, 4, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), /* two results a channel */
      SPARSE_WINDOW(4, 4, 2, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), /* pairs of channels */
      SPARSE_WINDOW(4, 4, 4, 9, 9, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), /* a scale */
      SPARSE_WINDOW(4, 4, 4, 9, 9, 3, 3, 1, 3, 1, 1, 1, 1, 1, 1),
      SPARSE_WINDOW(4, 4, 4, 20, 20, 12, 11, 1, 1, 1, 1, 1, 1, 1, 1),
  };
  (void)state;
  for (size_t at = 0; at < sizeof windows / sizeof *windows; at++) {
    assert_false(laci_depthwise_can_compute(&windows[at]));
  }
  const laci_sparse_window wide = SPARSE_WINDOW(1, 1, 1, 9, 3000, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1);
  const laci_sparse_border none = {.stride_h = 1, .stride_w = 1};
  const laci_sparse_layouts layouts = {
      laci_sparse_padded_layout(LACI_FORMAT_CHW, 1, 9, 3000, laci_sparse_needed_border(&wide)),
      laci_sparse_padded_layout(LACI_FORMAT_CHW, 1, wide.out_h, wide.out_w, none), 1};
  laci_depthwise d;
  lac_error err = {0};
  assert_true(laci_depthwise_can_compute(&wide));
  assert_int_equal(laci_depthwise_init(&wide, &layouts, &d, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "3000"));
  const sparse_case pairs = sparse_case_of(&cases[0], LACI_SPARSE_BF16);
  assert_false(laci_depthwise_can_compute(&pairs.window));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_the_product),
      cmocka_unit_test(others_do_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

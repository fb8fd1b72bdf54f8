/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/winograd4: every variant, in any blocks and parts, between any layouts, against the
 * definition, bit by bit; that against the direct product; and nothing is written but results. */
#include "base/min.h"
#include "cpu/cpu.h"
#include "kernel/sparse/winograd4.h"
#include "support/light.h"
#include "support/sparse_case.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

#define INTO_PIXEL_BLOCKS LACI_FORMAT_CHW, LACI_FORMAT_PC16P
static const sparse_case cases[] = {
    {"7x7", SPARSE_WINDOW(20, 31, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"9x11 into PC16P", SPARSE_WINDOW(7, 13, 1, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     INTO_PIXEL_BLOCKS, 1, 4},
    {"two images", SPARSE_WINDOW(3, 5, 1, 30, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"two images into PC16P", SPARSE_WINDOW(5, 6, 1, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     INTO_PIXEL_BLOCKS, 2, 4},
    {"three images, 7x7, into PC16P", SPARSE_WINDOW(9, 14, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     INTO_PIXEL_BLOCKS, 3, 4},
    {"narrow and tall", SPARSE_WINDOW(5, 7, 1, 50, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     INTO_PIXEL_BLOCKS, 1, 4},
    {"narrower", SPARSE_WINDOW(4, 6, 1, 37, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"whole tiles", SPARSE_WINDOW(6, 9, 1, 11, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"eight wide", SPARSE_WINDOW(5, 8, 1, 9, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"a vector of tiles", SPARSE_WINDOW(3, 4, 1, 6, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1,
     4},
    {"many channels", SPARSE_WINDOW(70, 41, 1, 9, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     INTO_PIXEL_BLOCKS, 1, 4},
    {"one pixel", SPARSE_WINDOW(2, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"no border", SPARSE_WINDOW(6, 25, 1, 10, 43, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 4},
    {"one side", SPARSE_WINDOW(6, 7, 1, 9, 40, 3, 3, 1, 1, 1, 1, 0, 0, 1, 2), PIXELS, 1, 4},
    {"two around", SPARSE_WINDOW(4, 12, 1, 5, 70, 3, 3, 1, 1, 1, 1, 2, 2, 2, 2), PIXELS, 1, 4},
    {"pads wider than a vector", SPARSE_WINDOW(4, 9, 1, 8, 12, 3, 3, 1, 1, 1, 1, 2, 19, 1, 3),
     PIXELS, 1, 4},
    {"pads wider than a narrow vector", SPARSE_WINDOW(4, 9, 1, 8, 8, 3, 3, 1, 1, 1, 1, 2, 10, 2, 1),
     PIXELS, 2, 4},
    {"pads wider than a row of tiles", SPARSE_WINDOW(3, 5, 1, 6, 70, 3, 3, 1, 1, 1, 1, 1, 21, 1, 0),
     PIXELS, 1, 4},
    {"wide", SPARSE_WINDOW(2, 3, 1, 6, 1792, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"tall", SPARSE_WINDOW(2, 3, 1, 300, 21, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"of images", SPARSE_WINDOW(12, 25, 1, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 2, 4},
    {"of images, odd", SPARSE_WINDOW(9, 7, 1, 3, 9, 3, 3, 1, 1, 1, 1, 0, 1, 2, 1), IMAGES, 1, 4},
    {"many, of images", SPARSE_WINDOW(20, 31, 1, 5, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 1,
     4},
    {"4x4", SPARSE_WINDOW(5, 9, 1, 12, 21, 4, 4, 1, 1, 1, 1, 2, 1, 1, 2), PIXELS, 1, 4},
    {"4x4 into PC16P", SPARSE_WINDOW(6, 14, 1, 15, 15, 4, 4, 1, 1, 1, 1, 1, 1, 2, 2), PIXELS, 2, 4},
    {"4x4 of images", SPARSE_WINDOW(9, 6, 1, 7, 6, 4, 4, 1, 1, 1, 1, 1, 2, 2, 1), IMAGES, 2, 4},
    {"first", SPARSE_WINDOW(3, 64, 1, 40, 57, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3), PIXELS, 1, 4},
    {"first of two images", SPARSE_WINDOW(3, 20, 1, 17, 28, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3), PIXELS,
     2, 4},
    {"first, 32 wide", SPARSE_WINDOW(1, 7, 1, 63, 64, 7, 7, 2, 2, 1, 1, 3, 2, 3, 3), PIXELS, 1, 4},
    {"first without border", SPARSE_WINDOW(3, 8, 1, 31, 135, 7, 7, 2, 2, 1, 1, 0, 0, 0, 0), PIXELS,
     1, 4},
    {"first of 8x7", SPARSE_WINDOW(2, 5, 1, 30, 19, 8, 7, 2, 2, 1, 1, 2, 4, 3, 1), PIXELS, 1, 4},
    {"first of 6x5", SPARSE_WINDOW(3, 17, 1, 22, 34, 6, 5, 2, 2, 1, 1, 2, 1, 2, 2), PIXELS, 1, 4},
    {"first of images", SPARSE_WINDOW(3, 14, 1, 13, 12, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3), IMAGES, 1,
     4},
    {"of images, 5x5", SPARSE_WINDOW(4, 13, 1, 9, 16, 5, 5, 2, 2, 1, 1, 2, 1, 2, 2), IMAGES, 2, 4},
    {"half is zero", SPARSE_WINDOW(16, 12, 1, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* A convolution and its weights, in guards. */
typedef struct made {
  laci_winograd4 w;
  float *weights, *memory;
} made;

/* Pixels without zeros between rows: where a window strides over them right to the end, without any
 * border; else with one above and below. */
static bool may_be_unpadded(const sparse_case *c, const laci_sparse_border *border) {
  const laci_sparse_window *g = &c->window;
  return c->format != LACI_FORMAT_HWC16N && (g->stride_w > 1 || border->top * g->w >= border->left);
}

/* What is read. */
static laci_sparse_layout layout_of(const sparse_case *c, const sparse_operands *o, bool unpadded) {
  const laci_sparse_window *g = &c->window;
  laci_sparse_border border = laci_sparse_needed_border(g);
  if (!may_be_unpadded(c, &border) || (g->stride_w == 1 && !unpadded)) return o->convolution.in;
  if (g->stride_w > 1) {
    return laci_sparse_layout_contiguous(LACI_FORMAT_CHW, g->channels_in, g->h, g->w);
  }
  border.left = border.right = 0;
  return laci_sparse_padded_layout(LACI_FORMAT_CHW, g->channels_in, g->h, g->w, border);
}

/* o->x, so laid out: the caller's to free. */
static float *values_of(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_layout *l) {
  const laci_sparse_window *g = &c->window;
  const int64_t pixels = g->h * g->w, each = g->channels_in * pixels, n = c->n_images;
  float *x = calloc((size_t)(n * l->n_floats), sizeof *x);
  assert_non_null(x);
  if (laci_sparse_layout_equal(l, &o->convolution.in)) {
    memcpy(x, o->x, (size_t)(n * l->n_floats) * sizeof *x);
    return x;
  }
  for (int64_t at = 0; at < n * each; at++) {
    const int64_t image = at / each, channel = at % each / pixels, y = at % pixels / g->w;
    x[image * l->n_floats + laci_sparse_offset(l, channel, y, at % g->w)] =
        o->x[image * o->convolution.in.n_floats +
             laci_sparse_offset(&o->convolution.in, channel, y, at % g->w)];
  }
  return x;
}

static made make(const sparse_case *c, const sparse_operands *o, const laci_sparse_layout *in) {
  const laci_sparse_layouts layouts = {*in, o->convolution.out, c->n_images};
  made m;
  lac_error err = {0};
  assert_true(laci_winograd4_can_compute(&c->window));
  if (laci_winograd4_init(&c->window, &layouts, &m.w, &err)) fail_msg("%s: %s", c->what, err.text);
  const int64_t n = laci_winograd4_n_groups(&m.w);
  const int64_t n_weights = (int64_t)(laci_winograd4_weight_bytes(&c->window) / sizeof(float));
  m.weights = sparse_guarded(n_weights, 0, &m.memory);
  laci_winograd4_transform_weights(&m.w, o->dense, (int64_t[]){0, n / 2}, m.weights);
  laci_winograd4_transform_weights(&m.w, o->dense, (int64_t[]){n / 2, n}, m.weights);
  for (int64_t at = 0; at < n_weights; at++) {
    uint32_t bits;
    memcpy(&bits, m.weights + at, sizeof bits);
    assert_int_not_equal(bits, 0x5A5A5A5A);
  }
  return m;
}

static void clear(made *m) {
  laci_winograd4_clear(&m->w);
  free(m->memory);
}

/* Calls a part's kernel for [0, n), `each` at a time. */
#define IN_PARTS(n, each, call)                               \
  for (int64_t part = 0; part < (n); part += (each)) {        \
    const int64_t of[2] = {part, laci_min(part + (each), n)}; \
    call;                                                     \
  }

/* By blocks of so many units, in parts of so many channels and points. */
static void run(const made *m, const laci_sparse_operands *o, int64_t units, int64_t each) {
  const laci_winograd4 *w = &m->w;
  const laci_winograd4_kernel k = laci_winograd4_variant(w);
  const int64_t in = w->sources, out = w->window.channels_out;
  for (int64_t first = 0; first < w->n_units; first += units) {
    const laci_winograd4_block b =
        laci_winograd4_block_of_units(w, first, laci_min(first + units, w->n_units));
    const size_t n_points = (size_t)laci_winograd4_block_floats(w, &b, in);
    const size_t n_sums = (size_t)laci_winograd4_block_floats(w, &b, out);
    float *points = malloc(n_points * sizeof *points), *sums = malloc(n_sums * sizeof *sums);
    assert_true(points && sums);
    memset(points, 0xFF, n_points * sizeof *points); /* NaNs that nobody may read */
    memset(sums, 0xFF, n_sums * sizeof *sums);
    IN_PARTS(in, each, k.transform(w, &b, o->x, of, points))
    IN_PARTS(w->points, each, k.multiply(w, &b, m->weights, points, of, sums))
    IN_PARTS(out, each, k.finish(w, &b, sums, of, o))
    free(points);
    free(sums);
  }
}

/* Every byte is a guard, but for zeros around results, which may be written or not. */
static void forget(const laci_winograd4 *w, const sparse_operands *o) {
  memset(o->memory_y, 0x5A, sparse_result_bytes(o));
  for (int64_t at = 0; at < w->results_per_block * w->n_image_blocks; at++) {
    const laci_sparse_tile *t = &w->results[at];
    for (int64_t c = 0; c < w->window.channels_out && t->lanes & LACI_SPARSE_ZEROS_AROUND; c++) {
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
        if (!(t->lanes >> lane & 1)) o->y[t->out + c * w->out.channel_stride + lane] = 0;
      }
    }
  }
}

static void every_level(const sparse_case *c, int follow, bool unpadded) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  sparse_operands o;
  sparse_operands_init(c, follow, &o);
  laci_sparse_operands operands = sparse_run_of(&o, follow % 2 == 1, -0.25F, 0.5F);
  sparse_follow(&operands, follow, follow == 3);
  const size_t bytes = sparse_result_bytes(&o);
  const int64_t n_dense = c->window.channels_out * o.convolution.dense_length;
  for (int64_t at = 0; at < n_dense; at++) o.dense[at] *= o.kept[at];
  const laci_sparse_layout in = layout_of(c, &o, unpadded);
  float *want = malloc(bytes), *x = values_of(c, &o, &in);
  assert_non_null(want);
  operands.x = x;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    made m = make(c, &o, &in);
    const int64_t units[] = {m.w.n_units, laci_winograd4_units_per_block(&m.w, false), 1};
    for (int at = 0; at < 3; at++) {
      forget(&m.w, &o);
      run(&m, &operands, units[at], at == 0 ? INT16_MAX : 5 * at);
      if (level == 0 && at == 0) memcpy(want, o.memory_y, bytes);
      else if (memcmp(want, o.memory_y, bytes) != 0)
        fail_msg("%s, %d functions: %s differs", c->what, follow,
                 laci_cpu_level_name(levels[level]));
    }
    clear(&m);
  }
  (void)laci_cpu_limit_level(start);
  free(want);
  free(x);
  sparse_operands_clear(&o);
}

static void all_are_the_definition(void **state) {
  (void)state;
  for (int at = 0; at < N_CASES; at++) {
    for (int follow = at % tests_stride(3); follow < 4; follow += tests_stride(3)) {
      every_level(&cases[at], follow, false);
      every_level(&cases[at], follow, true);
    }
  }
}

/* The product's error in f32 is the same in size; what is between is the root of the number of
 * terms, whose factors are at most a half. */
static void definition_is_the_product(void **state) {
  (void)state;
  for (int at = 0; at < 2 * N_CASES; at++) {
    const sparse_case *c = &cases[at / 2];
    const laci_sparse_window *g = &c->window;
    const int lanes = c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
    const laci_cpu_level start = laci_cpu_level_in_force();
    sparse_operands o;
    sparse_operands_init(c, 0, &o);
    for (int64_t n = 0; n < g->channels_out * o.convolution.dense_length; n++)
      o.dense[n] *= o.kept[n];
    laci_sparse_operands operands = sparse_run_of(&o, true, -INFINITY, INFINITY);
    const size_t bytes = sparse_result_bytes(&o);
    const laci_sparse_layout in = layout_of(c, &o, at % 2);
    float *want = malloc(bytes), *x = values_of(c, &o, &in);
    assert_non_null(want);
    laci_sparse_multiply_scalar(
        &o.convolution.product, &operands,
        &(laci_sparse_part){o.convolution.tiles, 0, o.convolution.n_tiles, 0, g->channels_out});
    memcpy(want, o.memory_y, bytes);
    (void)laci_cpu_limit_level(LACI_CPU_ANY);
    made m = make(c, &o, &in);
    operands.x = x;
    run(&m, &operands, m.w.n_units, INT16_MAX);
    const float of_one = m.w.points == LACI_WINOGRAD4_POINTS ? 1.25e-6F : 5e-7F;
    const float tolerance = of_one * sqrtf((float)laci_sparse_weights_per_row(g));
    const int64_t pixels = g->out_h * g->out_w, each = g->channels_out * pixels;
    for (int64_t n = 0; n < c->n_images * each; n++) {
      const int64_t place = n / each * o.convolution.out.n_floats +
                            laci_sparse_offset(&o.convolution.out, n % each / pixels,
                                               n % pixels / g->out_w, n % g->out_w) +
                            (o.y - o.memory_y);
      for (int lane = 0; lane < lanes; lane++) {
        const float less = o.memory_y[place + lane] - want[place + lane];
        if (!(fabsf(less) <= tolerance)) {
          fail_msg("%s: result %lld is %g away", c->what, (long long)n, (double)less);
        }
      }
    }
    (void)laci_cpu_limit_level(start);
    clear(&m);
    free(want);
    free(x);
    sparse_operands_clear(&o);
  }
}

static void others_do_not_fit(void **state) {
  static const laci_sparse_window windows[] = {
      SPARSE_WINDOW(4, 8, 1, 9, 9, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1),
      SPARSE_WINDOW(4, 8, 1, 9, 9, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
      SPARSE_WINDOW(4, 8, 1, 9, 9, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2),
      SPARSE_WINDOW(4, 8, 1, 19, 19, 9, 9, 2, 2, 1, 1, 4, 4, 4, 4),
      SPARSE_WINDOW(4, 8, 1, 19, 19, 9, 9, 3, 3, 1, 1, 4, 4, 4, 4),
      SPARSE_WINDOW(4, 8, 1, 9, 9, 3, 3, 1, 1, 2, 1, 2, 1, 2, 1),
      SPARSE_WINDOW(4, 8, 2, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
      SPARSE_WINDOW(4, 8, 1, 9, 9, 5, 3, 1, 1, 1, 1, 2, 1, 2, 1),
      SPARSE_WINDOW(4, 8, 1, 1, 9, 1, 3, 1, 1, 1, 1, 0, 1, 0, 1),
  };
  (void)state;
  for (size_t at = 0; at < sizeof windows / sizeof *windows; at++) {
    assert_false(laci_winograd4_can_compute(&windows[at]));
  }
  const laci_sparse_window wide = SPARSE_WINDOW(1, 1, 1, 9, 3000, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1);
  const laci_sparse_layout rows = laci_sparse_input_layout(LACI_FORMAT_CHW, &wide);
  laci_winograd4 w;
  lac_error err = {0};
  assert_int_equal(laci_winograd4_init(&wide, &(laci_sparse_layouts){rows, rows, 1}, &w, &err),
                   LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "3000"));
  assert_null(w.results);
  assert_false(laci_winograd4_can_compute(&wide));
  const sparse_case pairs = sparse_case_of(&cases[0], LACI_SPARSE_BF16);
  assert_false(laci_winograd4_can_compute(&pairs.window));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_the_definition),
      cmocka_unit_test(definition_is_the_product),
      cmocka_unit_test(others_do_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/depthwise_int8x4: the definition against sums of 64 bits, and every variant against
 * it, byte by byte: in all layouts, strides and borders, with odd channels, however the work is
 * cut, with nothing read after the input and nothing written between pixels. */
#include "kernel/sparse/depthwise_int8x4.h"

#include <sys/mman.h>

#include "cpu/cpu.h"
#include "support/sparse_case.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, LANES = LACI_SPARSE_LANES, SIDE = 4 };

#define INTO_BLOCKS LACI_FORMAT_CHW, LACI_FORMAT_PC16P

static const sparse_case cases[] = {
    {"3x3", SPARSE_WINDOW(5, 5, 5, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"3x3, wide", SPARSE_WINDOW(2, 2, 2, 7, 150, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"3x3, small", SPARSE_WINDOW(9, 9, 9, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), INTO_BLOCKS, 2, 4},
    {"3x3, bands", SPARSE_WINDOW(9, 9, 9, 40, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), INTO_BLOCKS, 2, 4},
    {"one pixel", SPARSE_WINDOW(4, 4, 4, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"stride 2", SPARSE_WINDOW(5, 5, 5, 14, 14, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 2, 4},
    {"stride 2, odd", SPARSE_WINDOW(3, 3, 3, 9, 33, 3, 3, 2, 2, 1, 1, 0, 1, 0, 1), INTO_BLOCKS, 1,
     4},
    {"stride 2, wide", SPARSE_WINDOW(2, 2, 2, 5, 601, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"stride 2, 5x5", SPARSE_WINDOW(3, 3, 3, 28, 28, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2), INTO_BLOCKS, 1,
     4},
    {"5x5", SPARSE_WINDOW(8, 8, 8, 14, 15, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2), PIXELS, 1, 4},
    {"5x5, no border", SPARSE_WINDOW(4, 4, 4, 8, 19, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 4},
    {"down by 3", SPARSE_WINDOW(3, 3, 3, 20, 9, 4, 3, 3, 1, 1, 1, 0, 1, 0, 1), PIXELS, 1, 4},
    {"across by 2", SPARSE_WINDOW(3, 3, 3, 8, 39, 3, 2, 1, 2, 1, 1, 0, 1, 0, 1), PIXELS, 1, 4},
    {"7x7", SPARSE_WINDOW(7, 7, 7, 9, 20, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3), INTO_BLOCKS, 1, 4},
    {"dilated", SPARSE_WINDOW(3, 3, 3, 20, 21, 3, 3, 1, 2, 2, 3, 2, 3, 2, 3), PIXELS, 1, 4},
    {"1-D", SPARSE_WINDOW(4, 4, 4, 1, 70, 1, 31, 1, 1, 1, 1, 0, 15, 0, 15), PIXELS, 2, 4},
    {"dilated, stride 2", SPARSE_WINDOW(2, 2, 2, 40, 41, 3, 3, 2, 2, 5, 7, 5, 7, 5, 7), PIXELS, 1,
     4},
    {"11x11", SPARSE_WINDOW(1, 1, 1, 13, 12, 11, 11, 1, 2, 1, 1, 5, 5, 5, 5), PIXELS, 1, 4},
    {"1x1", SPARSE_WINDOW(6, 6, 6, 5, 17, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), INTO_BLOCKS, 1, 4},
    {"images", SPARSE_WINDOW(19, 19, 19, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 2, 4},
    {"images, 2", SPARSE_WINDOW(18, 18, 18, 9, 8, 5, 3, 2, 2, 1, 2, 2, 2, 2, 2), IMAGES, 1, 4},
    {"images, bands", SPARSE_WINDOW(4, 4, 4, 17, 5, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2), IMAGES, 1, 4},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* What follows the sums. */
typedef enum after { PLAIN, BOUNDED, FUNCTION, FLOATS, N_AFTER } after;

static const laci_pointwise swish = {LACI_POINTWISE_SWISH, 1.5F, 0};

typedef struct operands {
  const sparse_case *c;
  laci_sparse_window window;
  laci_depthwise_int8x4 d;
  laci_sparse_quantized quantized;
  laci_sparse_operands run;
  float *dense, *x, *memory, *want;
  int8_t *packed;
  int32_t *bias;
  float *scale, *rest;
  void *pages;
  size_t n_pages;
  int64_t n_y;
} operands;

/* Memory for n floats that ends where no memory is. */
static float *floats_before_nothing(int64_t n, operands *o) {
  const size_t page = 4096, bytes = (size_t)n * sizeof(float);
  o->n_pages = (bytes + page - 1) / page * page + page;
  o->pages = mmap(NULL, o->n_pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(o->pages != MAP_FAILED);
  assert_int_equal(mprotect((char *)o->pages + o->n_pages - page, page, PROT_NONE), 0);
  return (float *)((char *)o->pages + o->n_pages - page - bytes);
}

static void draw(operands *o) {
  const laci_sparse_window *g = &o->window;
  const int64_t taps = g->kernel_h * g->kernel_w, padded = (g->channels_out + 3) / SIDE * SIDE;
  o->dense = malloc((size_t)(g->channels_out * taps) * sizeof *o->dense);
  o->packed = malloc((size_t)laci_depthwise_int8x4_weight_bytes(g));
  o->bias = calloc((size_t)padded, sizeof *o->bias);
  o->scale = calloc((size_t)padded, sizeof *o->scale);
  o->rest = calloc((size_t)padded, sizeof *o->rest);
  assert_true(o->dense && o->packed && o->bias && o->scale && o->rest);
  for (int64_t at = 0; at < g->channels_out * taps; at++) {
    o->dense[at] = (float)laci_rng_integer_below(5, 1, (uint64_t)at, 256) - 128;
  }
  for (int64_t at = 0; at < g->channels_out; at++) {
    o->bias[at] = (int32_t)laci_rng_integer_below(5, 2, (uint64_t)at, 40000) - 20000;
    o->rest[at] = o->c->n_images % 2 ? 0.1F * (float)(at % 9 - 4) : 0;
    o->scale[at] = at == 3 ? 1e30F : 1e-3F * (float)(at % 7 + 1);
  }
  for (int64_t at = 0; at < o->d.in.n_floats * o->c->n_images * SIDE; at++) {
    ((uint8_t *)o->x)[at] = (uint8_t)laci_rng_integer_below(5, 3, (uint64_t)at, 256);
  }
  laci_depthwise_int8x4_pack(g, o->dense, o->packed);
}

static void make(const sparse_case *c, after how, int wider, operands *o) {
  const laci_sparse_border one = {1, 1, 1, 1, 1, 1};
  *o = (operands){.c = c, .window = c->window};
  o->window.values = LACI_SPARSE_S8;
  const laci_sparse_window *g = &o->window;
  const int64_t words = laci_sparse_layout_channels(g->channels_in, LACI_SPARSE_S8);
  laci_sparse_border around = laci_sparse_needed_border(g);
  around.stride_h = around.stride_w = 1;
  around.right += wider; /* rows may be further apart than this window wants */
  assert_true(laci_depthwise_int8x4_can_compute(g));
  o->d = (laci_depthwise_int8x4){
      .window = *g,
      .in = laci_sparse_padded_layout(c->format, words, g->h, g->w, around),
      .out = laci_sparse_padded_layout(c->format_out, how == FLOATS ? g->channels_out : words,
                                       g->out_h, g->out_w, one),
      .n_image_blocks = c->n_images};
  o->x = floats_before_nothing(o->d.in.n_floats * c->n_images, o);
  draw(o);
  o->d.weight = o->packed;
  o->quantized = (laci_sparse_quantized){.bias = o->bias,
                                         .scale = o->scale,
                                         .rest = o->c->n_images % 2 ? o->rest : NULL,
                                         .zero = 77,
                                         .low = how == BOUNDED ? 78 : 0,
                                         .high = how == BOUNDED ? 201 : UINT8_MAX,
                                         .floats = how == FLOATS};
  o->n_y = o->d.out.n_floats * c->n_images;
  o->run = (laci_sparse_operands){.x = o->x,
                                  .low = how == FLOATS ? -0.5F : -INFINITY,
                                  .high = INFINITY,
                                  .functions = &swish,
                                  .n_functions = how == FUNCTION || how == FLOATS,
                                  .quantized = &o->quantized};
  o->run.y = sparse_guarded(o->n_y, wider, &o->memory);
  o->want = malloc((size_t)(o->n_y + 2 * SPARSE_GUARD_FLOATS) * sizeof *o->want);
  assert_non_null(o->want);
}

static void clear(operands *o) {
  munmap(o->pages, o->n_pages);
  free(o->dense), free(o->packed), free(o->bias), free(o->scale), free(o->rest);
  free(o->memory), free(o->want);
}

static void forget(const operands *o) {
  memset(o->memory, 0x5A, (size_t)(o->n_y + 2 * SPARSE_GUARD_FLOATS) * sizeof(float));
}

/* The byte that a pixel has to be, from the weights as they were before they were packed. */
static int expected_byte(const operands *o, int64_t channel, int64_t image, const int64_t pixel[2],
                         int lane) {
  const laci_sparse_window *g = &o->window;
  const int64_t taps = g->kernel_h * g->kernel_w;
  int64_t sum = o->bias[channel];
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t at[2] = {
        pixel[0] * g->stride_h - g->pad_top + tap / g->kernel_w * g->dilation_h,
        pixel[1] * g->stride_w - g->pad_left + tap % g->kernel_w * g->dilation_w};
    const sparse_place from = sparse_place_of(&o->d.in, LACI_SPARSE_S8, channel, at);
    sum += (int64_t)o->dense[channel * taps + tap] *
           (int64_t)sparse_get(o->x + image * o->d.in.n_floats + lane, from);
  }
  const double whole =
      nearbyint((double)fmaf((float)sum, o->scale[channel], o->rest[channel])) + 77;
  return (int)fmax(o->quantized.low, fmin(o->quantized.high, whole));
}

static void compare_with_sums(const operands *o) {
  const laci_sparse_window *g = &o->window;
  const int lanes = o->c->format == LACI_FORMAT_HWC16N ? LANES : 1;
  for (int64_t at = 0; at < o->c->n_images * g->channels_out * g->out_h * g->out_w * lanes; at++) {
    const int64_t row = at / lanes / g->out_w, channel = row / g->out_h;
    const int64_t image = channel / g->channels_out;
    const int64_t pixel[2] = {row % g->out_h, at / lanes % g->out_w};
    const sparse_place to =
        sparse_place_of(&o->d.out, LACI_SPARSE_S8, channel % g->channels_out, pixel);
    const float *y = o->run.y + image * o->d.out.n_floats + at % lanes;
    const int want = expected_byte(o, channel % g->channels_out, image, pixel, (int)(at % lanes));
    if ((int)sparse_get(y, to) == want) continue;
    fail_msg("%s: channel %lld, pixel %lld, %lld: got %g, want %d", o->c->what, (long long)channel,
             (long long)pixel[0], (long long)pixel[1], (double)sparse_get(y, to), want);
  }
}

static void the_definition_is_a_convolution(void **state) {
  (void)state;
  for (int at = 0; at < N_CASES * 2; at++) {
    operands o;
    make(&cases[at / 2], at % 2 ? BOUNDED : PLAIN, 0, &o);
    forget(&o);
    laci_depthwise_int8x4_scalar(&o.d, &o.run, 0, laci_depthwise_int8x4_n_items(&o.d));
    compare_with_sums(&o);
    clear(&o);
  }
}

/* All memory is compared, so that nothing else was written. */
static void expect_bytes_of_every_variant(operands *o) {
  const int64_t n = laci_depthwise_int8x4_n_items(&o->d);
  const size_t bytes = (size_t)(o->n_y + 2 * SPARSE_GUARD_FLOATS) * sizeof(float);
  const laci_cpu_level start = laci_cpu_level_in_force();
  forget(o);
  laci_depthwise_int8x4_scalar(&o->d, &o->run, 0, n);
  memcpy(o->want, o->memory, bytes);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    forget(o);
    laci_depthwise_int8x4_variant()(&o->d, &o->run, n / 3, n);
    laci_depthwise_int8x4_variant()(&o->d, &o->run, 0, n / 3);
    if (memcmp(o->memory, o->want, bytes) != 0)
      fail_msg("%s: %s differs", o->c->what, laci_cpu_level_name(levels[level]));
  }
  (void)laci_cpu_limit_level(start);
}

static void variants_give_its_bytes(void **state) {
  (void)state;
  for (int at = 0; at < N_CASES * N_AFTER * 2; at++) {
    operands o;
    make(&cases[at / 2 / N_AFTER], (after)(at / 2 % N_AFTER), at % 2, &o);
    expect_bytes_of_every_variant(&o);
    clear(&o);
  }
}

static void other_windows_are_refused(void **state) {
  sparse_case c = cases[0];
  (void)state;
  assert_false(laci_depthwise_int8x4_can_compute(&c.window)); /* floats */
  c.window.values = LACI_SPARSE_S8;
  assert_true(laci_depthwise_int8x4_can_compute(&c.window));
  c.window.stride_w = 3;
  assert_false(laci_depthwise_int8x4_can_compute(&c.window));
  c.window.stride_w = 1;
  c.window.channels_out = 2 * c.window.channels_in;
  assert_false(laci_depthwise_int8x4_can_compute(&c.window));
  c.window.channels_out = c.window.channels_in;
  c.window.kernel_h = c.window.kernel_w = 12;
  assert_false(laci_depthwise_int8x4_can_compute(&c.window));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_convolution),
      cmocka_unit_test(variants_give_its_bytes),
      cmocka_unit_test(other_windows_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

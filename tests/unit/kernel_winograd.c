/* SPDX-License-Identifier: Apache-2.0
 * kernel/winograd: the definition against a convolution in double, forward and as the gradient of
 * an input; every variant against the definition, for odd sizes, pads and bands of all heights. */
#include "kernel/convolution/winograd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "tensor/bf16.h"

enum { BLOCK = LACI_WINOGRAD_BLOCK, WINDOW = LACI_WINOGRAD_WINDOW, MARK = 0x5A };

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  assert_non_null(memory);
  memset(memory, MARK, (bytes + 63) / 64 * 64 + 64);
  return memory;
}

typedef struct conv {
  laci_winograd g;
  int64_t n;
} conv;

static const conv cases[] = {
    /* c, k, h, w, out_h, out_w, top, left */
    {{2, 2, 8, 8, 8, 8, 1, 1}, 3}, {{1, 3, 7, 7, 7, 7, 1, 1}, 2}, {{3, 1, 5, 12, 5, 12, 1, 1}, 2},
    {{1, 1, 6, 9, 4, 7, 0, 0}, 1}, {{1, 1, 1, 1, 3, 3, 2, 2}, 2}, {{1, 1, 4, 3, 2, 1, 0, 0}, 2},
    {{1, 2, 3, 2, 5, 6, 2, 3}, 1},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct data {
  float *weight;
  uint16_t *x, *u, *y;
  size_t n_weight, n_x, n_u, n_y;
} data;

static data data_of(const conv *c) {
  const laci_winograd *g = &c->g;
  data d = {.n_weight = (size_t)(g->c_blocks * g->k_blocks * BLOCK * BLOCK * WINDOW * WINDOW),
            .n_x = (size_t)(c->n * g->c_blocks * BLOCK * g->h * g->w),
            .n_u = (size_t)laci_winograd_n_weights(g),
            .n_y = (size_t)(c->n * g->k_blocks * BLOCK * g->out_h * g->out_w)};
  d.weight = allocate(d.n_weight * sizeof *d.weight);
  d.x = allocate(d.n_x * sizeof *d.x);
  d.u = allocate(d.n_u * sizeof *d.u);
  d.y = allocate(d.n_y * sizeof *d.y);
  for (size_t i = 0; i < d.n_weight; i++)
    d.weight[i] = (float)laci_rng_unit_interval(3, 0, i) - 0.5F;
  for (size_t i = 0; i < d.n_x; i++) {
    float x = (float)laci_rng_unit_interval(3, 1, i) * 2 - 1;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    d.x[i] = (uint16_t)(bits >> 16);
  }
  return d;
}

static void drop(data *d) {
  free(d->weight);
  free(d->x);
  free(d->u);
  free(d->y);
}

/** All of it, in bands of so many rows and images. */
static void run(const laci_winograd_kernel *kernel, const conv *c, data *d, bool gradient,
                const int64_t rows_images[2]) {
  const laci_winograd *g = &c->g;
  size_t bytes = laci_winograd_scratch_bytes(g, rows_images[0], rows_images[1]);
  void *scratch = allocate(bytes);
  assert_true(bytes > 0);
  for (int64_t k = 0; k < g->k_blocks; k++) {
    kernel->transform(g, d->weight, gradient, (int64_t[]){k, k + 1}, d->u);
  }
  for (int64_t n = 0; n < c->n; n += rows_images[1]) {
    for (int64_t row = 0; row < g->out_h; row += rows_images[0]) {
      laci_winograd_band band = {n, n + rows_images[1], row, row + rows_images[0]};
      if (band.n_last > c->n) band.n_last = c->n;
      if (band.row_last > g->out_h) band.row_last = g->out_h;
      kernel->convolve(g, &band, d->x, d->u, d->y, scratch);
    }
  }
  uint16_t mark;
  memset(&mark, MARK, sizeof mark);
  assert_int_equal(d->u[d->n_u], mark);
  assert_int_equal(d->y[d->n_y], mark);
  free(scratch);
}

static double direct(const conv *c, const data *d, bool gradient, size_t at) {
  const laci_winograd *g = &c->g;
  int64_t lane = (int64_t)at % BLOCK, pixel = (int64_t)at / BLOCK % (g->out_h * g->out_w);
  int64_t channel = (int64_t)at / BLOCK / (g->out_h * g->out_w), n = channel / g->k_blocks;
  int64_t out = channel % g->k_blocks * BLOCK + lane, n_in = g->c_blocks * BLOCK;
  double sum = 0;
  for (int64_t in = 0; in < n_in; in++) {
    const float *w =
        d->weight + (gradient ? in * g->k_blocks * BLOCK + out : out * n_in + in) * WINDOW * WINDOW;
    const uint16_t *x = d->x + (n * g->c_blocks + in / BLOCK) * g->h * g->w * BLOCK;
    for (int64_t i = 0; i < WINDOW * WINDOW; i++) {
      int64_t row = pixel / g->out_w + i / WINDOW - g->pad_top;
      int64_t column = pixel % g->out_w + i % WINDOW - g->pad_left;
      if (row < 0 || row >= g->h || column < 0 || column >= g->w) continue;
      sum += (double)laci_bf16_value(x[(row * g->w + column) * BLOCK + in % BLOCK]) *
             (double)w[gradient ? WINDOW * WINDOW - 1 - i : i];
    }
  }
  return sum;
}

static const laci_winograd_kernel definition = {laci_winograd_transform_scalar,
                                                laci_winograd_convolve_scalar};

static void the_definition_is_a_convolution(void **state) {
  (void)state;
  for (int at = 0; at < 2 * N_CASES; at++) {
    const conv *c = &cases[at / 2];
    data d = data_of(c);
    double error = 0, size = 0;
    run(&definition, c, &d, at % 2, (int64_t[]){c->g.out_h, c->n});
    for (size_t i = 0; i < d.n_y; i++) {
      double want = direct(c, &d, at % 2, i), found = (double)laci_bf16_value(d.y[i]);
      error += (found - want) * (found - want);
      size += want * want;
    }
    /* bf16 keeps 8 bits: rounding weights and result alone costs 0.0018 */
    if (!(sqrt(error / size) < 0.006)) fail_msg("case %d: %g", at, sqrt(error / size));
    drop(&d);
  }
}

static void expect_same(const conv *c, const laci_winograd_kernel *kernel, bool gradient,
                        const int64_t rows_images[2]) {
  data want = data_of(c), found = data_of(c);
  double size = 0;
  run(&definition, c, &want, gradient, (int64_t[]){c->g.out_h, c->n});
  run(kernel, c, &found, gradient, rows_images);
  assert_memory_equal(found.u, want.u, want.n_u * sizeof *want.u);
  for (size_t i = 0; i < want.n_y; i++) { /* by fmax, gcc 12 for 64-bit ARM does not end well */
    double one = fabs((double)laci_bf16_value(want.y[i]));
    if (one > size) size = one;
  }
  for (size_t i = 0; i < want.n_y; i++) {
    double y = (double)laci_bf16_value(want.y[i]);
    if (!(fabs((double)laci_bf16_value(found.y[i]) - y) <= fabs(y) / 128 + 1e-5 * size)) {
      fail_msg("%d: %g, wanted %g", (int)i, (double)laci_bf16_value(found.y[i]), y);
    }
  }
  drop(&want);
  drop(&found);
}

static void the_fast_variant_agrees_in_bands_of_any_height(void **state) {
  (void)state;
  laci_winograd_kernel fast = laci_winograd_variant();
  if (!fast.convolve) skip();
  for (int at = 0; at < 2 * N_CASES; at++) {
    const conv *c = &cases[at / 2];
    for (int64_t rows = 1; rows <= c->g.out_h; rows++) {
      expect_same(c, &fast, at % 2, (int64_t[]){rows, 1});
    }
    expect_same(c, &fast, at % 2, (int64_t[]){c->g.out_h, c->n});
  }
}

static void a_cut_covers_the_image_and_has_scratch(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 7, 56, 300, 100000}, blocks[] = {1, 4, 32, 1000};
  for (int at = 0; at < 20; at++) {
    const laci_winograd g = {
        .c_blocks = blocks[at % 4], .k_blocks = 1, .out_h = sizes[at / 4], .out_w = sizes[at / 4]};
    int64_t rows = 0, images = 0;
    laci_winograd_choose_band(&g, &rows, &images);
    assert_true(rows >= 1 && rows <= g.out_h && images >= 1);
    assert_true(images == 1 || rows == g.out_h);
    assert_true(laci_winograd_scratch_bytes(&g, rows, images) > 0);
  }
  const laci_winograd huge = {.c_blocks = INT64_MAX / 4, .out_w = INT64_MAX / 4};
  assert_true(laci_winograd_scratch_bytes(&huge, 1, 1) == 0);
  /* The distance of 16 channels out is 9 floats times all channels in: that must fit into 31 bits
   */
  const laci_winograd wide = {.c_blocks = INT32_MAX / (15 * 9 * BLOCK) + 1, .out_w = 1};
  assert_true(laci_winograd_scratch_bytes(&wide, 1, 1) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_a_convolution),
      cmocka_unit_test(the_fast_variant_agrees_in_bands_of_any_height),
      cmocka_unit_test(a_cut_covers_the_image_and_has_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

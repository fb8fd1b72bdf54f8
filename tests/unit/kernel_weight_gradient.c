/* SPDX-License-Identifier: Apache-2.0
 * kernel/weight_gradient: every variant against sums that are written down here from the formula,
 * for windows, strides, pads and odd sizes; parts of the work touch nothing but their own sums. */
#include "kernel/convolution/weight_gradient.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "tensor/bf16.h"

enum { BLOCK = LACI_GRADIENT_BLOCK, TILE = LACI_GRADIENT_TILE, MARK = 0x5A, MOST_PLACES = 64 };

static uint16_t *draw(size_t n, uint64_t stream) {
  uint16_t *to = malloc(n * sizeof *to);
  assert_non_null(to);
  for (size_t i = 0; i < n; i++) {
    float x = (float)laci_rng_integer_below(7, stream, i, 2001) / 500 - 2;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    to[i] = (uint16_t)(bits >> 16);
  }
  return to;
}

typedef struct images {
  laci_weight_gradient g;
  int64_t n;
  uint16_t *x, *dy;
} images;

static double element(const uint16_t *x, const int64_t at[4], const int64_t sizes[3]) {
  int64_t n = at[0], c = at[1], y = at[2], column = at[3], blocks = sizes[0], h = sizes[1];
  if (y < 0 || column < 0 || y >= h || column >= sizes[2]) return 0;
  int64_t place = ((n * blocks + c / BLOCK) * h + y) * sizes[2] + column;
  return (double)laci_bf16_value(x[place * BLOCK + c % BLOCK]);
}

/** The formula for one weight over some images, and the sum of what is added in size. */
static double define(const images *m, const int64_t weight[4], int64_t n_first, int64_t n_last,
                     double *scale) {
  const laci_weight_gradient *g = &m->g;
  const int64_t in[3] = {g->c_blocks, g->h, g->w}, out[3] = {g->k_blocks, g->out_h, g->out_w};
  double sum = 0;
  *scale = 0;
  for (int64_t n = n_first; n < n_last; n++) {
    for (int64_t y = 0; y < g->out_h; y++) {
      for (int64_t x = 0; x < g->out_w; x++) {
        const int64_t from[4] = {n, weight[1], y * g->stride_h + weight[2] - g->pad_top,
                                 x * g->stride_w + weight[3] - g->pad_left};
        const int64_t to[4] = {n, weight[0], y, x};
        double product = element(m->x, from, in) * element(m->dy, to, out);
        sum += product;
        *scale += fabs(product);
      }
    }
  }
  return sum;
}

static bool in_part(const laci_weight_gradient_part *p, int64_t k, int64_t c) {
  return k >= p->k_first && k < p->k_last && c >= p->c_first && c < p->c_last;
}

/** Sums of one channel in and out against the formula. */
static void expect_weights(const images *m, const laci_weight_gradient_part *p, int64_t k,
                           int64_t c) {
  const laci_weight_gradient *g = &m->g;
  int64_t n_sums = laci_weight_gradient_n_sums(g), block = k / BLOCK * g->c_blocks + c / BLOCK;
  const float *sums = p->sums + block * n_sums * TILE + c % BLOCK * BLOCK + k % BLOCK;
  float found[MOST_PLACES];
  laci_weight_gradient_from_sums(g, sums, found);
  double want[MOST_PLACES], scale[MOST_PLACES], largest = 0;
  for (int64_t at = 0; at < g->kernel_h * g->kernel_w; at++) {
    const int64_t weight[4] = {k, c, at / g->kernel_w, at % g->kernel_w};
    want[at] = define(m, weight, p->n_first, p->n_last, &scale[at]);
    largest = fmax(largest, scale[at]);
  }
  for (int64_t at = 0; at < g->kernel_h * g->kernel_w; at++) {
    /* points keep 8 bits, and a row of the window shares them */
    double tolerance = g->winograd ? 0.01 * largest : 1e-6 * scale[at];
    if (!(fabs((double)found[at] - want[at]) <= tolerance)) {
      fail_msg("out %d, in %d, place %d: %g, wanted %g", (int)k, (int)c, (int)at, (double)found[at],
               want[at]);
    }
  }
}

/** The part's sums, in memory that is marked; the caller frees them. */
static float *sums_of(const images *m, laci_weight_sums *sums, laci_weight_gradient_part p) {
  const laci_weight_gradient *g = &m->g;
  size_t n = (size_t)(g->k_blocks * g->c_blocks * laci_weight_gradient_n_sums(g) * TILE);
  size_t bytes = laci_weight_gradient_scratch_bytes(g, p.k_last - p.k_first);
  assert_true(bytes > 0);
  p.x = m->x;
  p.dy = m->dy;
  p.scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
  p.sums = malloc(n * sizeof *p.sums);
  assert_non_null(p.scratch);
  assert_non_null(p.sums);
  memset(p.sums, MARK, n * sizeof *p.sums);
  sums(g, &p);
  free(p.scratch);
  return p.sums;
}

static void expect_part(const images *m, laci_weight_sums *sums, laci_weight_gradient_part p) {
  const laci_weight_gradient *g = &m->g;
  int64_t tile = laci_weight_gradient_n_sums(g) * TILE;
  float mark;
  memset(&mark, MARK, sizeof mark);
  p.sums = sums_of(m, sums, p);
  float *defined = sums_of(m, laci_weight_sums_scalar, p);
  double largest = 0;
  for (int64_t at = 0; at < g->k_blocks * g->c_blocks * tile; at++) {
    if (in_part(&p, at / tile / g->c_blocks, at / tile % g->c_blocks)) {
      largest = fmax(largest, fabs((double)defined[at]));
    }
  }
  for (int64_t at = 0; at < g->k_blocks * g->c_blocks * tile; at++) {
    bool inside = in_part(&p, at / tile / g->c_blocks, at / tile % g->c_blocks);
    if (!inside) assert_memory_equal(&p.sums[at], &mark, sizeof mark);
    else assert_true(fabs((double)(p.sums[at] - defined[at])) <= 1e-5 * largest);
  }
  for (int64_t k = p.k_first * BLOCK; k < p.k_last * BLOCK; k += 5) {
    for (int64_t c = p.c_first * BLOCK; c < p.c_last * BLOCK; c += 3) expect_weights(m, &p, k, c);
  }
  free(defined);
  free(p.sums);
}

static const images cases[] = {
    /* c, k, h, w, oh, ow, kh, kw, sh, sw, top, left, winograd */
    {{1, 1, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, false}, 5, NULL, NULL},
    {{2, 3, 7, 7, 7, 7, 3, 3, 1, 1, 1, 1, false}, 3, NULL, NULL},
    {{1, 2, 9, 14, 5, 7, 3, 3, 2, 2, 1, 1, false}, 2, NULL, NULL},
    {{1, 1, 30, 50, 30, 50, 3, 3, 1, 1, 1, 1, false}, 2, NULL, NULL}, /* several bands */
    {{2, 1, 6, 7, 6, 7, 1, 1, 1, 1, 0, 0, false}, 3, NULL, NULL},
    {{1, 1, 8, 7, 4, 4, 1, 1, 2, 2, 0, 0, false}, 3, NULL, NULL},
    {{1, 1, 4, 5, 6, 7, 1, 1, 1, 1, 1, 1, false}, 2, NULL, NULL}, /* more than there is */
    {{1, 1, 12, 11, 4, 2, 5, 7, 3, 4, 2, 0, false}, 2, NULL, NULL},
    {{1, 1, 6, 6, 6, 6, 1, 3, 1, 1, 0, 1, false}, 2, NULL, NULL},
    {{1, 1, 9, 1, 5, 1, 3, 1, 2, 1, 1, 0, false}, 3, NULL, NULL},
    {{1, 1, 2, 2, 6, 6, 3, 3, 1, 1, 3, 3, false}, 1, NULL, NULL}, /* windows outside of the image */
    {{1, 1, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, true}, 5, NULL, NULL},
    {{2, 3, 7, 7, 7, 7, 3, 3, 1, 1, 1, 1, true}, 3, NULL, NULL},
    {{1, 2, 5, 6, 5, 6, 3, 3, 1, 1, 1, 1, true}, 2, NULL, NULL}, /* three tiles a row */
    {{1, 1, 30, 50, 30, 50, 3, 3, 1, 1, 1, 1, true}, 2, NULL, NULL},
    {{1, 1, 9, 5, 4, 3, 3, 3, 2, 1, 0, 0, true}, 2, NULL, NULL}, /* rows move by two */
    {{1, 1, 1, 1, 3, 3, 3, 3, 1, 1, 2, 2, true}, 2, NULL, NULL},
};

static void expect_all(laci_weight_sums *sums) {
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    images m = cases[at];
    const laci_weight_gradient *g = &m.g;
    m.x = draw((size_t)(m.n * g->c_blocks * g->h * g->w * BLOCK), 1);
    m.dy = draw((size_t)(m.n * g->k_blocks * g->out_h * g->out_w * BLOCK), 2);
    const laci_weight_gradient_part whole = {
        .n_last = m.n, .k_last = g->k_blocks, .c_last = g->c_blocks};
    expect_part(&m, sums, whole);
    laci_weight_gradient_part some = whole;
    some.n_first = m.n - 1;
    some.k_first = g->k_blocks - 1;
    some.c_first = g->c_blocks - 1;
    expect_part(&m, sums, some);
    free(m.x);
    free(m.dy);
  }
}

static void the_definition_is_the_formula(void **state) {
  (void)state;
  expect_all(laci_weight_sums_scalar);
}

static void the_fast_variant_agrees(void **state) {
  (void)state;
  laci_weight_sums *fast = laci_weight_sums_variant();
  if (!fast) skip();
  expect_all(fast);
}

static void an_enormous_window_has_no_scratch(void **state) {
  (void)state;
  const laci_weight_gradient g = {.c_blocks = 1,
                                  .k_blocks = 1,
                                  .h = 1,
                                  .w = 1,
                                  .out_h = 1,
                                  .out_w = 1,
                                  .kernel_h = (int64_t)1 << 40,
                                  .kernel_w = (int64_t)1 << 40,
                                  .stride_h = 1,
                                  .stride_w = 1};
  assert_true(laci_weight_gradient_scratch_bytes(&g, 1) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_the_formula),
      cmocka_unit_test(the_fast_variant_agrees),
      cmocka_unit_test(an_enormous_window_has_no_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

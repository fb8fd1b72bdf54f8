/* SPDX-License-Identifier: Apache-2.0
 * Small layers with all their inputs, for tests of calibrate/fit. */
#ifndef TESTS_SUPPORT_FIT_LAYER_H
#define TESTS_SUPPORT_FIT_LAYER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "calibrate/fit.h"

enum { MOST_COLUMNS = 48, MOST_ROWS = 24, MOST_WEIGHTS = MOST_COLUMNS * MOST_ROWS };

/* A layer with its inputs in both networks. */
typedef struct layer {
  laci_fit fit;
  int n_inputs;
  double *dense, *pruned;                /* [n_inputs, columns] inputs of the layer in the dense and
                                            in the pruned network */
  double h[MOST_COLUMNS * MOST_COLUMNS]; /* H, from `pruned` */
  double k[MOST_COLUMNS * MOST_COLUMNS]; /* K, rows: dense */
  double weight[MOST_WEIGHTS];
} layer;

typedef struct shape {
  int rows, columns, channels, n, m, n_inputs;
  bool symmetric;
  const char *why;
} shape;

static const shape shapes[] = {
    {3, 8, 8, 2, 4, 40, false, "two blocks"},
    {5, 12, 12, 2, 4, 40, true, "symmetric"},
    {4, 8, 8, 1, 4, 40, false, "1:4"},
    {4, 16, 16, 4, 8, 60, false, "4:8"},
    {3, 18, 6, 2, 4, 60, false, "taps with a partial block of two"},
    {3, 15, 5, 2, 4, 60, true, "taps with a partial block of one"},
    {4, 16, 8, 2, 4, 5, false, "fewer positions than columns"},
    {24, 4, 4, 2, 4, 30, false, "six supports for 24 rows"},
    {2, 9, 1, 2, 4, 30, false, "one channel a tap: nothing goes"},
    {7, 48, 16, 2, 4, 200, false, "three taps"},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static inline double noise(uint64_t seed, uint64_t at) {
  double sum = 0;
  for (uint64_t i = 0; i < 6; i++) sum += laci_rng_unit_interval(seed, 11, 6 * at + i) - 0.5;
  return sum;
}

/* Draws inputs whose columns are correlated, as in real networks. Those of the pruned network
 * differ a little from the dense ones. */
static inline void layer_init(layer *l, const shape *s, uint64_t seed) {
  memset(l, 0, sizeof *l);
  l->n_inputs = s->n_inputs;
  l->dense = laci_alloc((size_t)s->n_inputs * (size_t)s->columns, sizeof *l->dense);
  l->pruned = laci_alloc((size_t)s->n_inputs * (size_t)s->columns, sizeof *l->pruned);
  assert_non_null(l->dense);
  assert_non_null(l->pruned);
  uint64_t at = 0;
  for (int p = 0; p < s->n_inputs; p++) {
    const double shared = noise(seed, at++), other = noise(seed, at++);
    for (int c = 0; c < s->columns; c++) {
      const double x = noise(seed, at++) + shared + (c % 2 ? other : 0.3);
      l->dense[p * s->columns + c] = x * (1 + c % 3);
      l->pruned[p * s->columns + c] = l->dense[p * s->columns + c] + 0.3 * noise(seed, at++);
    }
  }
  for (int i = 0; i < s->rows * s->columns; i++) l->weight[i] = noise(seed + 1, (uint64_t)i);
  l->fit = (laci_fit){.name = s->why, .rows = s->rows, .columns = s->columns};
  l->fit.channels = s->channels;
  l->fit.pattern = (laci_pattern){s->n, s->m};
  l->fit.positions = s->n_inputs;
  l->fit.h = l->h;
  l->fit.k = s->symmetric ? NULL : l->k;
  l->fit.weight = l->weight;
}

static inline void layer_sum(layer *l) {
  const int columns = l->fit.columns;
  memset(l->h, 0, sizeof l->h);
  memset(l->k, 0, sizeof l->k);
  for (int p = 0; p < l->n_inputs; p++) {
    const double *d = l->dense + p * columns, *x = l->pruned + p * columns;
    for (int i = 0; i < columns; i++) {
      for (int j = 0; j < columns; j++) {
        l->h[i * columns + j] += x[i] * x[j];
        l->k[i * columns + j] += d[i] * x[j];
      }
    }
  }
}

static inline void layer_create(layer *l, const shape *s, uint64_t seed) {
  layer_init(l, s, seed);
  layer_sum(l);
}

static inline void layer_clear(layer *l) {
  laci_free(l->dense);
  laci_free(l->pruned);
}

static inline double damping_of(const layer *l) {
  const int columns = l->fit.columns;
  double trace = 0, part = 0.25 * columns / l->fit.positions;
  for (int c = 0; c < columns; c++) trace += l->h[c * columns + c];
  return (part > 0.01 ? part : 0.01) * trace / columns;
}

/* Returns the first column of the block of column c, and sets *n_columns. */
static inline int block_of(const laci_fit *fit, int c, int *n_columns) {
  const int channel = c % fit->channels, first = channel - channel % fit->pattern.m;
  const int left = fit->channels - first;
  *n_columns = left < fit->pattern.m ? left : fit->pattern.m;
  return c - channel + first;
}

static inline void expect_near(double found, double wanted, double tolerance) {
  if (!(fabs(found - wanted) <= tolerance * (fabs(wanted) + 1e-12))) {
    fail_msg("found %.17g, wanted %.17g", found, wanted);
  }
}

static inline void choose(const layer *l, const char *score, uint8_t *mask, double *weight) {
  lac_error err = {0};
  const laci_score *s = laci_score_find(score);
  assert_non_null(s);
  if (laci_fit_choose_mask(&l->fit, s, NULL, mask, weight, &err)) fail_msg("%s", err.text);
}

static inline void solve(const layer *l, const uint8_t *mask, double *weight) {
  lac_error err = {0};
  if (laci_fit_solve_weights(&l->fit, mask, NULL, weight, &err)) fail_msg("%s", err.text);
}

#endif

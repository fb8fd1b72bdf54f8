/* SPDX-License-Identifier: Apache-2.0
 * How long the fits of layers take: made-up layers of some widths are fitted, with two numbers of
 * rows each. Their difference is the time of a row; the rest is that of the matrices, which all
 * rows share. Both grow as powers of the width from one width to the next. Beyond the widest, the
 * choice of a row's mask grows as n^2, and all factorizations as n^3. */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "calibrate/fit.h"
#include "calibrate/forecast_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum {
  LEAST_COLUMNS = 32, /* width of the narrowest layer that is timed; each wider one is twice as wide
                         as the one before */
  N_WIDTHS = 5,
  FEW_ROWS = 16,
  MANY_ROWS = 48,
  TIMES = 2,            /* number of fits of each size, of which the shortest counts */
  NEAR_COLUMNS = 4,     /* distance of columns at which their correlation is a half */
  FLOAT_COLUMNS = 1024, /* columns from which weights are solved for in float (solve.c), FLOAT_GAIN
                           times as fast */
  FLOAT_GAIN = 3,
  POSITIONS = 64 /* positions of the made-up layers for each column, which set the damping */
};

/* A layer's fit takes this many times as long as a trial's, whose matrices are in the caches. */
static const double FIT_OF_TRIAL = 1.15;

/* Times of layers of one width, in seconds of one thread. */
typedef struct width_times {
  double shared;               /* what does not depend on the number of rows */
  double choosing, solving;    /* time of a row: for its mask, and for its weights */
  double factor_alone, factor; /* a Cholesky factorization by one thread, and by the pool */
} width_times;

/* A made-up layer, and memory for its fit. */
typedef struct trial_layer {
  int columns;
  double *h, *weight, *fitted; /* [columns, columns], [MANY_ROWS, columns] twice */
  uint8_t *mask;               /* [MANY_ROWS, columns] */
  float *factor;               /* [columns, columns] */
} trial_layer;

static int columns_of_width(int at) { return LEAST_COLUMNS << at; }

static bool trial_layer_init(trial_layer *l, int columns) {
  const size_t n = (size_t)columns, count = MANY_ROWS * n;
  *l = (trial_layer){.columns = columns,
                     .h = laci_alloc(n * n, sizeof(double)),
                     .weight = laci_alloc(count, sizeof(double)),
                     .fitted = laci_alloc(count, sizeof(double)),
                     .mask = laci_alloc(count, 1),
                     .factor = laci_alloc(n * n, sizeof(float))};
  if (!l->h || !l->weight || !l->fitted || !l->mask || !l->factor) return false;
  /* Correlations fall with the distance of columns, but never to numbers so small that they are
   * slow. */
  for (size_t i = 0; i < n; i++)
    for (size_t j = i; j < n; j++)
      l->h[i * n + j] = l->h[j * n + i] = 1 / (1 + (double)(j - i) / NEAR_COLUMNS);
  for (size_t at = 0; at < count; at++) l->weight[at] = laci_rng_unit_interval(1, 0, at) - 0.5;
  return true;
}

static void trial_layer_clear(trial_layer *l) {
  laci_free(l->h);
  laci_free(l->weight);
  laci_free(l->fitted);
  laci_free(l->mask);
  laci_free(l->factor);
}

/* Times the layer's fit with this many rows, by one thread: the choice of the mask and the
 * solution. False: it failed. */
static bool time_fit(const laci_walk_state *w, const trial_layer *l, int rows, double *choosing,
                     double *solving) {
  const laci_calibrate_options *o = w->options;
  lac_error ignored = {0};
  const laci_fit fit = {.name = "a layer",
                        .rows = rows,
                        .columns = l->columns,
                        .channels = l->columns,
                        .pattern = o->pattern,
                        .form = o->form,
                        .v = o->v,
                        .h = l->h,
                        .k = o->symmetric ? NULL : l->h,
                        .positions = (double)POSITIONS * l->columns,
                        .weight = l->weight};
  for (int i = 0; i < TIMES; i++) {
    const double began = laci_clock_seconds();
    lac_status st = laci_fit_choose_mask(&fit, o->score, NULL, l->mask, l->fitted, &ignored);
    const double chosen = laci_clock_seconds();
    if (!st && o->solve) st = laci_fit_solve_weights(&fit, l->mask, NULL, l->fitted, &ignored);
    const double solved = laci_clock_seconds();
    if (st) return false;
    if (i == 0 || chosen - began < *choosing) *choosing = chosen - began;
    if (i == 0 || solved - chosen < *solving) *solving = solved - chosen;
  }
  return true;
}

static double time_factor(const trial_layer *l, laci_pool *pool) {
  const size_t n = (size_t)l->columns;
  for (size_t i = 0; i < n * n; i++) l->factor[i] = (float)l->h[i];
  for (size_t i = 0; i < n; i++) l->factor[i * n + i] += 0.1F;
  const double began = laci_clock_seconds();
  (void)laci_linear_cholesky_f32(pool, l->factor, l->columns);
  return laci_clock_seconds() - began;
}

/* Returns the time of a row, from those of two numbers of rows. */
static double seconds_per_row(double few, double many) {
  return many > few ? (many - few) / (MANY_ROWS - FEW_ROWS) : 0;
}

/* False: no memory, or a fit that cannot be tried. */
static bool time_fits_of_width(const laci_walk_state *w, int columns, width_times *t) {
  trial_layer l;
  double few[2], many[2];
  const bool ok = trial_layer_init(&l, columns) && time_fit(w, &l, FEW_ROWS, &few[0], &few[1]) &&
                  time_fit(w, &l, MANY_ROWS, &many[0], &many[1]);
  if (ok) {
    t->choosing = seconds_per_row(few[0], many[0]);
    t->solving = seconds_per_row(few[1], many[1]);
    t->shared = few[0] + few[1] - FEW_ROWS * (t->choosing + t->solving);
    if (t->shared < 0) t->shared = 0;
    t->factor_alone = time_factor(&l, NULL);
    t->factor = time_factor(&l, w->options->pool);
  }
  trial_layer_clear(&l);
  return ok;
}

/* Returns the time for a width between two that were timed, the second of which is twice the first:
 * it grows by a power of the width. */
static double interpolate(double first, double second, double ratio) {
  if (first <= 0 || second <= 0) return first + (ratio - 1) * (second - first);
  return first * pow(second / first, log2(ratio));
}

/* Returns the times for this many columns, from the widths around it. */
static width_times estimate_times(const width_times *times, int64_t columns) {
  int at = 0;
  while (at < N_WIDTHS - 1 && columns_of_width(at + 1) <= columns) at++;
  width_times t = times[at];
  const width_times *next = &times[at + 1];
  const double wide = (double)columns / columns_of_width(at);
  if (wide > 1 && at < N_WIDTHS - 1) {
    t.shared = interpolate(t.shared, next->shared, wide);
    t.choosing = interpolate(t.choosing, next->choosing, wide);
    t.solving = interpolate(t.solving, next->solving, wide);
  } else {
    t.shared *= wide * wide * wide;
    t.choosing *= wide * wide;
    t.solving *= wide * wide * wide / (columns >= FLOAT_COLUMNS ? FLOAT_GAIN : 1);
  }
  return t;
}

static double forecast_layer(const laci_walk_state *w, const laci_matrix_layer *l,
                             const width_times *times) {
  const width_times t = estimate_times(times, l->columns);
  const double rows = (double)l->rows;
  double threads = laci_pool_threads(w->options->pool), shared = t.shared;
  if (threads > rows / FEW_ROWS) threads = rows / FEW_ROWS > 1 ? rows / FEW_ROWS : 1;
  if (t.factor_alone > 0 && t.factor < t.factor_alone) shared *= t.factor / t.factor_alone;
  return (shared + (t.choosing + t.solving) * rows / threads) * (double)l->unfold.groups;
}

double laci_walk_forecast_fits(const laci_walk_state *w) {
  width_times times[N_WIDTHS] = {{0}};
  int64_t most = 0;
  double seconds = 0;
  for (int l = 0; l < w->plan.n_layers; l++)
    if (w->plan.layers[l].columns > most) most = w->plan.layers[l].columns;
  for (int at = 0; at < N_WIDTHS && (at == 0 || columns_of_width(at - 1) < most); at++)
    if (!time_fits_of_width(w, columns_of_width(at), &times[at])) return -1;
  for (int l = 0; l < w->plan.n_layers; l++)
    seconds += forecast_layer(w, &w->plan.layers[l], times);
  return seconds * FIT_OF_TRIAL;
}

/* SPDX-License-Identifier: Apache-2.0
 * calibrate: every score against its definition, transcribed row by row in plain loops: inverses by
 * elimination, no panels, no pending updates, all in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/linear/linear.h"
#include "support/fit_layer.h"

enum { SIDE = MOST_COLUMNS };

/* ---- small matrices, [n, n] in [SIDE, SIDE] ---- */

/* a + add I, inverted by Gauss and Jordan; positive definite, so that no pivot is 0. */
static void invert(const double *a, double add, int n, double *inverse) {
  static double left[SIDE * SIDE];
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      left[i * SIDE + j] = a[i * SIDE + j] + (i == j ? add : 0);
      inverse[i * SIDE + j] = i == j;
    }
  }
  for (int i = 0; i < n; i++) {
    const double pivot = left[i * SIDE + i];
    for (int c = 0; c < n; c++) {
      left[i * SIDE + c] /= pivot;
      inverse[i * SIDE + c] /= pivot;
    }
    for (int j = 0; j < n; j++) {
      const double part = left[j * SIDE + i];
      for (int c = 0; c < n && j != i; c++) {
        left[j * SIDE + c] -= part * left[i * SIDE + c];
        inverse[j * SIDE + c] -= part * inverse[i * SIDE + c];
      }
    }
  }
}

/* Upper U with U' U = a. */
static void factorize_upper(const double *a, int n, double *u) {
  memset(u, 0, sizeof *u * SIDE * SIDE);
  for (int i = 0; i < n; i++) {
    for (int j = i; j < n; j++) {
      double sum = a[i * SIDE + j];
      for (int c = 0; c < i; c++) sum -= u[c * SIDE + i] * u[c * SIDE + j];
      u[i * SIDE + j] = i == j ? sqrt(sum) : sum / u[i * SIDE + i];
    }
  }
}

/* ---- what all definitions begin with ---- */

static double damped[SIDE * SIDE];  /* H + d I */
static double inverse[SIDE * SIDE]; /* of it */
static double target[MOST_WEIGHTS]; /* W_d (K + d I) */
static double start[MOST_WEIGHTS];  /* target times inverse */

static void prepare(const layer *l) {
  const int columns = l->fit.columns;
  const double d = damping_of(l), *k = l->fit.k ? l->k : l->h;
  for (int i = 0; i < columns; i++) {
    for (int j = 0; j < columns; j++) {
      damped[i * SIDE + j] = l->h[i * columns + j] + (i == j ? d : 0);
    }
  }
  invert(damped, 0, columns, inverse);
  for (int row = 0; row < l->fit.rows; row++) {
    const double *w = l->weight + row * columns;
    for (int c = 0; c < columns; c++) {
      double sum = d * w[c];
      for (int i = 0; i < columns; i++) sum += w[i] * k[i * columns + c];
      target[row * columns + c] = sum;
    }
    for (int c = 0; c < columns; c++) {
      double sum = 0;
      for (int i = 0; i < columns; i++) sum += target[row * columns + i] * inverse[i * SIDE + c];
      start[row * columns + c] = sum;
    }
  }
}

/* ---- definitions ---- */

/* The n largest of every block of a row. */
static void keep(const laci_fit *fit, const double *score, uint8_t *mask) {
  for (int c = 0; c < fit->columns; c++) {
    int wide, rank = 0, first = block_of(fit, c, &wide);
    for (int j = first; j < first + wide; j++) {
      rank += score[j] > score[c] || (score[j] == score[c] && j < c);
    }
    mask[c] = rank < fit->pattern.n;
  }
}

static void define_magnitude(const layer *l, int row, uint8_t *mask, double *w) {
  const int columns = l->fit.columns;
  for (int c = 0; c < columns; c++) w[c] = fabs(l->weight[row * columns + c]);
  keep(&l->fit, w, mask);
  for (int c = 0; c < columns; c++) w[c] = mask[c] * l->weight[row * columns + c];
}

static void define_wanda(const layer *l, int row, uint8_t *mask, double *w) {
  const int columns = l->fit.columns;
  for (int c = 0; c < columns; c++) {
    double squares = 0;
    for (int p = 0; p < l->n_inputs; p++) {
      squares += l->pruned[p * columns + c] * l->pruned[p * columns + c];
    }
    w[c] = fabs(l->weight[row * columns + c]) * sqrt(squares);
  }
  keep(&l->fit, w, mask);
  for (int c = 0; c < columns; c++) w[c] = mask[c] * l->weight[row * columns + c];
}

static void define_ria(const layer *l, int row, uint8_t *mask, double *w) {
  const int columns = l->fit.columns;
  for (int c = 0; c < columns; c++) {
    double squares = 0, of_column = 0, of_row = 0;
    for (int p = 0; p < l->n_inputs; p++) {
      squares += l->pruned[p * columns + c] * l->pruned[p * columns + c];
    }
    for (int r = 0; r < l->fit.rows; r++) of_column += fabs(l->weight[r * columns + c]);
    for (int i = 0; i < columns; i++) of_row += fabs(l->weight[row * columns + i]);
    const double size = fabs(l->weight[row * columns + c]);
    w[c] = (size / of_column + size / of_row) * pow(sqrt(squares), 0.5);
  }
  keep(&l->fit, w, mask);
  for (int c = 0; c < columns; c++) w[c] = mask[c] * l->weight[row * columns + c];
}

static void define_sparsegpt(const layer *l, int row, uint8_t *mask, double *w) {
  static double u[SIDE * SIDE];
  const int columns = l->fit.columns;
  factorize_upper(inverse, columns, u);
  memcpy(w, start + row * columns, sizeof *w * (size_t)columns);
  for (int c = 0; c < columns; c++) {
    int wide;
    if (block_of(&l->fit, c, &wide) == c) {
      double worth[SIDE];
      uint8_t kept[SIDE];
      for (int i = 0; i < columns; i++) worth[i] = pow(w[i] / u[i * SIDE + i], 2);
      keep(&l->fit, worth, kept);
      memcpy(mask + c, kept + c, (size_t)wide);
    }
    const double lost = (w[c] - mask[c] * w[c]) / u[c * SIDE + c];
    for (int j = c; j < columns; j++) w[j] -= lost * u[c * SIDE + j];
    w[c] *= mask[c];
  }
}

static void define_obs(const layer *l, int row, uint8_t *mask, double *w) {
  static double p[SIDE * SIDE];
  const int columns = l->fit.columns;
  memcpy(p, inverse, sizeof p);
  memcpy(w, start + row * columns, sizeof *w * (size_t)columns);
  memset(mask, 1, (size_t)columns);
  for (;;) {
    int go = -1;
    for (int c = 0; c < columns; c++) {
      int wide, kept = 0, first = block_of(&l->fit, c, &wide);
      for (int j = first; j < first + wide; j++) kept += mask[j];
      if (!mask[c] || kept <= l->fit.pattern.n) continue;
      const double loss = w[c] * w[c] / p[c * SIDE + c];
      if (go < 0 || loss < w[go] * w[go] / p[go * SIDE + go]) go = c;
    }
    if (go < 0) break;
    const double part = w[go] / p[go * SIDE + go];
    for (int c = 0; c < columns; c++) w[c] -= part * p[go * SIDE + c];
    w[go] = mask[go] = 0;
    for (int i = 0; i < columns; i++) {
      for (int j = 0; j < columns && i != go; j++) {
        if (j == go) continue;
        p[i * SIDE + j] -= p[i * SIDE + go] * p[go * SIDE + j] / p[go * SIDE + go];
      }
    }
    for (int i = 0; i < columns; i++) p[i * SIDE + go] = p[go * SIDE + i] = 0;
    p[go * SIDE + go] = 1;
  }
}

typedef void define_row(const layer *l, int row, uint8_t *mask, double *w);

static void define_rows(const layer *l, define_row *define, uint8_t *mask, double *w) {
  for (int row = 0; row < l->fit.rows; row++) {
    define(l, row, mask + row * l->fit.columns, w + row * l->fit.columns);
  }
}

/* All rows together, since how fast rho grows depends on all. */
static void define_alps(const layer *l, uint8_t *mask, double *w) {
  static double scaled[SIDE * SIDE], by[SIDE * SIDE], b[MOST_WEIGHTS], d[MOST_WEIGHTS],
      v[MOST_WEIGHTS], first[MOST_WEIGHTS];
  static uint8_t before[MOST_WEIGHTS];
  const int columns = l->fit.columns, count = l->fit.rows * columns;
  double root[SIDE], rho = 0.1;
  bool raising = false;
  for (int c = 0; c < columns; c++) root[c] = sqrt(damped[c * SIDE + c]);
  for (int at = 0; at < columns * columns; at++) {
    const int i = at / columns, j = at % columns;
    scaled[i * SIDE + j] = damped[i * SIDE + j] / (root[i] * root[j]);
  }
  for (int row = 0; row < l->fit.rows; row++) {
    double size[SIDE];
    for (int c = 0; c < columns; c++) {
      first[row * columns + c] = l->weight[row * columns + c] * root[c];
      size[c] = fabs(first[row * columns + c]);
    }
    keep(&l->fit, size, before + row * columns);
  }
  for (int at = 0; at < count; at++) d[at] = first[at] = before[at] * first[at];
  memset(v, 0, sizeof v);
  for (int step = 1; step <= 300; step++) {
    int changed = 0, kept = 0;
    invert(scaled, rho, columns, by);
    for (int row = 0; row < l->fit.rows; row++) {
      double size[SIDE];
      for (int c = 0; c < columns; c++) {
        double sum = 0;
        for (int i = 0; i < columns; i++) {
          const int at = row * columns + i;
          sum += (target[at] / root[i] - v[at] + rho * d[at]) * by[i * SIDE + c];
        }
        b[row * columns + c] = sum;
        size[c] = fabs(sum + v[row * columns + c] / rho);
      }
      keep(&l->fit, size, mask + row * columns);
      for (int c = 0; c < columns; c++) {
        const int at = row * columns + c;
        d[at] = mask[at] * (b[at] + v[at] / rho);
        v[at] += rho * (b[at] - d[at]);
      }
    }
    if (step % 3) continue;
    for (int at = 0; at < count; at++) {
      changed += mask[at] != before[at];
      kept += mask[at];
    }
    memcpy(before, mask, (size_t)count);
    const double part = (double)changed / kept;
    raising = raising || part > 0.005;
    if (raising && !changed) break;
    if (raising) {
      rho *= part > 0.1 ? 1.3 : part > 0.005 ? 1.2 : 1.1;
    } else {
      rho /= 5;
      memcpy(d, first, sizeof d);
      memset(v, 0, sizeof v);
    }
  }
  for (int at = 0; at < count; at++) w[at] = d[at] / root[at % columns];
}

/* ---- tests ---- */

static layer l;
static uint8_t mask[MOST_WEIGHTS], wanted_mask[MOST_WEIGHTS];
static double weight[MOST_WEIGHTS], wanted[MOST_WEIGHTS];

static double most_of(const double *values, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs(values[i]));
  return most;
}

static void expect_score(const char *name, define_row *define, double tolerance) {
  for (int i = 0; i < 3 * N_SHAPES; i++) {
    layer_create(&l, &shapes[i % N_SHAPES], 20 + (uint64_t)i);
    const int count = l.fit.rows * l.fit.columns;
    prepare(&l);
    if (define) define_rows(&l, define, wanted_mask, wanted);
    else define_alps(&l, wanted_mask, wanted);
    choose(&l, name, mask, weight);
    const double most = most_of(wanted, count);
    for (int at = 0; at < count; at++) {
      if (mask[at] != wanted_mask[at] || !(fabs(weight[at] - wanted[at]) <= tolerance * most)) {
        fail_msg("%s, %s, element %d: found %d %.17g, wanted %d %.17g", name, l.fit.name, at,
                 mask[at], weight[at], wanted_mask[at], wanted[at]);
      }
    }
    layer_clear(&l);
  }
}

static void magnitude_is_its_definition(void **state) {
  (void)state;
  expect_score("magnitude", define_magnitude, 0);
}

static void wanda_is_its_definition(void **state) {
  (void)state;
  expect_score("wanda", define_wanda, 0);
}

static void ria_is_its_definition(void **state) {
  (void)state;
  expect_score("ria", define_ria, 0);
}

static void sparsegpt_is_its_definition(void **state) {
  (void)state;
  expect_score("sparsegpt", define_sparsegpt, 1e-9);
}

static void obs_is_its_definition(void **state) {
  (void)state;
  expect_score("obs", define_obs, 1e-9);
}

static void alps_is_its_definition(void **state) {
  (void)state;
  expect_score("alps", NULL, 1e-3); /* its steps are taken in float */
}

/* What ExactOBS leaves is the solution on its support, if every step knew all steps before: over
 * so many that P is brought up to date several times, in several strips. */
static void obs_leaves_the_solution(void **state) {
  enum { N = 640, ROWS = 2, INPUTS = 300 };
  static double h[N * N], x[INPUTS * N], w[ROWS * N], left[ROWS * N], solved[ROWS * N];
  static uint8_t kept[ROWS * N];
  (void)state;
  lac_error err = {0};
  memset(h, 0, sizeof h);
  for (int i = 0; i < INPUTS * N; i++)
    x[i] = noise(41, (uint64_t)i) + (i % 3 ? noise(42, (uint64_t)(i / N)) : 0);
  for (int i = 0; i < ROWS * N; i++) w[i] = noise(43, (uint64_t)i);
  for (int p = 0; p < INPUTS; p++) {
    for (int i = 0; i < N; i++) {
      for (int j = 0; j < N; j++) h[i * N + j] += x[p * N + i] * x[p * N + j];
    }
  }
  laci_fit fit = {.name = "wide", .rows = ROWS, .columns = N, .channels = N, .pattern = {2, 4}};
  fit.h = h;
  fit.weight = w;
  fit.positions = INPUTS;
  assert_int_equal(laci_fit_choose_mask(&fit, laci_score_find("obs"), NULL, kept, left, &err), 0);
  assert_int_equal(laci_fit_solve_weights(&fit, kept, NULL, solved, &err), 0);
  const double most = most_of(solved, ROWS * N);
  for (int at = 0; at < ROWS * N; at++) {
    if (!(fabs(left[at] - solved[at]) <= 1e-9 * most)) {
      fail_msg("element %d: %.17g is left, the solution is %.17g", at, left[at], solved[at]);
    }
  }
}

/* What a weight costs by itself: the damped error that is added where it goes and all others
 * follow, by the solution without it. */
static void saliency_is_the_loss_of_one_weight(void **state) {
  (void)state;
  static double saliency[MOST_WEIGHTS], solved[MOST_WEIGHTS];
  layer_create(&l, &shapes[4], 31);
  lac_error err = {0};
  const int columns = l.fit.columns, count = l.fit.rows * columns;
  prepare(&l);
  assert_int_equal(laci_fit_compute_saliency(&l.fit, laci_score_find("obs"), NULL, saliency, &err),
                   0);
  for (int c = 0; c < columns; c++) {
    memset(mask, 1, (size_t)count);
    for (int row = 0; row < l.fit.rows; row++) mask[row * columns + c] = 0;
    solve(&l, mask, solved);
    for (int row = 0; row < l.fit.rows; row++) {
      double loss = 0; /* (w - start) (H + d I) (w - start)' */
      for (int at = 0; at < columns * columns; at++) {
        const int i = row * columns + at / columns, j = row * columns + at % columns;
        loss += (solved[i] - start[i]) * damped[at / columns * SIDE + at % columns] *
                (solved[j] - start[j]);
      }
      expect_near(saliency[row * columns + c], sqrt(loss), 1e-6);
    }
  }
  layer_clear(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(magnitude_is_its_definition),
      cmocka_unit_test(wanda_is_its_definition),
      cmocka_unit_test(ria_is_its_definition),
      cmocka_unit_test(sparsegpt_is_its_definition),
      cmocka_unit_test(obs_is_its_definition),
      cmocka_unit_test(obs_leaves_the_solution),
      cmocka_unit_test(alps_is_its_definition),
      cmocka_unit_test(saliency_is_the_loss_of_one_weight),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  laci_linear_use_plain(true); /* and without OpenBLAS */
  return failed + cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * ALPS: chooses all weights of a layer jointly, by the alternating direction method of multipliers
 * (ADMM). With inputs scaled so that H + d I has a unit diagonal, every step is
 *
 *     B = (G - V + rho D) (H + rho I)^-1        least squares, drawn towards D
 *     D = the largest n of every block of B + V / rho
 *     V += rho (B - D)
 *
 * and every third step raises rho: by more if the support (the set of kept weights) still changed
 * much. The iteration ends when the support hardly changes any more, since further changes would
 * gain nothing after the exact solution. If the support hardly changes from the beginning, rho was
 * too large: the iteration starts again with a fifth of it.
 *
 * Every new rho needs a new Cholesky factor; a step is then a substitution that costs as much as
 * one matrix product. For layers with more than a few rows this costs less than an
 * eigendecomposition of H, with which a new rho is free and a step costs two products. float is
 * enough, since only the support is used. */
#include <math.h>
#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/min.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/inverse_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum { MOST_STEPS = 300, STEPS_A_RHO = 3, ROWS_AT_ONCE = 16 };

static const double FIRST_RHO = 0.1, MOST_RHO = 1e6;

/* Limits of the fraction of kept weights that changed since the penalty rho was last raised. They
 * decide by how much rho is raised next. */
static const double MUCH = 0.1, SOME = 0.005, HARDLY_ANY = 5e-5;

typedef struct admm {
  const laci_fit *fit;
  laci_pool *pool;
  double rho;
  float *h;             /* [columns, columns] damped Gram matrix of the inputs, H + d I, scaled to a
                           unit diagonal */
  float *factor;        /* [columns, columns] Cholesky factor of H + rho I, for the current penalty
                           rho of ADMM */
  float *g, *v, *b, *d; /* [rows, columns] the matrices G, V, B and D of ADMM, in the formulas at
                           the top of this file */
  float *scale;         /* [columns] square roots of the diagonal of the damped Gram matrix, by
                           which it was scaled */
  uint8_t *before;      /* [rows, columns] mask at the time when the penalty rho was last changed */
  int64_t *changed;     /* [rows] for each row, the number of elements of the mask that changed
                           since rho was last changed */
  uint8_t *mask;        /* [rows, columns] the current mask: 1 where the pattern keeps the weight */
} admm;

/* ---- begin and end ---- */

static bool admm_init(admm *a, const laci_fit *fit) {
  const size_t n = (size_t)fit->columns, count = (size_t)fit->rows * n;
  a->h = laci_alloc(n * n, sizeof *a->h);
  a->factor = laci_alloc(n * n, sizeof *a->factor);
  a->g = laci_alloc(count, sizeof *a->g);
  a->v = laci_alloc(count, sizeof *a->v);
  a->b = laci_alloc(count, sizeof *a->b);
  a->d = laci_alloc(count, sizeof *a->d);
  a->scale = laci_alloc(n, sizeof *a->scale);
  a->before = laci_alloc(count, 1);
  a->changed = laci_alloc((size_t)fit->rows, sizeof *a->changed);
  return a->h && a->factor && a->g && a->v && a->b && a->d && a->scale && a->before && a->changed;
}

static void admm_clear(admm *a) {
  laci_free(a->h);
  laci_free(a->factor);
  laci_free(a->g);
  laci_free(a->v);
  laci_free(a->b);
  laci_free(a->d);
  laci_free(a->scale);
  laci_free(a->before);
  laci_free(a->changed);
}

static uint64_t alps_memory_bytes(const laci_fit *fit, int n_threads) {
  const uint64_t n = (uint64_t)fit->columns, rows = (uint64_t)fit->rows;
  (void)n_threads;
  return (2 * n * n + 4 * rows * n + n) * sizeof(float) + rows * n + rows * sizeof(int64_t);
}

static void scale_gram_matrix(admm *a, double damping) {
  const int n = a->fit->columns;
  const double *h = a->fit->h;
  for (int c = 0; c < n; c++) a->scale[c] = (float)sqrt(h[(int64_t)c * n + c] + damping);
  for (int i = 0; i < n; i++) {
    const double by = 1 / (double)a->scale[i];
    float *row = a->h + (int64_t)i * n;
    for (int j = 0; j < n; j++) {
      row[j] = (float)(h[(int64_t)i * n + j] * by / (double)a->scale[j]);
    }
    row[i] = 1;
  }
}

/* Initializes rows for ADMM: D gets each row's largest weights, zeros elsewhere; V gets zeros. */
static void init_rows_by_magnitude(int64_t begin, int64_t end, void *context) {
  const admm *a = context;
  const int n = a->fit->columns;
  for (int64_t row = begin; row < end; row++) {
    float *d = a->d + row * n;
    for (int c = 0; c < n; c++) d[c] = (float)a->fit->weight[row * n + c] * a->scale[c];
    laci_fit_mask_row_by_magnitude(a->fit, d, a->mask + row * n);
    for (int c = 0; c < n; c++) {
      if (!a->mask[row * n + c]) d[c] = 0;
    }
    memset(a->v + row * n, 0, sizeof *a->v * (size_t)n);
  }
}

static void init_all_rows_by_magnitude(admm *a) {
  laci_pool_for(a->pool, a->fit->rows, ROWS_AT_ONCE, init_rows_by_magnitude, a);
}

/* ---- steps ---- */

/* Computes the Cholesky factor of H + rho I, for the Gram matrix H and the penalty rho. The matrix
 * is positive definite, since the damping d > 0 was added to its diagonal. Where d is below the
 * precision of float, the factorization may fail; rho is then raised. */
static void factorize_shifted_gram(admm *a) {
  const int n = a->fit->columns;
  for (;;) {
    memcpy(a->factor, a->h, sizeof *a->factor * (size_t)n * (size_t)n);
    for (int c = 0; c < n; c++) a->factor[(int64_t)c * n + c] += (float)a->rho;
    if (!laci_linear_cholesky_f32(a->pool, a->factor, n) || a->rho > MOST_RHO) return;
    a->rho *= 2;
  }
}

/* Does one half of an ADMM step for the rows [begin, end): projects the weights to the pattern,
 * which gives D, and updates V. */
static void project_rows_to_pattern(const admm *a, int64_t begin, int64_t end) {
  const int n = a->fit->columns;
  const float rho = (float)a->rho, by = (float)(1 / a->rho);
  for (int64_t row = begin; row < end; row++) {
    const float *b = a->b + row * n;
    float *d = a->d + row * n, *v = a->v + row * n;
    uint8_t *mask = a->mask + row * n;
    for (int c = 0; c < n; c++) d[c] = b[c] + v[c] * by;
    laci_fit_mask_row_by_magnitude(a->fit, d, mask);
    for (int c = 0; c < n; c++) {
      d[c] = mask[c] ? d[c] : 0;
      v[c] += rho * (b[c] - d[c]);
    }
  }
}

static int count_rows_in_block(const admm *a) {
  return a->fit->rows >= 512 ? 128 : a->fit->rows >= 256 ? 64 : 32;
}

/* Runs STEPS_A_RHO iterations on the blocks of rows [begin, end). While the penalty rho is
 * constant, rows do not depend on each other. */
static void iterate_row_blocks(int64_t begin, int64_t end, void *context) {
  const admm *a = context;
  const int at_once = count_rows_in_block(a);
  const int64_t n = a->fit->columns;
  const float rho = (float)a->rho;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = part * at_once, last = laci_min(first + at_once, a->fit->rows);
    for (int step = 0; step < STEPS_A_RHO; step++) {
      for (int64_t at = first * n; at < last * n; at++) {
        a->b[at] = a->g[at] - a->v[at] + rho * a->d[at];
      }
      laci_linear_cholesky_solve_f32(NULL, a->factor, (int)n, a->b + first * n,
                                     (int)(last - first));
      project_rows_to_pattern(a, first, last);
    }
    for (int64_t row = first; row < last; row++) {
      a->changed[row] = 0;
      for (int64_t at = row * n; at < (row + 1) * n; at++) {
        a->changed[row] += a->mask[at] != a->before[at];
        a->before[at] = a->mask[at];
      }
    }
  }
}

/* Returns what fraction of the kept weights changed since the penalty rho was last changed. */
static double compute_changed_fraction_of_mask(const admm *a) {
  const size_t count = (size_t)a->fit->rows * (size_t)a->fit->columns;
  int64_t changed = 0, kept = 0;
  for (int row = 0; row < a->fit->rows; row++) changed += a->changed[row];
  for (size_t at = 0; at < count; at++) kept += a->mask[at];
  return (double)changed / (double)kept;
}

/* Runs the ADMM iteration until the mask hardly changes any more. Returns false if it was
 * interrupted. */
static bool iterate_until_converged(admm *a) {
  const size_t count = (size_t)a->fit->rows * (size_t)a->fit->columns;
  bool raising = false; /* rho is raised after each round; at first it is lowered until the mask
                           changes */
  a->rho = FIRST_RHO;
  init_all_rows_by_magnitude(a);
  memcpy(a->before, a->mask, count);
  for (int at = 0; at < MOST_STEPS; at += STEPS_A_RHO) {
    if (laci_interrupted()) return false;
    factorize_shifted_gram(a);
    laci_pool_for(a->pool, laci_ceil_div(a->fit->rows, count_rows_in_block(a)), 1,
                  iterate_row_blocks, a);
    const double change = compute_changed_fraction_of_mask(a);
    if (change > SOME) raising = true;
    if (raising && !(change > HARDLY_ANY)) break;
    if (raising) {
      a->rho *= change > MUCH ? 1.3 : change > SOME ? 1.2 : 1.1;
    } else {
      a->rho /= 5;
      init_all_rows_by_magnitude(a);
    }
    if (a->rho > MOST_RHO) a->rho = MOST_RHO;
  }
  return true;
}

static lac_status choose_mask(const laci_score_input *input, uint8_t *mask, double *weight,
                              lac_error *err) {
  const laci_fit *fit = input->fit;
  const int n = fit->columns;
  lac_status st = LAC_OK;
  admm a = {.fit = fit, .pool = input->pool, .mask = mask};
  if (!admm_init(&a, fit)) {
    st = laci_fail_memory(err, "the steps that choose a layer's mask");
    goto out;
  }
  laci_fit_compute_target(input, weight);
  scale_gram_matrix(&a, input->damping);
  for (int64_t at = 0; at < (int64_t)fit->rows * n; at++) {
    a.g[at] = (float)(weight[at] / (double)a.scale[at % n]);
  }
  if (!iterate_until_converged(&a)) {
    st = laci_fail(err, LAC_INTERRUPTED, "%s: interrupted", fit->name);
    goto out;
  }
  for (int64_t at = 0; at < (int64_t)fit->rows * n; at++) {
    weight[at] = mask[at] ? (double)a.d[at] / (double)a.scale[at % n] : 0;
  }
out:
  admm_clear(&a);
  return st;
}

const laci_score laci_score_alps = {
    .name = "alps",
    .title = "ALPS",
    .paper =
        "Meng, Behdin, Wang, Mazumder, \"ALPS: improved optimization for highly sparse "
        "one-shot pruning for large language models\", NeurIPS 2024",
    .needs_gram = true,
    .saliency = laci_fit_compute_obs_saliency,
    .choose = choose_mask,
    .memory = alps_memory_bytes,
};

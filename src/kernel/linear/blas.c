/* SPDX-License-Identifier: Apache-2.0
 * OpenBLAS, one thread a call.
 *
 * There are three builds of it. One with OpenMP takes as many threads as a loop of its caller's
 * would, so that the caller says one around every call; one with threads of its own is told once,
 * for the process; one without any may not be called by two threads at a time. */
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cpu/openmp.h"
#include "kernel/linear/linear_in.h"

extern void spotrf_(const char *triangle, const int *n, float *a, const int *lda, int *info);
extern void dpotrf_(const char *triangle, const int *n, double *a, const int *lda, int *info);

enum { SERIAL = 0, OWN_THREADS = 1 }; /* openblas_get_parallel */

static const enum CBLAS_ORDER ROWS = CblasRowMajor;
static const enum CBLAS_UPLO LOWER = CblasLower;
static const enum CBLAS_DIAG ANY = CblasNonUnit;

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char version[64];
static int parallel;

static void look(void) {
  const char *config = openblas_get_config(); /* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
  const char *number = strchr(config, ' ');
  const int length = number ? (int)(number - config + 1 + (long)strcspn(number + 1, " ")) : 0;
  (void)snprintf(version, sizeof version, "%.*s", number ? length : 8,
                 number ? config : "OpenBLAS");
  parallel = openblas_get_parallel();
  if (parallel == OWN_THREADS) openblas_set_num_threads(1);
}

static int enter(void) {
  (void)pthread_once(&looked, look);
  if (parallel == SERIAL) pthread_mutex_lock(&lock);
  return laci_openmp_use(1);
}

static void leave(int threads) {
  (void)laci_openmp_use(threads);
  if (parallel == SERIAL) pthread_mutex_unlock(&lock);
}

static const char *name(void) {
  (void)pthread_once(&looked, look);
  return version;
}

static enum CBLAS_TRANSPOSE turned(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

static void product(const laci_linear_operands *p) {
  const int threads = enter();
  cblas_dgemm(ROWS, turned(p->a_transposed), turned(p->b_transposed), p->m, p->n, p->k, p->alpha,
              p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
  leave(threads);
}

static void product_f32(const laci_linear_operands_f32 *p) {
  const int threads = enter();
  cblas_sgemm(ROWS, turned(p->a_transposed), turned(p->b_transposed), p->m, p->n, p->k, p->alpha,
              p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
  leave(threads);
}

/* LAPACK's columns are our rows: our lower triangle is its upper one. */
static int cholesky(double *a, int n, int lda) {
  int info = 0;
  const int threads = enter();
  dpotrf_("U", &n, a, &lda, &info);
  leave(threads);
  return info;
}

static int cholesky_f32(float *a, int n, int lda) {
  int info = 0;
  const int threads = enter();
  spotrf_("U", &n, a, &lda, &info);
  leave(threads);
  return info;
}

static void solve_with(const laci_linear_sides *s, enum CBLAS_TRANSPOSE turn) {
  const int threads = enter();
  if (s->rows == 1) {
    const enum CBLAS_TRANSPOSE other = turn == CblasTrans ? CblasNoTrans : CblasTrans;
    cblas_dtrsv(ROWS, LOWER, other, ANY, s->n, s->l, s->ldl, s->b, 1);
  } else {
    cblas_dtrsm(ROWS, CblasRight, LOWER, turn, ANY, s->rows, s->n, 1, s->l, s->ldl, s->b, s->ldb);
  }
  leave(threads);
}

static void solve_with_f32(const laci_linear_sides_f32 *s, enum CBLAS_TRANSPOSE turn) {
  const int threads = enter();
  if (s->rows == 1) {
    const enum CBLAS_TRANSPOSE other = turn == CblasTrans ? CblasNoTrans : CblasTrans;
    cblas_strsv(ROWS, LOWER, other, ANY, s->n, s->l, s->ldl, s->b, 1);
  } else {
    cblas_strsm(ROWS, CblasRight, LOWER, turn, ANY, s->rows, s->n, 1, s->l, s->ldl, s->b, s->ldb);
  }
  leave(threads);
}

static void solve_transposed(const laci_linear_sides *s) { solve_with(s, CblasTrans); }
static void solve(const laci_linear_sides *s) { solve_with(s, CblasNoTrans); }
static void solve_transposed_f32(const laci_linear_sides_f32 *s) { solve_with_f32(s, CblasTrans); }
static void solve_f32(const laci_linear_sides_f32 *s) { solve_with_f32(s, CblasNoTrans); }

static void symmetric_times(const double *a, int n, const double *x, double *y) {
  const int threads = enter();
  cblas_dsymv(ROWS, LOWER, n, 1, a, n, x, 1, 0, y, 1);
  leave(threads);
}

const laci_linear_way *laci_linear_blas(void) {
  static const laci_linear_way way = {
      .name = name,
      .product = product,
      .product_f32 = product_f32,
      .cholesky = cholesky,
      .cholesky_f32 = cholesky_f32,
      .solve_transposed = solve_transposed,
      .solve = solve,
      .solve_transposed_f32 = solve_transposed_f32,
      .solve_f32 = solve_f32,
      .symmetric_times = symmetric_times,
  };
  return &way;
}

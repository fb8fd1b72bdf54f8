/* SPDX-License-Identifier: Apache-2.0
 * kernel/linear: both implementations against the definitions in plain loops of doubles, over sizes
 * on either side of every tile and panel. */
#include "kernel/linear/linear.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "support/light.h"

extern char **environ;

static laci_pool *pool;

static double unit(uint64_t stream, size_t at) {
  return laci_rng_unit_interval(3, stream, at) - 0.5;
}

static double *doubles(size_t n, uint64_t stream) {
  double *made = laci_alloc(n, sizeof *made);
  assert_non_null(made);
  for (size_t at = 0; at < n; at++) made[at] = unit(stream, at);
  return made;
}

static float *floats_of(const double *from, size_t n) {
  float *made = laci_alloc(n, sizeof *made);
  assert_non_null(made);
  for (size_t at = 0; at < n; at++) made[at] = (float)from[at];
  return made;
}

/* Both implementations, with one thread and with the pool: run is called four times. */
static void both_backends(void (*run)(laci_pool *with, const char *backend)) {
  for (int plain = 0; plain < 2; plain++) {
    laci_linear_use_plain(plain != 0);
    run(NULL, laci_linear_backend_name());
    run(pool, laci_linear_backend_name());
  }
  laci_linear_use_plain(false);
}

/* ---- products ---- */

typedef struct product_case {
  int m, n, k, row_padding; /* row_padding: elements between rows */
  bool a_transposed, b_transposed;
  double alpha, beta;
} product_case;

static const product_case products[] = {
    {1, 1, 1, 0, false, false, 1, 0},     {5, 7, 3, 2, false, false, -2, 1},
    {130, 40, 70, 0, true, false, 1, 0},  {20, 600, 65, 3, false, true, 1, 0.5},
    {129, 513, 9, 1, true, true, 0.5, 1}, {4, 5, 0, 0, false, false, 1, 0.5},
};

static double element(const double *x, int ld, bool transposed, int row, int column) {
  return transposed ? x[(size_t)column * (size_t)ld + (size_t)row]
                    : x[(size_t)row * (size_t)ld + (size_t)column];
}

static void check_product(const product_case *c, laci_pool *with, const char *backend) {
  const int lda = (c->a_transposed ? c->m : c->k) + c->row_padding + 1;
  const int ldb = (c->b_transposed ? c->k : c->n) + c->row_padding + 1, ldc = c->n + c->row_padding;
  const size_t n_a = (size_t)lda * (size_t)(c->a_transposed ? c->k : c->m) + 1;
  const size_t n_b = (size_t)ldb * (size_t)(c->b_transposed ? c->n : c->k) + 1;
  const size_t n_c = (size_t)ldc * (size_t)c->m;
  double *a = doubles(n_a, 1), *b = doubles(n_b, 2), *out = doubles(n_c, 3);
  double *before = doubles(n_c, 3);
  if (c->beta == 0) out[0] = NAN; /* is not read */
  float *a32 = floats_of(a, n_a), *b32 = floats_of(b, n_b), *out32 = floats_of(out, n_c);
  laci_linear_product(with,
                      &(laci_linear_operands){c->m, c->n, c->k, lda, ldb, ldc, c->a_transposed,
                                              c->b_transposed, c->alpha, c->beta, a, b, out});
  laci_linear_product_f32(
      with,
      &(laci_linear_operands_f32){c->m, c->n, c->k, lda, ldb, ldc, c->a_transposed, c->b_transposed,
                                  (float)c->alpha, (float)c->beta, a32, b32, out32});
  for (int i = 0; i < c->m; i++) {
    for (int j = 0; j < ldc; j++) {
      const size_t at = (size_t)i * (size_t)ldc + (size_t)j;
      double wanted = j < c->n && c->beta == 0 ? 0 : before[at] * (j < c->n ? c->beta : 1);
      for (int d = 0; d < c->k && j < c->n; d++) {
        wanted += c->alpha * element(a, lda, c->a_transposed, i, d) *
                  element(b, ldb, c->b_transposed, d, j);
      }
      if (!(fabs(out[at] - wanted) <= 1e-13 * (c->k + 1)) ||
          !(fabs((double)out32[at] - wanted) <= 1e-6 * (c->k + 1))) {
        fail_msg("%s: %d x %d x %d at %d, %d: found %g and %g, wanted %g", backend, c->m, c->n,
                 c->k, i, j, out[at], (double)out32[at], wanted);
      }
    }
  }
  laci_free(a);
  laci_free(b);
  laci_free(out);
  laci_free(before);
  laci_free(a32);
  laci_free(b32);
  laci_free(out32);
}

static void run_products(laci_pool *with, const char *backend) {
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    check_product(&products[i], with, backend);
  }
}

static void multiplies(void **state) {
  (void)state;
  both_backends(run_products);
}

/* ---- factors ---- */

static const int sizes[] = {0, 1, 2, 385, 384, 37, 769, 900};

/* X'X of a few rows and a little on the diagonal: a condition of some hundreds. NaN above it. */
static double *positive_definite(int n, bool with_nan) {
  const int depth = 20;
  double *x = doubles((size_t)depth * (size_t)n + 1, 7), *a = doubles((size_t)n * (size_t)n + 1, 8);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) a[i * n + j] = i == j ? 0.5 : 0;
  }
  for (int d = 0; d < depth; d++) {
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) a[i * n + j] += x[d * n + i] * x[d * n + j];
    }
  }
  for (int i = 0; i < n && with_nan; i++) {
    for (int j = i + 1; j < n; j++) a[i * n + j] = NAN;
  }
  laci_free(x);
  return a;
}

/* Largest |x A - b| of rows, A symmetric and whole. */
static double rest_of(const double *a, int n, const double *x, const double *b, int rows) {
  double most = 0;
  for (int row = 0; row < rows; row++) {
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int i = 0; i < n; i++) sum += x[row * n + i] * a[j * n + i];
      const double rest = fabs(sum - b[row * n + j]);
      if (!(rest <= most)) most = rest; /* NaN too */
    }
  }
  return most;
}

static void check_factor(int n, laci_pool *with, const char *backend) {
  const int rows = n > 400 ? 130 : 7;
  double *whole = positive_definite(n, false), *l = positive_definite(n, true);
  const size_t n_b = (size_t)rows * (size_t)n + 1;
  double *b = doubles(n_b, 9), *x = doubles(n_b, 9), *found = laci_alloc(n_b, sizeof *found);
  float *l32 = floats_of(l, (size_t)n * (size_t)n + 1), *x32 = floats_of(b, n_b);
  assert_non_null(found);
  assert_int_equal(laci_linear_cholesky(with, l, n), 0);
  assert_int_equal(laci_linear_cholesky_f32(with, l32, n), 0);
  laci_linear_cholesky_solve(with, l, n, x, rows);
  laci_linear_cholesky_solve_f32(with, l32, n, x32, rows);
  for (size_t at = 0; at < n_b; at++) found[at] = (double)x32[at];
  const double rest = rest_of(whole, n, x, b, rows), rest32 = rest_of(whole, n, found, b, rows);
  if (!(rest <= 1e-11) || !(rest32 <= 2e-3)) {
    fail_msg("%s, %d columns: %g is left, %g in float", backend, n, rest, rest32);
  }
  memcpy(x, b, sizeof *x * (size_t)n); /* one row is done by another algorithm */
  laci_linear_cholesky_solve(with, l, n, x, 1);
  assert_true(rest_of(whole, n, x, b, 1) <= 1e-11);
  double *lower = positive_definite(n, true);
  laci_linear_symmetric_multiply(lower, n, x, found);
  for (int i = 0; i < n; i++) assert_true(fabs(found[i] - b[i]) <= 1e-11);
  laci_free(whole);
  laci_free(lower);
  laci_free(l);
  laci_free(l32);
  laci_free(b);
  laci_free(x);
  laci_free(x32);
  laci_free(found);
}

static void run_factors(laci_pool *with, const char *backend) {
  const size_t n = sizeof sizes / sizeof *sizes;
  for (size_t i = 0; i < n; i += i ? (size_t)tests_stride(2) : 1)
    check_factor(sizes[i], with, backend);
}

static void factorizes_and_solves(void **state) {
  (void)state;
  both_backends(run_factors);
}

static void run_inverses(laci_pool *with, const char *backend) {
  const int n = 150;
  double *whole = positive_definite(n, false), *l = positive_definite(n, true);
  double *inverse = doubles((size_t)n * (size_t)n, 1), *one = doubles((size_t)n * (size_t)n, 1);
  for (int at = 0; at < n * n; at++) one[at] = at / n == at % n;
  assert_int_equal(laci_linear_cholesky(with, l, n), 0);
  laci_linear_inverse(with, l, n, inverse);
  const double rest = rest_of(whole, n, inverse, one, n);
  if (!(rest <= 1e-12)) fail_msg("%s: %g is left", backend, rest);
  for (int at = 0; at < n * n; at++) { assert_true(inverse[at] == inverse[at % n * n + at / n]); }
  laci_free(whole);
  laci_free(l);
  laci_free(inverse);
  laci_free(one);
}

static void inverts(void **state) {
  (void)state;
  both_backends(run_inverses);
}

static void run_not_positive(laci_pool *with, const char *backend) {
  (void)backend;
  const int n = tests_stride(2) > 1 ? 450 : 900;
  for (int bad = 0; bad < n; bad += 449) {
    double *a = positive_definite(n, true);
    a[bad * n + bad] = -1;
    float *a32 = floats_of(a, (size_t)n * (size_t)n);
    assert_int_equal(laci_linear_cholesky(with, a, n), bad + 1);
    assert_int_equal(laci_linear_cholesky_f32(with, a32, n), bad + 1);
    laci_free(a);
    laci_free(a32);
  }
}

static void names_the_column_that_is_not_positive(void **state) {
  (void)state;
  both_backends(run_not_positive);
}

static void gives_the_same_bytes_for_any_number_of_threads(void **state) {
  (void)state;
  const int n = 900 / tests_stride(2);
  const size_t count = (size_t)n * (size_t)n;
  for (int plain = 0; plain < 2; plain++) {
    laci_linear_use_plain(plain != 0);
    double *one = positive_definite(n, false), *more = positive_definite(n, false);
    double *product = doubles(count, 2), *again = doubles(count, 2);
    laci_linear_operands p = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .alpha = 1};
    p.a = p.b = one;
    p.c = product;
    laci_linear_product(NULL, &p);
    p.c = again;
    laci_linear_product(pool, &p);
    assert_memory_equal(product, again, count * sizeof *product);
    assert_int_equal(laci_linear_cholesky(NULL, one, n), 0);
    assert_int_equal(laci_linear_cholesky(pool, more, n), 0);
    for (int i = 0; i < n; i++)
      assert_memory_equal(one + i * n, more + i * n, sizeof *one * (size_t)(i + 1));
    laci_linear_cholesky_solve(NULL, one, n, product, n);
    laci_linear_cholesky_solve(pool, more, n, again, n);
    assert_memory_equal(product, again, count * sizeof *product);
    laci_free(one);
    laci_free(more);
    laci_free(product);
    laci_free(again);
  }
  laci_linear_use_plain(false);
}

static int setup(void **state) {
  (void)state;
  lac_error err;
  return laci_pool_create(3, &pool, &err);
}

static int teardown(void **state) {
  (void)state;
  laci_pool_destroy(pool);
  return 0;
}

/* ---- threads ---- */

static int threads_of_process(void) {
  int n = 0;
  DIR *folder = opendir("/proc/self/task");
  if (!folder) skip();
  while (readdir(folder)) n++;
  (void)closedir(folder);
  return n;
}

/* Before anything else here: a library with threads of its own would keep them from then on. */
static void starts_no_threads(void **state) {
  enum { N = 700 };
  (void)state;
  double *a = doubles((size_t)N * N, 8);
  for (int i = 0; i < N; i++) a[i * N + i] += N;
  float *a32 = floats_of(a, (size_t)N * N);
  char **const environment = environ;
  (void)laci_linear_backend_name(); /* loads the library */
  assert_ptr_equal(environ, environment);
  const int before = threads_of_process();
  assert_int_equal(laci_linear_cholesky_f32(NULL, a32, N), 0);
  assert_int_equal(laci_linear_cholesky(NULL, a, N), 0);
  assert_int_equal(threads_of_process(), before);
  laci_free(a);
  laci_free(a32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(starts_no_threads),
      cmocka_unit_test(multiplies),
      cmocka_unit_test(factorizes_and_solves),
      cmocka_unit_test(inverts),
      cmocka_unit_test(names_the_column_that_is_not_positive),
      cmocka_unit_test(gives_the_same_bytes_for_any_number_of_threads),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}

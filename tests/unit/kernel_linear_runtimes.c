/* SPDX-License-Identifier: Apache-2.0
 * kernel/linear next to a second OpenMP run time, whose names are global: those of this program.
 * OpenBLAS calls that one, and gets one thread from it, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "kernel/linear/linear.h"

enum { N = 256, THREADS = 7 };

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int omp_get_max_threads(void);
EXPORTED void omp_set_num_threads(int n);

static int threads = THREADS, least = THREADS, most_sets;

int omp_get_max_threads(void) { return threads; }
void omp_set_num_threads(int n) {
  threads = n;
  if (n < least) least = n;
  most_sets++;
}

static void openblas_gets_one_thread_of_the_global_run_time(void **state) {
  (void)state;
  if (strncmp(laci_linear_backend_name(), "OpenBLAS", 8) != 0) skip();
  float *a = laci_alloc((size_t)N * N, sizeof *a), *c = laci_alloc((size_t)N * N, sizeof *c);
  assert_non_null(a);
  assert_non_null(c);
  for (int at = 0; at < N * N; at++) a[at] = (float)(at % 5);
  threads = least = THREADS;
  laci_linear_product_f32(NULL, &(laci_linear_operands_f32){.m = N,
                                                            .n = N,
                                                            .k = N,
                                                            .lda = N,
                                                            .ldb = N,
                                                            .ldc = N,
                                                            .alpha = 1,
                                                            .a = a,
                                                            .b = a,
                                                            .c = c});
  assert_int_equal(least, 1);
  assert_int_equal(threads, THREADS);
  assert_true(most_sets >= 2);
  float sum = 0;
  for (int k = 0; k < N; k++) sum += a[N + k] * a[k * N + 2];
  assert_true(c[N + 2] == sum);
  laci_free(a);
  laci_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(openblas_gets_one_thread_of_the_global_run_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

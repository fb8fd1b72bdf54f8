/* SPDX-License-Identifier: Apache-2.0
 * cpu: every index is computed once for any number of threads, parts and nesting; levels obey their
 * cap. */
#include "cpu/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"

enum { MOST = 1000 };

typedef struct counts {
  atomic_int times[MOST];
  int64_t n, grain;
  atomic_int bad_parts;
  laci_pool *nested; /* a loop of three indices is run from every body */
  atomic_int nested_sum;
  atomic_int bad_threads; /* bodies whose thread has no index of the pool */
  int n_threads;
} counts;

static void count_nested(int64_t begin, int64_t end, void *context) {
  counts *c = context;
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&c->nested_sum, (int)i + 1);
  if (laci_pool_thread_index() != 0) atomic_fetch_add(&c->bad_threads, 1);
}

static void count(int64_t begin, int64_t end, void *context) {
  counts *c = context;
  if (begin < 0 || end > c->n || end - begin > c->grain || begin >= end)
    atomic_fetch_add(&c->bad_parts, 1);
  const int index = laci_pool_thread_index();
  if (index < 0 || index >= c->n_threads) atomic_fetch_add(&c->bad_threads, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&c->times[i], 1);
  if (c->nested) laci_pool_for(c->nested, 3, 1, count_nested, c);
}

static void expect_each_once(laci_pool *pool, int64_t n, int64_t grain) {
  counts *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->n = n;
  c->grain = grain;
  c->n_threads = laci_pool_threads(pool);
  laci_pool_for(pool, n, grain, count, c);
  assert_int_equal(c->bad_parts, 0);
  assert_int_equal(c->bad_threads, 0);
  assert_int_equal(laci_pool_thread_index(), 0);
  for (int64_t i = 0; i < MOST; i++) assert_int_equal(c->times[i], i < n);
  free(c);
}

static void computes_every_index_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 7, 64, MOST}, grains[] = {1, 3, 64, 5000};
  for (int threads = 1; threads <= 5; threads++) {
    laci_pool *pool = NULL;
    assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
    assert_in_range(laci_pool_threads(pool), 1, threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t k = 0; k < sizeof grains / sizeof *grains; k++)
        expect_each_once(pool, sizes[i], grains[k]);
    }
    laci_pool_destroy(pool);
  }
  expect_each_once(NULL, MOST, 7);
  assert_int_equal(laci_pool_threads(NULL), 1);
}

/* A caller with one thread; every second part is left out where *context says so. */
static void run_backwards(void *context, void (*part)(void *arg, int index), void *arg, int n) {
  const bool *leaves_out = context;
  for (int at = n - 1; at >= 0; at--) {
    if (!*leaves_out || at % 2) part(arg, at);
  }
}

static void computes_every_index_once_on_the_callers_threads(void **state) {
  (void)state;
  bool leaves_out = false;
  const laci_parallel parallel = {.run = run_backwards, .context = &leaves_out};
  for (int threads = 1; threads <= 5; threads++) {
    laci_pool *pool = NULL;
    assert_int_equal(laci_pool_create_on(&parallel, threads, &pool, NULL), LAC_OK);
    assert_int_equal(laci_pool_threads(pool), threads);
    leaves_out = threads == 3;
    expect_each_once(pool, MOST, 7);
    expect_each_once(pool, 2, 1);
    expect_each_once(pool, 0, 1);
    laci_pool_destroy(pool);
  }
}

typedef struct visits {
  int64_t indices[MOST];
  int n;
} visits;

static void visit(int64_t begin, int64_t end, void *context) {
  visits *v = context;
  for (int64_t i = begin; i < end; i++) v->indices[v->n++] = i;
}

/* The last thread of the caller comes first: it takes parts of its own stretch, or all in order. */
static void parts_are_taken_by_stretch_or_in_order(void **state) {
  (void)state;
  static const int64_t by_stretch[] = {6, 7, 0, 1, 2, 3, 4, 5};
  bool leaves_out = false;
  const laci_parallel parallel = {.run = run_backwards, .context = &leaves_out};
  laci_pool *pool = NULL;
  visits one = {.n = 0}, other = {.n = 0};
  assert_int_equal(laci_pool_create_on(&parallel, 3, &pool, NULL), LAC_OK);
  laci_pool_for(pool, 8, 1, visit, &one);
  laci_pool_for_in_order(pool, 8, 1, visit, &other);
  assert_int_equal(one.n, 8);
  assert_int_equal(other.n, 8);
  for (int at = 0; at < 8; at++) {
    assert_int_equal(one.indices[at], by_stretch[at]);
    assert_int_equal(other.indices[at], at);
  }
  laci_pool_destroy(pool);
}

static void nested_loops_run_where_they_stand(void **state) {
  (void)state;
  laci_pool *pool = NULL;
  assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
  for (int round = 0; round < 200; round++) {
    counts *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->n = 10;
    c->grain = 1;
    c->nested = pool;
    c->n_threads = 3;
    laci_pool_for(pool, c->n, c->grain, count, c);
    assert_int_equal(c->bad_threads, 0);
    assert_int_equal(c->nested_sum, 10 * (1 + 2 + 3));
    free(c);
  }
  laci_pool_destroy(pool);
}

static void finds_out_how_many_cores_there_are(void **state) {
  (void)state;
  laci_pool *pool = NULL;
  assert_int_equal(laci_pool_create(0, &pool, NULL), LAC_OK);
  assert_true(laci_pool_threads(pool) >= 1);
  laci_pool_destroy(pool);
  laci_pool_destroy(NULL);
}

static void a_pool_without_memory_is_an_error(void **state) {
  (void)state;
  laci_pool *pool = NULL;
  lac_error err = {0};
  laci_memory_fail_from(1);
  assert_int_equal(laci_pool_create(2, &pool, &err), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_null(pool);
  assert_string_equal(err.text, "not enough memory for the worker pool");
}

static void levels_can_be_lowered_but_not_raised(void **state) {
  (void)state;
  laci_cpu_level start = laci_cpu_level_in_force();
  laci_cpu_level most = laci_cpu_limit_level(LACI_CPU_AVX512);
  assert_int_equal(laci_cpu_limit_level(LACI_CPU_ANY), LACI_CPU_ANY);
  assert_int_equal(laci_cpu_level_in_force(), LACI_CPU_ANY);
  assert_true(laci_cpu_limit_level(LACI_CPU_AVX2) <= most);
  assert_true(start <= most);
  assert_string_equal(laci_cpu_level_name(LACI_CPU_ANY), "scalar");
  const char *cap = getenv("LAC_CPU");
  if (cap && !strcmp(cap, "scalar")) assert_int_equal(start, LACI_CPU_ANY);
  laci_cpu_limit_level(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes_every_index_once),
      cmocka_unit_test(computes_every_index_once_on_the_callers_threads),
      cmocka_unit_test(parts_are_taken_by_stretch_or_in_order),
      cmocka_unit_test(nested_loops_run_where_they_stand),
      cmocka_unit_test(finds_out_how_many_cores_there_are),
      cmocka_unit_test(a_pool_without_memory_is_an_error),
      cmocka_unit_test(levels_can_be_lowered_but_not_raised),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * cpu/crew.h: every part of every loop runs once and sees what the loop before has written, with
 * any number of threads, with threads that come late or never, and inside of another loop. */
#include "cpu/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { LOOPS = 3000, PARTS = 64 };

typedef struct series {
  int64_t numbers[2][PARTS]; /* of the loop before, and of this one */
  int loop, n;
  _Atomic int n_wrong;
} series;

/** Adds up all numbers of the loop before, which only one thread at a time has written. */
static void add_up(int part, int n, void *context) {
  series *s = context;
  int64_t sum = 1;
  for (int at = 0; at < n; at++) sum += s->numbers[s->loop & 1][at];
  s->numbers[1 - (s->loop & 1)][part] = sum % 1000003;
  if (s->n == 0 && part == 0) s->n = n;
}

static void lead(laci_crew *crew, void *context) {
  series *s = context;
  for (s->loop = 0; s->loop < LOOPS; s->loop++) {
    laci_crew_for(crew, add_up, s);
    int64_t want = 1;
    for (int at = 0; at < s->n; at++) want += s->numbers[s->loop & 1][at];
    for (int at = 0; at < s->n; at++)
      s->n_wrong += s->numbers[1 - (s->loop & 1)][at] != want % 1000003;
  }
}

static void check_crew(laci_pool *pool, int n) {
  series s = {0};
  laci_crew_run_leader(pool, lead, &s);
  assert_int_equal(s.n_wrong, 0);
  assert_int_equal(s.loop, LOOPS);
  assert_int_equal(s.n, n);
}

static void loops_follow_each_other(void **state) {
  (void)state;
  check_crew(NULL, 1);
  for (int threads = 1; threads <= 5; threads++) {
    laci_pool *pool;
    lac_error err = {0};
    if (laci_pool_create(threads, &pool, &err)) fail_msg("%s", err.text);
    check_crew(pool, laci_pool_threads(pool));
    laci_pool_destroy(pool);
  }
}

/** One thread calls all parts: nobody ever helps the leader. */
static void call_one_by_one(void *context, void (*part)(void *arg, int index), void *arg, int n) {
  (void)context;
  for (int at = n - 1; at >= 0; at--) part(arg, at);
}

static void a_leader_needs_nobody(void **state) {
  const laci_parallel parallel = {.run = call_one_by_one};
  laci_pool *pool;
  lac_error err = {0};
  (void)state;
  if (laci_pool_create_on(&parallel, 7, &pool, &err)) fail_msg("%s", err.text);
  check_crew(pool, 7);
  laci_pool_destroy(pool);
}

static void check_inside(int64_t begin, int64_t end, void *context) {
  for (int64_t at = begin; at < end; at++) {
    series s = {0};
    laci_crew_run_leader(context, lead, &s);
    assert_int_equal(s.n_wrong, 0);
  }
}

static void runs_inside_of_a_loop(void **state) {
  laci_pool *pool;
  lac_error err = {0};
  (void)state;
  if (laci_pool_create(3, &pool, &err)) fail_msg("%s", err.text);
  laci_pool_for(pool, 3, 1, check_inside, pool);
  laci_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_follow_each_other),
      cmocka_unit_test(a_leader_needs_nobody),
      cmocka_unit_test(runs_inside_of_a_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

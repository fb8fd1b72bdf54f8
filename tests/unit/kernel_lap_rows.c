/* SPDX-License-Identifier: Apache-2.0
 * kernel/lap_rows: every variant against plain loops, with ties and at the edges of what the solver
 * may ask. */
#include "kernel/search/lap_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

enum { MOST = 10 * LACI_LAP_LANES, ROUNDS = 400 };

typedef struct fixture {
  int n;
  int32_t row[MOST], price[MOST], distance[MOST], parent[MOST], mark[MOST];
} fixture;

static int32_t draw(uint64_t seed, uint64_t stream, int at, int32_t range) {
  return (int32_t)laci_rng_integer_below(seed, stream, (uint64_t)at, 2 * (uint64_t)range + 1) -
         range;
}

static fixture make(uint64_t seed) {
  static const int32_t ranges[] = {1, 4, 1000, 1 << 28};
  const int32_t range = ranges[seed % 4];
  fixture f = {.n = LACI_LAP_LANES *
                    (1 + (int)laci_rng_integer_below(seed, 9, 0, MOST / LACI_LAP_LANES))};
  for (int j = 0; j < f.n; j++) {
    f.row[j] = draw(seed, 0, j, range);
    f.price[j] = draw(seed, 1, j, range);
    f.distance[j] =
        laci_rng_integer_below(seed, 2, (uint64_t)j, 3) ? draw(seed, 3, j, range) : INT32_MAX;
    f.parent[j] = draw(seed, 4, j, 1000);
    f.mark[j] =
        j > 0 && laci_rng_integer_below(seed, 5, (uint64_t)j, 3) == 0 ? INT32_MAX : INT32_MIN;
  }
  return f;
}

static void expect_two_least(const laci_lap_rows *rows, const fixture *f) {
  laci_two_smallest want = {.least = INT32_MAX, .second = INT32_MAX};
  for (int j = 0; j < f->n; j++) {
    int32_t x = f->row[j] - f->price[j];
    if (x < want.least) want = (laci_two_smallest){x, want.least, j};
    else if (x < want.second) want.second = x;
  }
  laci_two_smallest found = rows->two_least(f->row, f->price, f->n);
  assert_int_equal(found.least, want.least);
  assert_int_equal(found.second, want.second);
  assert_int_equal(found.at, want.at);
  assert_int_equal(rows->least(f->row, f->price, f->n), want.least);
}

static void expect_lower(const laci_lap_rows *rows, const fixture *f) {
  fixture want = *f, found = *f;
  const laci_lap_offer offer = {f->row, 7, f->price[0]};
  for (int j = 0; j < f->n; j++) {
    int32_t x = f->row[j] - offer.shift;
    if (x >= want.distance[j]) continue;
    want.distance[j] = x;
    want.parent[j] = 7;
  }
  rows->lower(&offer, found.distance, found.parent, f->n);
  assert_memory_equal(&found, &want, sizeof want);
}

static void expect_relax(const laci_lap_rows *rows, const fixture *f) {
  fixture want = *f, found = *f;
  int nearest = -1;
  for (int j = 0; j < f->n; j++) {
    int32_t through = 11 + (f->row[j] - f->price[j]);
    if (through < want.distance[j]) {
      want.distance[j] = through;
      want.parent[j] = 5;
    }
    if (f->mark[j] == INT32_MAX) continue;
    if (nearest < 0 || want.distance[j] < want.distance[nearest]) nearest = j;
  }
  const laci_lap_frontier frontier = {found.price, found.mark, found.distance, found.parent, f->n};
  assert_int_equal(rows->relax(&frontier, found.row, 5, 11), nearest);
  assert_memory_equal(&found, &want, sizeof want);
}

static void every_variant_finds_what_plain_loops_find(void **state) {
  (void)state;
  const laci_cpu_level start = laci_cpu_level_in_force();
#define TRY(name, level)                                                \
  if (laci_cpu_limit_level(level) == (level)) {                         \
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {                    \
      const fixture f = make(seed);                                     \
      assert_ptr_equal(laci_lap_rows_variant(), &laci_lap_rows_##name); \
      expect_two_least(laci_lap_rows_variant(), &f);                    \
      expect_lower(laci_lap_rows_variant(), &f);                        \
      expect_relax(laci_lap_rows_variant(), &f);                        \
    }                                                                   \
  }
  LACI_KERNEL_VARIANTS(TRY)
#undef TRY
  laci_cpu_limit_level(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_finds_what_plain_loops_find),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

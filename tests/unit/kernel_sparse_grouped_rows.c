/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/grouped_rows: every variant against product.h's definition, bit by bit, guards
 * included, however rows are cut into chunks and units into strips, in any order; every size of a
 * group and every pattern; windows that do not keep four; every kept weight is there once; where
 * they gain. */
#include "kernel/sparse/grouped_rows.h"

#include "support/light.h"
#include "support/sparse_case.h"

#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

/* 300 rows keep two of four: about eight have one of a window's 36 patterns. */
static const sparse_case many[] = {
    {"300 rows", SPARSE_WINDOW(72, 300, 1, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXEL_BLOCKS, 1, 2},
    {"300 rows of images", SPARSE_WINDOW(68, 300, 1, 2, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 2,
     2},
    {"280 rows, 3x3", SPARSE_WINDOW(12, 280, 1, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 2},
    {"150 rows in two groups", SPARSE_WINDOW(40, 300, 2, 3, 9, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
     PIXEL_BLOCKS, 1, 2},
    {"70 rows keep any", SPARSE_WINDOW(40, 70, 1, 5, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXEL_BLOCKS,
     1, 5},
};
enum { N_MANY = sizeof many / sizeof *many };

static laci_grouped_rows groups_of(const sparse_operands *o, int64_t chunk_rows) {
  laci_grouped_rows b;
  lac_error err = {0};
  if (laci_grouped_rows_init(&o->convolution.product, o->convolution.kept.weight, chunk_rows, &b,
                             &err)) {
    fail_msg("%s", err.text);
  }
  return b;
}

/* So many units at once, the last ones first. */
static void run_grouped_rows(const sparse_operands *o, const laci_sparse_operands *run,
                             const laci_grouped_rows *b, int64_t units) {
  const int64_t n = laci_grouped_rows_n_vectors(o->convolution.tiles, o->convolution.n_tiles);
  for (int64_t last = n; last > 0; last -= units) {
    const int64_t first = last > units ? last - units : 0;
    for (int64_t chunk = b->n_chunks; chunk-- > 0;) {
      laci_grouped_rows_variant()(b, run, chunk, o->convolution.tiles, first, last);
    }
  }
}

static void expect_same(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_operands *run, int64_t chunk_rows) {
  void *want = sparse_wanted_result(o, run);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    laci_grouped_rows b = groups_of(o, chunk_rows);
    for (int64_t units = 1; units <= LACI_GROUPED_ROWS_UNITS; units++) {
      sparse_forget_result(o);
      run_grouped_rows(o, run, &b, units);
      if (memcmp(o->memory_y, want, sparse_result_bytes(o)) != 0) {
        fail_msg("%s: level %d, %lld rows, %lld units", c->what, level, (long long)chunk_rows,
                 (long long)units);
      }
    }
    laci_grouped_rows_clear(&b);
  }
  free(want);
}

static void expect_case(const sparse_case *c, int shift) {
  static const int64_t chunks[] = {1, 7, 256, 1000};
  const laci_cpu_level start = laci_cpu_level_in_force();
  sparse_operands o;
  sparse_operands_init(c, shift, &o);
  for (int with = shift % tests_stride(4); with < 4; with += tests_stride(4)) {
    laci_sparse_operands run =
        sparse_run_of(&o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0.75F : INFINITY);
    expect_same(c, &o, &run, chunks[with]);
    sparse_follow(&run, with, with % 2 > 0);
    expect_same(c, &o, &run, chunks[3 - with]);
  }
  (void)laci_cpu_limit_level(start);
  sparse_operands_clear(&o);
}

static void every_variant_has_the_same_bits(void **state) {
  (void)state;
  for (int at = 0; at < N_SPARSE_CASES; at++) expect_case(&sparse_cases[at], at % 3);
  for (int at = 0; at < N_MANY; at++) expect_case(&many[at], at % 3);
}

/* All groups and singles, counted by what windows say; adds to the sizes that there are, a bit
 * each. */
static void expect_all_weights(const sparse_operands *o, int64_t chunk_rows, unsigned *sizes) {
  laci_grouped_rows b = groups_of(o, chunk_rows);
  int64_t n_rows = 0, n_singles = 0;
  double sum = 0, want = 0;
  for (int64_t w = 0; w < b.n_chunks * b.n_windows; w++) {
    n_singles += b.windows[w].n_singles;
    for (int size = 1; size <= LACI_GROUPED_ROWS_MAX_ROWS; size++) {
      n_rows += (int64_t)size * b.windows[w].n[size - 1];
      if (b.windows[w].n[size - 1] > 0) *sizes |= 1U << size;
    }
  }
  assert_int_equal(n_rows * LACI_GROUPED_ROWS_KEPT + n_singles, o->convolution.n_kept);
  for (int64_t k = 0; k < n_rows * LACI_GROUPED_ROWS_KEPT; k++) sum += (double)b.weights[k];
  for (int64_t k = 0; k < n_singles; k++) sum += (double)b.singles[k].weight;
  for (int64_t k = 0; k < o->convolution.n_kept; k++) want += (double)o->convolution.kept.weight[k];
  assert_true(fabs(sum - want) <= 1e-9 * (double)o->convolution.n_kept);
  laci_grouped_rows_clear(&b);
}

static void every_weight_is_there_once(void **state) {
  static const int64_t chunks[] = {3, 40, 120, 256};
  unsigned sizes = 0;
  (void)state;
  for (int at = 0; at < N_MANY; at++) {
    sparse_operands o;
    sparse_operands_init(&many[at], 0, &o);
    for (int c = 0; c < 4; c++) expect_all_weights(&o, chunks[c], &sizes);
    sparse_operands_clear(&o);
  }
  assert_int_equal(sizes, (1U << (LACI_GROUPED_ROWS_MAX_ROWS + 1)) - 2);
}

/* Of 2:4 with enough rows; few columns may be left over by windows of eight. */
static void gain_follows_from_what_is_kept(void **state) {
  static const bool gains[N_MANY] = {true, false, true, false, false};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < N_MANY; at++) {
    sparse_operands o;
    sparse_operands_init(&many[at], 0, &o);
    const bool measured = laci_cpu_limit_level(LACI_CPU_AVX2) == LACI_CPU_AVX2;
    if (laci_grouped_rows_are_faster(&o.convolution.product) != (gains[at] && measured))
      fail_msg("%s", many[at].what);
    (void)laci_cpu_limit_level(start);
    sparse_operands_clear(&o);
  }
  assert_false(laci_grouped_rows_may_be_faster(32, 0.5));
  assert_false(laci_grouped_rows_may_be_faster(256, 0.25));
  assert_false(laci_grouped_rows_may_be_faster(256, 1));
}

static void distances_have_a_limit(void **state) {
  const int64_t begin[] = {0, 1}, far[] = {(int64_t)1 << 31};
  const int32_t column[] = {0};
  const float weight[] = {1};
  const laci_sparse_product p = {.n_rows = 1,
                                 .n_columns = 1,
                                 .rows_together = 1,
                                 .row_begin = begin,
                                 .column = column,
                                 .column_at = far};
  laci_grouped_rows b;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_grouped_rows_init(&p, weight, 1, &b, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "a sparse product: operands of more than 2^31 floats");
  assert_null(b.weights);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_has_the_same_bits),
      cmocka_unit_test(every_weight_is_there_once),
      cmocka_unit_test(gain_follows_from_what_is_kept),
      cmocka_unit_test(distances_have_a_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

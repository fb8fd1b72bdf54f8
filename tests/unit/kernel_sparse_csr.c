/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/csr: every variant against product.h's definition, bit by bit, guards included,
 * however rows are cut into chunks and tiles into strips, in any order; many blocks of columns;
 * distances that no entry holds. */
#include "kernel/sparse/csr.h"

#include "support/light.h"
#include "support/sparse_case.h"

#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

static laci_csr csr_of(const sparse_operands *o, int64_t chunk_rows) {
  laci_csr csr;
  lac_error err = {0};
  const laci_csr_cut cut = {o->convolution.tiles, o->convolution.n_tiles, chunk_rows};
  if (laci_csr_init(&o->convolution.product, o->convolution.kept.weight, &cut, &csr, &err)) {
    fail_msg("%s", err.text);
  }
  return csr;
}

/* Strips of so many tiles, the last ones first. */
static void run_csr(const sparse_operands *o, const laci_sparse_operands *run, const laci_csr *csr,
                    int64_t strip) {
  for (int64_t last = o->convolution.n_tiles; last > 0; last -= strip) {
    const int64_t first = last > strip ? last - strip : 0;
    for (int64_t chunk = csr->n_chunks; chunk-- > 0;) {
      laci_csr_variant()(csr, run, chunk, o->convolution.tiles + first, last - first);
    }
  }
}

static void expect_same(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_operands *run, int64_t chunk_rows) {
  void *want = sparse_wanted_result(o, run);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    laci_csr csr = csr_of(o, chunk_rows);
    for (int64_t strip = 1; strip <= laci_csr_tiles_per_strip(); strip++) {
      sparse_forget_result(o);
      run_csr(o, run, &csr, strip);
      if (memcmp(o->memory_y, want, sparse_result_bytes(o)) != 0) {
        fail_msg("%s: level %d, %lld rows, strips of %lld", c->what, level, (long long)chunk_rows,
                 (long long)strip);
      }
    }
    laci_csr_clear(&csr);
  }
  free(want);
}

static void every_variant_has_the_same_bits(void **state) {
  static const int64_t chunks[] = {1, 7, LACI_CSR_MOST_ROWS, 1000};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < N_SPARSE_CASES; at++) {
    sparse_operands o;
    sparse_operands_init(&sparse_cases[at], at % 3, &o);
    for (int with = at % tests_stride(4); with < 4; with += tests_stride(4)) {
      laci_sparse_operands run =
          sparse_run_of(&o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0.75F : INFINITY);
      expect_same(&sparse_cases[at], &o, &run, chunks[with]);
      sparse_follow(&run, with, with % 2 > 0);
      expect_same(&sparse_cases[at], &o, &run, chunks[3 - with]);
    }
    (void)laci_cpu_limit_level(start);
    sparse_operands_clear(&o);
  }
}

/* 700 columns of several tiles fit in no first cache; every row of a block is there once. */
static void columns_are_cut_into_blocks(void **state) {
  const sparse_case *many = &sparse_cases[N_SPARSE_CASES - 1];
  sparse_operands o;
  (void)state;
  assert_string_equal(many->what, "many columns");
  sparse_operands_init(many, 0, &o);
  laci_csr csr = csr_of(&o, 10);
  assert_int_equal(csr.n_chunks, 4);
  int64_t n = 0;
  for (int64_t at = 0; at < csr.n_chunks; at++) {
    const laci_csr_chunk *c = &csr.chunks[at];
    const int64_t n_rows = (c->row_last - c->row_first) * c->n_blocks;
    assert_true(c->n_blocks > 1);
    assert_int_equal(c->begin[0], n);
    for (int64_t row = 0; row < n_rows; row++) { assert_true(c->begin[row] <= c->begin[row + 1]); }
    n = c->begin[n_rows];
  }
  assert_int_equal(n, o.convolution.n_kept);
  laci_csr_clear(&csr);
  sparse_operands_clear(&o);
}

static void distances_have_a_limit(void **state) {
  const int64_t begin[] = {0, 1}, far[] = {(int64_t)1 << 31};
  const int32_t column[] = {0};
  const float weight[] = {1};
  const laci_sparse_tile tile = {.lanes = LACI_SPARSE_ALL_LANES};
  const laci_sparse_product p = {.n_rows = 1,
                                 .n_columns = 1,
                                 .rows_together = 1,
                                 .row_begin = begin,
                                 .column = column,
                                 .column_at = far};
  laci_csr csr;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_csr_init(&p, weight, &(laci_csr_cut){&tile, 1, 1}, &csr, &err),
                   LAC_UNSUPPORTED);
  assert_string_equal(err.text, "a sparse product: operands of more than 2^31 floats");
  assert_null(csr.entries);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_has_the_same_bits),
      cmocka_unit_test(columns_are_cut_into_blocks),
      cmocka_unit_test(distances_have_a_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/vector: the definition against plain loops in double, every variant against the
 * definition, bit by bit, with operands misaligned and guarded, whole and in parts; and packing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "kernel/sparse/vector.h"
#include "tensor/bf16.h"

enum { GUARD = 16 };

typedef struct shape {
  int64_t n_rows, n_columns;
  int keep; /* of every 4 columns, by chance; 4: all, but every third row is empty; 5: any number */
} shape;

static const shape shapes[] = {
    {1, 1, 4},    {3, 5, 2},     {8, 64, 2},    {9, 63, 5},   {16, 512, 2}, {17, 513, 2},
    {7, 1100, 5}, {40, 1024, 0}, {13, 2047, 1}, {33, 640, 4}, {64, 130, 2}, {25, 577, 5},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

typedef struct problem {
  shape shape;
  laci_sparse_rows w;
  float *dense, *bias, *scale;
  float *memory_x, *memory_y; /* x and y are in these, `shift` floats and a guard after the start */
  int64_t n_y;
  laci_sparse_vectors v;
} problem;

static void *need(size_t n, size_t size) {
  void *memory = calloc(n ? n : 1, size);
  assert_non_null(memory);
  return memory;
}

static bool is_kept(const shape *s, int64_t row, int64_t column) {
  if (s->keep == 4) return row % 3 != 1;
  if (s->keep == 5) return laci_rng_integer_below(7, (uint64_t)row, (uint64_t)column, 2) != 0;
  const int64_t first =
      (int64_t)laci_rng_integer_below(8, (uint64_t)row, (uint64_t)(column / 4), 4);
  return (column % 4 - first + 4) % 4 < s->keep;
}

static void pack(problem *p, laci_sparse_values values, bool pairs) {
  const shape *s = &p->shape;
  const laci_sparse_rows_part all = {p->dense, 0, s->n_rows, 0, s->n_columns, s->n_columns, 1};
  p->w = (laci_sparse_rows){
      .values = values, .n_rows = s->n_rows, .n_columns = s->n_columns, .pairs = pairs};
  p->w.chunk_at = need((size_t)laci_sparse_rows_n_chunks(&p->w) + 1, sizeof *p->w.chunk_at);
  if (values == LACI_SPARSE_S8) p->w.row_sum = need((size_t)s->n_rows, sizeof *p->w.row_sum);
  laci_sparse_rows_count_kept(&p->w, &all);
  p->w.bytes = need(laci_sparse_rows_set_chunk_offsets(&p->w), 1);
  laci_sparse_rows_fill_chunks(&p->w, &all);
}

/* pairs: packed so where it can be. */
static void problem_init(problem *p, const shape *s, laci_sparse_values values, int n_x,
                         bool pairs) {
  const int64_t n = s->n_rows * s->n_columns, shift = GUARD + n_x % 3;
  const int64_t x_stride = s->n_columns + n_x, y_stride = s->n_rows + 3;
  *p = (problem){.shape = *s, .n_y = n_x * y_stride + 2 * GUARD + 3};
  p->dense = need((size_t)n, sizeof *p->dense);
  p->bias = need((size_t)s->n_rows, sizeof *p->bias);
  p->scale = need((size_t)s->n_rows, sizeof *p->scale);
  p->memory_x = need((size_t)(n_x * x_stride + shift), sizeof *p->memory_x);
  p->memory_y = need((size_t)p->n_y, sizeof *p->memory_y);
  for (int64_t at = 0; at < n; at++) {
    if (!is_kept(s, at / s->n_columns, at % s->n_columns)) continue;
    const float unit = (float)laci_rng_unit_interval(1, 0, (uint64_t)at) - 0.5F;
    p->dense[at] = values == LACI_SPARSE_S8     ? roundf(unit * 254)
                   : values == LACI_SPARSE_BF16 ? laci_bf16_value(laci_bf16_round(unit))
                                                : unit;
  }
  for (int64_t row = 0; row < s->n_rows; row++) {
    p->bias[row] = (float)row;
    p->scale[row] = 0.01F * (float)(row + 1);
  }
  p->v = (laci_sparse_vectors){
      p->memory_x + shift, p->memory_y + shift, n_x, x_stride, y_stride, p->bias, p->scale, 117};
  for (int64_t at = 0; at < n_x * x_stride; at++) {
    if (values == LACI_SPARSE_S8) {
      ((uint8_t *)(p->memory_x + shift))[at] =
          (uint8_t)laci_rng_integer_below(2, 0, (uint64_t)at, 256);
    } else {
      p->memory_x[shift + at] = (float)laci_rng_unit_interval(3, 0, (uint64_t)at) - 0.5F;
    }
  }
  if (values == LACI_SPARSE_S8) p->v.x = (const uint8_t *)p->v.x + n_x % 2;
  pack(p, values, pairs);
}

static void problem_clear(problem *p) {
  free(p->w.chunk_at);
  free(p->w.bytes);
  free(p->w.row_sum);
  free(p->dense);
  free(p->bias);
  free(p->scale);
  free(p->memory_x);
  free(p->memory_y);
}

static void forget(const problem *p) {
  memset(p->memory_y, 0x5A, (size_t)p->n_y * sizeof *p->memory_y);
}

static double value_of(const problem *p, int64_t row, int vector) {
  const bool bytes = p->w.values == LACI_SPARSE_S8;
  double sum = 0;
  for (int64_t k = 0; k < p->shape.n_columns; k++) {
    const int64_t at = vector * p->v.x_stride + k;
    const double x =
        bytes ? ((const uint8_t *)p->v.x)[at] - p->v.x_zero : (double)((const float *)p->v.x)[at];
    sum += (double)p->dense[row * p->shape.n_columns + k] * x;
  }
  return (double)p->bias[row] + (bytes ? (double)p->scale[row] : 1) * sum;
}

static void expect_values(const problem *p) {
  int64_t n_written = 0;
  for (int vector = 0; vector < p->v.n_x; vector++) {
    for (int64_t row = 0; row < p->shape.n_rows; row++) {
      const double got = (double)p->v.y[vector * p->v.y_stride + row];
      const double want = value_of(p, row, vector);
      if (!(fabs(got - want) <= 2e-6 * (fabs(want) + 30))) {
        fail_msg("%lld x %lld keep %d, row %lld, vector %d: got %g, want %g",
                 (long long)p->shape.n_rows, (long long)p->shape.n_columns, p->shape.keep,
                 (long long)row, vector, got, want);
      }
    }
  }
  for (int64_t at = 0; at < p->n_y; at++) {
    uint32_t bits;
    memcpy(&bits, p->memory_y + at, sizeof bits);
    n_written += bits != 0x5A5A5A5AU;
  }
  assert_int_equal(n_written, p->v.n_x * p->shape.n_rows);
}

static void expect_same_bits(problem *p, laci_sparse_rows_multiply *multiply, const float *want) {
  forget(p);
  multiply(&p->w, &p->v, 0, laci_sparse_rows_n_places(&p->w));
  assert_memory_equal(p->memory_y, want, (size_t)p->n_y * sizeof *want);
}

static void every_variant_agrees_with_the_definition(void **state) {
  static const laci_cpu_level levels[] = {LACI_CPU_ANY, LACI_CPU_AVX2, LACI_CPU_AVX512,
                                          LACI_CPU_NEON};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < N_SHAPES * 3 * LACI_SPARSE_VECTORS * 2; at++) {
    problem p;
    problem_init(&p, &shapes[at % N_SHAPES], (laci_sparse_values)(at / N_SHAPES % 3),
                 at / N_SHAPES / 3 / 2 + 1, at / N_SHAPES / 3 % 2 > 0);
    forget(&p);
    laci_sparse_rows_multiply_scalar(&p.w, &p.v, 0, laci_sparse_rows_n_places(&p.w));
    expect_values(&p);
    float *want = need((size_t)p.n_y, sizeof *want);
    memcpy(want, p.memory_y, (size_t)p.n_y * sizeof *want);
    /* A cap above what the processor has caps nothing, and there are variants between levels. */
    for (size_t level = 0; level < sizeof levels / sizeof *levels; level++) {
      (void)laci_cpu_limit_level(levels[level]);
      expect_same_bits(&p, laci_sparse_rows_multiply_variant(), want);
    }
    (void)laci_cpu_limit_level(start);
    free(want);
    problem_clear(&p);
  }
}

static void multiply_some(int64_t begin, int64_t end, void *context) {
  const problem *p = context;
  laci_sparse_rows_multiply_variant()(&p->w, &p->v, begin, end);
}

static void threads_do_not_matter(void **state) {
  problem p;
  (void)state;
  problem_init(&p, &(shape){93, 700, 5}, LACI_SPARSE_F32, 2, false);
  forget(&p);
  multiply_some(0, laci_sparse_rows_n_places(&p.w), &p);
  float *want = need((size_t)p.n_y, sizeof *want);
  memcpy(want, p.memory_y, (size_t)p.n_y * sizeof *want);
  for (int threads = 1; threads <= 3; threads++) {
    laci_pool *pool;
    assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
    forget(&p);
    laci_pool_for(pool, laci_sparse_rows_n_places(&p.w), 1, multiply_some, &p);
    assert_memory_equal(p.memory_y, want, (size_t)p.n_y * sizeof *want);
    laci_pool_destroy(pool);
  }
  free(want);
  problem_clear(&p);
}

/* The matrix again in parts of `step` columns, from memory that is transposed. */
static void parts_pack_alike(void **state) {
  (void)state;
  for (int at = 0; at < N_SHAPES; at++) {
    const int64_t rows = shapes[at].n_rows, columns = shapes[at].n_columns;
    for (int64_t step = 64; step < 600; step += 512) {
      problem p;
      problem_init(&p, &shapes[at], LACI_SPARSE_S8, 1, step > 64);
      laci_sparse_rows again = p.w;
      again.pairs = step > 64;
      float *transposed = need((size_t)(rows * columns), sizeof *transposed);
      const size_t n_chunks = (size_t)laci_sparse_rows_n_chunks(&p.w) + 1;
      const size_t n_bytes = (size_t)p.w.chunk_at[n_chunks - 1] + LACI_SPARSE_READ_AHEAD;
      for (int64_t i = 0; i < rows * columns; i++) {
        transposed[i % columns * rows + i / columns] = p.dense[i];
      }
      again.chunk_at = need(n_chunks, sizeof *again.chunk_at);
      again.row_sum = need((size_t)rows, sizeof *again.row_sum);
      again.bytes = need(n_bytes, 1);
      for (int pass = 0; pass < 2; pass++) {
        for (int64_t from = 0; from < columns; from += step) {
          const int64_t n = columns - from < step ? columns - from : step;
          const laci_sparse_rows_part part = {transposed + from * rows, 0, rows, from, n, 1, rows};
          if (pass == 0) laci_sparse_rows_count_kept(&again, &part);
          else laci_sparse_rows_fill_chunks(&again, &part);
        }
        if (pass == 0) assert_int_equal(laci_sparse_rows_set_chunk_offsets(&again), n_bytes);
      }
      assert_memory_equal(again.bytes, p.w.bytes, n_bytes);
      assert_memory_equal(again.row_sum, p.w.row_sum, (size_t)rows * sizeof *again.row_sum);
      free(transposed);
      free(again.chunk_at);
      free(again.row_sum);
      free(again.bytes);
      problem_clear(&p);
    }
  }
}

/* What is known beforehand about who is packed so. */
static void two_of_four_are_pairs(void **state) {
  static const shape two = {8, 130, 2}, any = {8, 130, 5}, one = {8, 130, 1};
  problem p;
  (void)state;
  problem_init(&p, &two, LACI_SPARSE_F32, 1, true);
  assert_true(p.w.pairs);
  assert_int_equal(p.w.chunk_at[1], 3 * (8 + 32 * sizeof(float)));
  problem_clear(&p);
  problem_init(&p, &two, LACI_SPARSE_F32, 1, false);
  assert_false(p.w.pairs);
  problem_clear(&p);
  problem_init(&p, &any, LACI_SPARSE_F32, 1, true);
  assert_false(p.w.pairs);
  problem_clear(&p);
  problem_init(&p, &one, LACI_SPARSE_F32, 1, true); /* half of what is stored would be zeros */
  assert_false(p.w.pairs);
  problem_clear(&p);
}

static void a_nan_of_x_meets_zeros_as_in_a_dense_product(void **state) {
  problem p;
  (void)state;
  problem_init(&p, &(shape){9, 100, 2}, LACI_SPARSE_F32, 1, true);
  ((float *)(uintptr_t)p.v.x)[99] = NAN;
  laci_sparse_rows_multiply_variant()(&p.w, &p.v, 0, laci_sparse_rows_n_places(&p.w));
  for (int64_t row = 0; row < 9; row++) assert_true(isnan(p.v.y[row]));
  problem_clear(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_agrees_with_the_definition),
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(parts_pack_alike),
      cmocka_unit_test(two_of_four_are_pairs),
      cmocka_unit_test(a_nan_of_x_meets_zeros_as_in_a_dense_product),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

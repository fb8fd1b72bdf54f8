/* SPDX-License-Identifier: Apache-2.0
 * kernel/linear/byte_product.h: every variant that this processor has gives the bits of the scalar
 * one, for any number of rows, columns and depth, and writes nothing but its part; and the scalar
 * one computes the formula. */
#include "kernel/linear/byte_product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/sparse/byte_pairs.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, APART = 3 /* floats between rows of y */ };
static const float guard = 12345.5F;

static int number(uint64_t stream, int64_t at, int low, int high) {
  return low + (int)(laci_rng_unit_interval(7, stream, (uint64_t)at) * (high - low + 1));
}

/** A product with memory of its own. */
typedef struct problem {
  laci_byte_product product;
  int64_t n_rows, n_blocks;
  int8_t *w;
  int32_t *sums, *offsets, *row_sums;
  float *scale, *bias, *want, *got;
  uint8_t *x;
  size_t y_bytes;
} problem;

static void fill_matrix(problem *p, bool extreme) {
  laci_byte_matrix *m = &p->product.matrix;
  for (int64_t c = 0; c < m->columns; c++) {
    p->offsets[c] = number(3, c, -127, 127);
    p->scale[c] = (float)number(4, c, 1, 1000) / 1024;
    p->bias[c] = (float)number(5, c, -1000, 1000) / 64;
    for (int64_t k = 0; k < m->depth; k++) {
      const bool dropped = m->columns % 2 == 0 && (k + c) % 4 < 2; /* two of four are kept */
      const int w = extreme ? -128 : dropped ? 0 : number(6, c * m->depth + k, -128, 127);
      p->w[c / LACI_BYTE_COLUMNS * laci_byte_block_bytes(m->depth) + laci_byte_index(k, c)] =
          (int8_t)w;
      p->sums[c] += w;
    }
  }
}

static void fill_rows(problem *p, bool extreme) {
  laci_byte_rows *r = &p->product.rows;
  for (int64_t row = 0; row < p->n_rows; row++) {
    for (int64_t k = 0; k < r->stride; k++) {
      const int x = extreme ? 255 : number(8, row * r->stride + k, 0, 255);
      p->x[row * r->stride + k] = (uint8_t)x;
      if (k < p->product.matrix.depth) p->row_sums[row] += x;
    }
  }
}

static problem make(int64_t n_rows, int64_t depth, int64_t columns, bool offsets, bool extreme) {
  const int64_t blocks = laci_byte_blocks(columns), stride = laci_byte_row_stride(depth);
  const size_t n = (size_t)blocks * LACI_BYTE_COLUMNS;
  problem p = {.n_rows = n_rows, .n_blocks = blocks};
  p.y_bytes = (size_t)(n_rows * (columns + APART)) * sizeof(float);
  p.w = laci_alloc(laci_byte_matrix_bytes(depth, columns), 1);
  p.sums = laci_alloc(n, sizeof *p.sums);
  p.offsets = laci_alloc(n, sizeof *p.offsets);
  p.scale = laci_alloc(n, sizeof *p.scale);
  p.bias = laci_alloc(n, sizeof *p.bias);
  p.x = laci_alloc((size_t)(n_rows * stride), 1);
  p.row_sums = laci_alloc((size_t)n_rows, sizeof *p.row_sums);
  p.want = laci_alloc(p.y_bytes, 1);
  p.got = laci_alloc(p.y_bytes, 1);
  p.product = (laci_byte_product){
      .matrix = {depth, columns, p.w, p.sums, offsets ? p.offsets : NULL, p.scale, p.bias, NULL},
      .rows = {p.x, stride, p.row_sums, extreme ? 0 : number(9, columns, 0, 255), 0.01F},
      .y_stride = columns + APART};
  fill_matrix(&p, extreme);
  fill_rows(&p, extreme);
  return p;
}

static void destroy(problem *p) {
  void *all[] = {p->w, p->sums, p->offsets, p->scale, p->bias, p->x, p->row_sums, p->want, p->got};
  for (size_t at = 0; at < sizeof all / sizeof *all; at++) laci_free(all[at]);
}

static void run(problem *p, laci_multiply_bytes *multiply, const laci_byte_part *part, float *y) {
  p->product.y = y;
  for (size_t at = 0; at < p->y_bytes / sizeof *y; at++) y[at] = guard;
  multiply(&p->product, part);
}

static float formula(const problem *p, int64_t row, int64_t column) {
  const laci_byte_matrix *m = &p->product.matrix;
  const laci_byte_rows *r = &p->product.rows;
  const int8_t *block = p->w + column / LACI_BYTE_COLUMNS * laci_byte_block_bytes(m->depth);
  int64_t sum = 0;
  for (int64_t k = 0; k < m->depth; k++) {
    const int32_t w = block[laci_byte_index(k, column)];
    sum += (r->x[row * r->stride + k] - r->zero) * (w + (m->offsets ? m->offsets[column] : 0));
  }
  const float scale = r->scale * m->scale[column];
  const float product = (float)(int32_t)sum * scale;
  return product + m->bias[column];
}

static void check_formula(const problem *p, const laci_byte_part *part) {
  for (int64_t row = 0; row < p->n_rows; row++) {
    for (int64_t c = 0; c < p->product.y_stride; c++) {
      const bool written = row >= part->row && row < part->row_end &&
                           c >= part->block * LACI_BYTE_COLUMNS && c < p->product.matrix.columns &&
                           c < part->block_end * LACI_BYTE_COLUMNS;
      const float want = written ? formula(p, row, c) : guard;
      const float got = p->want[row * p->product.y_stride + c];
      if (memcmp(&want, &got, sizeof want) != 0)
        fail_msg("row %d, column %d: got %g, want %g", (int)row, (int)c, (double)got, (double)want);
    }
  }
}

static void compare(problem *p, laci_multiply_bytes *multiply, const laci_byte_part *part,
                    const char *name) {
  run(p, multiply, part, p->got);
  if (memcmp(p->want, p->got, p->y_bytes) != 0)
    fail_msg("%s: rows %d to %d, depth %d, %d columns", name, (int)part->row, (int)part->row_end,
             (int)p->product.matrix.depth, (int)p->product.matrix.columns);
}

/* Compares the steps of AVX2 that are arranged for the matrix. */
static void compare_pairs(problem *p, const laci_byte_part *part) {
  laci_byte_pairs_weights pairs;
  lac_error err = {0};
  if (!laci_byte_pairs_can_run()) return;
  if (laci_byte_matrix_arrange(&p->product.matrix, &pairs, &err)) fail_msg("%s", err.text);
  char *moved = laci_alloc(pairs.bytes, 1);
  assert_non_null(moved);
  laci_byte_pairs_move(&pairs, moved);
  p->product.matrix.pairs = &pairs;
  compare(p, laci_multiply_bytes_arranged, part, "pairs");
  p->product.matrix.pairs = NULL;
  laci_free(moved);
}

static void check_part(problem *p, laci_byte_part part) {
  const laci_cpu_level before = laci_cpu_level_in_force();
  run(p, laci_multiply_bytes_scalar, &part, p->want);
  check_formula(p, &part);
  for (int level = 0; level < N_LEVELS; level++) {
    const char *name;
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    compare(p, laci_multiply_bytes_variant(), &part, laci_cpu_level_name(levels[level]));
    compare(p, laci_multiply_bytes_fastest(part.row_end - part.row, &name), &part, name);
    (void)laci_cpu_limit_level(before);
  }
  compare_pairs(p, &part);
}

static void multiplies_any_rows_by_any_columns(void **state) {
  static const int64_t rows[] = {1, 2, 3, 5, 6, 7, 13, 16, 17, 31, 32, 33, 48, 50, 67},
                       depths[] = {1, 3, 4, 5, 63, 64, 65, 130},
                       columns[] = {1, 15, 16, 17, 32, 40, 64, 81};
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
      for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        problem p = make(rows[r], depths[d], columns[c], (r + d + c) % 2, false);
        check_part(&p, (laci_byte_part){0, p.n_rows, 0, p.n_blocks});
        destroy(&p);
      }
    }
  }
}

static void writes_only_its_part(void **state) {
  problem p = make(70, 20, 90, true, false);
  (void)state;
  check_part(&p, (laci_byte_part){3, 70, 1, 6});
  check_part(&p, (laci_byte_part){32, 64, 0, 3});
  check_part(&p, (laci_byte_part){5, 22, 5, 6});
  check_part(&p, (laci_byte_part){69, 70, 2, 4});
  destroy(&p);
}

static void largest_sums_are_exact(void **state) {
  (void)state;
  for (int offsets = 0; offsets < 2; offsets++) {
    problem p = make(17, LACI_BYTE_MOST_DEPTH, 2, offsets, true);
    for (int c = 0; c < 2; c++) p.offsets[c] = -127;
    check_part(&p, (laci_byte_part){0, p.n_rows, 0, p.n_blocks});
    destroy(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(multiplies_any_rows_by_any_columns),
                                     cmocka_unit_test(writes_only_its_part),
                                     cmocka_unit_test(largest_sums_are_exact)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

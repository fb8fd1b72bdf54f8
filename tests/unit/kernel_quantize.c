/* SPDX-License-Identifier: Apache-2.0
 * kernel/quantize and kernel/transpose: every variant that this processor has against the
 * definition, for every stored type, from any address; ties, zeros, denormal and largest elements.
 */
#include "kernel/search/quantize.h"
#include "kernel/search/transpose.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "tensor/buf.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, GUARD = 0x5A };

/* The definition, of an element that float32 holds exactly. */
static int quantized(float size, float scale, float largest) {
  float scaled = size * scale;
  if (!(scaled < largest)) return (int)largest;
  float rounded = scaled + 0.5F;
  return (int)rounded;
}

static int element(laci_number number, const void *elements, size_t at) {
  int16_t word;
  if (number == LACI_U8) return ((const uint8_t *)elements)[at];
  memcpy(&word, (const uint8_t *)elements + 2 * at, sizeof word);
  return word;
}

/* n stored elements, one byte off alignment, by every variant. */
static void expect_quantized(const laci_search_quantizer *q, const uint8_t *stored, size_t n) {
  const size_t size = laci_number_size(q->number);
  uint8_t *out = malloc((n + 2) * size);
  double *value = malloc((n + 1) * sizeof *value);
  assert_non_null(out);
  assert_non_null(value);
  laci_read_f64(q->dtype, stored, 0, (int64_t)n, value);
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    memset(out, GUARD, (n + 2) * size);
    laci_search_quantize(q, stored, n, out + size);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(element(q->number, out, i + 1),
                       quantized((float)fabs(value[i]), q->scale, q->largest));
    }
    assert_int_equal(out[size - 1], GUARD);
    assert_int_equal(out[(n + 1) * size], GUARD);
  }
  laci_cpu_limit_level(start);
  free(value);
  free(out);
}

static void all_sixteen_bit_patterns_are_quantized(void **state) {
  (void)state;
  static const lac_dtype dtypes[] = {LAC_DTYPE_F16, LAC_DTYPE_BF16};
  static const float scales[] = {0, 1, 1000.3F, 3.5e-3F, 0x1p24F, 1e30F};
  uint8_t *stored = malloc(2 * 65536 + 1);
  assert_non_null(stored);
  for (int d = 0; d < 2; d++) {
    size_t n = 0;
    for (uint32_t bits = 0; bits < 65536; bits++) {
      uint16_t word = (uint16_t)bits, exponent = d == 0 ? 0x7C00 : 0x7F80;
      if ((word & exponent) == exponent) continue; /* elements are finite */
      memcpy(stored + 1 + 2 * n++, &word, sizeof word);
    }
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
      laci_search_quantizer fine = {dtypes[d], LACI_I16, scales[k], 32767};
      laci_search_quantizer coarse = {dtypes[d], LACI_U8, scales[k], 255};
      expect_quantized(&fine, stored + 1, n);
      expect_quantized(&coarse, stored + 1, n);
    }
  }
  free(stored);
}

static void floats_of_any_number_are_quantized(void **state) {
  (void)state;
  enum { MOST = 300 };
  static const float special[] = {0,      -0.0F,  0.5F,   -0.5F,      0.49999997F, 1.5F,
                                  254.5F, 255.5F, 1e-40F, 3.4028e38F, -1e-45F,     16383.5F};
  uint8_t stored[4 * MOST + 1];
  for (size_t n = 0; n < MOST; n = n < 70 ? n + 1 : n + 37) {
    for (size_t i = 0; i < n; i++) {
      uint64_t bits = laci_rng(n, 1, i);
      float x = bits % 4 ? (float)laci_rng_unit_interval(n, 2, i) * 400 - 200
                         : special[bits / 4 % (sizeof special / sizeof *special)];
      memcpy(stored + 1 + 4 * i, &x, sizeof x);
    }
    laci_search_quantizer coarse = {LAC_DTYPE_F32, LACI_U8, n % 2 ? 1 : 1.2749999F,
                                    n % 3 ? 255 : 100};
    laci_search_quantizer fine = {LAC_DTYPE_F32, LACI_I16, n % 2 ? 1 : 163.83501F,
                                  n % 3 ? 32767 : 1000};
    expect_quantized(&coarse, stored + 1, n);
    expect_quantized(&fine, stored + 1, n);
  }
}

static void says_what_float32_can_hold(void **state) {
  (void)state;
  assert_true(laci_search_can_quantize_in_float(LAC_DTYPE_F32, 1));
  assert_true(laci_search_can_quantize_in_float(LAC_DTYPE_F16, 1e38));
  assert_true(laci_search_can_quantize_in_float(LAC_DTYPE_BF16, 0));
  assert_false(laci_search_can_quantize_in_float(LAC_DTYPE_F32, 1e39));
  assert_false(laci_search_can_quantize_in_float(LAC_DTYPE_F32, 1e-39));
  assert_false(laci_search_can_quantize_in_float(LAC_DTYPE_F32, (double)NAN));
  assert_false(laci_search_can_quantize_in_float(LAC_DTYPE_F64, 1));
  assert_false(laci_search_can_quantize_in_float(LAC_DTYPE_I8, 1));
}

static void expect_transposed(laci_number number, int n_rows, int n_columns, size_t row) {
  const size_t size = laci_number_size(number), all = (size_t)n_rows * (size_t)n_columns;
  const size_t height = row + (size_t)n_rows + 3; /* of the columns, which are one element off */
  uint8_t *from = malloc(all * size + 1), *out = malloc((1 + height * (size_t)n_columns) * size);
  void **to = malloc((size_t)(n_columns + 1) * sizeof *to);
  assert_non_null(from);
  assert_non_null(out);
  assert_non_null(to);
  for (size_t i = 0; i < all * size; i++) from[i] = (uint8_t)laci_rng(all, 3, i);
  memset(out, GUARD, (1 + height * (size_t)n_columns) * size);
  for (int c = 0; c < n_columns; c++) to[c] = out + (1 + (size_t)c * height) * size;
  laci_transpose(number, from, n_rows, n_columns, to, row);
  for (int c = 0; c < n_columns; c++) {
    for (size_t r = 0; r < height; r++) {
      bool is_written = r >= row && r < row + (size_t)n_rows;
      int want = is_written ? element(number, from, (r - row) * (size_t)n_columns + (size_t)c)
                            : (number == LACI_U8 ? GUARD : GUARD << 8 | GUARD);
      assert_int_equal(element(number, to[c], r), want);
    }
  }
  free(to);
  free(out);
  free(from);
}

static void blocks_are_transposed_and_nothing_else_is_written(void **state) {
  (void)state;
  static const int sizes[] = {0, 1, 7, 8, 15, 16, 17, 33, 64};
  enum { N = sizeof sizes / sizeof *sizes };
  for (int i = 0; i < N * N; i++) {
    for (int number = LACI_U8; number <= LACI_I16; number++) {
      expect_transposed((laci_number)number, sizes[i / N], sizes[i % N], (size_t)i % 5);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_sixteen_bit_patterns_are_quantized),
      cmocka_unit_test(floats_of_any_number_are_quantized),
      cmocka_unit_test(says_what_float32_can_hold),
      cmocka_unit_test(blocks_are_transposed_and_nothing_else_is_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

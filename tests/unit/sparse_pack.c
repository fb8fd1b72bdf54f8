/* SPDX-License-Identifier: Apache-2.0
 * sparse/pack: packed weights against the definition, read off bit by bit, over random shapes,
 * patterns and types; and what unpacking refuses. */
#include "sparse/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"

enum { GUARD = 0xA5, GUARD_BYTES = 64 };

/** A packed weight with guard bytes after each array. */
typedef struct box {
  laci_packing p;
  uint8_t *dense, *again, *values;
  uint32_t *index, *signs;
} box;

static void *guarded(size_t size_bytes) {
  uint8_t *memory = laci_alloc(size_bytes + GUARD_BYTES, 1);
  assert_non_null(memory);
  memset(memory + size_bytes, GUARD, GUARD_BYTES);
  return memory;
}

static void expect_guard(const void *memory, size_t size_bytes) {
  const uint8_t *guard = (const uint8_t *)memory + size_bytes;
  for (int at = 0; at < GUARD_BYTES; at++) assert_int_equal(guard[at], GUARD);
}

static void box_init(box *b, const laci_weight_view *w, laci_pattern pattern, uint64_t fill) {
  lac_error err = {0};
  memset(b, 0, sizeof *b);
  if (laci_packing_init(&b->p, w, pattern, fill, &err)) fail_msg("%s", err.text);
  b->dense = guarded(b->p.dense_bytes);
  b->again = guarded(b->p.dense_bytes);
  b->values = guarded(b->p.values_bytes);
  b->index = guarded(b->p.index_bytes);
}

static void box_clear(box *b) {
  laci_free(b->dense);
  laci_free(b->again);
  laci_free(b->values);
  laci_free(b->index);
  laci_free(b->signs);
}

static uint64_t element(const box *b, const uint8_t *elements, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, elements + (size_t)at * b->p.element_bytes, b->p.element_bytes);
  return bits;
}

static void put(box *b, int64_t at, uint64_t bits) {
  memcpy(b->dense + (size_t)at * b->p.element_bytes, &bits, b->p.element_bytes);
}

/* Element (o, c, i) of every block gets up to n random bit patterns (NaNs, infinities, -0.0 among
 * them), the rest fill or, sometimes, -0.0. */
static void fill_random(box *b, bool with_signs, uint64_t seed) {
  const laci_packing *p = &b->p;
  uint64_t mask = UINT64_MAX >> (64 - 8 * p->element_bytes), draw = 0;
  for (int64_t row = 0; row < p->n_rows; row++) {
    int64_t first = row / p->inner * p->columns * p->inner + row % p->inner;
    for (int64_t c = 0, columns; c < p->columns; c += columns) {
      int64_t rest = p->run - c % p->run;
      columns = rest < p->pattern.m ? rest : p->pattern.m;
      int left = (int)laci_rng_integer_below(seed, 1, draw++, (uint64_t)p->pattern.n + 1);
      for (int64_t d = 0; d < columns; d++) {
        bool negative = with_signs && laci_rng_integer_below(seed, 1, draw++, 3) == 0;
        uint64_t bits = negative ? p->negative : p->fill;
        if (left > 0 &&
            laci_rng_integer_below(seed, 1, draw++, (uint64_t)(columns - d)) < (uint64_t)left) {
          bits = laci_rng(seed, 2, draw++) & mask;
          left--;
        }
        put(b, first + (c + d) * p->inner, bits);
      }
    }
  }
}

static uint32_t bits_at(const uint32_t *words, int64_t at, int n) {
  uint32_t bits = 0;
  for (int k = 0; k < n; k++) bits |= (words[(at + k) / 32] >> ((at + k) % 32) & 1) << k;
  return bits;
}

/* The header's words: each value is the element of its block at the column that index says. */
static void expect_layout(const box *b) {
  const laci_packing *p = &b->p;
  int32_t *at = guarded((size_t)p->row_values * sizeof *at);
  for (int64_t row = 0; row < p->n_rows; row++) {
    int64_t first = row / p->inner * p->columns * p->inner + row % p->inner, value = 0;
    assert_true(laci_packed_decode_columns(p, b->index + row * p->index_words, at));
    for (int64_t c = 0, columns; c < p->columns; c += columns) {
      int64_t rest = p->run - c % p->run;
      columns = rest < p->pattern.m ? rest : p->pattern.m;
      for (int k = 0; k < p->pattern.n && k < columns; k++, value++) {
        const uint32_t *index = b->index + row * p->index_words;
        int64_t d = bits_at(index, value * p->index_bits, p->index_bits);
        assert_in_range(d, 0, columns - 1);
        assert_int_equal(at[value], c + d);
        assert_true(element(b, b->values, row * p->row_values + value) ==
                    element(b, b->dense, first + (c + d) * p->inner));
      }
    }
    assert_int_equal(value, p->row_values);
  }
  expect_guard(at, (size_t)p->row_values * sizeof *at);
  laci_free(at);
}

static void expect_round_trip(box *b) {
  const laci_packing *p = &b->p;
  lac_error err = {0};
  laci_pack_check check = laci_pack_check_weight(p, b->dense);
  assert_true(check.holds);
  if (check.needs_signs) b->signs = guarded(p->signs_bytes);
  const laci_packed packed = {b->values, b->index, b->signs};
  const laci_packed_view view = {b->values, b->index, b->signs};
  laci_pack_weight(p, b->dense, &packed);
  expect_layout(b);
  memset(b->again, 0x5A, p->dense_bytes);
  if (laci_unpack_weight(p, &view, b->again, &err)) fail_msg("%s", err.text);
  assert_memory_equal(b->dense, b->again, p->dense_bytes);
  expect_guard(b->again, p->dense_bytes);
  expect_guard(b->values, p->values_bytes);
  expect_guard(b->index, p->index_bytes);
  if (b->signs) expect_guard(b->signs, p->signs_bytes);
}

static void any_weight_comes_back_bit_by_bit(void **state) {
  (void)state;
  static const lac_dtype types[] = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_F64,
                                    LAC_DTYPE_I8,  LAC_DTYPE_U8,  LAC_DTYPE_I32};
  static const laci_pattern patterns[] = {{2, 4}, {1, 2},  {1, 3},  {3, 4},  {2, 5},  {4, 8},
                                          {1, 8}, {7, 16}, {5, 33}, {1, 64}, {63, 64}};
  int n_signs = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    int64_t run = 1 + (int64_t)laci_rng_integer_below(seed, 3, 0, 90);
    int64_t runs = 1 + (int64_t)laci_rng_integer_below(seed, 3, 1, 3);
    const laci_weight_view w = {.name = "w",
                                .dtype = types[seed % 7],
                                .outer = 1 + (int64_t)laci_rng_integer_below(seed, 3, 2, 5),
                                .columns = run * runs,
                                .inner = 1 + (int64_t)laci_rng_integer_below(seed, 3, 3, 40),
                                .run = run};
    uint64_t fill = w.dtype == LAC_DTYPE_U8 ? 128 : w.dtype == LAC_DTYPE_I8 ? 0xFD : 0;
    box b;
    box_init(&b, &w, patterns[seed / 7 % 11], fill);
    fill_random(&b, seed % 3 == 0, seed);
    expect_round_trip(&b);
    n_signs += b.signs != NULL;
    box_clear(&b);
  }
  assert_in_range(n_signs, 50, 200);
}

static void two_of_four_takes_two_bits_a_value(void **state) {
  (void)state;
  const laci_weight_view w = {
      .name = "w", .dtype = LAC_DTYPE_F32, .outer = 8, .columns = 64, .inner = 9, .run = 64};
  laci_packing p;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, NULL), LAC_OK);
  assert_int_equal(p.index_bits, 2);
  assert_int_equal(p.n_rows, 72);
  assert_int_equal(p.row_values, 32);
  assert_int_equal(p.index_words, 2);
  assert_int_equal(p.dense_bytes, 8 * 64 * 9 * 4);
  assert_int_equal(p.values_bytes, p.dense_bytes / 2);
  assert_int_equal(p.index_bytes, 72 * 8);
}

/* One row of two blocks: the words are those of the header's drawing. */
static void the_words_are_those_that_the_header_says(void **state) {
  (void)state;
  const laci_weight_view w = {
      .name = "w", .dtype = LAC_DTYPE_F32, .outer = 1, .columns = 8, .inner = 1, .run = 8};
  const float dense[8] = {0, 5, 0, 7, 0, 0, 0, 9};
  float values[4] = {0}, again[8];
  uint32_t index = 0;
  laci_packing p;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, NULL), LAC_OK);
  const laci_packed packed = {(uint8_t *)values, &index, NULL};
  laci_pack_weight(&p, (const uint8_t *)dense, &packed);
  const float wanted[4] = {5, 7, 0, 9}; /* the second block is filled up from the left */
  assert_memory_equal(values, wanted, sizeof wanted);
  assert_int_equal(index, 1 | 3 << 2 | 0 << 4 | 3 << 6);
  const laci_packed_view view = {(const uint8_t *)values, &index, NULL};
  assert_int_equal(laci_unpack_weight(&p, &view, (uint8_t *)again, NULL), LAC_OK);
  assert_memory_equal(dense, again, sizeof dense);
}

static void a_block_with_too_many_does_not_hold(void **state) {
  (void)state;
  const laci_weight_view w = {
      .name = "w", .dtype = LAC_DTYPE_F32, .outer = 2, .columns = 6, .inner = 3, .run = 6};
  box b;
  box_init(&b, &w, (laci_pattern){2, 4}, 0);
  put(&b, 0, 1);
  put(&b, 9, UINT32_C(0x80000000)); /* -0.0 is no value, but the first to fill a free place */
  assert_true(laci_pack_check_weight(&b.p, b.dense).holds);
  assert_false(laci_pack_check_weight(&b.p, b.dense).needs_signs);
  put(&b, 6, 0x7FC00001); /* and now there is none */
  assert_true(laci_pack_check_weight(&b.p, b.dense).holds);
  assert_true(laci_pack_check_weight(&b.p, b.dense).needs_signs);
  put(&b, 3, 3);
  assert_false(laci_pack_check_weight(&b.p, b.dense).holds);
  put(&b, 3, 0);
  put(&b, 12, 1), put(&b, 15, 1); /* a partial block of two holds anything */
  assert_true(laci_pack_check_weight(&b.p, b.dense).holds);
  box_clear(&b);
}

static void places_that_make_no_sense_are_refused(void **state) {
  (void)state;
  const laci_weight_view w = {
      .name = "w", .dtype = LAC_DTYPE_I8, .outer = 1, .columns = 6, .inner = 1, .run = 6};
  laci_packing p;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, NULL), LAC_OK);
  const uint8_t values[4] = {1, 2, 3, 4};
  uint8_t dense[6];
  int n_good = 0;
  for (uint32_t index = 0; index < 256; index++) { /* every code of four columns */
    const laci_packed_view view = {values, &index, NULL};
    lac_error err = {0};
    uint32_t a = index & 3, b = index >> 2 & 3, c = index >> 4 & 3, d = index >> 6;
    bool good = a < b && c < d && d < 2;
    lac_status st = laci_unpack_weight(&p, &view, dense, &err);
    assert_int_equal(st, good ? LAC_OK : LAC_BAD_FILE);
    int32_t column[4];
    assert_int_equal(laci_packed_decode_columns(&p, &index, column), good);
    if (st)
      assert_string_equal(err.text, "w: row 0: the columns of a block do not ascend inside it");
    n_good += good;
  }
  assert_int_equal(n_good, 6);
}

static void geometry_that_is_no_weight_is_refused(void **state) {
  (void)state;
  const laci_weight_view good = {
      .name = "w", .dtype = LAC_DTYPE_F32, .outer = 2, .columns = 8, .inner = 3, .run = 4};
  laci_packing p;
  lac_error err = {0};
  laci_weight_view w = good;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_OK);
  static const laci_pattern bad[] = {{0, 4}, {4, 4}, {5, 4}, {2, 65}, {-1, 2}};
  for (int k = 0; k < 5; k++) {
    assert_int_equal(laci_packing_init(&p, &w, bad[k], 0, &err), LAC_BAD_ARGUMENT);
  }
  w.run = 3;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_BAD_SHAPE);
  w.run = 0;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_BAD_SHAPE);
  w = good;
  w.outer = INT64_MAX / 8;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "w: "));
  w.outer = 0;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_BAD_SHAPE);
  w = good;
  w.dtype = LAC_DTYPE_TEXT;
  assert_int_equal(laci_packing_init(&p, &w, (laci_pattern){2, 4}, 0, &err), LAC_UNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_weight_comes_back_bit_by_bit),
      cmocka_unit_test(two_of_four_takes_two_bits_a_value),
      cmocka_unit_test(the_words_are_those_that_the_header_says),
      cmocka_unit_test(a_block_with_too_many_does_not_hold),
      cmocka_unit_test(places_that_make_no_sense_are_refused),
      cmocka_unit_test(geometry_that_is_no_weight_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

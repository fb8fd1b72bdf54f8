/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/bf16_pairs.h: a dot and a rounding in plain C against the processor's own, bit by
 * bit, for numbers of all sizes; roundings of all lengths; and which columns a row's dots take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/sparse/bf16_pairs.h"

enum { LANES = 16 };

/* Exponents near each other, near the smallest ones, or any. */
static uint32_t draw(uint64_t stream, uint64_t at, uint64_t kind) {
  static const uint32_t least[3] = {120, 0, 0}, span[3] = {14, 75, 256};
  const uint32_t sign = (uint32_t)laci_rng_integer_below(stream, at, 0, 2) << 31;
  const uint32_t exponent =
      least[kind] + (uint32_t)laci_rng_integer_below(stream, at, 1, span[kind]);
  return sign | exponent << 23 | (uint32_t)laci_rng_integer_below(stream, at, 2, 1 << 23);
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f,avx512bw,avx512bf16"))) static void dots(const float *sums,
                                                                        const uint32_t *x,
                                                                        const uint32_t *weight,
                                                                        float *to) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(weight);
  __m512bh first, second;
  memcpy(&first, &a, sizeof first);
  memcpy(&second, &b, sizeof second);
  _mm512_storeu_ps(to, _mm512_dpbf16_ps(_mm512_loadu_ps(sums), first, second));
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) static void rounded(const float *x,
                                                                           uint16_t *to) {
  const __m512bh words = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + LANES), _mm512_loadu_ps(x));
  memcpy(to, &words, sizeof words);
}

static uint32_t draw_pair(uint64_t stream, uint64_t at, uint64_t kind) {
  return draw(stream, 2 * at, kind) >> 16 | (draw(stream, 2 * at + 1, kind) & 0xFFFF0000U);
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Which NaN is left alone. */
static bool same(float a, float b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

static void dots_are_the_processors(void **state) {
  (void)state;
  if (!laci_cpu_has_avx512bf16()) skip();
  for (uint64_t at = 0; at < 200000; at += LANES) {
    const uint64_t kind = at / LANES % 3;
    uint32_t x[LANES], weight[LANES], sum_bits[LANES];
    float sums[LANES], got[LANES];
    for (uint64_t lane = 0; lane < LANES; lane++) {
      x[lane] = draw_pair(1, at + lane, kind);
      weight[lane] = draw_pair(2, at + lane, kind == 1 ? 0 : kind);
      sum_bits[lane] = draw(3, at + lane, kind);
    }
    memcpy(sums, sum_bits, sizeof sums);
    dots(sums, x, weight, got);
    for (int lane = 0; lane < LANES; lane++) {
      const float want = laci_sparse_add_dot(sums[lane], x[lane], weight[lane]);
      if (!same(got[lane], want)) {
        fail_msg("%08x + %08x * %08x: got %08x, want %08x", sum_bits[lane], x[lane], weight[lane],
                 bits_of(want), bits_of(got[lane]));
      }
    }
  }
}

static void roundings_are_the_processors(void **state) {
  (void)state;
  if (!laci_cpu_has_avx512bf16()) skip();
  for (uint64_t at = 0; at < 400000; at += 2 * LANES) {
    uint32_t bits[2 * LANES];
    float x[2 * LANES];
    uint16_t words[2 * LANES];
    for (uint64_t lane = 0; lane < 2 * LANES; lane++) {
      bits[lane] = draw(4, at + lane, at / LANES / 2 % 3);
      if (lane % 8 == 0) bits[lane] = (bits[lane] & 0xFFFF0000U) | 0x8000U; /* ties */
    }
    memcpy(x, bits, sizeof x);
    rounded(x, words);
    for (int lane = 0; lane < LANES; lane++) {
      const uint32_t want = words[lane] | (uint32_t)words[LANES + lane] << 16;
      assert_int_equal(laci_bf16_pair(x[lane], x[LANES + lane]), want);
    }
  }
}
#endif

/* All sixteen patterns: what is kept is taken once, in one dot if two columns or fewer are. */
static void dots_take_what_is_kept(void **state) {
  (void)state;
  for (uint32_t pattern = 0; pattern < 16; pattern++) {
    uint32_t kept[LACI_SPARSE_BLOCK], twos[LACI_SPARSE_N_DOTS], taken = 0;
    int n = 0;
    for (int column = 0; column < LACI_SPARSE_BLOCK; column++) kept[column] = pattern >> column & 1;
    laci_sparse_find_row_dots(kept, twos);
    for (int at = 0; at < LACI_SPARSE_N_DOTS; at++) {
      const uint32_t both =
          1U << laci_sparse_all_dots[at].low | 1U << laci_sparse_all_dots[at].high;
      if (!twos[at]) continue;
      assert_int_equal(taken & both, 0);
      taken |= both;
      n++;
    }
    assert_int_equal(taken & pattern, pattern);
    assert_int_equal(n, (__builtin_popcount(pattern) + 1) / 2);
  }
}

/* Of any length, and nothing is written after the end. */
static void all_variants_round_alike(void **state) {
  static const struct {
    laci_cpu_level level;
    laci_sparse_round *run;
  } variants[] = {
#define VARIANT(name, level) {level, laci_sparse_round_##name},
      LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
  };
  enum { MOST = 67, GUARD = 0x5A5A };
  (void)state;
  for (int n = 0; n <= MOST; n++) {
    uint32_t bits[MOST] = {0};
    float from[MOST];
    for (int at = 0; at < n; at++) bits[at] = draw(5, (uint64_t)(n * MOST + at), (uint64_t)at % 3);
    memcpy(from, bits, sizeof from);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
      uint16_t to[MOST + 1];
      if (variants[v].level > laci_cpu_level_in_force()) continue;
      for (int at = 0; at <= MOST; at++) to[at] = GUARD;
      variants[v].run(from, n, to);
      for (int at = 0; at <= MOST; at++) {
        assert_int_equal(to[at], at < n ? laci_bf16_from_float(from[at]) : GUARD);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
    cmocka_unit_test(dots_are_the_processors),
    cmocka_unit_test(roundings_are_the_processors),
#endif
    cmocka_unit_test(dots_take_what_is_kept),
    cmocka_unit_test(all_variants_round_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

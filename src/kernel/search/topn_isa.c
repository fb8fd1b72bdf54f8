/* SPDX-License-Identifier: Apache-2.0
 * topn.h for every instruction set that has vectors: the build compiles this once for each
 * (variants.h). It begins with what differs between them: the type `lanes`, load, store and
 * set_zero, max and min of both element types, and sums of lanes (accumulate_u8, accumulate_i16
 * into 32 bits or more, sum_lanes).
 *
 * The n places are registers if n is known at compile time, which it is up to 8. The most frequent
 * cases have their own code: the second largest of three columns (the value of a place under 2:4)
 * and the two largest of four (what 2:4 keeps). */
#include "kernel/search/topn.h"

#if defined(__AVX512F__)
#include <immintrin.h>

/* Bytes are summed by psadbw into 64 bits, words by a dot product with ones into 32. */
typedef __m512i lanes;

static inline lanes load(const char *at) { return _mm512_loadu_si512(at); }
static inline void store(char *at, lanes v) { _mm512_storeu_si512(at, v); }
static inline lanes set_zero(void) { return _mm512_setzero_si512(); }
static inline lanes max_u8(lanes a, lanes b) { return _mm512_max_epu8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return _mm512_min_epu8(a, b); }
static inline lanes max_i16(lanes a, lanes b) { return _mm512_max_epi16(a, b); }
static inline lanes min_i16(lanes a, lanes b) { return _mm512_min_epi16(a, b); }

static inline lanes accumulate_u8(lanes sums, lanes v) {
  return _mm512_add_epi32(sums, _mm512_sad_epu8(v, _mm512_setzero_si512()));
}

static inline lanes accumulate_i16(lanes sums, lanes v) {
  return _mm512_dpwssd_epi32(sums, v, _mm512_set1_epi16(1));
}

/* Adds neighbours first, in 64 bits, since sums of many lanes exceed 32 bits. */
static inline int64_t sum_lanes(lanes sums) {
  __m512i low = _mm512_and_si512(sums, _mm512_set1_epi64(UINT32_MAX));
  return _mm512_reduce_add_epi64(_mm512_add_epi64(low, _mm512_srli_epi64(sums, 32)));
}

#elif defined(__AVX2__)
#include <immintrin.h>

/* Bytes are summed by psadbw into 64 bits, words by pmaddwd with ones into 32. */
typedef __m256i lanes;

static inline lanes load(const char *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline void store(char *at, lanes v) { _mm256_storeu_si256((__m256i *)(void *)at, v); }
static inline lanes set_zero(void) { return _mm256_setzero_si256(); }
static inline lanes max_u8(lanes a, lanes b) { return _mm256_max_epu8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return _mm256_min_epu8(a, b); }
static inline lanes max_i16(lanes a, lanes b) { return _mm256_max_epi16(a, b); }
static inline lanes min_i16(lanes a, lanes b) { return _mm256_min_epi16(a, b); }

static inline lanes accumulate_u8(lanes sums, lanes v) {
  return _mm256_add_epi32(sums, _mm256_sad_epu8(v, _mm256_setzero_si256()));
}

static inline lanes accumulate_i16(lanes sums, lanes v) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(v, _mm256_set1_epi16(1)));
}

/* Adds neighbours first, in 64 bits, since sums of many lanes exceed 32 bits. */
static inline int64_t sum_lanes(lanes sums) {
  __m256i low = _mm256_and_si256(sums, _mm256_set1_epi64x(UINT32_MAX));
  __m256i wide = _mm256_add_epi64(low, _mm256_srli_epi64(sums, 32));
  __m128i half = _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  return _mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1);
}

#else
#include <arm_neon.h>

/* Sums are lanes of 32 bits, made by pairwise additions. */
typedef uint8x16_t lanes;

static inline int16x8_t as_words(lanes v) { return vreinterpretq_s16_u8(v); }
static inline uint32x4_t as_u32(lanes v) { return vreinterpretq_u32_u8(v); }

static inline lanes load(const char *at) { return vld1q_u8((const uint8_t *)at); }
static inline void store(char *at, lanes v) { vst1q_u8((uint8_t *)at, v); }
static inline lanes set_zero(void) { return vdupq_n_u8(0); }
static inline lanes max_u8(lanes a, lanes b) { return vmaxq_u8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return vminq_u8(a, b); }

static inline lanes max_i16(lanes a, lanes b) {
  return vreinterpretq_u8_s16(vmaxq_s16(as_words(a), as_words(b)));
}

static inline lanes min_i16(lanes a, lanes b) {
  return vreinterpretq_u8_s16(vminq_s16(as_words(a), as_words(b)));
}

static inline lanes accumulate_u8(lanes sums, lanes v) {
  return vreinterpretq_u8_u32(vpadalq_u16(as_u32(sums), vpaddlq_u8(v)));
}

static inline lanes accumulate_i16(lanes sums, lanes v) {
  return vreinterpretq_u8_u32(vpadalq_u16(as_u32(sums), vreinterpretq_u16_u8(v)));
}

static inline int64_t sum_lanes(lanes sums) { return (int64_t)vaddlvq_u32(as_u32(sums)); }

#endif

#define INLINE static inline __attribute__((always_inline))

typedef lanes choose(lanes a, lanes b);
typedef lanes add(lanes sums, lanes elements);

/* The operations for an element type; they are known where a function is inlined. */
typedef struct element_operations {
  choose *max, *min;
  add *add;
} element_operations;

/* A register's width of rows: the columns, as bytes, from offset `at` on. */
typedef struct stripe {
  const void *const *columns;
  int n_columns;
  size_t at; /* offset in each column, in bytes */
} stripe;

INLINE lanes load_column(const stripe *s, int c) {
  return load((const char *)s->columns[c] + s->at);
}

/* Finds the n largest of every row, in order. */
INLINE void keep_n_largest_sorted(const element_operations *k, const stripe *s, int n, lanes *top) {
  for (int place = 0; place < n; place++) top[place] = set_zero();
  for (int c = 0; c < s->n_columns; c++) {
    lanes sinking = load_column(s, c);
    for (int place = 0; place < n; place++) {
      lanes larger = k->max(top[place], sinking);
      sinking = k->min(top[place], sinking);
      top[place] = larger;
    }
  }
}

/* Returns the second largest of three: the larger of min(a, b) and min(max(a, b), c). */
INLINE lanes second_largest_of_three(const element_operations *k, const stripe *s) {
  lanes a = load_column(s, 0), b = load_column(s, 1), c = load_column(s, 2);
  return k->max(k->min(a, b), k->min(k->max(a, b), c));
}

INLINE void nth_largest_of_rows(const element_operations *k, const void *const *columns,
                                int n_columns, int n, size_t bytes, char *out) {
  lanes top[LACI_TOPN_MAX];
  stripe s = {columns, n_columns, 0};
  for (; s.at < bytes; s.at += sizeof(lanes)) {
    keep_n_largest_sorted(k, &s, n, top);
    store(out + s.at, top[n - 1]);
  }
}

INLINE void nth_largest_of_type(const element_operations *k, const void *const *columns,
                                int n_columns, int n, size_t bytes, char *out) {
  if (n == 2 && n_columns == 3) {
    stripe s = {columns, n_columns, 0};
    for (; s.at < bytes; s.at += sizeof(lanes)) store(out + s.at, second_largest_of_three(k, &s));
    return;
  }
  switch (n) {
    case 1: nth_largest_of_rows(k, columns, n_columns, 1, bytes, out); return;
    case 2: nth_largest_of_rows(k, columns, n_columns, 2, bytes, out); return;
    case 3: nth_largest_of_rows(k, columns, n_columns, 3, bytes, out); return;
    case 4: nth_largest_of_rows(k, columns, n_columns, 4, bytes, out); return;
    case 5: nth_largest_of_rows(k, columns, n_columns, 5, bytes, out); return;
    case 6: nth_largest_of_rows(k, columns, n_columns, 6, bytes, out); return;
    case 7: nth_largest_of_rows(k, columns, n_columns, 7, bytes, out); return;
    case 8: nth_largest_of_rows(k, columns, n_columns, 8, bytes, out); return;
    default: nth_largest_of_rows(k, columns, n_columns, n, bytes, out); return;
  }
}

/* Adds the two largest of four. Of two pairs, the largest is the larger winner; the second is
 * either the other winner or the loser of the first's pair. */
INLINE lanes add_two_largest_of_four(const element_operations *k, const stripe *s, lanes sums) {
  lanes a = load_column(s, 0), b = load_column(s, 1), c = load_column(s, 2), d = load_column(s, 3);
  lanes won_ab = k->max(a, b), won_cd = k->max(c, d), lost_ab = k->min(a, b),
        lost_cd = k->min(c, d);
  sums = k->add(sums, k->max(won_ab, won_cd));
  return k->add(sums, k->max(k->min(won_ab, won_cd), k->max(lost_ab, lost_cd)));
}

/* Each step adds at most twice 32767 for each of 64 places to a lane of 32 bits: after this many
 * steps, lanes are added to the total. */
enum { STEPS_AT_ONCE = 256 };

INLINE int64_t sum_n_largest_of_rows(const element_operations *k, const void *const *columns,
                                     int n_columns, int n, size_t bytes) {
  lanes top[LACI_TOPN_MAX];
  stripe s = {columns, n_columns, 0};
  int64_t total = 0;
  while (s.at < bytes) {
    lanes sums = set_zero();
    for (int i = 0; i < STEPS_AT_ONCE && s.at < bytes; i++, s.at += sizeof(lanes)) {
      if (n == 2 && n_columns == 4) {
        sums = add_two_largest_of_four(k, &s, sums);
        continue;
      }
      keep_n_largest_sorted(k, &s, n, top);
      for (int place = 0; place < n; place++) sums = k->add(sums, top[place]);
    }
    total += sum_lanes(sums);
  }
  return total;
}

INLINE int64_t sum_n_largest_of_type(const element_operations *k, const void *const *columns,
                                     int n_columns, int n, size_t bytes) {
  switch (n) {
    case 1: return sum_n_largest_of_rows(k, columns, n_columns, 1, bytes);
    case 2:
      return n_columns == 4 ? sum_n_largest_of_rows(k, columns, 4, 2, bytes)
                            : sum_n_largest_of_rows(k, columns, n_columns, 2, bytes);
    case 3: return sum_n_largest_of_rows(k, columns, n_columns, 3, bytes);
    case 4: return sum_n_largest_of_rows(k, columns, n_columns, 4, bytes);
    case 5: return sum_n_largest_of_rows(k, columns, n_columns, 5, bytes);
    case 6: return sum_n_largest_of_rows(k, columns, n_columns, 6, bytes);
    case 7: return sum_n_largest_of_rows(k, columns, n_columns, 7, bytes);
    case 8: return sum_n_largest_of_rows(k, columns, n_columns, 8, bytes);
    default: return sum_n_largest_of_rows(k, columns, n_columns, n, bytes);
  }
}

static const element_operations kind_u8 = {max_u8, min_u8, accumulate_u8},
                                kind_i16 = {max_i16, min_i16, accumulate_i16};

void LACI_VARIANT(laci_nth_largest)(laci_number number, const void *const *columns, int n_columns,
                                    int n, size_t rows, void *out) {
  if (number == LACI_U8) nth_largest_of_type(&kind_u8, columns, n_columns, n, rows, out);
  else nth_largest_of_type(&kind_i16, columns, n_columns, n, 2 * rows, out);
}

int64_t LACI_VARIANT(laci_sum_n_largest)(laci_number number, const void *const *columns,
                                         int n_columns, int n, size_t rows) {
  if (number == LACI_U8) return sum_n_largest_of_type(&kind_u8, columns, n_columns, n, rows);
  return sum_n_largest_of_type(&kind_i16, columns, n_columns, n, 2 * rows);
}

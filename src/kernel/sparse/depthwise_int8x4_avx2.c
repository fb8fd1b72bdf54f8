/* SPDX-License-Identifier: Apache-2.0
 * The variant of depthwise_int8x4.h for AVX2. One VPMADDWD sums two taps of a channel, as integers
 * of 16 bits: those of two rows of the window. */
#include <immintrin.h>

#include "kernel/sparse/depthwise_int8x4.h"

#define INLINE static inline __attribute__((always_inline))

enum { WORDS = 8, ROWS = 2 };
typedef __m256i vector;

INLINE vector load_words(const float *at) { return _mm256_loadu_si256((const void *)at); }

INLINE vector mask_of_lanes(uint32_t lanes) {
  const vector bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)lanes), bits), bits);
}

INLINE vector load_words_or_zeros(const float *at, int64_t n) {
  if (n >= WORDS) return load_words(at);
  return _mm256_maskload_epi32((const void *)at, mask_of_lanes(n > 0 ? (1U << n) - 1 : 0));
}

/* Stores the words of some lanes. Masked stores are slow on some processors (Zen 3). */
INLINE void store_words_of_lanes(float *to, uint32_t lanes, vector words) {
  if (lanes == UINT8_MAX) _mm256_storeu_si256((void *)to, words);
  else _mm256_maskstore_epi32((void *)to, mask_of_lanes(lanes), words);
}

INLINE vector broadcast_four_words(const void *words) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(words));
}

/* Loads the packed weights of the window's rows 2 * part and 2 * part + 1. */
INLINE vector load_weights(const int8_t *packed, int part) {
  const __m128i rows = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  const __m128i pairs = _mm_shuffle_epi8(_mm_loadu_si128((const void *)packed), rows);
  return _mm256_broadcastsi128_si256(
      _mm_cvtepi8_epi16(part == 0 ? pairs : _mm_unpackhi_epi64(pairs, pairs)));
}

INLINE void interleave_rows(const vector *row, vector *taps) {
  const vector none = _mm256_setzero_si256();
  const vector low = _mm256_unpacklo_epi8(row[0], row[1]);
  const vector high = _mm256_unpackhi_epi8(row[0], row[1]);
  taps[0] = _mm256_unpacklo_epi8(low, none);
  taps[1] = _mm256_unpackhi_epi8(low, none);
  taps[2] = _mm256_unpacklo_epi8(high, none);
  taps[3] = _mm256_unpackhi_epi8(high, none);
}

INLINE vector add_products(vector sums, vector taps, vector weights) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(taps, weights));
}

typedef struct byte_rule {
  __m256 scale, rest, most;
  vector zero, low;
} byte_rule;

INLINE byte_rule make_rounding_constants(const laci_sparse_quantized *q, int64_t channel) {
  return (byte_rule){.scale = _mm256_castsi256_ps(broadcast_four_words(q->scale + channel)),
                     .rest = q->rest ? _mm256_castsi256_ps(broadcast_four_words(q->rest + channel))
                                     : _mm256_setzero_ps(),
                     .most = _mm256_set1_ps((float)(q->high - q->zero)),
                     .zero = _mm256_set1_epi16((short)q->zero),
                     .low = _mm256_set1_epi8((char)q->low)};
}

INLINE vector round_to_integers(const byte_rule *rule, vector sums) {
  const __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), rule->scale, rule->rest);
  return _mm256_cvtps_epi32(_mm256_min_ps(rule->most, v));
}

enum { ORDER = 0xD8 }; /* quarters 0 2 1 3 */

INLINE vector pack_integers_to_bytes(const byte_rule *rule, const vector *sums, int stride) {
  vector low =
      _mm256_packs_epi32(round_to_integers(rule, sums[0]), round_to_integers(rule, sums[1]));
  vector high =
      _mm256_packs_epi32(round_to_integers(rule, sums[2]), round_to_integers(rule, sums[3]));
  low = _mm256_adds_epi16(low, rule->zero);
  high = _mm256_adds_epi16(high, rule->zero);
  const vector bytes = _mm256_max_epu8(_mm256_packus_epi16(low, high), rule->low);
  return stride == 2 ? _mm256_permute4x64_epi64(bytes, ORDER) : bytes;
}

INLINE void order_sums_by_channel(const vector *sums, int stride, vector *channels) {
  const vector low = _mm256_unpacklo_epi32(sums[0], sums[1]);
  const vector high = _mm256_unpackhi_epi32(sums[0], sums[1]);
  const vector next_low = _mm256_unpacklo_epi32(sums[2], sums[3]);
  const vector next_high = _mm256_unpackhi_epi32(sums[2], sums[3]);
  channels[0] = _mm256_unpacklo_epi64(low, next_low);
  channels[1] = _mm256_unpackhi_epi64(low, next_low);
  channels[2] = _mm256_unpacklo_epi64(high, next_high);
  channels[3] = _mm256_unpackhi_epi64(high, next_high);
  for (int c = 0; c < 4 && stride == 2; c++)
    channels[c] = _mm256_permute4x64_epi64(channels[c], ORDER);
}

#define VARIANT_RUN laci_depthwise_int8x4_avx2
#include "kernel/sparse/depthwise_int8x4_text.def"

/* SPDX-License-Identifier: Apache-2.0
 * The variant of depthwise_int8x4.h for AVX-512 with VNNI. One VPDPBUSD sums four taps of a
 * channel: those of four rows of the window. */
#include <immintrin.h>

#include "kernel/sparse/depthwise_int8x4.h"

#define INLINE static inline __attribute__((always_inline))

enum { WORDS = 16, ROWS = 4 };
typedef __m512i vector;

INLINE vector load_words(const float *at) { return _mm512_loadu_si512(at); }

INLINE vector load_words_or_zeros(const float *at, int64_t n) {
  const uint32_t mask = n >= WORDS ? UINT16_MAX : n > 0 ? (1U << n) - 1 : 0;
  return _mm512_maskz_loadu_epi32((__mmask16)mask, at);
}

INLINE void store_words_of_lanes(float *to, uint32_t lanes, vector words) {
  _mm512_mask_storeu_epi32(to, (__mmask16)lanes, words);
}

INLINE vector broadcast_four_words(const void *words) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(words));
}

INLINE vector load_weights(const int8_t *packed, int part) {
  (void)part;
  return broadcast_four_words(packed);
}

INLINE void interleave_rows(const vector *row, vector *taps) {
  const vector low = _mm512_unpacklo_epi8(row[0], row[1]);
  const vector high = _mm512_unpackhi_epi8(row[0], row[1]);
  const vector next_low = _mm512_unpacklo_epi8(row[2], row[3]);
  const vector next_high = _mm512_unpackhi_epi8(row[2], row[3]);
  taps[0] = _mm512_unpacklo_epi16(low, next_low);
  taps[1] = _mm512_unpackhi_epi16(low, next_low);
  taps[2] = _mm512_unpacklo_epi16(high, next_high);
  taps[3] = _mm512_unpackhi_epi16(high, next_high);
}

INLINE vector add_products(vector sums, vector taps, vector weights) {
  return _mm512_dpbusd_epi32(sums, taps, weights);
}

typedef struct byte_rule {
  __m512 scale, rest, most;
  vector zero, low;
} byte_rule;

INLINE byte_rule make_rounding_constants(const laci_sparse_quantized *q, int64_t channel) {
  return (byte_rule){.scale = _mm512_castsi512_ps(broadcast_four_words(q->scale + channel)),
                     .rest = q->rest ? _mm512_castsi512_ps(broadcast_four_words(q->rest + channel))
                                     : _mm512_setzero_ps(),
                     .most = _mm512_set1_ps((float)(q->high - q->zero)),
                     .zero = _mm512_set1_epi16((short)q->zero),
                     .low = _mm512_set1_epi8((char)q->low)};
}

INLINE vector round_to_integers(const byte_rule *rule, vector sums) {
  const __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), rule->scale, rule->rest);
  return _mm512_cvtps_epi32(_mm512_min_ps(rule->most, v));
}

INLINE vector pack_integers_to_bytes(const byte_rule *rule, const vector *sums, int stride) {
  const vector order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  vector low =
      _mm512_packs_epi32(round_to_integers(rule, sums[0]), round_to_integers(rule, sums[1]));
  vector high =
      _mm512_packs_epi32(round_to_integers(rule, sums[2]), round_to_integers(rule, sums[3]));
  low = _mm512_adds_epi16(low, rule->zero);
  high = _mm512_adds_epi16(high, rule->zero);
  const vector bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), rule->low);
  return stride == 2 ? _mm512_permutexvar_epi64(order, bytes) : bytes;
}

INLINE void order_sums_by_channel(const vector *sums, int stride, vector *channels) {
  const vector order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const vector low = _mm512_unpacklo_epi32(sums[0], sums[1]);
  const vector high = _mm512_unpackhi_epi32(sums[0], sums[1]);
  const vector next_low = _mm512_unpacklo_epi32(sums[2], sums[3]);
  const vector next_high = _mm512_unpackhi_epi32(sums[2], sums[3]);
  channels[0] = _mm512_unpacklo_epi64(low, next_low);
  channels[1] = _mm512_unpackhi_epi64(low, next_low);
  channels[2] = _mm512_unpacklo_epi64(high, next_high);
  channels[3] = _mm512_unpackhi_epi64(high, next_high);
  for (int c = 0; c < 4 && stride == 2; c++)
    channels[c] = _mm512_permutexvar_epi64(order, channels[c]);
}

#define VARIANT_RUN laci_depthwise_int8x4_avx512
#include "kernel/sparse/depthwise_int8x4_text.def"

/* SPDX-License-Identifier: Apache-2.0
 * resize.h with vectors. One instruction multiplies 16-bit numbers and adds two neighbouring
 * products. So weights are divided into halves of 11 bits, taps are processed in pairs, and the
 * sums of both halves are joined at the end. All is exact: 22 bits of weight and 8 of pixel make
 * 30.
 *
 * For the horizontal resize, a vector is two rows with four sums each: a pixel's three colours, and
 * one sum that is not used. */
#include <stdbool.h>
#include <string.h>

#include "kernel/image/resize_in.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* ---- Horizontal ---- */

/** Loads sixteen bytes of each row. */
static inline __m256i load_two_rows(const uint8_t *a, const uint8_t *b) {
  __m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const void *)a));
  return _mm256_inserti128_si256(low, _mm_loadu_si128((const void *)b), 1);
}

/** Returns pixels n and n + 1 of both rows in 16 bits, each colour of pixel n next to that of pixel
 * n + 1. */
static inline __m256i unpack_pixels(__m256i bytes, int n) {
  const char z = -1, at = (char)(3 * n);
  const __m128i order = _mm_setr_epi8(at, z, (char)(at + 3), z, (char)(at + 1), z, (char)(at + 4),
                                      z, (char)(at + 2), z, (char)(at + 5), z, z, z, z, z);
  return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
}

typedef struct wide_sums {
  __m256i high, low;
} wide_sums;

static inline wide_sums add_weighted_pixels(wide_sums s, __m256i pixels,
                                            const laci_tap_pair *pair) {
  __m256i high = _mm256_madd_epi16(pixels, _mm256_set1_epi32((int)pair->high));
  __m256i low = _mm256_madd_epi16(pixels, _mm256_set1_epi32((int)pair->low));
  return (wide_sums){_mm256_add_epi32(s.high, high), _mm256_add_epi32(s.low, low)};
}

static inline __m256i join_halves_of_weighted_sums(wide_sums s) {
  __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(s.high, LACI_TAP_LOW_BITS), s.low);
  return _mm256_srli_epi32(sum, LACI_TAP_BITS);
}

static inline void store_pixels(__m256i sum, uint8_t *a, uint8_t *b) {
  __m256i words = _mm256_packus_epi32(sum, sum);
  __m256i bytes = _mm256_packus_epi16(words, words);
  int first = _mm256_extract_epi32(bytes, 0), second = _mm256_extract_epi32(bytes, 4);
  memcpy(a, &first, 3);
  memcpy(b, &second, 3);
}

static void resize_two_rows(const laci_tap_span *spans, int n_spans, const uint8_t *const from[2],
                            uint8_t *const to[2]) {
  for (int k = 0; k < n_spans; k++) {
    const laci_tap_span *span = &spans[k];
    const laci_tap_pair *pair = span->pairs;
    size_t at = (size_t)span->first * 3;
    wide_sums s = {_mm256_setzero_si256(), _mm256_set1_epi32(LACI_TAP_HALF)};
    for (int x = 0; x < span->count; x += LACI_TAP_GROUP, at += (size_t)LACI_TAP_GROUP * 3) {
      __m256i bytes = load_two_rows(from[0] + at, from[1] + at);
      s = add_weighted_pixels(s, unpack_pixels(bytes, 0), pair++);
      s = add_weighted_pixels(s, unpack_pixels(bytes, 2), pair++);
    }
    store_pixels(join_halves_of_weighted_sums(s), to[0] + (size_t)k * 3, to[1] + (size_t)k * 3);
  }
}

/** Resizes two rows at a time; if the last row has no neighbour, it is computed twice. */
static void resize_horizontally(const laci_tap_span *spans, int n_spans,
                                const laci_resize_rows *rows) {
  for (int y = 0; y < rows->n; y += 2) {
    size_t first = (size_t)y, second = y + 1 < rows->n ? first + 1 : first;
    const uint8_t *const from[2] = {rows->from + first * rows->from_stride,
                                    rows->from + second * rows->from_stride};
    uint8_t *const to[2] = {rows->to + first * rows->to_stride,
                            rows->to + second * rows->to_stride};
    resize_two_rows(spans, n_spans, from, to);
  }
}

/* ---- Vertical ---- */

typedef struct sums {
  __m128i high, low;
} sums;

static inline sums add_weighted_row_pair(sums s, __m128i bytes, laci_tap_pair pair) {
  s.high = _mm_add_epi32(s.high, _mm_madd_epi16(bytes, _mm_set1_epi32((int)pair.high)));
  s.low = _mm_add_epi32(s.low, _mm_madd_epi16(bytes, _mm_set1_epi32((int)pair.low)));
  return s;
}

static inline __m128i join_halves_of_row_sums(sums s) {
  __m128i sum = _mm_add_epi32(_mm_slli_epi32(s.high, LACI_TAP_LOW_BITS), s.low);
  return _mm_srli_epi32(sum, LACI_TAP_BITS);
}

enum { WIDE = 16 }; /* number of bytes of a row that are added at a time */

/** Adds two rows, 16 bytes of each. If there is no second row, `second` has weight 0. */
static inline void add_two_weighted_rows(sums s[4], const uint8_t *first, const uint8_t *second,
                                         laci_tap_pair pair) {
  __m128i a = _mm_loadu_si128((const void *)first), b = _mm_loadu_si128((const void *)second);
  __m128i zero = _mm_setzero_si128();
  __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
  s[0] = add_weighted_row_pair(s[0], _mm_unpacklo_epi8(low, zero), pair);
  s[1] = add_weighted_row_pair(s[1], _mm_unpackhi_epi8(low, zero), pair);
  s[2] = add_weighted_row_pair(s[2], _mm_unpacklo_epi8(high, zero), pair);
  s[3] = add_weighted_row_pair(s[3], _mm_unpackhi_epi8(high, zero), pair);
}

static void resize_vertically(laci_tap_span span, const uint8_t *rows, size_t stride, uint8_t *to) {
  const uint8_t *top = rows + (size_t)span.first * stride;
  size_t x = 0;
  for (; x + WIDE <= stride; x += WIDE) {
    sums s[4];
    for (int k = 0; k < 4; k++) s[k] = (sums){_mm_setzero_si128(), _mm_set1_epi32(LACI_TAP_HALF)};
    for (int y = 0; y < span.count; y += 2) {
      bool both = y + 1 < span.count;
      const uint8_t *row = top + (size_t)y * stride + x;
      add_two_weighted_rows(s, row, row + (both ? stride : 0), span.pairs[y / 2]);
    }
    __m128i words = _mm_packus_epi32(join_halves_of_row_sums(s[0]), join_halves_of_row_sums(s[1]));
    __m128i more = _mm_packus_epi32(join_halves_of_row_sums(s[2]), join_halves_of_row_sums(s[3]));
    _mm_storeu_si128((void *)(to + x), _mm_packus_epi16(words, more));
  }
  laci_image_resize_vertical_plain(span, rows, stride, x, to);
}

/* ---- Scale ---- */

enum { PIXELS = 8 };

/** Returns one channel of eight pixels, whose bytes are 0 to 15 in `first` and 8 to 23 in
 * `second`. */
static inline __m256 unpack_channel(__m128i first, __m128i second, int c) {
  char from_first[16], from_second[16];
  for (int k = 0; k < 16; k++) {
    const int at = 3 * k + c;
    from_first[k] = (char)(k < PIXELS && at < 16 ? at : -1);
    from_second[k] = (char)(k < PIXELS && at >= 16 ? at - 8 : -1);
  }
  __m128i a = _mm_shuffle_epi8(first, _mm_loadu_si128((const void *)from_first));
  __m128i b = _mm_shuffle_epi8(second, _mm_loadu_si128((const void *)from_second));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_or_si128(a, b)));
}

static inline __m256 reverse_lanes(__m256 values) {
  return _mm256_permutevar8x32_ps(values, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

static inline void normalize_channel_of_pixels(const laci_image_scale *how, __m256 grey, int c,
                                               float *to) {
  __m256 value =
      _mm256_div_ps(_mm256_sub_ps(grey, _mm256_set1_ps(how->mean[c])), _mm256_set1_ps(how->std[c]));
  _mm256_storeu_ps(to, how->mirrored ? reverse_lanes(value) : value);
}

static void convert_row_to_floats(const laci_image_scale *how, const uint8_t *row, size_t width,
                                  float *to, size_t channel_stride) {
  size_t x = 0;
  for (; x + PIXELS <= width; x += PIXELS) {
    __m128i first = _mm_loadu_si128((const void *)(row + x * 3));
    __m128i second = _mm_loadu_si128((const void *)(row + x * 3 + 8));
    float *at = to + (how->mirrored ? width - PIXELS - x : x);
    normalize_channel_of_pixels(how, unpack_channel(first, second, 0), 0, at);
    if (how->n_channels == 1) continue;
    normalize_channel_of_pixels(how, unpack_channel(first, second, 1), 1, at + channel_stride);
    normalize_channel_of_pixels(how, unpack_channel(first, second, 2), 2, at + 2 * channel_stride);
  }
  laci_image_resize_scale_plain(how, row, width, x, to, channel_stride);
}

#else

static void resize_horizontally(const laci_tap_span *spans, int n_spans,
                                const laci_resize_rows *rows) {
  laci_image_resize_horizontal_plain(spans, n_spans, rows);
}

static void resize_vertically(laci_tap_span span, const uint8_t *rows, size_t stride, uint8_t *to) {
  laci_image_resize_vertical_plain(span, rows, stride, 0, to);
}

static void convert_row_to_floats(const laci_image_scale *how, const uint8_t *row, size_t width,
                                  float *to, size_t channel_stride) {
  laci_image_resize_scale_plain(how, row, width, 0, to, channel_stride);
}

#endif

const laci_image_resize LACI_VARIANT(laci_image_resize) = {resize_horizontally, resize_vertically,
                                                           convert_row_to_floats};

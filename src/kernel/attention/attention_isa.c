/* SPDX-License-Identifier: Apache-2.0
 * attention.h for every instruction set: the build compiles this once for each (variants.h).
 *
 * Keys and values are packed once per head into panels: a panel has COLUMNS columns of the result
 * next to each other, for one `unit` of the inner axis after the other. A unit is one float, or
 * (AVX512-BF16) two bf16 that one instruction multiplies and adds. Then ROWS queries are computed
 * at a time: scores, their exponentials relative to the row's largest score, and the sum over the
 * values, divided at the end:
 *
 *     queries [ROWS, depth] x keys -> scores [ROWS, n_keys] -> exp -> x values -> / sum -> y */
#include <math.h>
#include <string.h>

#include "kernel/attention/attention.h"
#include "tensor/bf16.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16, ROWS = 6, VECTORS = 4 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8, ROWS = 6, VECTORS = 2 };
#else
enum { LANES = 4, ROWS = 4, VECTORS = 2 };
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
enum { COLUMNS = LANES * VECTORS };

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))
#define LOAD(to, from) memcpy(&(to), (from), sizeof(lanes))
#define STORE(to, from) memcpy((to), &(from), sizeof(lanes))

/* Returns sum + a * b, rounded once where the processor can. */
INLINE lanes multiply_add(lanes a, lanes b, lanes sum) {
#if defined(__AVX512F__)
  return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
  return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
  return (lanes)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  return sum + a * b;
#endif
}

INLINE lanes blend_by_mask(ints mask, lanes yes, lanes no) {
  return (lanes)(((ints)yes & mask) | ((ints)no & ~mask));
}

/* ---- Elements and units ---- */

#if defined(__AVX512BF16__)
typedef uint32_t unit;
enum { PER_UNIT = 2 };

INLINE unit pack_bf16_pair(uint16_t first, uint16_t second) {
  return first | ((uint32_t)second << 16);
}
/* Load unit u (bf16 elements 2u and 2u + 1 of the inner axis) of a row, or of a column of a matrix;
 * elements from n on are zero. */
INLINE unit load_unit_from_row(const laci_attention *a, const void *row, int64_t u, int64_t n) {
  const uint16_t *x = (const uint16_t *)row + 2 * u;
  (void)a;
  return pack_bf16_pair(x[0], 2 * u + 1 < n ? x[1] : 0);
}
INLINE unit load_unit_from_column(const laci_attention *a, const void *rows, int64_t stride,
                                  int64_t u, int64_t n) {
  const uint16_t *x = (const uint16_t *)rows + 2 * u * stride;
  (void)a;
  return pack_bf16_pair(x[0], 2 * u + 1 < n ? x[stride] : 0);
}
INLINE lanes multiply_add_unit(const unit *x, lanes b, lanes sum) {
  __m512i every = _mm512_set1_epi32((int)*x);
  return (lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)every, (__m512bh)b);
}
#else
typedef float unit;
enum { PER_UNIT = 1 };

INLINE float load_element_as_float(const laci_attention *a, const void *from, int64_t at) {
  return a->bf16 ? laci_bf16_value(((const uint16_t *)from)[at]) : ((const float *)from)[at];
}
INLINE unit load_unit_from_row(const laci_attention *a, const void *row, int64_t u, int64_t n) {
  (void)n;
  return load_element_as_float(a, row, u);
}
INLINE unit load_unit_from_column(const laci_attention *a, const void *rows, int64_t stride,
                                  int64_t u, int64_t n) {
  (void)n;
  return load_element_as_float(a, rows, u * stride);
}
/* *x - 0 is *x for every float, so that it is a load. 0 + *x would be computed, since 0 + -0 is
 * +0. */
INLINE lanes multiply_add_unit(const unit *x, lanes b, lanes sum) {
  return multiply_add(*x - (lanes){0}, b, sum);
}
#endif

INLINE int64_t count_units(int64_t n) { return (n + PER_UNIT - 1) / PER_UNIT; }
INLINE int64_t count_panels(int64_t n) { return (n + COLUMNS - 1) / COLUMNS; }

INLINE const void *address_of_element(const laci_attention *a, const void *from, int64_t elements) {
  return (const char *)from + elements * (int64_t)(a->bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* ---- Packing ---- */

/* Packs the keys as columns into panels: [panel][unit of depth][COLUMNS], with zeros after the last
 * key. */
static void pack_keys(const laci_attention *a, const void *k, unit *to) {
  int64_t n_units = count_units(a->depth);
  for (int64_t first = 0; first < a->n_keys; first += COLUMNS, to += n_units * COLUMNS) {
    for (int64_t c = 0; c < COLUMNS; c++) {
      const void *row = address_of_element(a, k, (first + c) * a->k_row);
      bool there = first + c < a->n_keys;
      for (int64_t u = 0; u < n_units; u++) {
        to[u * COLUMNS + c] = there ? load_unit_from_row(a, row, u, a->depth) : 0;
      }
    }
  }
}

/* Packs the values into panels: [panel][unit of keys][COLUMNS], with zeros after the last
 * column. */
static void pack_values(const laci_attention *a, const void *v, unit *to) {
  int64_t n_units = count_units(a->n_keys);
  for (int64_t first = 0; first < a->width; first += COLUMNS) {
    int64_t n = a->width - first < COLUMNS ? a->width - first : COLUMNS;
    for (int64_t u = 0; u < n_units; u++, to += COLUMNS) {
      for (int64_t c = 0; c < n; c++) {
        to[c] =
            load_unit_from_column(a, address_of_element(a, v, first + c), a->v_row, u, a->n_keys);
      }
      for (int64_t c = n; c < COLUMNS; c++) to[c] = 0;
    }
  }
}

/* Packs n queries; rows from n to ROWS are zeros. */
static void pack_queries(const laci_attention *a, const void *q, int64_t n, unit *to) {
  int64_t n_units = count_units(a->depth);
  for (int64_t r = 0; r < ROWS; r++) {
    const void *row = address_of_element(a, q, r * a->q_row);
    for (int64_t u = 0; u < n_units; u++) {
      to[r * n_units + u] = r < n ? load_unit_from_row(a, row, u, a->depth) : 0;
    }
  }
}

/* ---- Products ---- */

/* Multiplies ROWS rows by a panel (packed columns), both in units of the inner axis. out:
 * [ROWS][COLUMNS] the products. */
static void multiply_rows_by_panel(const unit *rows, int64_t stride, const unit *panel,
                                   int64_t n_units, float out[ROWS * COLUMNS]) {
  lanes sum[ROWS][VECTORS] = {0};
  for (int64_t u = 0; u < n_units; u++, panel += COLUMNS) {
    lanes b[VECTORS];
    for (int v = 0; v < VECTORS; v++) LOAD(b[v], panel + v * LANES);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) {
        sum[r][v] = multiply_add_unit(rows + r * stride + u, b[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) STORE(out + r * COLUMNS + v * LANES, sum[r][v]);
  }
}

/* ---- Softmax ---- */

/* Returns 2^t for t <= 0, to a few ulps: t = whole + part, |part| <= 1/2; a polynomial of the part
 * is scaled by adding the whole to the exponent. Below 2^-126 it is 0. NaN stays. */
INLINE lanes power_of_two(lanes t) {
  const float magic = 12582912.0F; /* 1.5 * 2^23: its last bit has the value 1 */
  lanes shifted = t + magic, part = t - (shifted - magic);
  words whole = (words)shifted - (words)((lanes){0} + magic); /* it wraps around where t is below
                                                                 -126 */
  lanes p = (lanes){0} + 1.5403530e-4F;
  static const float factors[] = {1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F,
                                  2.4022651e-1F, 6.9314718e-1F, 1.0F};
  for (int at = 0; at < 6; at++) p = multiply_add(p, part, (lanes){0} + factors[at]);
  lanes power = (lanes)((words)p + (whole << 23));
  power = blend_by_mask(t < -126.0F, (lanes){0}, power);
  return blend_by_mask(t != t, t, power); /* otherwise the bits of a NaN would be in the exponent */
}

/* Replaces products by scale * product + mask, for one row, with -inf after the last key. */
static void scale_and_mask_scores(const laci_attention *a, const float *mask, float *s,
                                  int64_t capacity) {
  for (int64_t j = 0; j < a->n_keys; j++) s[j] *= a->scale;
  if (mask && a->mask_column == 1) {
    for (int64_t j = 0; j < a->n_keys; j++) s[j] += mask[j];
  } else if (mask) {
    for (int64_t j = 0; j < a->n_keys; j++) s[j] += mask[j * a->mask_column];
  }
  for (int64_t j = a->n_keys; j < capacity; j++) s[j] = -INFINITY;
}

/* Replaces s by exp(s - max s) and returns the sum; NaN if every key is masked. */
static float exponentiate_scores(float *s, int64_t capacity) {
  const float log2_e = 1.44269504F;
  lanes x, most = (lanes){0} - INFINITY, sum = {0};
  for (int64_t j = 0; j < capacity; j += LANES) {
    LOAD(x, s + j);
    most = blend_by_mask(x > most, x, most);
  }
  float top = -INFINITY, total = 0;
  for (int l = 0; l < LANES; l++) top = most[l] > top ? most[l] : top;
  if (top == -INFINITY) return NAN;
  for (int64_t j = 0; j < capacity; j += LANES) {
    LOAD(x, s + j);
    x = power_of_two((x - top) * log2_e);
    sum += x;
    STORE(s + j, x);
  }
  for (int l = 0; l < LANES; l++) total += sum[l];
  return total;
}

/* ---- One head ---- */

static void write_scaled_row(const laci_attention *a, const float *from, float factor, int64_t n,
                             void *to) {
  if (a->bf16) {
    for (int64_t c = 0; c < n; c++) ((uint16_t *)to)[c] = laci_bf16_round(from[c] * factor);
  } else {
    for (int64_t c = 0; c < n; c++) ((float *)to)[c] = from[c] * factor;
  }
}

typedef struct scratch_areas {
  unit *keys, *values, *queries, *weights; /* weights: the exponentials as units */
  float *scores;                           /* [ROWS, n_scores] scores, then their exponentials */
  int64_t n_scores;
} scratch_areas;

static scratch_areas divide_scratch_into_areas(const laci_attention *a, void *scratch) {
  scratch_areas m = {.n_scores = count_panels(a->n_keys) * COLUMNS};
  m.keys = scratch;
  m.values = m.keys + count_panels(a->n_keys) * COLUMNS * count_units(a->depth);
  m.scores = (float *)(m.values + count_panels(a->width) * COLUMNS * count_units(a->n_keys));
  m.queries = (unit *)(m.scores + ROWS * m.n_scores);
  m.weights = m.queries + ROWS * count_units(a->depth);
  return m;
}

/* Converts the exponentials to units, the operand of the second product; returns the stride of a
 * row. */
static int64_t pack_exponentials(const laci_attention *a, scratch_areas *m) {
#if defined(__AVX512BF16__)
  int64_t n_units = count_units(a->n_keys);
  for (int64_t r = 0; r < ROWS; r++) {
    const float *s = m->scores + r * m->n_scores;
    unit *to = m->weights + r * n_units;
    for (int64_t u = 0; u < n_units; u += LANES) { /* both arrays extend to whole vectors */
      __m512 low = _mm512_loadu_ps(s + 2 * u);
      __m512 high = 2 * u + LANES < m->n_scores ? _mm512_loadu_ps(s + 2 * u + LANES) : low;
      __m512i pairs = (__m512i)_mm512_cvtne2ps_pbh(high, low);
      int64_t left = n_units - u;
      _mm512_mask_storeu_epi32(to + u, (__mmask16)(left < LANES ? (1U << left) - 1 : 0xFFFFU),
                               pairs);
    }
  }
  return n_units;
#else
  (void)a;
  m->weights = m->scores;
  return m->n_scores;
#endif
}

/* Computes n <= ROWS queries from `row` on; false: a row has become NaN. */
static bool attend_query_rows(const laci_attention *a, const laci_attention_head *head,
                              scratch_areas *m, int64_t row, int64_t n) {
  float block[ROWS * COLUMNS], sums[ROWS];
  bool numbers = true;
  int64_t depth_units = count_units(a->depth), key_units = count_units(a->n_keys);
  pack_queries(a, address_of_element(a, head->q, row * a->q_row), n, m->queries);
  for (int64_t panel = 0; panel < count_panels(a->n_keys); panel++) {
    multiply_rows_by_panel(m->queries, depth_units, m->keys + panel * depth_units * COLUMNS,
                           depth_units, block);
    for (int64_t r = 0; r < ROWS; r++) {
      memcpy(m->scores + r * m->n_scores + panel * COLUMNS, block + r * COLUMNS,
             COLUMNS * sizeof *block);
    }
  }
  for (int64_t r = 0; r < n; r++) {
    const float *mask = head->mask ? head->mask + (row + r) * a->mask_row : NULL;
    scale_and_mask_scores(a, mask, m->scores + r * m->n_scores, m->n_scores);
    sums[r] = exponentiate_scores(m->scores + r * m->n_scores, m->n_scores);
    numbers = numbers && (sums[r] == sums[r] || a->zero_nan);
  }
  int64_t stride = pack_exponentials(a, m);
  for (int64_t first = 0; first < a->width; first += COLUMNS) {
    int64_t columns = a->width - first < COLUMNS ? a->width - first : COLUMNS;
    multiply_rows_by_panel(m->weights, stride, m->values + first * key_units, key_units, block);
    for (int64_t r = 0; r < n; r++) {
      bool masked = sums[r] != sums[r] && a->zero_nan;
      if (masked) memset(block + r * COLUMNS, 0, COLUMNS * sizeof *block);
      void *to = (char *)head->y + ((row + r) * a->y_row + first) * (a->bf16 ? 2 : 4);
      write_scaled_row(a, block + r * COLUMNS, masked ? 0 : 1 / sums[r], columns, to);
    }
  }
  return numbers;
}

bool LACI_VARIANT(laci_attend)(const laci_attention *a, const laci_attention_head *head) {
  scratch_areas m = divide_scratch_into_areas(a, head->scratch);
  pack_keys(a, head->k, m.keys);
  pack_values(a, head->v, m.values);
  bool numbers = true;
  for (int64_t row = 0; row < a->n_queries; row += ROWS) {
    scratch_areas now = m; /* a copy, since pack_exponentials may change one of its pointers */
    int64_t left = a->n_queries - row;
    numbers = attend_query_rows(a, head, &now, row, left < ROWS ? left : ROWS) && numbers;
  }
  return numbers;
}

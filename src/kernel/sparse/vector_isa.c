/* SPDX-License-Identifier: Apache-2.0
 * The kernel of vector.h (a sparse matrix times a few vectors), compiled for every instruction set
 * except plain C.
 *
 * It processes 64 columns at a time. For each stream of rows, it reads a word of bits and the kept
 * weights. It expands the weights to their columns, with zeros between them, and multiplies them
 * with x as stored. AVX-512 has an instruction that expands. Other instruction sets look up the
 * position of each lane's weight in a table, by the bits of four or eight columns. */
#include <stdbool.h>
#include <string.h>

#include "kernel/sparse/vector.h"
#include "kernel/variants.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- Vectors of the instruction set: W lanes of 32 bits ---- The functions spread_* expand
 * weights to W lanes. They get a mask of the W columns, and the address of the first kept
 * weight. */

#if defined(__AVX512F__)
#include <immintrin.h>
enum { W = 16, SUMS_AT_ONCE = 16 };
typedef __m512i lanes;

/* Returns zeros that the compiler does not know to be zeros. On some processors (Zen 4) an
 * expanding instruction waits for the register that it writes, and so for the instruction before
 * it. With a copy of these zeros as its target, it does not have to wait. */
INLINE lanes zeros_unknown_to_compiler(void) {
  lanes all = _mm512_setzero_si512();
  __asm__("" : "+v"(all));
  return all;
}

INLINE lanes add_product(lanes w, lanes x, lanes sum) {
  return _mm512_castps_si512(
      _mm512_fmadd_ps(_mm512_castsi512_ps(w), _mm512_castsi512_ps(x), _mm512_castsi512_ps(sum)));
}
INLINE lanes expand_f32(uint32_t bits, const uint8_t *at) {
  return _mm512_mask_expand_epi32(zeros_unknown_to_compiler(), (__mmask16)bits,
                                  _mm512_loadu_si512(at));
}
#if defined(__AVX512VBMI2__)
/* Expands 16-bit words, which are bf16, directly into the upper halves of lanes. */
INLINE lanes expand_bf16(uint32_t bits, const uint8_t *at) {
  const __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)at);
  return _mm512_mask_expand_epi16(zeros_unknown_to_compiler(), _pdep_u32(bits, 0xAAAAAAAA),
                                  _mm512_castsi256_si512(words));
}
#else
INLINE lanes expand_bf16(uint32_t bits, const uint8_t *at) {
  const lanes wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
  return _mm512_mask_expand_epi32(zeros_unknown_to_compiler(), (__mmask16)bits,
                                  _mm512_slli_epi32(wide, 16));
}
#endif
#if !defined(__AVX512VBMI2__)
INLINE lanes add_product_s8(lanes w, lanes x, lanes sum) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(w, x));
}
INLINE lanes expand_s8(uint32_t bits, const uint8_t *at) {
  const lanes wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
  return _mm512_mask_expand_epi32(zeros_unknown_to_compiler(), (__mmask16)bits, wide);
}
INLINE lanes widen_u8(const uint8_t *at) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
}
#endif

#elif defined(__AVX2__)
#include <immintrin.h>
enum { W = 8, SUMS_AT_ONCE = 4 };
typedef __m256i lanes;

/* Entry `bits` of the table has a byte for each bit i: the number of bits set below it. If bit i is
 * not set, the byte is more than 127. */
#define LANE(bits, i) \
  ((bits) >> (i)&1 ? (uint64_t)__builtin_popcount((bits) & ((1U << (i)) - 1)) : 128U) << 8 * (i)
#define ENTRY(bits)                                                                                \
  (LANE(bits, 0) | LANE(bits, 1) | LANE(bits, 2) | LANE(bits, 3) | LANE(bits, 4) | LANE(bits, 5) | \
   LANE(bits, 6) | LANE(bits, 7))
#define ENTRIES_4(bits) ENTRY(bits), ENTRY((bits) + 1U), ENTRY((bits) + 2U), ENTRY((bits) + 3U)
#define ENTRIES_16(bits) \
  ENTRIES_4(bits), ENTRIES_4((bits) + 4U), ENTRIES_4((bits) + 8U), ENTRIES_4((bits) + 12U)
#define ENTRIES_64(bits) \
  ENTRIES_16(bits), ENTRIES_16((bits) + 16U), ENTRIES_16((bits) + 32U), ENTRIES_16((bits) + 48U)
static const uint64_t places[256] = {ENTRIES_64(0U), ENTRIES_64(64U), ENTRIES_64(128U),
                                     ENTRIES_64(192U)};

INLINE lanes expand_by_permutation(uint32_t bits, lanes from) {
  const lanes to =
      _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&places[bits]));
  return _mm256_andnot_si256(_mm256_srai_epi32(to, 31), _mm256_permutevar8x32_epi32(from, to));
}
/* If every four columns have two weights, eight columns have four. These are loaded into both
 * halves of a vector; then one shuffle of bytes expands them and sets zeros. Entry `bits` of the
 * table is the operand of that shuffle. For each lane it has the indices of its weight's four
 * bytes; 0x80 gives zeros. */
#define BEFORE(bits, i) \
  ((uint32_t)__builtin_popcount((bits) & ((1U << (i)) - (1U << (i) / 4 * 4))) + (i) / 4 * 2)
#define WORD(bits, i) ((bits) >> (i)&1 ? 0x03020100U + 0x04040404U * BEFORE(bits, i) : 0x80808080U)
/* The same table for bf16: the indices of the two bytes of a weight, which become the upper half of
 * a lane. */
#define HALF(bits, i) ((bits) >> (i)&1 ? 0x01008080U + 0x02020000U * BEFORE(bits, i) : 0x80808080U)
#define EIGHT(of, bits)                                                                        \
  {                                                                                            \
    of(bits, 0), of(bits, 1), of(bits, 2), of(bits, 3), of(bits, 4), of(bits, 5), of(bits, 6), \
        of(bits, 7)                                                                            \
  }
#define EIGHTS_4(of, bits) \
  EIGHT(of, bits), EIGHT(of, (bits) + 1U), EIGHT(of, (bits) + 2U), EIGHT(of, (bits) + 3U)
#define EIGHTS_16(of, bits)                                                 \
  EIGHTS_4(of, bits), EIGHTS_4(of, (bits) + 4U), EIGHTS_4(of, (bits) + 8U), \
      EIGHTS_4(of, (bits) + 12U)
#define EIGHTS_64(of, bits)                                                      \
  EIGHTS_16(of, bits), EIGHTS_16(of, (bits) + 16U), EIGHTS_16(of, (bits) + 32U), \
      EIGHTS_16(of, (bits) + 48U)
#define EIGHTS(of) EIGHTS_64(of, 0U), EIGHTS_64(of, 64U), EIGHTS_64(of, 128U), EIGHTS_64(of, 192U)
static const uint32_t words_of_two[256][8] = {EIGHTS(WORD)}, halves_of_two[256][8] = {EIGHTS(HALF)};

INLINE lanes expand_f32_pairs(uint32_t bits, const uint8_t *at) {
  const lanes four = _mm256_castps_si256(_mm256_broadcast_ps((const __m128 *)(const void *)at));
  return _mm256_shuffle_epi8(four, _mm256_loadu_si256((const lanes *)words_of_two[bits]));
}
INLINE lanes expand_bf16_pairs(uint32_t bits, const uint8_t *at) {
  uint64_t four;
  memcpy(&four, at, sizeof four);
  return _mm256_shuffle_epi8(_mm256_set1_epi64x((int64_t)four),
                             _mm256_loadu_si256((const lanes *)halves_of_two[bits]));
}
#define SPREADS_TWO

INLINE lanes add_product(lanes w, lanes x, lanes sum) {
  return _mm256_castps_si256(
      _mm256_fmadd_ps(_mm256_castsi256_ps(w), _mm256_castsi256_ps(x), _mm256_castsi256_ps(sum)));
}
INLINE lanes add_product_s8(lanes w, lanes x, lanes sum) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
}
INLINE lanes expand_f32(uint32_t bits, const uint8_t *at) {
  return expand_by_permutation(bits, _mm256_loadu_si256((const __m256i *)(const void *)at));
}
INLINE lanes expand_bf16(uint32_t bits, const uint8_t *at) {
  const lanes wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
  return expand_by_permutation(bits, _mm256_slli_epi32(wide, 16));
}
INLINE lanes expand_s8(uint32_t bits, const uint8_t *at) {
  return expand_by_permutation(
      bits, _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}
INLINE lanes widen_u8(const uint8_t *at) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));
}

#else
#include <arm_neon.h>
enum { W = 4, SUMS_AT_ONCE = 4 };
typedef int32x4_t lanes;

/* Entry `bits` of the table: for each lane i, the indices of the bytes of its 32-bit word, whose
 * position is the number of bits set below bit i. If bit i is not set, the index is beyond the
 * vector, which gives zeros. */
#define WORD(bits, i)                                                                         \
  ((bits) >> (i)&1                                                                            \
       ? 0x03020100U + 0x04040404U * (uint32_t)__builtin_popcount((bits) & ((1U << (i)) - 1)) \
       : 0xFFFFFFFFU)
#define ENTRY(bits) \
  { WORD(bits, 0), WORD(bits, 1), WORD(bits, 2), WORD(bits, 3) }
#define ENTRIES_4(bits) ENTRY(bits), ENTRY((bits) + 1U), ENTRY((bits) + 2U), ENTRY((bits) + 3U)
static const uint32_t places[16][4] = {ENTRIES_4(0U), ENTRIES_4(4U), ENTRIES_4(8U), ENTRIES_4(12U)};

INLINE lanes expand_by_permutation(uint32_t bits, lanes from) {
  const uint8x16_t to = vreinterpretq_u8_u32(vld1q_u32(places[bits]));
  return vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(from), to));
}
INLINE lanes add_product(lanes w, lanes x, lanes sum) {
  return vreinterpretq_s32_f32(
      vfmaq_f32(vreinterpretq_f32_s32(sum), vreinterpretq_f32_s32(w), vreinterpretq_f32_s32(x)));
}
INLINE lanes add_product_s8(lanes w, lanes x, lanes sum) { return vmlaq_s32(sum, w, x); }
INLINE lanes expand_f32(uint32_t bits, const uint8_t *at) {
  return expand_by_permutation(bits, vreinterpretq_s32_u8(vld1q_u8(at)));
}
INLINE lanes expand_bf16(uint32_t bits, const uint8_t *at) {
  const uint32x4_t wide = vshll_n_u16(vreinterpret_u16_u8(vld1_u8(at)), 16);
  return expand_by_permutation(bits, vreinterpretq_s32_u32(wide));
}
INLINE lanes expand_s8(uint32_t bits, const uint8_t *at) {
  return expand_by_permutation(bits,
                               vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(at))))));
}
INLINE lanes widen_u8(const uint8_t *at) {
  uint32_t four;
  memcpy(&four, at, sizeof four);
  const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}
#endif
enum { VECTORS = LACI_SPARSE_ROWS_SUMS / W };

/* The case for which functions are inlined; all fields are constants there. n: number of streams of
 * rows that are read at once. n_x: number of vectors x that they are multiplied with at once. */
typedef struct batch {
  laci_sparse_values values;
  bool pairs;
  int n, n_x;
} batch;

/* ---- 64 columns of a stream ---- x: the values of these columns, one pointer for each vector.
 * sum: [n_x][VECTORS]. The functions return the address of the next weight. */

INLINE lanes expand_floats(batch b, uint32_t bits, const uint8_t *at) {
  const bool bf16 = b.values == LACI_SPARSE_BF16;
#if defined(SPREADS_TWO)
  if (b.pairs) return bf16 ? expand_bf16_pairs(bits, at) : expand_f32_pairs(bits, at);
#endif
  return bf16 ? expand_bf16(bits, at) : expand_f32(bits, at);
}

INLINE const uint8_t *add_products_of_floats(batch b, uint64_t bits, const uint8_t *at,
                                             const uint8_t *const *x, lanes *sum) {
  const bool bf16 = b.values == LACI_SPARSE_BF16;
#pragma GCC unroll 16
  for (int column = 0; column < LACI_SPARSE_MASK; column += W, bits >>= W) {
    const uint32_t few = (uint32_t)bits & ((1U << W) - 1);
    const lanes weight = expand_floats(b, few, at);
    at += (ptrdiff_t)(b.pairs ? W / 2 : __builtin_popcount(few)) * (bf16 ? 2 : 4);
#pragma GCC unroll 4
    for (int i = 0; i < b.n_x; i++) {
      lanes *to = &sum[i * VECTORS + column / W % VECTORS], value;
      memcpy(&value, x[i] + (ptrdiff_t)(column * 4), sizeof value);
      *to = add_product(weight, value, *to);
    }
  }
  return at;
}

#if defined(__AVX512F__) && !defined(__AVX512VBMI2__)
/* Entry `bits` of the table has a byte for each of four columns: which of their two weights belongs
 * to it. More than 127: none, the column is zero. */
#define TWO_OF(bits) \
  [bits] =           \
      LANE_OF(bits, 0) | LANE_OF(bits, 1) << 8 | LANE_OF(bits, 2) << 16 | LANE_OF(bits, 3) << 24
#define LANE_OF(bits, j) ((bits) >> (j)&1 ? (uint32_t)((bits) & ((1U << (j)) - 1) ? 1 : 0) : 0x80U)
static const uint32_t place_of_two[16] = {TWO_OF(3), TWO_OF(5),  TWO_OF(6),
                                          TWO_OF(9), TWO_OF(10), TWO_OF(12)};

/* If every four columns have two weights, a table gives their positions from the four bits. So the
 * bytes of 16 columns are expanded at once. */
INLINE const uint8_t *add_products_of_s8_pairs(uint64_t mask, const uint8_t *at,
                                               const uint8_t *const *x, int n_x, lanes *sum) {
  const lanes shifts = _mm512_set_epi32(28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
  const lanes table = _mm512_loadu_si512(place_of_two);
  const lanes first = _mm512_set4_epi32(0x06060606, 0x04040404, 0x02020202, 0);
  const lanes halves = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
  const int32_t low = (int32_t)mask, high = (int32_t)(mask >> 32);
  lanes bits = _mm512_mask_set1_epi32(_mm512_set1_epi32(low), 0xFF00, high);
  bits = _mm512_permutexvar_epi32(_mm512_srlv_epi32(bits, shifts), table);
  const lanes values = _mm512_permutexvar_epi64(
      halves, _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)at)));
  const lanes weight = _mm512_shuffle_epi8(values, _mm512_add_epi8(bits, first));
#pragma GCC unroll 4
  for (int i = 0; i < n_x; i++) {
    const lanes all = _mm512_loadu_si512(x[i]);
#if defined(__AVX512VNNI__)
    sum[i] = _mm512_dpbusd_epi32(sum[i], all, weight);
#else
    const lanes even =
        _mm512_and_si512(all, _mm512_set1_epi16(0xFF)); /* so that no 16-bit sum saturates */
    const lanes odd = _mm512_andnot_si512(_mm512_set1_epi16(0xFF), all);
    const lanes one = _mm512_set1_epi16(1);
    sum[i] = _mm512_add_epi32(sum[i], _mm512_madd_epi16(_mm512_maddubs_epi16(even, weight), one));
    sum[i] = _mm512_add_epi32(sum[i], _mm512_madd_epi16(_mm512_maddubs_epi16(odd, weight), one));
#endif
  }
  return at + LACI_SPARSE_MASK / 2;
}
#endif

#if defined(__AVX512VBMI2__)
INLINE const uint8_t *add_products_of_s8(uint64_t bits, const uint8_t *at, const uint8_t *const *x,
                                         int n_x, lanes *sum) {
  const lanes weight =
      _mm512_mask_expand_epi8(zeros_unknown_to_compiler(), bits, _mm512_loadu_si512(at));
#pragma GCC unroll 4
  for (int i = 0; i < n_x; i++) {
    sum[i] = _mm512_dpbusd_epi32(sum[i], _mm512_loadu_si512(x[i]), weight);
  }
  return at + __builtin_popcountll(bits);
}
#else
INLINE const uint8_t *add_products_of_s8(uint64_t bits, const uint8_t *at, const uint8_t *const *x,
                                         int n_x, lanes *sum) {
#pragma GCC unroll 16
  for (int column = 0; column < LACI_SPARSE_MASK; column += W, bits >>= W) {
    const uint32_t few = (uint32_t)bits & ((1U << W) - 1);
    const lanes weight = expand_s8(few, at);
    at += __builtin_popcount(few);
#pragma GCC unroll 4
    for (int i = 0; i < n_x; i++) {
      lanes *to = &sum[i * VECTORS + column / W % VECTORS];
      *to = add_product_s8(weight, widen_u8(x[i] + column), *to);
    }
  }
  return at;
}
#endif

/* ---- Rows ---- */

/* Copies of the last columns of x, filled up with zeros to 64 columns. */
typedef struct edge {
  float of[LACI_SPARSE_VECTORS][LACI_SPARSE_MASK];
} edge;

enum { MOST_SUMS = LACI_SPARSE_STREAMS * LACI_SPARSE_VECTORS * VECTORS };

typedef struct job {
  const laci_sparse_rows *w;
  const laci_sparse_vectors *v;
  edge edge;
} job;

/* Returns the size of an element of x, in bytes. */
INLINE ptrdiff_t element_bytes(laci_sparse_values values) {
  return values == LACI_SPARSE_S8 ? 1 : 4;
}

/* Prefetches a later cache line of a stream into the second-level cache. The first level allows
 * only few outstanding misses (Zen 4: 18 GB/s, against 27 for the second level). */
INLINE void prefetch_stream(const uint8_t *at) {
  enum { AHEAD = 34 * 64, SECOND_CACHE = 2 };
  __builtin_prefetch(at + AHEAD, 0, SECOND_CACHE);
}

INLINE const uint8_t *add_products_of_64_columns(batch b, uint64_t bits, const uint8_t *at,
                                                 const uint8_t *const *x, lanes *sum) {
  prefetch_stream(at);
  if (b.values == LACI_SPARSE_F32) prefetch_stream(at + 64);
  if (b.values != LACI_SPARSE_S8) return add_products_of_floats(b, bits, at, x, sum);
#if defined(__AVX512F__) && !defined(__AVX512VBMI2__)
  if (b.pairs) return add_products_of_s8_pairs(bits, at, x, b.n_x, sum);
#endif
  return add_products_of_s8(bits, at, x, b.n_x, sum);
}

INLINE void copy_last_columns_padded(job *j, laci_sparse_values values) {
  const int64_t left = j->w->n_columns % LACI_SPARSE_MASK, n = j->w->n_columns - left;
  const ptrdiff_t each = element_bytes(values);
  memset(&j->edge, 0, sizeof j->edge);
  for (int i = 0; i < j->v->n_x; i++) {
    memcpy(j->edge.of[i], (const uint8_t *)j->v->x + (i * j->v->x_stride + n) * each,
           (size_t)(left * each));
  }
}

/* Adds the products of one chunk of some streams to their sums. k: first column of the chunk. */
INLINE void add_products_of_chunk(const job *j, batch b, int64_t k, const uint8_t **at,
                                  lanes *sum) {
  const int64_t left = j->w->n_columns - k;
  const int64_t end = k + (left < LACI_SPARSE_ROWS_CHUNK ? left : LACI_SPARSE_ROWS_CHUNK);
  const int64_t words = (end - k + LACI_SPARSE_MASK - 1) / LACI_SPARSE_MASK;
  const uint8_t *mask[LACI_SPARSE_STREAMS], *x[LACI_SPARSE_VECTORS];
#pragma GCC unroll 8
  for (int s = 0; s < b.n; s++) {
    mask[s] = at[s];
    at[s] += words * (ptrdiff_t)sizeof(uint64_t);
    prefetch_stream(mask[s]);
  }
  for (int64_t word = 0; word < words; word++, k += LACI_SPARSE_MASK) {
#pragma GCC unroll 4
    for (int i = 0; i < b.n_x; i++) {
      x[i] = end - k < LACI_SPARSE_MASK
                 ? (const uint8_t *)j->edge.of[i]
                 : (const uint8_t *)j->v->x + (i * j->v->x_stride + k) * element_bytes(b.values);
    }
#pragma GCC unroll 8
    for (int s = 0; s < b.n; s++) {
      uint64_t bits;
      memcpy(&bits, mask[s] + word * (ptrdiff_t)sizeof bits, sizeof bits);
      at[s] = add_products_of_64_columns(b, bits, at[s], x, &sum[s * b.n_x * VECTORS]);
    }
  }
}

/* Computes the sums of one row of each of some streams of rows. rows: index of each stream's row.
 * The numbers of streams and vectors are constants where this is inlined, so that sums stay in
 * registers. */
INLINE void sum_rows_of_batch(const job *j, batch b, const int64_t *rows, lanes *result) {
  const int64_t each = (j->w->n_columns + LACI_SPARSE_ROWS_CHUNK - 1) / LACI_SPARSE_ROWS_CHUNK;
  const uint8_t *at[LACI_SPARSE_STREAMS];
  lanes sum[MOST_SUMS];
#pragma GCC unroll 64
  for (int s = 0; s < b.n * b.n_x * VECTORS; s++) sum[s] = (lanes){0};
#pragma GCC unroll 8
  for (int s = 0; s < b.n; s++) at[s] = j->w->bytes + j->w->chunk_at[rows[s] * each];
  for (int64_t k = 0; k < j->w->n_columns; k += LACI_SPARSE_ROWS_CHUNK) {
    add_products_of_chunk(j, b, k, at, sum);
  }
#pragma GCC unroll 64
  for (int s = 0; s < b.n * b.n_x * VECTORS; s++) result[s] = sum[s];
}

static float sum_lanes_f32(const lanes *sum) {
  float all[LACI_SPARSE_ROWS_SUMS];
  memcpy(all, sum, sizeof all);
  for (int half = LACI_SPARSE_ROWS_SUMS / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; lane++) all[lane] += all[lane + half];
  }
  return all[0];
}

static int32_t sum_lanes_s8(const lanes *sum) {
  int32_t all[LACI_SPARSE_ROWS_SUMS], total = 0;
  memcpy(all, sum, sizeof all);
  for (int lane = 0; lane < LACI_SPARSE_ROWS_SUMS; lane++) total += all[lane];
  return total;
}

static void store_row_results(const job *j, int64_t row, const lanes *sum) {
  const laci_sparse_vectors *v = j->v;
  for (int i = 0; i < v->n_x; i++, sum += VECTORS) {
    const float bias = v->bias ? v->bias[row] : 0;
    const float product =
        j->w->values != LACI_SPARSE_S8
            ? sum_lanes_f32(sum)
            : v->scale[row] * (float)(sum_lanes_s8(sum) - v->x_zero * j->w->row_sum[row]);
    v->y[i * v->y_stride + row] = bias + product;
  }
}

/* Computes the rows of places [first, last) (vector.h), some streams at a time. Where a stream has
 * no row, the first row of the place is read instead. */
INLINE void multiply_rows_of_places(const job *j, batch b, int64_t first, int64_t last) {
  const int64_t step = laci_sparse_rows_n_places(j->w);
  for (int64_t place = first; place < last; place++) {
    for (int stream = 0; stream < LACI_SPARSE_STREAMS; stream += b.n) {
      int64_t rows[LACI_SPARSE_STREAMS];
      lanes sum[MOST_SUMS];
      for (int s = 0; s < b.n; s++) {
        rows[s] = place + (stream + s) * step;
        if (rows[s] >= j->w->n_rows) rows[s] = place;
      }
      sum_rows_of_batch(j, b, rows, sum);
      for (int s = 0; s < b.n; s++) {
        if (place + (stream + s) * step < j->w->n_rows) {
          store_row_results(j, rows[s], &sum[s * b.n_x * VECTORS]);
        }
      }
    }
  }
}

INLINE void multiply_for_vector_count(job *j, laci_sparse_values values, bool pairs, int64_t first,
                                      int64_t last) {
  enum { ONE = SUMS_AT_ONCE < 8 ? SUMS_AT_ONCE : 8, TWO = SUMS_AT_ONCE / 2, FOUR = TWO / 2 };
  copy_last_columns_padded(j, values);
  switch (j->v->n_x) {
    case 1: multiply_rows_of_places(j, (batch){values, pairs, ONE, 1}, first, last); break;
    case 2: multiply_rows_of_places(j, (batch){values, pairs, TWO, 2}, first, last); break;
    case 3: multiply_rows_of_places(j, (batch){values, pairs, FOUR, 3}, first, last); break;
    default: multiply_rows_of_places(j, (batch){values, pairs, FOUR, 4}, first, last); break;
  }
}

INLINE void multiply_for_value_type(job *j, bool pairs, int64_t first, int64_t last) {
  switch (j->w->values) {
    case LACI_SPARSE_F32: multiply_for_vector_count(j, LACI_SPARSE_F32, pairs, first, last); break;
    case LACI_SPARSE_BF16:
      multiply_for_vector_count(j, LACI_SPARSE_BF16, pairs, first, last);
      break;
    case LACI_SPARSE_S8: multiply_for_vector_count(j, LACI_SPARSE_S8, pairs, first, last); break;
  }
}

void LACI_VARIANT(laci_sparse_rows_multiply)(const laci_sparse_rows *w,
                                             const laci_sparse_vectors *v, int64_t first,
                                             int64_t last) {
  job j = {.w = w, .v = v};
  if (w->pairs) multiply_for_value_type(&j, true, first, last);
  else multiply_for_value_type(&j, false, first, last);
}

/* SPDX-License-Identifier: Apache-2.0
 * Packs the weights of vector.h, a sparse matrix that multiplies a few vectors, and chooses the
 * kernel variant. */
#include "kernel/sparse/vector.h"

#include <string.h>

#include "cpu/cpu.h"
#include "tensor/bf16.h"
#include "kernel/variants.h"

static laci_sparse_rows_multiply *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_rows_multiply_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_rows_multiply *laci_sparse_rows_multiply_variant(void) {
  const laci_cpu_level level = laci_cpu_level_in_force();
#if defined(__x86_64__)
  if (level == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi2")) {
    return laci_sparse_rows_multiply_avx512vbmi2;
  }
  if (level == LACI_CPU_AVX2 && laci_cpu_has_avx512f()) return laci_sparse_rows_multiply_avx512f;
#endif
  return of_level[level];
}

/* ---- Packing ---- */

static const size_t value_bytes[] = {
    [LACI_SPARSE_F32] = sizeof(float), [LACI_SPARSE_BF16] = sizeof(uint16_t), [LACI_SPARSE_S8] = 1};

static int64_t chunks_per_row(const laci_sparse_rows *w) {
  return (w->n_columns + LACI_SPARSE_ROWS_CHUNK - 1) / LACI_SPARSE_ROWS_CHUNK;
}

/* Returns the size of the bit mask of a chunk (512 columns of a row), in bytes. */
static int64_t bytes_of_column_mask(const laci_sparse_rows *w, int64_t chunk) {
  const int64_t left = w->n_columns - chunk * LACI_SPARSE_ROWS_CHUNK;
  if (left >= LACI_SPARSE_ROWS_CHUNK) return LACI_SPARSE_ROWS_CHUNK / 8;
  return (left + LACI_SPARSE_MASK - 1) / LACI_SPARSE_MASK * (LACI_SPARSE_MASK / 8);
}

int64_t laci_sparse_rows_n_chunks(const laci_sparse_rows *w) {
  return w->n_rows * chunks_per_row(w);
}

enum { FOUR = 4, TWO = 2 };

/* Returns a mask of the nonzero weights among four columns, or among the n < 4 that exist. */
static unsigned find_kept_of_four(const float *from, int64_t n, int64_t stride) {
  unsigned bits = 0;
  for (int64_t at = 0; at < n && at < FOUR; at++) bits |= (unsigned)(from[at * stride] != 0) << at;
  return bits;
}

void laci_sparse_rows_count_kept(laci_sparse_rows *w, const laci_sparse_rows_part *part) {
  for (int64_t row = 0; row < part->n_rows; row++) {
    const float *from = part->weight + row * part->row_stride;
    uint64_t *count = w->chunk_at + (part->row_first + row) * chunks_per_row(w);
    for (int64_t at = 0; at < part->n_columns; at += FOUR) {
      const int n = __builtin_popcount(find_kept_of_four(
          from + at * part->column_stride, part->n_columns - at, part->column_stride));
      count[(part->column_first + at) / LACI_SPARSE_ROWS_CHUNK] += (uint64_t)n;
      w->pairs = w->pairs && n <= TWO;
    }
  }
}

/* Two weights can be stored for every four columns, zeros included. Does this store few enough
 * zeros? */
static bool may_store_two_of_four(const laci_sparse_rows *w) {
  enum { LEAST = 40 }; /* least share of kept weights, in percent of all weights */
  uint64_t kept = 0;
  for (int64_t at = 0; at < laci_sparse_rows_n_chunks(w); at++) kept += w->chunk_at[at];
  return kept * 100 >= (uint64_t)(w->n_rows * w->n_columns) * LEAST;
}

size_t laci_sparse_rows_set_chunk_offsets(laci_sparse_rows *w) {
  const int64_t each = chunks_per_row(w), n = w->n_rows * each;
  uint64_t end = 0;
  w->pairs = w->pairs && may_store_two_of_four(w);
  for (int64_t at = 0; at < n; at++) {
    const uint64_t mask = (uint64_t)bytes_of_column_mask(w, at % each);
    const uint64_t kept = w->pairs ? mask * 8 / TWO : w->chunk_at[at];
    const uint64_t bytes = mask + kept * value_bytes[w->values];
    w->chunk_at[at] = end;
    end += bytes;
  }
  w->chunk_at[n] = end;
  return (size_t)end + LACI_SPARSE_READ_AHEAD;
}

static void store_weight(laci_sparse_rows *w, int64_t row, float value, uint8_t *to) {
  if (w->values == LACI_SPARSE_F32) {
    memcpy(to, &value, sizeof value);
  } else if (w->values == LACI_SPARSE_BF16) {
    const uint16_t bits = laci_bf16_round(value);
    memcpy(to, &bits, sizeof bits);
  } else {
    *to = (uint8_t)(int8_t)value;
    w->row_sum[row] += (int32_t)value;
  }
}

/* Packs n columns, beginning at `column`, of one row; they belong to one chunk. */
static void pack_row_chunk(laci_sparse_rows *w, int64_t row, int64_t column, int64_t n,
                           const float *from, int64_t stride) {
  const int64_t chunk = column / LACI_SPARSE_ROWS_CHUNK, first = column % LACI_SPARSE_ROWS_CHUNK;
  uint8_t *mask = w->bytes + w->chunk_at[row * chunks_per_row(w) + chunk];
  uint8_t *to = mask + bytes_of_column_mask(w, chunk);
  int64_t whole = FOUR;                       /* the number of columns is completed to a multiple of
                                                 this */
  for (int64_t at = 0; at < first; at += 8) { /* skip the weights that are packed already */
    to += (size_t)__builtin_popcount(mask[at / 8]) * value_bytes[w->values];
  }
  if (w->pairs && column + n == w->n_columns) whole = LACI_SPARSE_MASK;
  for (int64_t at = 0; at < (n + whole - 1) / whole * whole; at += FOUR) {
    unsigned bits = at < n ? find_kept_of_four(from + at * stride, n - at, stride) : 0;
    for (int i = 0; w->pairs && __builtin_popcount(bits) < TWO; i++) bits |= 1U << i;
    mask[(first + at) / 8] |= (uint8_t)(bits << (first + at) % 8);
    for (; bits; bits &= bits - 1) {
      const int64_t k = at + __builtin_ctz(bits);
      store_weight(w, row, k < n ? from[k * stride] : 0, to);
      to += value_bytes[w->values];
    }
  }
}

void laci_sparse_rows_fill_chunks(laci_sparse_rows *w, const laci_sparse_rows_part *part) {
  for (int64_t row = 0; row < part->n_rows; row++) {
    const float *from = part->weight + row * part->row_stride;
    for (int64_t at = 0, n; at < part->n_columns; at += n) {
      const int64_t column = part->column_first + at;
      n = LACI_SPARSE_ROWS_CHUNK - column % LACI_SPARSE_ROWS_CHUNK;
      if (n > part->n_columns - at) n = part->n_columns - at;
      pack_row_chunk(w, part->row_first + row, column, n, from + at * part->column_stride,
                     part->column_stride);
    }
  }
}

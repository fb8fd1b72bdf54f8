/* SPDX-License-Identifier: Apache-2.0
 * Transposing a square of n x n elements, n a power of two: rows k and k + n/2 are interleaved and
 * become rows 2k and 2k + 1. Each round moves one bit of an element's column number to its row
 * number, so after log2(n) rounds the two have changed places:
 *
 *     a b    interleave    a c    interleave    a c
 *     c d    ---------->   b d       ...        b d      (2 x 2: one round)
 *
 * Vectors are GNU C vectors of 16 bytes; compilers translate them to the unpack instructions of
 * SSE2 and the zip instructions of ARM. */
#include "kernel/search/transpose.h"

#include <string.h>

typedef uint8_t bytes_16 __attribute__((vector_size(16)));
typedef int16_t words_8 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

INLINE bytes_16 interleave_low_bytes(bytes_16 a, bytes_16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

INLINE bytes_16 interleave_high_bytes(bytes_16 a, bytes_16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

INLINE words_8 interleave_low_words(words_8 a, words_8 b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

INLINE words_8 interleave_high_words(words_8 a, words_8 b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/* Transposes a square of N rows and columns in LOG_N rounds; rows are `stride` elements apart. */
#define DEFINE_SQUARE(NAME, TYPE, VECTOR, LOW, HIGH, N, LOG_N)                      \
  static void NAME(const TYPE *from, size_t stride, void *const *to, size_t row) {  \
    VECTOR v[N], transposed[N];                                                     \
    for (size_t r = 0; r < (N); r++) memcpy(&v[r], from + r * stride, sizeof v[r]); \
    for (int round = 0; round < (LOG_N); round++) {                                 \
      for (int k = 0; k < (N) / 2; k++) {                                           \
        transposed[2 * k] = LOW(v[k], v[k + (N) / 2]);                              \
        transposed[2 * k + 1] = HIGH(v[k], v[k + (N) / 2]);                         \
      }                                                                             \
      memcpy(v, transposed, sizeof v);                                              \
    }                                                                               \
    for (int c = 0; c < (N); c++) memcpy((TYPE *)to[c] + row, &v[c], sizeof v[c]);  \
  }

/* Transposes squares column by column, so that writes to a column are close together; the remaining
 * elements at the edges are copied one by one. */
#define DEFINE_TRANSPOSE(NAME, SQUARE, TYPE, N)                                                \
  static void NAME(const TYPE *from, int n_rows, int n_columns, void *const *to, size_t row) { \
    const size_t stride = (size_t)n_columns;                                                   \
    const int whole_rows = n_rows - n_rows % (N), whole_columns = n_columns - n_columns % (N); \
    for (int c = 0; c < whole_columns; c += (N)) {                                             \
      for (int r = 0; r < whole_rows; r += (N)) {                                              \
        SQUARE(from + (size_t)r * stride + c, stride, to + c, row + (size_t)r);                \
      }                                                                                        \
    }                                                                                          \
    for (int c = 0; c < n_columns; c++) {                                                      \
      TYPE *column = (TYPE *)to[c] + row;                                                      \
      for (int r = c < whole_columns ? whole_rows : 0; r < n_rows; r++) {                      \
        column[r] = from[(size_t)r * stride + (size_t)c];                                      \
      }                                                                                        \
    }                                                                                          \
  }

DEFINE_SQUARE(square_u8, uint8_t, bytes_16, interleave_low_bytes, interleave_high_bytes, 16, 4)
DEFINE_SQUARE(square_i16, int16_t, words_8, interleave_low_words, interleave_high_words, 8, 3)
DEFINE_TRANSPOSE(transpose_u8, square_u8, uint8_t, 16)
DEFINE_TRANSPOSE(transpose_i16, square_i16, int16_t, 8)

void laci_transpose(laci_number number, const void *from, int n_rows, int n_columns,
                    void *const *to, size_t row) {
  if (number == LACI_U8) transpose_u8(from, n_rows, n_columns, to, row);
  else transpose_i16(from, n_rows, n_columns, to, row);
}

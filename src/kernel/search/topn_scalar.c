/* SPDX-License-Identifier: Apache-2.0
 * topn.h in plain C, both element types by the same macro: the reference for the other variants.
 * Read next: topn_isa.c. */
#include "kernel/search/topn.h"

#include <string.h>

enum { ROWS_AT_ONCE = 256 }; /* fixed, so that the compiler knows the length of every loop */

#define DEFINE_SINK(NAME, TYPE)                                                        \
  static void NAME(TYPE top[][ROWS_AT_ONCE], int n, const TYPE *column, size_t rows) { \
    TYPE sinking[ROWS_AT_ONCE] = {0};                                                  \
    memcpy(sinking, column, rows * sizeof(TYPE));                                      \
    for (int place = 0; place < n; place++) {                                          \
      TYPE *here = top[place];                                                         \
      for (int r = 0; r < ROWS_AT_ONCE; r++) {                                         \
        TYPE larger = here[r] > sinking[r] ? here[r] : sinking[r];                     \
        TYPE smaller = here[r] > sinking[r] ? sinking[r] : here[r];                    \
        here[r] = larger;                                                              \
        sinking[r] = smaller;                                                          \
      }                                                                                \
    }                                                                                  \
  }

#define DEFINE_TOP(NAME, SINK, TYPE)                                                          \
  static void NAME(const void *const *columns, int n_columns, int n, size_t row, size_t rows, \
                   TYPE top[][ROWS_AT_ONCE]) {                                                \
    memset(top, 0, (size_t)n * sizeof *top);                                                  \
    for (int c = 0; c < n_columns; c++) {                                                     \
      SINK(top, n < c + 1 ? n : c + 1, (const TYPE *)columns[c] + row, rows);                 \
    }                                                                                         \
  }

DEFINE_SINK(sink_u8, uint8_t)
DEFINE_SINK(sink_i16, int16_t)
DEFINE_TOP(top_u8, sink_u8, uint8_t)
DEFINE_TOP(top_i16, sink_i16, int16_t)

static size_t count_rows_in_chunk(size_t rows, size_t row) {
  return rows - row < ROWS_AT_ONCE ? rows - row : ROWS_AT_ONCE;
}

void laci_nth_largest_scalar(laci_number number, const void *const *columns, int n_columns, int n,
                             size_t rows, void *out) {
  const size_t size = laci_number_size(number);
  for (size_t row = 0; row < rows; row += ROWS_AT_ONCE) {
    size_t length = count_rows_in_chunk(rows, row);
    _Alignas(64) union {
      uint8_t u8[LACI_TOPN_MAX][ROWS_AT_ONCE];
      int16_t i16[LACI_TOPN_MAX][ROWS_AT_ONCE];
    } top;
    const void *nth = top.u8[n - 1];
    if (number == LACI_U8) {
      top_u8(columns, n_columns, n, row, length, top.u8);
    } else {
      top_i16(columns, n_columns, n, row, length, top.i16);
      nth = top.i16[n - 1];
    }
    memcpy((char *)out + row * size, nth, length * size);
  }
}

int64_t laci_sum_n_largest_scalar(laci_number number, const void *const *columns, int n_columns,
                                  int n, size_t rows) {
  int64_t total = 0;
  for (size_t row = 0; row < rows; row += ROWS_AT_ONCE) {
    size_t length = count_rows_in_chunk(rows, row);
    _Alignas(64) union {
      uint8_t u8[LACI_TOPN_MAX][ROWS_AT_ONCE];
      int16_t i16[LACI_TOPN_MAX][ROWS_AT_ONCE];
    } top;
    int32_t sum = 0; /* 64 * 256 elements below 2^15 do not overflow it */
    if (number == LACI_U8) {
      top_u8(columns, n_columns, n, row, length, top.u8);
      for (int k = 0; k < n; k++) {
        for (int r = 0; r < ROWS_AT_ONCE; r++) sum += top.u8[k][r];
      }
    } else {
      top_i16(columns, n_columns, n, row, length, top.i16);
      for (int k = 0; k < n; k++) {
        for (int r = 0; r < ROWS_AT_ONCE; r++) sum += top.i16[k][r];
      }
    }
    total += sum;
  }
  return total;
}

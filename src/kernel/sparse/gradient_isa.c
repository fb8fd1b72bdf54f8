/* SPDX-License-Identifier: Apache-2.0
 * gradient.h for every instruction set. What a block of tiles reads is packed, row by row and
 * column by column: a window's x then stays in the first cache while runs read dy of all rows of
 * an item from the second, and no distance is a power of two. */
#include <stddef.h>

#include "kernel/sparse/gradient.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDTH = 16 };
typedef __m512 vector;
/* X(rows, columns): sums that are made at once. */
#define ROWS_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define ROWS_2(X) \
  X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#define ROWS_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3)
#define ROWS_4(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#define ZERO() _mm512_setzero_ps()
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)
#define FMA(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#elif defined(__AVX2__)
#include <immintrin.h>
enum { WIDTH = 8 };
typedef __m256 vector;
#define ZERO() _mm256_setzero_ps()
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)
#define FMA(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#else
#include <arm_neon.h>
enum { WIDTH = 4 };
typedef float32x4_t vector;
#define ZERO() vdupq_n_f32(0)
#define LOAD(at) vld1q_f32(at)
#define STORE(at, x) vst1q_f32(at, x)
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
#endif
#if !defined(__AVX512F__)
#define ROWS_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define ROWS_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2)
#define ROWS_3(X) X(1, 3) X(2, 3) X(3, 3)
#define ROWS_4(X) X(1, 4) X(2, 4)
#endif
enum { LANES = LACI_SPARSE_LANES, WINDOW = LACI_SPARSE_WINDOW, TOGETHER = LACI_SPARSE_TOGETHER };
enum { MOST_ROWS = 12, MOST_SUMS = 24 };

/* ---- sums of a block ---- */

/* A vector of each sum of some rows and columns; inlined with both numbers known, so that they stay
 * in registers. */
static inline __attribute__((always_inline)) void add_up(const float *const *y,
                                                         const float *const *x, int64_t n_floats,
                                                         const int rows, const int columns,
                                                         vector *sum) {
  const float *of_row[MOST_ROWS], *of_column[TOGETHER];
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) of_row[r] = y[r];
#pragma GCC unroll 16
  for (int c = 0; c < columns; c++) of_column[c] = x[c];
#pragma GCC unroll 32
  for (int at = 0; at < rows * columns; at++) sum[at] = ZERO();
  for (int64_t at = 0; at < n_floats; at += LANES) {
    vector in[TOGETHER];
#pragma GCC unroll 16
    for (int c = 0; c < columns; c++) in[c] = LOAD(of_column[c] + at);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      const vector slope = LOAD(of_row[r] + at);
#pragma GCC unroll 16
      for (int c = 0; c < columns; c++) {
        sum[r * columns + c] = FMA(slope, in[c], sum[r * columns + c]);
      }
    }
  }
}

#if defined(__AVX512F__)

/* Of two sums halves are added, then quarters and so on, until 16 sums are one vector, transposed
 * as a matrix of 4 x 4. */
static inline __attribute__((always_inline)) void fold(const vector *sum, const int n, float *to) {
  const __m512i turned = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  vector half[LANES / 2], quarter[LANES / 4], eighth[LANES / 8];
#pragma GCC unroll 8
  for (int at = 0; 2 * at < n; at++) {
    const vector a = sum[2 * at], b = sum[2 * at + 1 < n ? 2 * at + 1 : 2 * at];
    half[at] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
#pragma GCC unroll 8
  for (int at = 0; 4 * at < n; at++) {
    const vector a = half[2 * at], b = half[4 * at + 2 < n ? 2 * at + 1 : 2 * at];
    quarter[at] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  }
#pragma GCC unroll 8
  for (int at = 0; 8 * at < n; at++) {
    const vector a = quarter[2 * at], b = quarter[8 * at + 4 < n ? 2 * at + 1 : 2 * at];
    eighth[at] = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
  }
  const vector a = eighth[0], b = eighth[n > LANES / 2 ? 1 : 0];
  const vector all = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
  STORE(to, _mm512_permutexvar_ps(turned, all));
}

static inline __attribute__((always_inline)) void sum_rows(const float *const *y,
                                                           const float *const *x, int64_t n_floats,
                                                           const int rows, const int columns,
                                                           float *to) {
  vector sum[MOST_SUMS];
  add_up(y, x, n_floats, rows, columns, sum);
  fold(sum, rows * columns < LANES ? rows * columns : LANES, to);
  if (rows * columns > LANES) fold(sum + LANES, rows * columns - LANES, to + LANES);
}

static inline void pack(const laci_sparse_tile *tile, const float *from, float *to) {
  STORE(to, _mm512_maskz_loadu_ps((__mmask16)tile->lanes, from));
}

#else

/* A part of the lanes at a time. */
static inline __attribute__((always_inline)) void sum_rows(const float *const *y,
                                                           const float *const *x, int64_t n_floats,
                                                           const int rows, const int columns,
                                                           float *to) {
  float lanes[MOST_SUMS][LANES];
  for (int first = 0; first < LANES; first += WIDTH) {
    const float *of_row[MOST_ROWS], *of_column[TOGETHER];
    vector sum[MOST_SUMS];
    for (int r = 0; r < rows; r++) of_row[r] = y[r] + first;
    for (int c = 0; c < columns; c++) of_column[c] = x[c] + first;
    add_up(of_row, of_column, n_floats, rows, columns, sum);
#pragma GCC unroll 32
    for (int at = 0; at < rows * columns; at++) STORE(&lanes[at][first], sum[at]);
  }
  for (int at = 0; at < rows * columns; at++) {
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
      for (int lane = 0; lane < apart; lane++) lanes[at][lane] += lanes[at][lane + apart];
    }
    to[at] = lanes[at][0];
  }
}

static inline void pack(const laci_sparse_tile *tile, const float *from, float *to) {
  for (int lane = 0; lane < LANES; lane++) to[lane] = tile->lanes >> lane & 1 ? from[lane] : 0;
}

#endif

/* ---- a function for each number of rows and columns ---- */

typedef void sum_function(const float *const *y, const float *const *x, int64_t n_floats,
                          float *to);

#define DEFINE(rows, columns)                                                         \
  static void sum_##rows##_by_##columns(const float *const *y, const float *const *x, \
                                        int64_t n_floats, float *to) {                \
    sum_rows(y, x, n_floats, rows, columns, to);                                      \
  }
ROWS_1(DEFINE)
ROWS_2(DEFINE)
ROWS_3(DEFINE)
ROWS_4(DEFINE)
#undef DEFINE

#define NAME(rows, columns) sum_##rows##_by_##columns,
static sum_function *const of_1[] = {ROWS_1(NAME)}, *const of_2[] = {ROWS_2(NAME)},
                           *const of_3[] = {ROWS_3(NAME)}, *const of_4[] = {ROWS_4(NAME)};
#undef NAME

/* By the number of columns; of each number of rows up to `most`. */
static const struct {
  sum_function *const *of_rows;
  int most;
} sums_of[TOGETHER + 1] = {{NULL, 0},
                           {of_1, sizeof of_1 / sizeof *of_1},
                           {of_2, sizeof of_2 / sizeof *of_2},
                           {of_3, sizeof of_3 / sizeof *of_3},
                           {of_4, sizeof of_4 / sizeof *of_4}};

/* ---- blocks ---- */

/* Packed values of a block: [row of the item][pitch], and the window's [column][pitch]. */
typedef struct block {
  const laci_sparse_gradient *g;
  int64_t first, n, pitch; /* tiles; floats */
  float *y, *x;
} block;

static void pack_rows(const block *b, const laci_sparse_gradient_item *item, const float *dy) {
  const int64_t stride = b->g->row_stride;
  for (int64_t at = 0; at < b->n; at++) {
    const laci_sparse_tile *tile = &b->g->tiles[b->first + at];
    const float *from = dy + tile->out + item->row_first * stride;
    float *to = b->y + at * LANES;
    for (int64_t row = 0; row < item->n_rows; row++) {
      pack(tile, from + row * stride, to + row * b->pitch);
    }
  }
}

static void pack_columns(const block *b, const laci_sparse_gradient_item *item, const float *x) {
  const int64_t *column_at = b->g->column_at + item->column_first;
  for (int64_t at = 0; at < b->n; at++) {
    const float *from = x + b->g->tiles[b->first + at].in;
    float *to = b->x + at * LANES;
    for (int64_t column = 0; column < item->n_columns; column++) {
      for (int lane = 0; lane < LANES; lane += WIDTH) {
        STORE(to + column * b->pitch + lane, LOAD(from + column_at[column] + lane));
      }
    }
  }
}

/* Some rows of a run. */
static void add_rows(const block *b, const laci_sparse_run *run, const laci_sparse_run_row *row,
                     int n_rows, float *gradient) {
  const float *of_row[MOST_ROWS], *of_column[TOGETHER];
  float sum[2 * LANES];
  for (int c = 0; c < run->n_columns; c++) of_column[c] = b->x + run->column[c] * b->pitch;
  for (int r = 0; r < n_rows; r++) of_row[r] = b->y + row[r].row * b->pitch;
  sums_of[run->n_columns].of_rows[n_rows - 1](of_row, of_column, b->n * LANES, sum);
  for (int r = 0; r < n_rows; r++) {
    float *to = gradient + row[r].k;
    const float *more = sum + (ptrdiff_t)(r * run->n_columns);
    for (int c = 0; c < run->n_columns; c++) to[c] = b->first ? to[c] + more[c] : more[c];
  }
}

static void add_item(const block *b, const laci_sparse_gradient_item *item, float *gradient) {
  const laci_sparse_run_row *row = b->g->rows + item->run_row_first;
  for (int64_t at = item->run_first; at < item[1].run_first; at++) {
    const laci_sparse_run *run = &b->g->runs[at];
    const int most = sums_of[run->n_columns].most;
    for (int done = 0; done < run->n_rows; done += most) {
      const int left = run->n_rows - done;
      add_rows(b, run, row + done, left < most ? left : most, gradient);
    }
    row += run->n_rows;
  }
}

void LACI_VARIANT(laci_sparse_gradient)(const laci_sparse_gradient *g, const laci_sparse_slopes *s,
                                        int64_t first, int64_t last) {
  float *scratch = s->scratch;
  scratch += (LANES - (uintptr_t)scratch / sizeof *scratch % LANES) % LANES;
  block b = {.g = g, .pitch = (g->block | 1) * LANES, .x = scratch};
  b.y = b.x + WINDOW * b.pitch;
  do {
    const laci_sparse_gradient_item *packed = NULL;
    b.n = g->n_tiles - b.first < g->block ? g->n_tiles - b.first : g->block;
    for (int64_t at = first; at < last; at++) {
      const laci_sparse_gradient_item *item = &g->items[at];
      if (!packed || packed->row_first != item->row_first) pack_rows(&b, item, s->dy);
      packed = item;
      pack_columns(&b, item, s->x);
      add_item(&b, item, s->gradient);
    }
    b.first += b.n;
  } while (b.first < g->n_tiles);
}

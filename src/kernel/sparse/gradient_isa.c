/* SPDX-License-Identifier: Apache-2.0
 * The gradient of gradient.h, compiled for every instruction set. It first packs dy of a block of
 * tiles row by row, and with bf16 x column by column. So x of a window stays in the first-level
 * cache, and dy of all rows of an item in the second. Distances in packed memory are no powers of
 * two, which would map to the same cache set. */
#include <stdbool.h>
#include <stddef.h>

#include "base/divide.h"
#include "kernel/sparse/gradient.h"
#include "kernel/variants.h"

/* When compiled for AVX512-BF16, this is the variant for bf16. */
#if defined(__AVX512BF16__)
enum { PAIRS = 1 };
#else
enum { PAIRS = 0 };
#endif
#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDTH = 16 };
typedef __m512 vector;
/* X(rows, columns): all pairs of a number of rows and a number of columns whose sums are computed
 * at once, in registers. */
#define ROWS_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define ROWS_2(X) \
  X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#define ROWS_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3)
#define ROWS_4(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#define ZERO() _mm512_setzero_ps()
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)
#if defined(__AVX512BF16__)
#define FMA(a, b, sum) \
  _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b))
#else
#define FMA(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#endif
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
enum {
  LANES = LACI_SPARSE_LANES,
  VECTORS = LANES / WIDTH,
  WINDOW = LACI_SPARSE_WINDOW,
  TOGETHER = LACI_SPARSE_RUN_MAX_COLUMNS
};
enum { MOST_ROWS = 12, MOST_SUMS = 24 };

/* ---- The sums of a block ---- */

/* The operands of the sums for some rows and columns, and the array to which the sums are
 * written. */
typedef struct gradient_work {
  const laci_sparse_tile *tiles; /* [n] the tiles of the block */
  int64_t n, n_steps, pitch;
  const float *y;           /* packed dy: [row][part][pitch]. A part is a vector of a tile's 16
                               lanes; pitch floats hold that part of every tile */
  const float *x[TOGETHER]; /* value of each column in the tile at offset 0; other tiles follow at
                               tile.in. With bf16, packed like y */
  float *gradient;
  bool accumulates;      /* true: gradients hold the sums of earlier blocks, and are added to */
  const float *prefetch; /* for each tile, the cache line at prefetch + *prefetch_at is prefetched;
                            NULL: nothing is prefetched */
  const int64_t *prefetch_at; /* points to the field `in` or `out` of the first tile whose line is
                                 prefetched */
} gradient_work;
enum { APART = sizeof(laci_sparse_tile) / sizeof(int64_t), STEP = 1 + PAIRS };

/* Computes one part (vector) of each sum for some rows and columns. rows and columns are constants
 * where this is inlined, so that sums stay in registers. */
static inline __attribute__((always_inline)) void sum_products(const gradient_work *w,
                                                               const laci_sparse_run_row *row,
                                                               int part, const int rows,
                                                               const int columns, vector *sum) {
  const float *of_row[MOST_ROWS], *of_column[TOGETHER];
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) of_row[r] = w->y + (row[r].row * VECTORS + part) * w->pitch;
#pragma GCC unroll 16
  for (int c = 0; c < columns; c++) of_column[c] = w->x[c] + (ptrdiff_t)(part * WIDTH);
#pragma GCC unroll 32
  for (int at = 0; at < rows * columns; at++) sum[at] = ZERO();
  const float *ahead = w->prefetch;
  const int64_t *ahead_at = w->prefetch_at;
  const laci_sparse_tile *tile = w->tiles;
  for (int64_t at = 0; at < w->n_steps * WIDTH;
       at += WIDTH, tile += STEP, ahead_at += (ptrdiff_t)(STEP * APART)) {
    vector in[TOGETHER];
    if (ahead) __builtin_prefetch(ahead + *ahead_at, 0, 2);
#pragma GCC unroll 16
    for (int c = 0; c < columns; c++) in[c] = LOAD(of_column[c] + (PAIRS ? at : tile->in));
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

/* Adds the 16 lanes of each of n sums: first halves, then quarters and so on. In the end 16 sums
 * are one vector, which is transposed as a 4 x 4 matrix. */
static inline __attribute__((always_inline)) void add_lanes_of_sums(const vector *sum, const int n,
                                                                    float *to) {
  const __m512i transposed =
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
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
  STORE(to, _mm512_permutexvar_ps(transposed, all));
}

static inline __attribute__((always_inline)) void sum_row_products(const gradient_work *w,
                                                                   const laci_sparse_run_row *row,
                                                                   const int rows,
                                                                   const int columns, float *to) {
  vector sum[MOST_SUMS];
  sum_products(w, row, 0, rows, columns, sum);
  add_lanes_of_sums(sum, rows * columns < LANES ? rows * columns : LANES, to);
  if (rows * columns > LANES) add_lanes_of_sums(sum + LANES, rows * columns - LANES, to + LANES);
}

#else

/* Computes the sums of some rows and columns: for one part (vector) of the 16 lanes after the
 * other, then adds the lanes. */
static inline __attribute__((always_inline)) void sum_row_products(const gradient_work *w,
                                                                   const laci_sparse_run_row *row,
                                                                   const int rows,
                                                                   const int columns, float *to) {
  float lanes[MOST_SUMS][LANES];
  for (int part = 0; part < VECTORS; part++) {
    vector sum[MOST_SUMS];
    sum_products(w, row, part, rows, columns, sum);
#pragma GCC unroll 32
    for (int at = 0; at < rows * columns; at++) STORE(&lanes[at][part * WIDTH], sum[at]);
  }
  for (int at = 0; at < rows * columns; at++) {
    float *sums = lanes[at];
    for (int lane = 0; lane < 8; lane++) sums[lane] += sums[lane + 8];
    for (int lane = 0; lane < 4; lane++) sums[lane] += sums[lane + 4];
    to[at] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
}

#endif

/* ---- A function for each number of rows and columns ---- */

static inline __attribute__((always_inline)) void add_row_sums(const gradient_work *w,
                                                               const laci_sparse_run_row *row,
                                                               const int rows, const int columns) {
  float sum[2 * LANES];
  sum_row_products(w, row, rows, columns, sum);
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
    float *to = w->gradient + row[r].k;
#pragma GCC unroll 16
    for (int c = 0; c < columns; c++) {
      to[c] = w->accumulates ? to[c] + sum[r * columns + c] : sum[r * columns + c];
    }
  }
}

typedef void add_function(const gradient_work *w, const laci_sparse_run_row *row);

#define DEFINE(rows, columns)                                                                     \
  static void add_##rows##_by_##columns(const gradient_work *w, const laci_sparse_run_row *row) { \
    add_row_sums(w, row, rows, columns);                                                          \
  }
ROWS_1(DEFINE)
ROWS_2(DEFINE)
ROWS_3(DEFINE)
ROWS_4(DEFINE)
#undef DEFINE

#define NAME(rows, columns) add_##rows##_by_##columns,
static add_function *const of_1[] = {ROWS_1(NAME)}, *const of_2[] = {ROWS_2(NAME)},
                           *const of_3[] = {ROWS_3(NAME)}, *const of_4[] = {ROWS_4(NAME)};
#undef NAME

/* For each number of columns: a function for each number of rows, from 1 to `most`. */
static const struct {
  add_function *const *of_rows;
  int most;
} adds_of[TOGETHER + 1] = {{NULL, 0},
                           {of_1, sizeof of_1 / sizeof *of_1},
                           {of_2, sizeof of_2 / sizeof *of_2},
                           {of_3, sizeof of_3 / sizeof *of_3},
                           {of_4, sizeof of_4 / sizeof *of_4}};

/* ---- Packing ---- */

#if defined(__AVX512F__)

/* Loads 16 lanes of dy for a tile; lanes that are not results become zero. */
static inline vector load_result_gradients(const laci_sparse_tile *tile, const float *from) {
  return _mm512_maskz_loadu_ps((__mmask16)tile->lanes, from);
}
#else

static inline void pack_tile(const laci_sparse_tile *tile, const float *from, float *to,
                             int64_t pitch) {
  float lanes[LANES];
  if (~tile->lanes & LACI_SPARSE_ALL_LANES) {
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = tile->lanes >> lane & 1 ? from[lane] : 0;
    from = lanes;
  }
  for (int part = 0; part < VECTORS; part++) {
    STORE(to + part * pitch, LOAD(from + (ptrdiff_t)(part * WIDTH)));
  }
}
#endif

#if defined(__AVX512BF16__)

/* first and second are vectors of two tiles, in which each bf16 pair holds two neighbouring rows
 * (or columns). Stores in `even` the pairs (first tile, second tile) of the even row, and in `odd`
 * those of the odd row. */
static inline void store_tile_pairs(vector first, vector second, float *even, float *odd) {
  const __m512i a = _mm512_castps_si512(first), b = _mm512_castps_si512(second);
  const __mmask32 upper = 0xAAAAAAAA;
  const __m512i low = _mm512_mask_blend_epi16(upper, a, _mm512_slli_epi32(b, 16));
  STORE(even, _mm512_castsi512_ps(low));
  if (!odd) return;
  const __m512i high = _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(a, 16), b);
  STORE(odd, _mm512_castsi512_ps(high));
}

static void pack_result_rows(const gradient_work *w, const laci_sparse_gradient *g,
                             const laci_sparse_gradient_item *item, const float *dy, float *y) {
  for (int64_t at = 0; at < w->n; at += STEP, y += LANES) {
    const laci_sparse_tile *tile = &w->tiles[at];
    const bool two = at + 1 < w->n;
    for (int64_t row = 0; row < item->n_rows; row += STEP) {
      const float *from = dy + (item->row_first + row) / STEP * g->row_stride;
      const vector first = load_result_gradients(tile, from + tile->out);
      const vector second = two ? load_result_gradients(tile + 1, from + tile[1].out) : ZERO();
      float *to = y + row * w->pitch;
      store_tile_pairs(first, second, to, row + 1 < item->n_rows ? to + w->pitch : NULL);
    }
  }
}

static void pack_input_columns(const gradient_work *w, const laci_sparse_gradient *g,
                               const laci_sparse_gradient_item *item, const float *from, float *x) {
  const int64_t *column_at = g->column_at + item->column_first;
  for (int64_t at = 0; at < w->n; at += STEP, x += LANES) {
    const laci_sparse_tile *tile = &w->tiles[at];
    for (int64_t column = 0; column < item->n_columns; column += STEP) {
      const float *place = from + column_at[column];
      const vector first = LOAD(place + tile->in);
      const vector second = at + 1 < w->n ? LOAD(place + tile[1].in) : ZERO();
      store_tile_pairs(first, second, x + column * w->pitch, x + (column + 1) * w->pitch);
    }
  }
}
#else

static void pack_result_rows(const gradient_work *w, const laci_sparse_gradient *g,
                             const laci_sparse_gradient_item *item, const float *dy, float *y) {
  for (int64_t at = 0; at < w->n; at++, y += WIDTH) {
    const laci_sparse_tile *tile = &w->tiles[at];
    const float *from = dy + tile->out + item->row_first * g->row_stride;
    for (int64_t row = 0; row < item->n_rows; row++, from += g->row_stride) {
#if defined(__AVX512F__)
      STORE(y + row * w->pitch, load_result_gradients(tile, from));
#else
      pack_tile(tile, from, y + row * VECTORS * w->pitch, w->pitch);
#endif
    }
  }
}
#endif

/* ---- Blocks ---- */

/* The state of computing a work item. */
typedef struct block {
  const laci_sparse_gradient *g;
  const laci_sparse_gradient_operands *s;
  float *x, *y; /* packed values of x (with bf16 only), and of dy */
  /* The packed rows are those of items [item_first, item_last). While these are computed, two
   * things are prefetched: the rows next_rows that are packed next, and x for next_item. NULL:
   * there is no next one. */
  int64_t item_first, item_last;
  const laci_sparse_gradient_item *next_item, *next_rows;
  const laci_sparse_tile *next_tiles, *next_rows_tiles;
  int64_t prefetched_lines; /* number of runs of this item so far; each run prefetches one cache
                               line of every tile */
  int64_t prefetch_columns, prefetch_row, prefetch_row_end;
} block;

/* Returns gradient_work.prefetch_at for a column or row `place`: the address of the given member
 * (`in` or `out`) in the first tile. With bf16, where tiles are taken two at a time, odd places use
 * the second tile. */
static const int64_t *find_member_offsets(const block *b, const gradient_work *w,
                                          const laci_sparse_tile *tiles, const int64_t *member,
                                          int64_t place) {
  const bool all = tiles - b->g->tiles + w->n_steps * STEP <= b->g->n_tiles;
  return all ? member + place % STEP * APART : member;
}

/* Chooses what the next run of rows prefetches. The first runs of an item each prefetch a column of
 * the next item. The later runs each prefetch a row that will be packed next. */
static void choose_rows_to_prefetch(block *b, gradient_work *w) {
  const int64_t at = b->prefetched_lines++, row = at - b->prefetch_columns + b->prefetch_row;
  w->prefetch = NULL;
  w->prefetch_at = &w->tiles->in;
  if (at < b->prefetch_columns) {
    w->prefetch = b->s->x + b->g->column_at[b->next_item->column_first + at];
    w->prefetch_at = find_member_offsets(b, w, b->next_tiles, &b->next_tiles->in, at);
  } else if (row < b->prefetch_row_end) {
    w->prefetch = b->s->dy + (b->next_rows->row_first + row) / STEP * b->g->row_stride;
    w->prefetch_at = find_member_offsets(b, w, b->next_rows_tiles, &b->next_rows_tiles->out, row);
  }
}

static void set_prefetch_start(block *b, int64_t at) {
  const int64_t share = at - b->item_first, shares = b->item_last - b->item_first;
  const int64_t n_rows = b->next_rows ? b->next_rows->n_rows : 0;
  b->prefetched_lines = 0;
  b->prefetch_columns = b->next_item ? b->next_item->n_columns : 0;
  b->prefetch_row = n_rows * share / shares;
  b->prefetch_row_end = n_rows * (share + 1) / shares;
}

static void add_item_sums(block *b, int64_t item_at, gradient_work *w) {
  const laci_sparse_gradient_item *item = &b->g->items[item_at];
  const laci_sparse_run_row *row = b->g->rows + item->run_row_first;
  const float *columns[WINDOW];
#if defined(__AVX512BF16__)
  pack_input_columns(w, b->g, item, b->s->x, b->x);
  for (int64_t c = 0; c < item->n_columns; c++) columns[c] = b->x + c * w->pitch;
#else
  for (int64_t c = 0; c < item->n_columns; c++) {
    columns[c] = b->s->x + b->g->column_at[item->column_first + c];
  }
#endif
  set_prefetch_start(b, item_at);
  for (int64_t at = item->run_first; at < item[1].run_first; at++) {
    const laci_sparse_run *run = &b->g->runs[at];
    const int most = adds_of[run->n_columns].most;
    for (int c = 0; c < run->n_columns; c++) w->x[c] = columns[run->column[c]];
    for (int left = run->n_rows, n; left > 0; left -= n, row += n) {
      n = left < most ? left : most;
      choose_rows_to_prefetch(b, w);
      adds_of[run->n_columns].of_rows[n - 1](w, row);
    }
  }
}

/* Packs dy for the rows of item items[1]. The items after it, up to items[2], may have the same
 * rows and then share them. items[0]: first item of this call. after: first tile of the next block;
 * NULL: there is none. */
static void pack_rows_of_item(block *b, const int64_t items[3], const gradient_work *w,
                              const laci_sparse_tile *after) {
  const int64_t first = items[0], at = items[1], last = items[2];
  const laci_sparse_gradient_item *all = b->g->items;
  b->item_first = b->item_last = at;
  while (b->item_last < last && all[b->item_last].row_first == all[at].row_first) b->item_last++;
  pack_result_rows(w, b->g, &all[at], b->s->dy, b->y);
  b->next_rows_tiles = b->item_last < last ? w->tiles : after;
  b->next_rows = b->next_rows_tiles ? &all[b->item_last < last ? b->item_last : first] : NULL;
}

void LACI_VARIANT(laci_sparse_gradient)(const laci_sparse_gradient *g,
                                        const laci_sparse_gradient_operands *s, int64_t first,
                                        int64_t last) {
  gradient_work w = {.pitch = (laci_ceil_div(g->block, STEP) | 1) * WIDTH, .gradient = s->gradient};
  float *x = s->scratch + (LANES - (uintptr_t)s->scratch / sizeof *x % LANES) % LANES;
  block b = {.g = g, .s = s, .x = x, .y = x + (PAIRS ? WINDOW * w.pitch : 0)};
  int64_t done = 0;
  w.y = b.y;
  do {
    w.n = g->n_tiles - done < g->block ? g->n_tiles - done : g->block;
    w.n_steps = laci_ceil_div(w.n, STEP);
    w.tiles = g->tiles + done;
    w.accumulates = done > 0;
    done += w.n;
    const laci_sparse_tile *after = done + w.n <= g->n_tiles && w.n ? w.tiles + w.n : NULL;
    b.item_last = first;
    for (int64_t at = first; at < last; at++) {
      if (at == b.item_last) pack_rows_of_item(&b, (const int64_t[]){first, at, last}, &w, after);
      b.next_tiles = at + 1 < last ? w.tiles : after;
      b.next_item = b.next_tiles ? &g->items[at + 1 < last ? at + 1 : first] : NULL;
      add_item_sums(&b, at, &w);
    }
  } while (done < g->n_tiles);
}

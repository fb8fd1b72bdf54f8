/* SPDX-License-Identifier: Apache-2.0
 * The kernel of grouped_rows.h, compiled for every instruction set, the scalar reference
 * included. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/grouped_rows.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/variants.h"

enum {
  LANES = LACI_SPARSE_LANES,
  KEPT = LACI_GROUPED_ROWS_KEPT,
  UNITS = LACI_GROUPED_ROWS_UNITS,
#if defined(__AVX512F__)
  UNIT = LANES,
#else
  UNIT = LANES / 2,
#endif
  APART = UNITS * UNIT, /* number of floats from the sums of one row to those of the next */
  ROUNDED = LANES,      /* sums are also processed as whole tiles, and so this many floats follow
                           the last one */
};

/* A strip: the units (vectors of lanes) that are computed together, in registers. */
typedef struct strip {
  const float *x[UNITS]; /* address of each unit's first lane in x */
  float *y[UNITS];       /* y[u]: address of unit u's results of the first row. residual[u]: address
                            of what is added to them */
  const float *residual[UNITS];
  uint64_t lanes[UNITS]; /* lanes[u] has a bit for each lane of unit u that is a result */
  bool around[UNITS];    /* around[u]: zeros may be written to the lanes of unit u that are not
                            results */
  int n;
  int64_t row_stride, n_rows;
  float *sums; /* [row][unit][lane] sums of all rows, for the units of a strip */
} strip;

/* Where the next data of a chunk are read. */
typedef struct stream {
  const laci_grouped_rows_columns *columns;
  const uint16_t *sums;
  const float *weights;
  const laci_grouped_rows_single *singles;
} stream;

#define UNROLL _Pragma("GCC unroll 32")

#ifdef ALL
enum {
  EACH = UNIT / WIDTH,
  LINE = 64 / (int)sizeof(float),
  AWAY = 1024 /* weights are prefetched this many weights before they are used */
};

/* Adds the products of a row group to its rows' sums. n_units and size (number of rows) are
 * constants where this is inlined, so that x and sums stay in registers. */
static inline __attribute__((always_inline)) void add_products_of_row_group(const strip *s,
                                                                            stream *from,
                                                                            const int n_units,
                                                                            const int size) {
  vector x[KEPT][UNITS * EACH];
  UNROLL for (int k = 0; k < KEPT; k++) {
    const int64_t at = from->columns->at[k];
    UNROLL for (int v = 0; v < n_units * EACH; v++) {
      x[k][v] = LOAD(s->x[v / EACH] + at + (int64_t)(v % EACH * WIDTH));
    }
  }
  UNROLL for (int row = 0; row < size; row++) {
    float *sums = s->sums + from->sums[row];
    vector sum[UNITS * EACH];
    UNROLL for (int v = 0; v < n_units * EACH; v++) sum[v] = LOAD(sums + (int64_t)(v * WIDTH));
    UNROLL for (int k = 0; k < KEPT; k++) {
      const vector weight = ALL(from->weights[row * KEPT + k]);
      UNROLL for (int v = 0; v < n_units * EACH; v++) sum[v] = FMA(weight, x[k][v], sum[v]);
    }
    UNROLL for (int v = 0; v < n_units * EACH; v++) STORE(sums + (int64_t)(v * WIDTH), sum[v]);
  }
  __builtin_prefetch(from->weights + AWAY, 0, 2);
  if (size * KEPT > LINE) __builtin_prefetch(from->weights + AWAY + LINE, 0, 2);
  from->columns++;
  from->sums += size;
  from->weights += (ptrdiff_t)size * KEPT;
}

#else
static void add_products_of_row_group(const strip *s, stream *from, int n_units, int size) {
  for (int row = 0; row < size; row++, from->sums++, from->weights += KEPT) {
    for (int at = 0; at < n_units * UNIT; at++) {
      float *sum = s->sums + *from->sums + at;
      for (int k = 0; k < KEPT; k++) {
        const float *x = s->x[at / UNIT] + from->columns->at[k] + (ptrdiff_t)(at % UNIT);
        *sum = fmaf(from->weights[k], *x, *sum);
      }
    }
  }
  from->columns++;
}
#endif

static void add_products_of_single_weights(const strip *s, const laci_grouped_rows_single *single,
                                           int64_t n) {
  for (const laci_grouped_rows_single *end = single + n; single < end; single++) {
    for (int unit = 0; unit < s->n; unit++) {
      float *sums = s->sums + single->sums + (ptrdiff_t)(unit * UNIT);
      const float *x = s->x[unit] + single->at;
      for (int lane = 0; lane < UNIT; lane++) {
        sums[lane] = fmaf(single->weight, x[lane], sums[lane]);
      }
    }
  }
}

/* Adds the products of all row groups with `size` rows. */
#define GROUPED_ROWS(n_units, size)               \
  for (int32_t at = w->n[(size)-1]; at > 0; at--) \
    add_products_of_row_group(s, &from, n_units, size);

/* Prefetches results and residuals of rows [first, last) into the second-level cache. Each window
 * prefetches some rows; otherwise the end of the chunk would wait for all of them. */
static void prefetch_results(const strip *s, int64_t first, int64_t last) {
  for (int unit = 0; unit < s->n; unit++) {
    for (int64_t row = first; row < last; row++) {
      __builtin_prefetch(s->y[unit] + row * s->row_stride, 1, 2);
      if (s->residual[unit]) __builtin_prefetch(s->residual[unit] + row * s->row_stride, 0, 2);
    }
  }
}

#define WINDOWS(n_units)                                                                           \
  static void add_windows_##n_units(const strip *s, const laci_grouped_rows_chunk *c, int64_t n) { \
    stream from = {c->columns, c->sums, c->weights, c->singles};                                   \
    for (int64_t window = 0; window < n; window++) {                                               \
      const laci_grouped_rows_window *w = c->windows + window;                                     \
      GROUPED_ROWS(n_units, 8)                                                                     \
      GROUPED_ROWS(n_units, 7)                                                                     \
      GROUPED_ROWS(n_units, 6)                                                                     \
      GROUPED_ROWS(n_units, 5)                                                                     \
      GROUPED_ROWS(n_units, 4)                                                                     \
      GROUPED_ROWS(n_units, 3)                                                                     \
      GROUPED_ROWS(n_units, 2)                                                                     \
      GROUPED_ROWS(n_units, 1)                                                                     \
      if (w->n_singles > 0) add_products_of_single_weights(s, from.singles, w->n_singles);         \
      from.singles += w->n_singles;                                                                \
      prefetch_results(s, window * s->n_rows / n, (window + 1) * s->n_rows / n);                   \
    }                                                                                              \
  }
WINDOWS(1)
WINDOWS(2)
WINDOWS(3)

/* ---- Results ---- */

enum { ALL_OF_UNIT = (1 << UNIT) - 1 };

static inline void store_result_lanes(float *to, const float *from, uint64_t lanes, bool around) {
  for (int lane = 0; lane < UNIT; lane++) {
    if (lanes >> lane & 1) to[lane] = from[lane];
    else if (around) to[lane] = 0;
  }
}

static void store_result_vector(const strip *s, int unit, const float *from) {
  const bool all = s->lanes[unit] == ALL_OF_UNIT;
  float *y = s->y[unit];
  for (int64_t row = 0; row < s->n_rows; row++, y += s->row_stride, from += APART) {
    if (all) memcpy(y, from, UNIT * sizeof *y);
    else store_result_lanes(y, from, s->lanes[unit], s->around[unit]);
  }
}

/* Copies the residual of a unit (vector of lanes), in the order of its sums, to `to`. Lanes that
 * are not results become 0. */
static void copy_residual(const strip *s, int unit, float *to) {
  const float *from = s->residual[unit];
  for (int64_t row = 0; row < s->n_rows; row++, from += s->row_stride, to += APART) {
    if (s->lanes[unit] == ALL_OF_UNIT) memcpy(to, from, UNIT * sizeof *to);
    else store_result_lanes(to, from, s->lanes[unit], true);
  }
}

/* Applies the clip, residual and functions to the sums in place, and stores the results. For this
 * the sums are treated as contiguous tiles: the order of lanes does not matter here. */
static void apply_functions_and_store(const strip *s, const laci_sparse_operands *o) {
  float residual[LACI_GROUPED_ROWS_FLOATS + ROUNDED], results[LACI_GROUPED_ROWS_FLOATS + ROUNDED];
  const int64_t n = (s->n_rows * APART + LANES - 1) / LANES;
  const laci_sparse_tile tile = {.lanes = LACI_SPARSE_ALL_LANES};
  const laci_sparse_part part = {&tile, 0, 1, 0, n};
  laci_sparse_operands here = *o;
  here.y = results;
  if (o->residual) {
    memset(residual, 0, (size_t)(n * LANES) * sizeof *residual);
    for (int unit = 0; unit < s->n; unit++) {
      copy_residual(s, unit, residual + (ptrdiff_t)(unit * UNIT));
    }
    here.residual = residual;
  }
  LACI_VARIANT(laci_sparse_finish)(&here, LANES, LACI_SPARSE_F32, &part, s->sums);
  for (int unit = 0; unit < s->n; unit++) {
    store_result_vector(s, unit, results + (ptrdiff_t)(unit * UNIT));
  }
}

#ifdef ALL
/* Clips the sums of a unit (vector of lanes) and stores them as results, in whole vectors. Only for
 * products where no function follows the clip. */
static void clip_and_store_vector(const strip *s, const laci_sparse_operands *o, int unit) {
  const vector low = ALL(o->low), high = ALL(o->high);
  const bool all = s->lanes[unit] == ALL_OF_UNIT;
  const float *from = s->sums + (ptrdiff_t)(unit * UNIT), *residual = s->residual[unit];
  float *y = s->y[unit], lanes[UNIT];
  for (int lane = 0; lane < UNIT; lane++) {
    const uint32_t bits = s->lanes[unit] >> lane & 1 ? UINT32_MAX : 0;
    memcpy(&lanes[lane], &bits, sizeof bits);
  }
  for (int64_t row = 0; row < s->n_rows; row++, from += APART) {
    const int64_t place = row * s->row_stride;
    UNROLL for (int at = 0; at < UNIT; at += WIDTH) {
      vector v = LOAD(from + at);
      if (residual) v = ADD(v, LOAD(residual + place + at));
      v = SMALLER(high, LARGER(low, v));
      if (!all) v = BOTH(v, LOAD(lanes + at));
      STORE(y + place + at, v);
    }
  }
}

static bool has_only_result_lanes(const strip *s) {
  bool whole = true;
  for (int unit = 0; unit < s->n; unit++) {
    whole = whole && (s->lanes[unit] == ALL_OF_UNIT || s->around[unit]);
  }
  return whole;
}
#endif

/* ---- A strip of vectors ---- */

static void set_vector_addresses(const laci_grouped_rows *b, const laci_sparse_operands *o,
                                 int64_t row, const laci_sparse_tile *tiles, int64_t first,
                                 strip *s) {
  enum { OF_TILE = LANES / UNIT };
  for (int at = 0; at < s->n; at++) {
    const laci_sparse_tile *tile = &tiles[(first + at) / OF_TILE];
    const int64_t lane = (first + at) % OF_TILE * UNIT;
    const int64_t out = tile->out + row * b->row_stride + lane;
    s->x[at] = o->x + tile->in + lane;
    s->y[at] = o->y + out;
    s->residual[at] = o->residual ? o->residual + out : NULL;
    s->lanes[at] = tile->lanes >> lane & ALL_OF_UNIT;
    s->around[at] = (tile->lanes & LACI_SPARSE_ZEROS_AROUND) != 0;
  }
}

static void set_sums_to_bias(const strip *s, const float *bias) {
  for (int64_t row = 0; row < s->n_rows; row++) {
    for (int at = 0; at < APART; at++) s->sums[row * APART + at] = bias[row];
  }
  memset(s->sums + s->n_rows * APART, 0, ROUNDED * sizeof *s->sums);
}

static void store_all_results(const strip *s, const laci_sparse_operands *o) {
#ifdef ALL
  if (laci_sparse_is_only_clipped(o) && has_only_result_lanes(s)) {
    for (int unit = 0; unit < s->n; unit++) clip_and_store_vector(s, o, unit);
    return;
  }
#endif
  apply_functions_and_store(s, o);
}

void LACI_VARIANT(laci_grouped_rows)(const laci_grouped_rows *b, const laci_sparse_operands *o,
                                     int64_t chunk, const laci_sparse_tile *tiles, int64_t first,
                                     int64_t last) {
  const laci_grouped_rows_chunk *c = &b->chunks[chunk];
  _Alignas(64) float sums[LACI_GROUPED_ROWS_FLOATS + ROUNDED];
  strip s = {.n = (int)(last - first),
             .row_stride = b->row_stride,
             .n_rows = c->row_last - c->row_first,
             .sums = sums};
  set_vector_addresses(b, o, c->row_first, tiles, first, &s);
  set_sums_to_bias(&s, o->bias + c->row_first);
  if (s.n == 1) add_windows_1(&s, c, b->n_windows);
  else if (s.n == 2) add_windows_2(&s, c, b->n_windows);
  else add_windows_3(&s, c, b->n_windows);
  store_all_results(&s, o);
}

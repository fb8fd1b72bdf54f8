/* SPDX-License-Identifier: Apache-2.0
 * The CSR kernel of csr.h, compiled for every instruction set, the scalar reference included. Each
 * entry of a row is multiplied with all vectors of a strip (a few tiles) at once. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/csr.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/variants.h"

enum { LANES = LACI_SPARSE_LANES };

/* A strip: the tiles that are computed together. */
typedef struct strip {
  const float *x[LACI_CSR_MOST_TILES]; /* address of each tile's lane 0 in x */
  float *y[LACI_CSR_MOST_TILES];       /* y[t]: address of tile t's results of the first row.
                                          residual[t]: address of what is added to them; NULL:
                                          nothing is added */
  const float *residual[LACI_CSR_MOST_TILES];
  int64_t apart;          /* number of floats from one tile's sums to the next tile's */
  int n_tiles, n_vectors; /* n_vectors: number of vectors in all tiles; of the last tile, only the
                             first half may count */
  bool all_lanes;         /* true: every lane is a result. false: `lanes` holds a mask of the lanes
                             that are results, and the other lanes are stored as zero */
  float lanes[LACI_CSR_MOST_TILES * LANES];
} strip;

/* The entries (weight and column) of one block of columns, for the rows of a chunk, and how the
 * rows' sums begin and end. */
typedef struct block {
  const laci_csr_entry *entries;
  const int64_t *begin; /* [n_rows + 1] index in `entries` at which each row begins */
  int64_t n_rows;
  const float *bias;  /* [n_rows] bias with which each row's sum begins; NULL: the sums continue
                         from an earlier block */
  float *sums;        /* [row][16] sums of the first tile */
  bool finishes;      /* true: this is the last block, and its sums, clipped, are written to y.
                         false: they are written to `sums`, for the next block or for
                         laci_sparse_finish (other functions than the clip, and partial tiles) */
  bool adds;          /* true: a residual is added to each result */
  int64_t row_stride; /* number of floats of y from one row to the next */
  float low, high;
} block;

#ifdef ALL
enum {
  EACH = LANES / WIDTH,
  AWAY = 128,    /* entries are prefetched this many entries before they are read: a kilobyte */
  EACH_LINE = 8, /* number of entries in a cache line */
};

static inline int64_t sums_offset(const strip *s, int at) {
  return at / EACH * s->apart + (int64_t)(at % EACH * WIDTH);
}

static inline __attribute__((always_inline)) void store_results(const strip *s, const block *b,
                                                                int64_t row, const vector *sum,
                                                                const int n) {
  const vector low = ALL(b->low), high = ALL(b->high);
#pragma GCC unroll 64
  for (int at = 0; at < n; at++) {
    const int64_t place = row * b->row_stride + (int64_t)(at % EACH * WIDTH);
    vector v = sum[at];
    if (b->adds) v = ADD(v, LOAD(s->residual[at / EACH] + place));
    v = SMALLER(high, LARGER(low, v));
    if (!s->all_lanes) v = BOTH(v, LOAD(s->lanes + (int64_t)(at * WIDTH)));
    STORE(s->y[at / EACH] + place, v);
  }
}

/* Adds the entries of one row. n is a constant where this is inlined, so that sums stay in
 * registers. */
static inline __attribute__((always_inline)) void add_entries_of_row(const strip *s, const block *b,
                                                                     int64_t row, const int n) {
  float *sums = b->sums + row * LANES;
  const laci_csr_entry *e = b->entries + b->begin[row], *end = b->entries + b->begin[row + 1];
  const float *x[LACI_CSR_MOST_TILES];
  vector sum[LACI_CSR_MOST_TILES * EACH];
  for (const laci_csr_entry *f = e; f < end; f += EACH_LINE) __builtin_prefetch(f + AWAY);
#pragma GCC unroll 64
  for (int at = 0; at < n; at++) {
    if (at % EACH == 0) x[at / EACH] = s->x[at / EACH];
    sum[at] = b->bias ? ALL(b->bias[row]) : LOAD(sums + sums_offset(s, at));
  }
  for (; e < end; e++) {
    const vector weight = ALL(e->weight);
    const int64_t from = e->at;
#pragma GCC unroll 64
    for (int at = 0; at < n; at++) {
      sum[at] = FMA(weight, LOAD(x[at / EACH] + from + (int64_t)(at % EACH * WIDTH)), sum[at]);
    }
  }
  if (b->finishes) {
    store_results(s, b, row, sum, n);
    return;
  }
#pragma GCC unroll 64
  for (int at = 0; at < n; at++) STORE(sums + sums_offset(s, at), sum[at]);
}

#define CASE(n)                                                                     \
  case n:                                                                           \
    for (int64_t row = 0; row < b->n_rows; row++) add_entries_of_row(s, b, row, n); \
    break;

static void add_entries_of_column_block(const strip *s, const block *b) {
  switch (s->n_vectors) {
#if defined(__ARM_NEON)
    CASE(4) CASE(8) CASE(12) CASE(16)
#else
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    CASE(8)
#if !defined(__AVX512F__)
    CASE(9) CASE(10)
#endif
#endif
  }
}

/* Returns the number of vectors that n tiles have. The second half of the last tile is left out if
 * none of its lanes is a result. */
static int count_vectors(const laci_sparse_tile *tiles, int64_t n) {
  const uint64_t upper = tiles[n - 1].lanes & LACI_SPARSE_ALL_LANES & ~(uint64_t)0xFF;
  return (int)n * EACH - (WIDTH == 8 && !upper);
}

#else
enum { EACH = 1, WIDTH = 1 };

static void add_entries_of_row(const strip *s, const block *b, int64_t row) {
  for (int t = 0; t < s->n_tiles; t++) {
    float *sums = b->sums + t * s->apart + row * LANES;
    for (int lane = 0; lane < LANES && b->bias; lane++) sums[lane] = b->bias[row];
    for (int64_t k = b->begin[row]; k < b->begin[row + 1]; k++) {
      const float *x = s->x[t] + b->entries[k].at;
      for (int lane = 0; lane < LANES; lane++) {
        sums[lane] = fmaf(b->entries[k].weight, x[lane], sums[lane]);
      }
    }
  }
}

static void add_entries_of_column_block(const strip *s, const block *b) {
  for (int64_t row = 0; row < b->n_rows; row++) add_entries_of_row(s, b, row);
}

static int count_vectors(const laci_sparse_tile *tiles, int64_t n) {
  (void)tiles;
  return (int)n;
}
#endif

/* Can results be stored as whole vectors? They can if no function follows the clip, and zeros may
 * be written to the lanes that are not results. */
static bool can_store_whole_vectors(const laci_sparse_operands *o, const laci_sparse_tile *tiles,
                                    int64_t n_tiles) {
  bool whole = WIDTH > 1 && laci_sparse_is_only_clipped(o);
  for (int64_t t = 0; t < n_tiles; t++) {
    const bool all = (~tiles[t].lanes & LACI_SPARSE_ALL_LANES) == 0;
    whole = whole && (all || tiles[t].lanes & LACI_SPARSE_ZEROS_AROUND);
  }
  return whole;
}

static void set_tile_addresses(const laci_csr *csr, const laci_sparse_operands *o, int64_t row,
                               const laci_sparse_tile *tile, strip *s) {
  const int64_t at = s->n_tiles++, out = tile->out + row * csr->row_stride;
  s->x[at] = o->x + tile->in;
  s->y[at] = o->y + out;
  s->residual[at] = o->residual ? o->residual + out : NULL;
  s->all_lanes = s->all_lanes && (~tile->lanes & LACI_SPARSE_ALL_LANES) == 0;
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t bits = tile->lanes >> lane & 1 ? UINT32_MAX : 0;
    memcpy(&s->lanes[at * LANES + lane], &bits, sizeof bits);
  }
}

void LACI_VARIANT(laci_csr)(const laci_csr *csr, const laci_sparse_operands *o, int64_t chunk,
                            const laci_sparse_tile *tiles, int64_t n_tiles) {
  const laci_csr_chunk *c = &csr->chunks[chunk];
  const int64_t n_rows = c->row_last - c->row_first;
  const bool whole = can_store_whole_vectors(o, tiles, n_tiles);
  float sums[LACI_CSR_MOST_TILES * LACI_CSR_MOST_ROWS * LANES];
  strip s = {.apart = n_rows * LANES, .all_lanes = true};
  for (int64_t t = 0; t < n_tiles; t++) set_tile_addresses(csr, o, c->row_first, &tiles[t], &s);
  s.n_vectors = count_vectors(tiles, n_tiles);
  if (s.n_vectors < (int)n_tiles * EACH) { /* sums of the half tile that count_vectors left out are
                                              read, but never computed */
    memset(sums + (n_tiles - 1) * s.apart, 0, (size_t)s.apart * sizeof *sums);
  }
  for (int64_t at = 0; at < c->n_blocks; at++) {
    const block b = {.entries = csr->entries,
                     .begin = c->begin + at * n_rows,
                     .n_rows = n_rows,
                     .bias = at ? NULL : o->bias + c->row_first,
                     .sums = sums,
                     .finishes = whole && at == c->n_blocks - 1,
                     .adds = o->residual != NULL,
                     .row_stride = csr->row_stride,
                     .low = o->low,
                     .high = o->high};
    add_entries_of_column_block(&s, &b);
  }
  if (whole) return;
  const laci_sparse_part done = {tiles, 0, n_tiles, c->row_first, c->row_last};
  LACI_VARIANT(laci_sparse_finish)(o, csr->row_stride, LACI_SPARSE_F32, &done, sums);
}

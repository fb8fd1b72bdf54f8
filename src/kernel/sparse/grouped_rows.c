/* SPDX-License-Identifier: Apache-2.0
 * Packs the weights of a product in the form of grouped_rows.h: rows that keep the same columns are
 * stored together. */
#include "kernel/sparse/grouped_rows.h"

#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_grouped_rows_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_grouped_rows_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_grouped_rows_run *laci_grouped_rows_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

enum {
  WINDOW = LACI_GROUPED_ROWS_WINDOW,
  KEPT = LACI_GROUPED_ROWS_KEPT,
  MOST = LACI_GROUPED_ROWS_MAX_ROWS,
  UNITS = LACI_GROUPED_ROWS_UNITS,
  PATTERNS = 1 << WINDOW,
  HALF = LACI_SPARSE_LANES / 2,
  MOST_ROWS = LACI_GROUPED_ROWS_FLOATS / (UNITS * HALF),
};

/* Returns the number of lanes in a unit, which is the vector that the kernel computes at once: 16
 * lanes with AVX-512, else 8. */
static int lanes_per_vector(void) {
  return laci_cpu_level_in_force() == LACI_CPU_AVX512 ? LACI_SPARSE_LANES : HALF;
}

int64_t laci_grouped_rows_n_vectors(const laci_sparse_tile *tiles, int64_t n_tiles) {
  if (lanes_per_vector() == LACI_SPARSE_LANES || n_tiles == 0) return n_tiles;
  const uint64_t upper = tiles[n_tiles - 1].lanes & LACI_SPARSE_ALL_LANES;
  return 2 * n_tiles - (upper >> HALF == 0);
}

int64_t laci_grouped_rows_n_strips(int64_t n_units) { return laci_ceil_div(n_units, UNITS); }

/* ---- The kept columns of rows in a window ---- */

/* The rows of a chunk, and their kept weights in the current window of eight columns. Windows are
 * visited in ascending order. */
typedef struct rows {
  const laci_sparse_product *p;
  int64_t first, n;           /* index of the first row of the chunk, and number of its rows */
  int64_t column;             /* index of the first column of the window */
  int64_t next[MOST_ROWS];    /* [n] index of each row's first kept weight after the window */
  int64_t from[MOST_ROWS];    /* [n] index of each row's first kept weight in the window */
  uint8_t pattern[MOST_ROWS]; /* [n] pattern of each row: a bit for each kept column of the window.
                                 0: the row does not keep exactly four */
  int n_rows[PATTERNS];       /* number of rows with each pattern */
  int n_singles;
} rows;

static void start_rows_of_chunk(const laci_sparse_product *p, int64_t first, int64_t n, rows *r) {
  r->p = p;
  r->first = first;
  r->n = n;
  r->column = first / p->rows_together * laci_sparse_columns_per_group(p) - WINDOW;
  for (int64_t row = 0; row < n; row++) r->next[row] = p->row_begin[first + row];
}

static void find_patterns_of_next_window(rows *r) {
  const laci_sparse_product *p = r->p;
  r->column += WINDOW;
  r->n_singles = 0;
  memset(r->n_rows, 0, sizeof r->n_rows);
  for (int64_t row = 0; row < r->n; row++) {
    const int64_t end = p->row_begin[r->first + row + 1];
    int64_t k = r->next[row];
    unsigned pattern = 0;
    for (; k < end && p->column[k] < r->column + WINDOW; k++) {
      pattern |= 1U << (p->column[k] - r->column);
    }
    const int64_t n = k - r->next[row];
    r->from[row] = r->next[row];
    r->next[row] = k;
    r->pattern[row] = n == KEPT ? (uint8_t)pattern : 0;
    if (n == KEPT) r->n_rows[pattern]++;
    else r->n_singles += (int)n;
  }
}

/* The n rows of a pattern are divided into groups as evenly as possible. Returns the number of
 * groups with `size` rows. */
static int count_groups_of_size(int n, int size) {
  const int grouped = (n + MOST - 1) / MOST;
  if (grouped == 0) return 0;
  const int larger = n % grouped;
  if (size == n / grouped) return grouped - larger;
  return size == n / grouped + 1 ? larger : 0;
}

/* ---- Chunks ---- */

typedef struct builder {
  const laci_sparse_product *p;
  const float *weight;
  laci_grouped_rows *b;
  int64_t chunk_rows;
  /* totals of the chunks that were visited: in a first pass all are counted, in a second pass they
     are filled */
  int64_t n_row_groups, n_rows, n_singles, n_windows;
} builder;

/* Adds a window's row groups, their rows, and its single weights to the totals. */
static void add_window_totals(builder *m, const rows *r) {
  for (int pattern = 1; pattern < PATTERNS; pattern++) {
    m->n_row_groups += (r->n_rows[pattern] + MOST - 1) / MOST;
    m->n_rows += r->n_rows[pattern];
  }
  m->n_singles += r->n_singles;
  m->n_windows++;
}

static void append_row_group(builder *m, const rows *r, unsigned pattern, const uint8_t *row,
                             int size) {
  laci_grouped_rows *b = m->b;
  int32_t *at = b->columns[m->n_row_groups++].at;
  for (int column = 0; column < WINDOW; column++) {
    if (pattern >> column & 1) *at++ = (int32_t)m->p->column_at[r->column + column];
  }
  for (int i = 0; i < size; i++, m->n_rows++) {
    b->sums[m->n_rows] = (uint16_t)(row[i] * UNITS * b->lanes);
    memcpy(b->weights + m->n_rows * KEPT, m->weight + r->from[row[i]], KEPT * sizeof(float));
  }
}

static void append_single_weights(builder *m, const rows *r) {
  for (int64_t row = 0; row < r->n; row++) {
    for (int64_t k = r->from[row]; !r->pattern[row] && k < r->next[row]; k++) {
      m->b->singles[m->n_singles++] =
          (laci_grouped_rows_single){(int32_t)m->p->column_at[m->p->column[k]],
                                     (int32_t)row * UNITS * m->b->lanes, m->weight[k]};
    }
  }
}

static void append_window_weights(builder *m, const rows *r) {
  uint8_t order[MOST_ROWS]; /* rows of the chunk, sorted by pattern */
  int next[PATTERNS], begin = 0, taken[PATTERNS];
  laci_grouped_rows_window *w = &m->b->windows[m->n_windows++];
  for (int pattern = 0; pattern < PATTERNS; pattern++) {
    next[pattern] = taken[pattern] = begin;
    begin += r->n_rows[pattern];
  }
  for (int64_t row = 0; row < r->n; row++) {
    if (r->pattern[row]) order[next[r->pattern[row]]++] = (uint8_t)row;
  }
  for (int size = MOST; size > 0; size--) {
    for (int pattern = 1; pattern < PATTERNS; pattern++) {
      const int n = count_groups_of_size(r->n_rows[pattern], size);
      w->n[size - 1] += n;
      for (int at = 0; at < n; at++, taken[pattern] += size) {
        append_row_group(m, r, (unsigned)pattern, order + taken[pattern], size);
      }
    }
  }
  w->n_singles = r->n_singles;
  append_single_weights(m, r);
}

typedef void do_window(builder *m, const rows *r);

static void visit_windows_of_chunk(builder *m, int64_t first, int64_t n, do_window *what) {
  rows r;
  start_rows_of_chunk(m->p, first, n, &r);
  for (int64_t at = 0; at < m->b->n_windows; at++) {
    find_patterns_of_next_window(&r);
    what(m, &r);
  }
}

/* Calls `what` for each window of each chunk. All rows of a chunk belong to one convolution
 * group. */
static void visit_all_chunks(builder *m, do_window *what) {
  const int64_t together = m->p->rows_together;
  laci_grouped_rows *b = m->b;
  m->n_row_groups = m->n_rows = m->n_singles = m->n_windows = b->n_chunks = 0;
  for (int64_t row = 0; row < m->p->n_rows; b->n_chunks++) {
    const int64_t left = together - row % together, n = left < m->chunk_rows ? left : m->chunk_rows;
    if (b->chunks) {
      b->chunks[b->n_chunks] = (laci_grouped_rows_chunk){.row_first = row,
                                                         .row_last = row + n,
                                                         .columns = b->columns + m->n_row_groups,
                                                         .sums = b->sums + m->n_rows,
                                                         .weights = b->weights + m->n_rows * KEPT,
                                                         .singles = b->singles + m->n_singles,
                                                         .windows = b->windows + m->n_windows};
    }
    visit_windows_of_chunk(m, row, n, what);
    row += n;
  }
}

static bool allocate_groups(const builder *m) {
  laci_grouped_rows *b = m->b;
  b->chunks = laci_alloc((size_t)b->n_chunks, sizeof *b->chunks);
  b->windows = laci_alloc((size_t)m->n_windows, sizeof *b->windows);
  b->columns = laci_alloc((size_t)m->n_row_groups, sizeof *b->columns);
  b->sums = laci_alloc((size_t)m->n_rows, sizeof *b->sums);
  b->weights = laci_alloc((size_t)m->n_rows * KEPT, sizeof *b->weights);
  b->singles = laci_alloc((size_t)m->n_singles, sizeof *b->singles);
  b->bytes = (size_t)b->n_chunks * sizeof *b->chunks + (size_t)m->n_windows * sizeof *b->windows +
             (size_t)m->n_row_groups * sizeof *b->columns +
             (size_t)m->n_rows * (sizeof *b->sums + KEPT * sizeof *b->weights) +
             (size_t)m->n_singles * sizeof *b->singles;
  return b->chunks && b->windows && b->columns && b->sums && b->weights && b->singles;
}

lac_status laci_grouped_rows_init(const laci_sparse_product *p, const float *weight,
                                  int64_t chunk_rows, laci_grouped_rows *b, lac_error *err) {
  *b = (laci_grouped_rows){.n_windows = laci_ceil_div(laci_sparse_columns_per_group(p), WINDOW),
                           .row_stride = p->row_stride,
                           .lanes = lanes_per_vector()};
  const int64_t most = LACI_GROUPED_ROWS_FLOATS / (UNITS * b->lanes);
  const int64_t cuts = laci_ceil_div(p->rows_together, chunk_rows < most ? chunk_rows : most);
  builder m = {
      .p = p, .weight = weight, .b = b, .chunk_rows = laci_ceil_div(p->rows_together, cuts)};
  lac_status st = laci_sparse_check_columns(p, err);
  if (st) return st;
  visit_all_chunks(&m, add_window_totals);
  if (!allocate_groups(&m)) {
    laci_grouped_rows_clear(b);
    return laci_fail_memory(err, "a sparse product's grouped rows");
  }
  visit_all_chunks(&m, append_window_weights);
  return LAC_OK;
}

void laci_grouped_rows_clear(laci_grouped_rows *b) {
  laci_free(b->chunks);
  laci_free(b->windows);
  laci_free(b->columns);
  laci_free(b->sums);
  laci_free(b->weights);
  laci_free(b->singles);
  *b = (laci_grouped_rows){.n_chunks = 0};
}

/* ---- Where grouped rows are faster ---- */

bool laci_grouped_rows_may_be_faster(int64_t rows_together, double kept) {
  enum { LEAST_ROWS = 64 }; /* with fewer rows, row groups would be too small */
  const double half = (double)KEPT / WINDOW, nearly = 0.9;
  return laci_cpu_level_in_force() == LACI_CPU_AVX2 && rows_together >= LEAST_ROWS &&
         kept >= nearly * half && kept <= half / nearly;
}

bool laci_grouped_rows_are_faster(const laci_sparse_product *p) {
  enum {
    SAMPLE = 64,
    MOST_SINGLES = 20
  }; /* grouped rows are faster if at most one weight in MOST_SINGLES is in no group */
  const double columns = (double)p->n_columns * (double)p->rows_together;
  rows r;
  if (!laci_grouped_rows_may_be_faster(p->rows_together,
                                       (double)p->row_begin[p->n_rows] / columns)) {
    return false;
  }
  builder m = {.p = p};
  start_rows_of_chunk(p, 0, SAMPLE, &r);
  for (int64_t at = 0; at < laci_sparse_columns_per_group(p); at += WINDOW) {
    find_patterns_of_next_window(&r);
    add_window_totals(&m, &r);
  }
  return m.n_singles * MOST_SINGLES <= m.n_rows * KEPT;
}

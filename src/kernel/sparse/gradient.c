/* SPDX-License-Identifier: Apache-2.0
 * Finds the rows whose gradients gradient.h sums together, and chooses the kernel variant. */
#include "kernel/sparse/gradient.h"

#include <stddef.h>
#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/variants.h"

enum {
  LANES = LACI_SPARSE_LANES,
  WINDOW = LACI_SPARSE_WINDOW,
  TOGETHER = LACI_SPARSE_RUN_MAX_COLUMNS,
  BLOCK = 49, /* maximum number of tiles in a block: x of a window then fits in the first-level
                 cache, and dy in the second */
  ROWS = 256, /* maximum number of rows in a work item, for the same reason */
  PATTERNS = 1 << WINDOW
};

/* Maximum number of rows in a run, by the number of columns that they keep. The sums, rows x
 * columns, then fit in 24 registers. */
static const int most_rows_of[TOGETHER + 1] = {1, 12, 12, 8, 6};

/* ---- Rows and their patterns ---- */

/* At most four kept weights of a row in a window of eight columns: k is the index of the first, and
 * pattern has a bit for each column. A row that keeps more has several members. */
typedef struct member {
  int32_t row, k;
  uint8_t pattern, n_columns;
} member;

typedef struct finder {
  const laci_sparse_product *p;
  laci_sparse_gradient *g;
  int64_t *next;            /* [n_rows] index of each row's first kept weight after the window */
  member *members, *sorted; /* [2 * ROWS] members of the current item: in the order of rows, and
                               sorted by pattern */
  int64_t n_runs, n_rows;   /* number of runs, and of rows in runs, found so far */
} finder;

/* Finds the members (kept weights of a row) of an item, and moves f->next beyond its window.
 * Returns the number of members. */
static int64_t find_row_patterns(finder *f, const laci_sparse_gradient_item *item) {
  int64_t n = 0;
  for (int64_t row = 0; row < item->n_rows; row++) {
    int64_t *k = &f->next[item->row_first + row];
    const int64_t end = f->p->row_begin[item->row_first + row + 1];
    member *now = NULL;
    for (; *k < end && f->p->column[*k] < item->column_first + item->n_columns; ++*k) {
      if (!now || now->n_columns == TOGETHER) {
        now = &f->members[n++];
        *now = (member){(int32_t)row, (int32_t)*k, 0, 0};
      }
      now->pattern |= (uint8_t)(1U << (f->p->column[*k] - item->column_first));
      now->n_columns++;
    }
  }
  return n;
}

/* Sorts n members by pattern, and by row within a pattern. begin: [PATTERNS + 1] index at which
 * each pattern's members begin in f->sorted. */
static void sort_rows_by_pattern(const finder *f, int64_t n, int64_t *begin) {
  int64_t to[PATTERNS];
  memset(begin, 0, (PATTERNS + 1) * sizeof *begin);
  for (int64_t at = 0; at < n; at++) begin[f->members[at].pattern + 1]++;
  for (int at = 0; at < PATTERNS; at++) begin[at + 1] += begin[at];
  memcpy(to, begin, sizeof to);
  for (int64_t at = 0; at < n; at++) f->sorted[to[f->members[at].pattern]++] = f->members[at];
}

/* Divides n members with the same pattern into runs: as few as possible, of about equal length. */
static void add_runs_of_pattern(finder *f, const member *from, int64_t n) {
  laci_sparse_run run = {.n_columns = from->n_columns};
  for (int column = 0, at = 0; column < WINDOW; column++) {
    if (from->pattern >> column & 1) run.column[at++] = (uint8_t)column;
  }
  for (int64_t left = n; left > 0; left -= run.n_rows) {
    run.n_rows = (uint8_t)laci_ceil_div(left, laci_ceil_div(left, most_rows_of[run.n_columns]));
    if (f->g->runs) f->g->runs[f->n_runs] = run;
    f->n_runs++;
  }
  for (int64_t at = 0; at < n; at++) {
    if (f->g->rows) f->g->rows[f->n_rows] = (laci_sparse_run_row){from[at].row, from[at].k};
    f->n_rows++;
  }
}

/* ---- Items ---- */

/* Counts the runs and rows of a work item. In the second pass, when memory is allocated, it also
 * writes them. */
static void find_runs_of_item(finder *f, const laci_sparse_gradient_item *item) {
  int64_t begin[PATTERNS + 1];
  laci_sparse_gradient *g = f->g;
  if (g->items) {
    g->items[g->n_items] = *item;
    g->items[g->n_items].run_first = f->n_runs;
    g->items[g->n_items].run_row_first = f->n_rows;
  }
  g->n_items++;
  sort_rows_by_pattern(f, find_row_patterns(f, item), begin);
  for (int pattern = 1; pattern < PATTERNS; pattern++) {
    const int64_t n = begin[pattern + 1] - begin[pattern];
    if (n > 0) add_runs_of_pattern(f, f->sorted + begin[pattern], n);
  }
}

/* Adds all work items: for each convolution group, for each range of rows, for each window of
 * columns. */
static void find_runs_of_all_items(finder *f) {
  const laci_sparse_product *p = f->p;
  const int64_t together = p->rows_together, groups = together ? p->n_rows / together : 0;
  const int64_t length = groups ? p->n_columns / groups : 0;
  int64_t rows = groups ? laci_ceil_div(together, laci_ceil_div(together, ROWS)) : 0;
  if (p->values == LACI_SPARSE_BF16) rows += rows % 2; /* in bf16 two rows share four bytes */
  memcpy(f->next, p->row_begin, (size_t)p->n_rows * sizeof *f->next);
  f->n_runs = f->n_rows = f->g->n_items = 0;
  f->g->most_rows = rows;
  for (int64_t row = 0, n; row < p->n_rows; row += n) {
    const int64_t group = row / together, rest = (group + 1) * together - row;
    n = rest < rows ? rest : rows;
    for (int64_t at = 0; at < length; at += WINDOW) {
      const int64_t columns = length - at < WINDOW ? length - at : WINDOW;
      find_runs_of_item(f,
                        &(laci_sparse_gradient_item){row, n, group * length + at, columns, 0, 0});
    }
  }
}

static bool find_and_allocate_runs(finder *f) {
  const laci_sparse_product *p = f->p;
  laci_sparse_gradient *g = f->g;
  f->next = laci_alloc((size_t)p->n_rows, sizeof *f->next);
  f->members = laci_alloc((size_t)4 * ROWS, sizeof *f->members);
  if (!f->next || !f->members) return false;
  f->sorted = f->members + (ptrdiff_t)2 * ROWS;
  find_runs_of_all_items(f);
  g->items = laci_alloc((size_t)g->n_items + 1, sizeof *g->items);
  g->runs = laci_alloc((size_t)f->n_runs, sizeof *g->runs);
  g->rows = laci_alloc((size_t)f->n_rows, sizeof *g->rows);
  g->column_at = laci_alloc((size_t)p->n_columns, sizeof *g->column_at);
  if (!g->items || !g->runs || !g->rows || !g->column_at) return false;
  find_runs_of_all_items(f);
  g->items[g->n_items] = (laci_sparse_gradient_item){.run_first = f->n_runs};
  memcpy(g->column_at, p->column_at, (size_t)p->n_columns * sizeof *g->column_at);
  return true;
}

static int64_t tiles_per_block(int64_t n_tiles, bool bf16) {
  const int64_t most = bf16 ? 2 * BLOCK : BLOCK;
  return n_tiles ? laci_ceil_div(n_tiles, laci_ceil_div(n_tiles, most)) : 1;
}

lac_status laci_sparse_gradient_init(const laci_sparse_product *p, const laci_sparse_tile *tiles,
                                     int64_t n_tiles, laci_sparse_gradient *g, lac_error *err) {
  finder f = {.p = p, .g = g};
  lac_status st = LAC_OK;
  *g = (laci_sparse_gradient){.tiles = tiles,
                              .n_tiles = n_tiles,
                              .block = tiles_per_block(n_tiles, p->values == LACI_SPARSE_BF16),
                              .bf16 = p->values == LACI_SPARSE_BF16,
                              .row_stride = p->row_stride,
                              .n_kept = p->row_begin[p->n_rows]};
  if (p->values == LACI_SPARSE_S8) {
    st = laci_fail(err, LAC_UNSUPPORTED, "a sparse gradient of int8");
  } else if (g->n_kept > INT32_MAX) {
    st = laci_fail(err, LAC_UNSUPPORTED, "a sparse gradient of %lld weights", (long long)g->n_kept);
  } else if (p->neighbour) {
    st = laci_fail(err, LAC_UNSUPPORTED, "a sparse gradient of rows without zeros between them");
  } else if (!find_and_allocate_runs(&f)) {
    st = laci_fail_memory(err, "a sparse gradient");
  }
  laci_free(f.next);
  laci_free(f.members);
  if (st) laci_sparse_gradient_clear(g);
  return st;
}

void laci_sparse_gradient_clear(laci_sparse_gradient *g) {
  laci_free(g->column_at);
  laci_free(g->items);
  laci_free(g->runs);
  laci_free(g->rows);
  *g = (laci_sparse_gradient){.n_items = 0};
}

size_t laci_sparse_gradient_scratch_floats(const laci_sparse_gradient *g) {
  const int64_t steps = g->bf16 ? laci_ceil_div(g->block, 2) : g->block;
  return (size_t)((g->most_rows + WINDOW) * (steps | 1) + 1) * LANES;
}

static laci_sparse_gradient_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_gradient_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_gradient_run *laci_sparse_gradient_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

laci_sparse_gradient_run *laci_sparse_gradient_bf16_variant(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16")) {
    return laci_sparse_gradient_avx512bf16;
  }
#endif
  return laci_sparse_gradient_scalar;
}

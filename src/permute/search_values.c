/* SPDX-License-Identifier: Apache-2.0
 * Computes open columns and the table of values (search_values.h). Rows of the table are computed
 * in batches, so that the kernel can keep four of them in registers. Batches do not affect the
 * results. */
#include "permute/search_values.h"

#include <string.h>

#include "base/error.h"
#include "cpu/pool.h"
#include "kernel/search/maxsum.h"
#include "kernel/search/topn.h"

enum { BATCH = 32, MOST_FRESH = 1024 };

lac_status laci_values_init(laci_values *v, const laci_cuts *cuts, const laci_cut *cut,
                            laci_number largest, bool with_table, lac_error *err) {
  const size_t n = (size_t)cuts->n_channels;
  const size_t column =
      laci_matrix_count_padded_rows(cut) * laci_number_size(largest) + LACI_MAXSUM_ROWS;
  *v = (laci_values){.cuts = cuts, .cut = cut};
  v->block_of = laci_alloc(n, sizeof *v->block_of);
  v->valid = laci_alloc(n, sizeof *v->valid);
  v->wanted = laci_alloc(n, sizeof *v->wanted);
  v->open = laci_alloc(n, column);
  if (with_table) {
    v->table = laci_alloc(n, n * sizeof *v->table);
    v->fresh = laci_alloc(n < MOST_FRESH ? n : MOST_FRESH, n * sizeof *v->fresh);
  }
  if (!v->block_of || !v->valid || !v->wanted || !v->open ||
      (with_table && (!v->table || !v->fresh))) {
    return laci_fail_memory(err, cuts->problem->name);
  }
  for (int g = 0; g < cut->n_blocks; g++) {
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      if (cut->entries[e].place >= 0) v->block_of[cut->entries[e].place] = g;
    }
  }
  return LAC_OK;
}

void laci_values_clear(laci_values *v) {
  laci_free(v->fresh);
  laci_free(v->table);
  laci_free(v->open);
  laci_free(v->wanted);
  laci_free(v->valid);
  laci_free(v->block_of);
  *v = (laci_values){0};
}

static void compute_open_column(laci_values *v, int32_t place, const int32_t *order) {
  const laci_cut *cut = v->cut;
  const int g = v->block_of[place];
  const void *others[64];
  int n = 0;
  for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
    if (cut->entries[e].place == place) continue;
    others[n++] =
        laci_matrix_column(v->x, laci_entry_column(v->cuts, cut, &cut->entries[e], order));
  }
  laci_nth_largest(v->x->number, others, n, v->cuts->pattern.n, v->x->rows,
                   v->open + (size_t)place * v->x->column_bytes);
  v->valid[place] = 0;
}

typedef struct open_job {
  laci_values *values;
  const int32_t *places; /* places that changed, whose siblings (the other places of the block) are
                            updated; NULL: all places are updated */
  const int32_t *order;
} open_job;

static void compute_open_columns(int64_t begin, int64_t end, void *context) {
  const open_job *j = context;
  for (int64_t i = begin; i < end; i++) compute_open_column(j->values, (int32_t)i, j->order);
}

static void compute_sibling_columns(int64_t begin, int64_t end, void *context) {
  const open_job *j = context;
  const laci_cut *cut = j->values->cut;
  for (int64_t i = begin; i < end; i++) {
    int g = j->values->block_of[j->places[i]];
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      int32_t place = cut->entries[e].place;
      if (place >= 0 && place != j->places[i]) compute_open_column(j->values, place, j->order);
    }
  }
}

void laci_values_set_matrix(laci_values *v, const laci_matrix *x, const int32_t *order,
                            laci_pool *pool) {
  open_job j = {.values = v, .order = order};
  v->x = x;
  laci_pool_for(pool, v->cuts->n_channels, 16, compute_open_columns, &j);
}

void laci_values_update_open_columns(laci_values *v, const int32_t *places, int n,
                                     const int32_t *order, laci_pool *pool) {
  open_job j = {.values = v, .places = places, .order = order};
  laci_pool_for(pool, n, 4, compute_sibling_columns, &j);
}

typedef struct row_job {
  laci_values *values;
  const int32_t *places;
} row_job;

/* Computes some rows of the table in working memory, and copies them to the table. */
static void compute_table_rows(int64_t begin, int64_t end, void *context) {
  const row_job *j = context;
  laci_values *v = j->values;
  const int n = v->cuts->n_channels;
  const void *open[BATCH], *x[BATCH];
  laci_maxsum_job job = {.t = open, .x = x, .nt = (int)(end - begin), .rows = v->x->rows};
  job.out_stride = (size_t)n;
  int32_t *fresh = v->fresh + begin * n;
  for (int i = 0; i < job.nt; i++) open[i] = laci_values_open_column(v, j->places[begin + i]);
  for (int q = 0; q < n; q += BATCH) {
    job.nx = n - q < BATCH ? n - q : BATCH;
    for (int i = 0; i < job.nx; i++) x[i] = laci_matrix_column(v->x, q + i);
    job.out = fresh + q;
    laci_maxsum_compute_table(v->x->number, &job);
  }
  for (int i = 0; i < job.nt; i++) {
    int32_t place = j->places[begin + i];
    memcpy(v->table + (int64_t)place * n, fresh + (int64_t)i * n, (size_t)n * sizeof *fresh);
    v->valid[place] = 1;
  }
}

void laci_values_update_table_rows(laci_values *v, const int32_t *places, int n, laci_pool *pool) {
  const int capacity = v->cuts->n_channels < MOST_FRESH ? v->cuts->n_channels : MOST_FRESH;
  for (int at = 0; at < n;) {
    int n_wanted = 0;
    while (at < n && n_wanted < capacity) {
      if (!v->valid[places[at]]) v->wanted[n_wanted++] = places[at];
      at++;
    }
    row_job j = {.values = v, .places = v->wanted};
    laci_pool_for(pool, n_wanted, n_wanted < 4 * BATCH ? BATCH / 4 : BATCH, compute_table_rows, &j);
  }
}

int64_t laci_values_sum_kept(const laci_values *v, const int32_t *order) {
  const laci_cut *cut = v->cut;
  int64_t total = 0;
  for (int g = 0; g < cut->n_blocks; g++) {
    const void *columns[64];
    int n = 0, keep = v->cuts->pattern.n;
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      columns[n++] =
          laci_matrix_column(v->x, laci_entry_column(v->cuts, cut, &cut->entries[e], order));
    }
    total += laci_sum_n_largest(v->x->number, columns, n, keep < n ? keep : n, v->x->rows);
  }
  return total;
}

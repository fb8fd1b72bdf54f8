/* SPDX-License-Identifier: Apache-2.0
 * A chunk's last tile, where it has one lane. */
#include <string.h>

#include "base/memory.h"
#include "jit/sparse_in.h"

enum { LANES = LACI_SPARSE_LANES, ROWS = LACI_THIN_ROWS };

bool laci_sparse_is_thin(const laci_sparse_tile *tile) {
  return (tile->lanes & LACI_SPARSE_ALL_LANES) == 1;
}

bool laci_sparse_thin_init(const laci_sparse_product *p, laci_sparse_thin *thin) {
  const size_t n = (size_t)p->n_columns;
  *thin = (laci_sparse_thin){.n = p->n_columns,
                             .at = laci_alloc(n, sizeof *thin->at),
                             .beside = laci_alloc(n, sizeof *thin->beside)};
  if (!thin->at || !thin->beside) return false;
  memcpy(thin->at, p->column_at, n * sizeof *thin->at);
  if (p->beside) memcpy(thin->beside, p->beside, n * sizeof *thin->beside);
  return true;
}

void laci_sparse_thin_clear(laci_sparse_thin *thin) {
  laci_free(thin->at);
  laci_free(thin->beside);
}

void laci_sparse_take_thin(const laci_sparse_thin *thin, const laci_sparse_tile *tile,
                           const float *x, float *to) {
  for (int64_t at = 0; at < thin->n; at++) {
    const bool there = laci_sparse_lanes_of(tile, thin->beside[at]) & 1;
    to[at] = there ? x[tile->in + thin->at[at]] : 0;
  }
}

/* Sums of rows become tiles of one lane, with zeros in the others. */
static void make_tile(float *sums, int64_t n_rows) {
  float rows[ROWS];
  memcpy(rows, sums, sizeof rows);
  memset(sums, 0, (size_t)n_rows * LANES * sizeof *sums);
  for (int64_t row = 0; row < n_rows; row++) sums[row * LANES] = rows[row];
}

void laci_sparse_run_thin(const laci_sparse_thin_turn *t) {
  const laci_sparse_part *part = &t->part;
  const int64_t n_rows = part->row_last - part->row_first;
  if (t->first) {
    memset(t->sums, 0, ROWS * sizeof *t->sums);
    memcpy(t->sums, t->o->bias + part->row_first, (size_t)n_rows * sizeof *t->sums);
  }
  laci_thin_add_now()(&t->columns, t->sums);
  if (!t->last) return;
  make_tile(t->sums, n_rows);
  laci_sparse_finish_now()(t->o, t->row_stride, LACI_SPARSE_F32, part, t->sums);
}

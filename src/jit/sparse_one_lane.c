/* SPDX-License-Identifier: Apache-2.0
 * Computes a chunk's last tile, if only one of its lanes is a result. */
#include <string.h>

#include "base/memory.h"
#include "jit/sparse_in.h"

enum { LANES = LACI_SPARSE_LANES, ROWS = LACI_ONE_LANE_ROWS };

bool laci_sparse_is_one_lane(const laci_sparse_tile *tile) {
  return (tile->lanes & LACI_SPARSE_ALL_LANES) == 1;
}

bool laci_sparse_one_lane_init(const laci_sparse_product *p, laci_sparse_one_lane *one_lane) {
  const size_t n = (size_t)p->n_columns;
  *one_lane = (laci_sparse_one_lane){.n = p->n_columns,
                                     .at = laci_alloc(n, sizeof *one_lane->at),
                                     .neighbour = laci_alloc(n, sizeof *one_lane->neighbour)};
  if (!one_lane->at || !one_lane->neighbour) return false;
  memcpy(one_lane->at, p->column_at, n * sizeof *one_lane->at);
  if (p->neighbour) memcpy(one_lane->neighbour, p->neighbour, n * sizeof *one_lane->neighbour);
  return true;
}

void laci_sparse_one_lane_clear(laci_sparse_one_lane *one_lane) {
  laci_free(one_lane->at);
  laci_free(one_lane->neighbour);
}

void laci_sparse_gather_one_lane_inputs(const laci_sparse_one_lane *one_lane,
                                        const laci_sparse_tile *tile, const float *x, float *to) {
  for (int64_t at = 0; at < one_lane->n; at++) {
    const bool there = laci_sparse_lanes_read(tile, one_lane->neighbour[at]) & 1;
    to[at] = there ? x[tile->in + one_lane->at[at]] : 0;
  }
}

/* Spreads sums, one number for each row, to 16 lanes for each row: lane 0 is the sum, the others
 * are zero. */
static void spread_sums_to_tiles(float *sums, int64_t n_rows) {
  float rows[ROWS];
  memcpy(rows, sums, sizeof rows);
  memset(sums, 0, (size_t)n_rows * LANES * sizeof *sums);
  for (int64_t row = 0; row < n_rows; row++) sums[row * LANES] = rows[row];
}

void laci_sparse_run_one_lane(const laci_sparse_one_lane_run *run) {
  const laci_sparse_part *part = &run->part;
  const int64_t n_rows = part->row_last - part->row_first;
  if (run->first) {
    memset(run->sums, 0, ROWS * sizeof *run->sums);
    memcpy(run->sums, run->o->bias + part->row_first, (size_t)n_rows * sizeof *run->sums);
  }
  laci_one_lane_add_variant()(&run->columns, run->sums);
  if (!run->last) return;
  spread_sums_to_tiles(run->sums, n_rows);
  laci_sparse_finish_variant()(run->o, run->row_stride, LACI_SPARSE_F32, part, run->sums);
}

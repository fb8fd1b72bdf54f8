/* SPDX-License-Identifier: Apache-2.0
 * Solves the linear assignment problem by the steps of Jonker and Volgenant. Their reduction
 * transfer is left out, since on annealing's tables it takes more time than it saves. A column's
 * price p makes the reduced cost of row i cost(i, j) - p(j); an assignment in which every row has
 * its cheapest reduced column is optimal. A constant that is added to a row does not change the
 * best assignment. A hint of prices is used by subtracting from each row its smallest reduced cost.
 *
 * Why 32 bits are enough. Let U = 2^26. Costs differ by at most 4 U in a row. They are between -U
 * and 5 U after that subtraction (or between -2 U and 2 U without a hint). While a column is
 * unassigned it keeps its first price, which is one of these costs. Every assigned row prefers its
 * own column j to that one (j0), so  p(j) >= cost(i, j) - cost(i, j0) + p(j0) >= -6 U; the last
 * column to be assigned goes no deeper than twice that. So reduced costs stay below 15 U < 2^30,
 * and sums of two of them below 2^31. The columns past n, which only fill up the kernels' SIMD
 * lanes, have a reduced cost of 2^30. Next: kernel/search/lap_rows.h, where the time goes. */
#include "permute/search_lap.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum {
  N_ARRAYS = 7,
  FILLER = 1 << 29 /* cost of a column that only fills up a vector; its price is
                                         minus this */
};

lac_status laci_lap_init(laci_lap *lap, int n, lac_error *err) {
  const int stride = (n + LACI_LAP_LANES - 1) / LACI_LAP_LANES * LACI_LAP_LANES;
  *lap = (laci_lap){.n = n, .stride = stride, .rows = laci_lap_rows_variant()};
  int32_t *memory = laci_alloc((size_t)stride, N_ARRAYS * sizeof(int32_t));
  lap->memory = memory;
  lap->cost = laci_alloc((size_t)n, (size_t)stride * sizeof(int32_t));
  if (!memory || !lap->cost) return laci_fail_memory(err, "the assignment of a search");
  int32_t **arrays[N_ARRAYS] = {&lap->column_of, &lap->row_of, &lap->price,    &lap->distance,
                                &lap->parent,    &lap->mark,   &lap->free_rows};
  for (int i = 0; i < N_ARRAYS; i++) *arrays[i] = memory + (int64_t)i * stride;
  for (int64_t i = 0; i < n; i++) {
    for (int j = n; j < stride; j++) laci_lap_row(lap, i)[j] = FILLER;
  }
  return LAC_OK;
}

void laci_lap_clear(laci_lap *lap) {
  laci_free(lap->cost);
  laci_free(lap->memory);
}

static void set_filler_columns(laci_lap *lap) {
  for (int j = lap->n; j < lap->stride; j++) {
    lap->price[j] = -FILLER;
    lap->mark[j] = INT32_MAX;
  }
}

/* Assigns each column to its cheapest row. A row that is cheapest for several columns gets the
 * first of them. Returns the number of rows without a column. */
static int assign_cheapest_rows(laci_lap *lap, const int32_t *shift) {
  const int n = lap->n;
  int32_t *cheapest = lap->parent;
  int n_free = 0;
  for (int j = 0; j < lap->stride; j++) lap->price[j] = INT32_MAX;
  for (int i = 0; i < n; i++) {
    const laci_lap_offer offer = {laci_lap_row(lap, i), i, shift ? shift[i] : 0};
    lap->rows->lower(&offer, lap->price, cheapest, lap->stride);
  }
  set_filler_columns(lap);
  for (int i = 0; i < n; i++) lap->column_of[i] = lap->row_of[i] = -1;
  for (int j = 0; j < n; j++) {
    int i = cheapest[j];
    if (lap->column_of[i] >= 0) continue;
    lap->column_of[i] = j;
    lap->row_of[j] = i;
  }
  for (int i = 0; i < n; i++) {
    if (lap->column_of[i] < 0) lap->free_rows[n_free++] = i;
  }
  return n_free;
}

/* Returns another column that costs the row as much as its cheapest column. */
static int find_equally_cheap_column(const laci_lap *lap, const int32_t *row,
                                     laci_two_smallest two) {
  int j = 0;
  while (j == two.at || row[j] - lap->price[j] != two.second) j++;
  return j;
}

/* The auction: each of the n_free rows without a column takes its best column and raises its price.
 * A row that loses its column by this bids next, as long as prices change. Returns the number of
 * rows that are still without a column. */
static int run_auction(laci_lap *lap, int n_free) {
  int still_free = 0, at = 0;
  int64_t bids_left =
      4 *
      (int64_t)lap
          ->n; /* limit for the number of bids; assign_by_shortest_path assigns the remaining rows,
                  in bounded time */
  while (at < n_free) {
    int i = lap->free_rows[at++];
    const int32_t *row = laci_lap_row(lap, i);
    laci_two_smallest two = lap->rows->two_least(row, lap->price, lap->stride);
    int j = two.at, loser = lap->row_of[j];
    bool moves = two.least < two.second && bids_left-- > 0;
    if (loser >= 0 && !moves) {
      if (two.least == two.second) { /* the second column is as cheap, and no row may have it yet */
        j = find_equally_cheap_column(lap, row, two);
        loser = lap->row_of[j];
      }
      if (loser >= 0) {
        lap->free_rows[still_free++] = i;
        continue;
      }
    }
    if (moves) lap->price[j] -= two.second - two.least;
    lap->column_of[i] = j;
    lap->row_of[j] = i;
    if (loser < 0) continue;
    lap->column_of[loser] = -1;
    lap->free_rows[--at] = loser;
  }
  return still_free;
}

/* Assigns a row without a column: Dijkstra's algorithm finds the shortest path from it to an
 * unassigned column, and each row on the path moves to the next column. */
static void assign_by_shortest_path(laci_lap *lap, int free_row) {
  const int n = lap->n;
  for (int j = 0; j < n; j++) lap->mark[j] = INT32_MIN;
  for (int j = 0; j < lap->stride; j++) lap->distance[j] = INT32_MAX;
  const laci_lap_frontier frontier = {lap->price, lap->mark, lap->distance, lap->parent,
                                      lap->stride};
  int i = free_row;
  int32_t base = 0;
  int end;
  for (;;) {
    end = lap->rows->relax(&frontier, laci_lap_row(lap, i), i, base);
    if (lap->row_of[end] < 0) break;
    lap->mark[end] = INT32_MAX;
    i = lap->row_of[end];
    base = lap->distance[end] - (laci_lap_row(lap, i)[end] - lap->price[end]);
  }
  const int32_t length = lap->distance[end];
  for (int j = 0; j < n; j++) {
    if (lap->mark[j] == INT32_MAX) lap->price[j] += lap->distance[j] - length;
  }
  do {
    i = lap->parent[end];
    lap->row_of[end] = i;
    int before = lap->column_of[i];
    lap->column_of[i] = end;
    end = before;
  } while (i != free_row);
}

static void solve_assignment(laci_lap *lap, const int32_t *shift) {
  int n_free = assign_cheapest_rows(lap, shift);
  if (n_free == 0) return;
  for (int round = 0; round < 2 && n_free > 0; round++) n_free = run_auction(lap, n_free);
  for (int k = 0; k < n_free; k++) assign_by_shortest_path(lap, lap->free_rows[k]);
}

void laci_lap_solve(laci_lap *lap) { solve_assignment(lap, NULL); }

void laci_lap_solve_hinted(laci_lap *lap) {
  int32_t *shift = lap->distance;
  set_filler_columns(lap);
  for (int i = 0; i < lap->n; i++) {
    shift[i] = lap->rows->least(laci_lap_row(lap, i), lap->price, lap->stride);
  }
  solve_assignment(lap, shift);
}

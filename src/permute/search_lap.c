/* SPDX-License-Identifier: Apache-2.0
 * Jonker and Volgenant's steps. A column's price p makes the reduced cost of row i  cost(i, j) -
 * p(j); an assignment in which every row has its cheapest reduced column is optimal.
 *
 * Why 32 bits are enough: while a column is unassigned it keeps its first price, which is one of
 * the costs. Every assigned row prefers its own column j to that one (j0):  p(j) >= cost(i, j) -
 * cost(i, j0) + p(j0) >= -3 largest costs; and the last column to be assigned goes no deeper than
 * twice that. All inner loops are minima over rows of n numbers without a branch, which compilers
 * turn into vector code. */
#include "permute/search_lap.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { N_ARRAYS = 8 };

lac_status laci_lap_init(laci_lap *lap, int n, lac_error *err) {
  *lap = (laci_lap){.n = n};
  int32_t *memory = laci_alloc((size_t)n, N_ARRAYS * sizeof(int32_t));
  if (!memory) return laci_fail_memory(err, "the assignment of a search");
  int32_t **arrays[N_ARRAYS] = {&lap->column_of, &lap->row_of,    &lap->price,  &lap->distance,
                                &lap->reduced,   &lap->free_rows, &lap->parent, &lap->mark};
  for (int i = 0; i < N_ARRAYS; i++) *arrays[i] = memory + (int64_t)i * n;
  lap->memory = memory;
  return LAC_OK;
}

void laci_lap_clear(laci_lap *lap) { laci_free(lap->memory); }

static int32_t least_of(const int32_t *x, int n) {
  int32_t least = INT32_MAX;
  for (int j = 0; j < n; j++) least = x[j] < least ? x[j] : least;
  return least;
}

static int first_equal(const int32_t *x, int32_t value) {
  int j = 0;
  while (x[j] != value) j++;
  return j;
}

/* Every column takes the row that it is cheapest for; a row that is wanted by several goes to the
 * last of them. mark[i] counts how many want row i. Returns how many rows nobody wants. */
static int reduce_columns(laci_lap *lap, const int32_t *cost) {
  const int n = lap->n;
  int n_free = 0;
  int32_t *restrict price = lap->price, *restrict cheapest = lap->parent;
  memcpy(price, cost, (size_t)n * sizeof *price);
  memset(cheapest, 0, (size_t)n * sizeof *cheapest);
  for (int i = 1; i < n; i++) {
    const int32_t *row = cost + (int64_t)i * n;
    for (int j = 0; j < n; j++) {
      cheapest[j] = row[j] < price[j] ? i : cheapest[j];
      price[j] = row[j] < price[j] ? row[j] : price[j];
    }
  }
  for (int i = 0; i < n; i++) lap->column_of[i] = lap->row_of[i] = -1;
  memset(lap->mark, 0, (size_t)n * sizeof *lap->mark);
  for (int j = n - 1; j >= 0; j--) {
    int i = cheapest[j];
    if (lap->mark[i]++ > 0) continue;
    lap->column_of[i] = j;
    lap->row_of[j] = i;
  }
  for (int i = 0; i < n; i++) {
    if (lap->mark[i] == 0) lap->free_rows[n_free++] = i;
  }
  return n_free;
}

/* Two cheapest columns of a row, by reduced cost. */
typedef struct two_best {
  int32_t first, second;
  int column;
} two_best;

static two_best best_of_row(laci_lap *lap, const int32_t *row) {
  const int n = lap->n;
  int32_t *restrict reduced = lap->reduced;
  const int32_t *restrict price = lap->price;
  two_best b = {.first = INT32_MAX};
  for (int j = 0; j < n; j++) {
    reduced[j] = row[j] - price[j];
    b.first = reduced[j] < b.first ? reduced[j] : b.first;
  }
  b.column = first_equal(reduced, b.first);
  reduced[b.column] = INT32_MAX;
  b.second = least_of(reduced, n);
  return b;
}

/* A row that alone wanted its column could pay more for it: up to its second best. */
static void transfer_reductions(laci_lap *lap, const int32_t *cost) {
  const int n = lap->n;
  for (int i = 0; i < n; i++) {
    if (lap->mark[i] != 1) continue;
    const int32_t *row = cost + (int64_t)i * n;
    for (int j = 0; j < n; j++) lap->reduced[j] = row[j] - lap->price[j];
    int own = lap->column_of[i];
    lap->reduced[own] = INT32_MAX;
    lap->price[own] -= least_of(lap->reduced, n);
  }
}

/* Free rows outbid others for their best column; who loses it bids next, as long as prices move. */
static int bid(laci_lap *lap, const int32_t *cost, int n_free) {
  int still_free = 0, at = 0;
  int64_t bids_left = 4 * (int64_t)lap->n; /* the search below does the rest at a sure price */
  while (at < n_free) {
    int i = lap->free_rows[at++];
    two_best b = best_of_row(lap, cost + (int64_t)i * lap->n);
    int j = b.column, loser = lap->row_of[j];
    bool moves = b.first < b.second && bids_left-- > 0;
    if (loser >= 0 && !moves) {
      if (b.first == b.second) { /* just as good: perhaps nobody has it */
        j = first_equal(lap->reduced, b.second);
        loser = lap->row_of[j];
      }
      if (loser >= 0) {
        lap->free_rows[still_free++] = i;
        continue;
      }
    }
    if (moves) lap->price[j] -= b.second - b.first;
    lap->column_of[i] = j;
    lap->row_of[j] = i;
    if (loser < 0) continue;
    lap->column_of[loser] = -1;
    lap->free_rows[--at] = loser;
  }
  return still_free;
}

/* Goes on from row i, which is `base` away: shorter ways are noted; returns the nearest column that
 * is not done. Nothing is ever shorter for a column that is done, so only looking for the nearest
 * must skip it: mark lifts it out of sight. */
static int look_around(laci_lap *lap, const int32_t *row, int32_t i, int32_t base) {
  const int n = lap->n;
  int32_t *distance = lap->distance, *parent = lap->parent, *through = lap->reduced;
  const int32_t *price = lap->price, *mark = lap->mark;
  for (int j = 0; j < n; j++) through[j] = base + (row[j] - price[j]);
  for (int j = 0; j < n;
       j++) { /* small loops: compilers check their arrays for overlap, but not many at once */
    int32_t shorter = -(int32_t)(through[j] < distance[j]);
    parent[j] = (i & shorter) | (parent[j] & ~shorter);
    distance[j] = (through[j] & shorter) | (distance[j] & ~shorter);
  }
  for (int j = 0; j < n; j++) through[j] = distance[j] > mark[j] ? distance[j] : mark[j];
  return first_equal(through, least_of(through, n));
}

/* Shortest path from a free row to an unassigned column, by Dijkstra; along it everybody moves one
 * column on. */
static void augment(laci_lap *lap, const int32_t *cost, int free_row) {
  const int n = lap->n;
  for (int j = 0; j < n; j++) {
    lap->distance[j] = INT32_MAX;
    lap->mark[j] = INT32_MIN;
  }
  int i = free_row;
  int32_t base = 0;
  int end;
  for (;;) {
    const int32_t *row = cost + (int64_t)i * n;
    end = look_around(lap, row, i, base);
    if (lap->row_of[end] < 0) break;
    lap->mark[end] = INT32_MAX;
    i = lap->row_of[end];
    base = lap->distance[end] - (cost[(int64_t)i * n + end] - lap->price[end]);
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

void laci_lap_solve(laci_lap *lap, const int32_t *cost) {
  if (lap->n == 0) return;
  int n_free = reduce_columns(lap, cost);
  if (n_free == 0) return;
  transfer_reductions(lap, cost);
  for (int round = 0; round < 2 && n_free > 0; round++) n_free = bid(lap, cost, n_free);
  for (int k = 0; k < n_free; k++) augment(lap, cost, lap->free_rows[k]);
}

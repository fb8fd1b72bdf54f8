/* SPDX-License-Identifier: Apache-2.0
 * Computes the exact score of an order tile by tile (search_rows.h). The sum of a tile depends on
 * the tile alone, and the sums are added in the order of tiles. So the result has the same bits for
 * any number of threads and any vector width. */
#include "permute/search_score.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "permute/search_hold.h"
#include "permute/search_rows.h"
#include "sparse/mask.h"
#include "sparse/score.h"

enum { SAMPLE = 65536, SAMPLED_OF_1000 = 2 };

/* Quickselect, with the largest elements first. It ends as soon as element k is equal to the pivot,
 * so that many equal weights (zeros of a pruned network) take no more time. Partitioning moves
 * elements without branches. */
void laci_select_largest(double *values, int64_t n, int64_t k) {
  double *low = values;
  while (k > 0 && k < n) {
    double a = low[0], b = low[n / 2], c = low[n - 1];
    double high = a > b ? a : b, small = a > b ? b : a;
    double pivot = c > high ? high : c > small ? c : small;
    int64_t n_larger = 0;
    for (int64_t i = 0; i < n; i++) {
      double value = low[i];
      low[i] = low[n_larger];
      low[n_larger] = value;
      n_larger += value > pivot;
    }
    if (k <= n_larger) {
      n = n_larger;
      continue;
    }
    int64_t n_equal = n_larger;
    for (int64_t i = n_larger; i < n; i++) {
      double value = low[i];
      low[i] = low[n_equal];
      low[n_equal] = value;
      n_equal += value == pivot;
    }
    if (k <= n_equal) return;
    low += n_equal;
    n -= n_equal;
    k -= n_equal;
  }
}

typedef struct tile_sum {
  double kept, upper, largest;
} tile_sum;

typedef struct job {
  const laci_cuts *cuts;
  const laci_cut *cut;
  const int32_t *order;
  laci_pool *pool;
  int64_t first_tile; /* index of the first tile of the parts (rows of one weight) that are in
                         memory */
  bool measures;
  tile_sum *sums;      /* sums of each tile */
  double *sample;      /* [n_sampled rows][n_columns] sampled scores */
  int64_t sample_step; /* every sample_step-th row is sampled */
  atomic_bool no_memory;
} job;

/* Working memory of one thread. */
typedef struct scratch {
  laci_tile tile;
  double *row; /* [n_columns] scores of one row */
} scratch;

/* Adds the two largest of a block's four columns to sum[row], row by row. It is a function of its
 * own since 2:4 is the most important pattern. */
static void add_two_largest_of_four(const double *const column[4], double *sum) {
  for (int r = 0; r < LACI_TILE_ROWS; r++) {
    double a = column[0][r], b = column[1][r], c = column[2][r], d = column[3][r];
    double high_ab = a > b ? a : b, low_ab = a > b ? b : a;
    double high_cd = c > d ? c : d, low_cd = c > d ? d : c;
    double first = high_ab > high_cd ? high_ab : high_cd,
           other = high_ab > high_cd ? high_cd : high_ab;
    double low = low_ab > low_cd ? low_ab : low_cd;
    sum[r] += first + (other > low ? other : low);
  }
}

static void add_n_largest_of_block(const double *const *column, int n_columns, int n, double *sum) {
  double top[64][LACI_TILE_ROWS];
  memset(top, 0, (size_t)n * sizeof *top);
  for (int c = 0; c < n_columns; c++) {
    double sinking[LACI_TILE_ROWS];
    memcpy(sinking, column[c], sizeof sinking);
    for (int place = 0; place < n; place++) {
      for (int r = 0; r < LACI_TILE_ROWS; r++) {
        double here = top[place][r], larger = here > sinking[r] ? here : sinking[r];
        sinking[r] = here > sinking[r] ? sinking[r] : here;
        top[place][r] = larger;
      }
    }
  }
  for (int place = 0; place < n; place++) {
    for (int r = 0; r < LACI_TILE_ROWS; r++) sum[r] += top[place][r];
  }
}

static double sum_kept_of_tile(const job *j, const laci_tile *tile) {
  const laci_cut *cut = j->cut;
  const laci_pattern pattern = j->cuts->pattern;
  double sum[LACI_TILE_ROWS] = {0}, total = 0;
  for (int g = 0; g < cut->n_blocks; g++) {
    const double *column[64];
    int n = 0;
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      int32_t at = laci_entry_column(j->cuts, cut, &cut->entries[e], j->order);
      column[n++] = tile->score + (int64_t)at * LACI_TILE_ROWS;
    }
    if (n == 4 && pattern.n == 2) add_two_largest_of_four(column, sum);
    else add_n_largest_of_block(column, n, n < pattern.n ? n : pattern.n, sum);
  }
  for (int r = 0; r < LACI_TILE_ROWS; r++) total += sum[r];
  return total;
}

static void measure_rows_of_tile(const job *j, scratch *b, tile_sum *out) {
  const laci_tile *tile = &b->tile;
  const int n = j->cut->n_columns;
  for (int r = 0; r < tile->n_rows; r++) {
    int64_t row = tile->first_row + r;
    for (int c = 0; c < n; c++) {
      b->row[c] = tile->score[(int64_t)c * LACI_TILE_ROWS + r];
      out->largest = b->row[c] > out->largest ? b->row[c] : out->largest;
    }
    if (row % j->sample_step == 0) {
      memcpy(j->sample + row / j->sample_step * n, b->row, (size_t)n * sizeof *b->row);
    }
    int64_t k = tile->part->n_kept < n ? tile->part->n_kept : n;
    laci_select_largest(b->row, n, k);
    for (int64_t i = 0; i < k; i++) out->upper += b->row[i];
  }
}

static void measure_tile_range(int64_t begin, int64_t end, void *context) {
  job *j = context;
  const size_t n = (size_t)j->cut->n_columns;
  scratch b = {.tile.score = laci_alloc(n * LACI_TILE_ROWS, sizeof(double)),
               .row = laci_alloc(n, sizeof(double))};
  if (!b.tile.score || !b.row) {
    atomic_store(&j->no_memory, true);
  } else {
    for (int64_t index = j->first_tile + begin; index < j->first_tile + end; index++) {
      laci_cut_read_tile(j->cut, index, &b.tile);
      j->sums[index].kept = sum_kept_of_tile(j, &b.tile);
      if (j->measures) measure_rows_of_tile(j, &b, &j->sums[index]);
    }
  }
  laci_free(b.tile.score);
  laci_free(b.row);
}

static int64_t find_task_grain(int64_t n_tiles, laci_pool *pool) {
  int64_t grain = n_tiles / (8 * (int64_t)laci_pool_threads(pool));
  return grain > 0 ? grain : 1;
}

/* Computes the sums of the tiles of parts first to end - 1 (each has rows of one weight), whose
 * weights are in memory. */
static void sum_tiles_of_parts(const laci_cut *held, int first, int end, void *context) {
  job *j = context;
  const laci_cut *whole = j->cut;
  j->cut = held;
  j->first_tile = held->parts[first].first_tile;
  int64_t n_tiles =
      (end < held->n_parts ? held->parts[end].first_tile : laci_cut_count_tiles(held)) -
      j->first_tile;
  laci_pool_for(j->pool, n_tiles, find_task_grain(n_tiles, j->pool), measure_tile_range, j);
  j->cut = whole;
}

/* Computes the sums of all tiles of one cut (table of columns), and adds them to *total in the
 * order of tiles. */
static lac_status sum_tiles_of_cut(job *j, tile_sum *total, lac_error *err) {
  int64_t n_tiles = laci_cut_count_tiles(j->cut);
  j->sums = laci_alloc((size_t)n_tiles, sizeof *j->sums);
  if (!j->sums) return laci_fail_memory(err, j->cuts->problem->name);
  lac_status st = laci_cut_load_and_visit_weights(j->cut, sum_tiles_of_parts, j, err);
  for (int64_t i = 0; i < n_tiles && !st; i++) {
    total->kept += j->sums[i].kept;
    total->upper += j->sums[i].upper;
    total->largest = j->sums[i].largest > total->largest ? j->sums[i].largest : total->largest;
  }
  laci_free(j->sums);
  if (st) return st;
  return atomic_load(&j->no_memory) ? laci_fail_memory(err, j->cuts->problem->name) : LAC_OK;
}

/* Fails because a weight has a NaN or an infinity. held: elements in memory, beginning with element
   `first` of the weight; at: index of the bad element in it. */
static lac_status fail_not_finite(const laci_weight_view *w, const uint8_t *held, int64_t first,
                                  int64_t at, lac_error *err) {
  laci_weight_view in_memory = *w;
  in_memory.bytes = held - (size_t)first * lac_dtype_size(w->dtype);
  return laci_fail_not_finite(&in_memory, first + at, err);
}

static lac_status check_weights_finite(const laci_cuts *cuts, lac_error *err) {
  for (int i = 0; i < cuts->problem->n_slices; i++) {
    const laci_slice *s = &cuts->problem->slices[i];
    const laci_weight_view *w = &s->weight;
    bool seen = false; /* several copies of one weight are measured once */
    for (int k = 0; k < i && !seen; k++) {
      const laci_slice *t = &cuts->problem->slices[k];
      seen = t->weight.bytes == w->bytes && t->outer_begin == s->outer_begin &&
             t->outer_end >= s->outer_end;
    }
    if (seen) continue;
    int64_t first = s->outer_begin * w->columns * w->inner,
            last = s->outer_end * w->columns * w->inner;
    const size_t size = lac_dtype_size(w->dtype);
    laci_acquired_bytes held;
    lac_status st = laci_bytes_acquire(w->bytes_from, w->bytes + (size_t)first * size,
                                       (size_t)(last - first) * size, w->name, &held, err);
    if (st) return st;
    int64_t at = laci_find_first_not_finite(w->dtype, held.bytes, last - first);
    if (at >= 0) st = fail_not_finite(w, held.bytes, first, at, err);
    laci_bytes_release(&held);
    if (st) return st;
  }
  return LAC_OK;
}

static int64_t find_sample_step(const laci_cuts *cuts) {
  double elements = 0;
  for (int i = 0; i < cuts->n_cuts; i++)
    elements += (double)cuts->cuts[i].n_rows * cuts->cuts[i].n_columns;
  return 1 + laci_clamp_to_int64(elements / SAMPLE);
}

lac_status laci_cuts_measure_weights(const laci_cuts *cuts, laci_pool *pool, laci_measure *measure,
                                     lac_error *err) {
  lac_status st = check_weights_finite(cuts, err);
  if (st) return st;
  const int64_t step = find_sample_step(cuts);
  int64_t n_sample = 0, at = 0;
  tile_sum total = {0};
  for (int i = 0; i < cuts->n_cuts; i++) {
    n_sample += (cuts->cuts[i].n_rows + step - 1) / step * cuts->cuts[i].n_columns;
  }
  double *sample = laci_alloc((size_t)n_sample, sizeof *sample);
  int32_t *identity = laci_alloc((size_t)cuts->n_channels, sizeof *identity);
  if (!sample || !identity) st = laci_fail_memory(err, cuts->problem->name);
  for (int j = 0; !st && j < cuts->n_channels; j++) identity[j] = j;
  for (int i = 0; !st && i < cuts->n_cuts; i++) {
    const laci_cut *cut = &cuts->cuts[i];
    job j = {.cuts = cuts, .cut = cut, .order = identity, .pool = pool, .measures = true};
    j.sample = sample + at;
    j.sample_step = step;
    at += (cut->n_rows + step - 1) / step * cut->n_columns;
    st = sum_tiles_of_cut(&j, &total, err);
  }
  if (!st) {
    int64_t k = n_sample * SAMPLED_OF_1000 / 1000 + 1;
    *measure = (laci_measure){total.kept, total.upper, total.largest, total.largest};
    laci_select_largest(sample, n_sample, k);
    for (int64_t i = 0; i < k && i < n_sample; i++) { /* finds the smallest of the k largest
                                                         scores */
      measure->common = sample[i] < measure->common ? sample[i] : measure->common;
    }
    if (!(measure->common > 0)) measure->common = measure->largest;
  }
  laci_free(identity);
  laci_free(sample);
  return st;
}

lac_status laci_cuts_score_order(const laci_cuts *cuts, const int32_t *order, laci_pool *pool,
                                 double *kept, lac_error *err) {
  tile_sum total = {0};
  lac_status st = LAC_OK;
  for (int i = 0; !st && i < cuts->n_cuts; i++) {
    job j = {.cuts = cuts, .cut = &cuts->cuts[i], .order = order, .pool = pool};
    st = sum_tiles_of_cut(&j, &total, err);
  }
  *kept = total.kept;
  return st;
}

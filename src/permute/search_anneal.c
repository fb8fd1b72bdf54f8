/* SPDX-License-Identifier: Apache-2.0
 * Makes one annealing step: every block offers one of its places (a slot), values of channels in
 * slots are computed, noise is added, the assignment is solved, and channels are moved. One thread
 * solves the assignment; threads divide the rest by rows. */
#include "permute/search_anneal.h"

#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "kernel/search/maxsum.h"
#include "permute/search_noise.h"

enum {
  ROWS_A_PART = 8,
  MOST_REMEMBERED = 11264, /* maximum number of channels for which the table of all channels is
                              kept: it takes 484 MiB */
  LEAST_HINTED = 48,
};

static lac_status list_places_of_blocks(laci_anneal *a, const laci_cut *cut, lac_error *err) {
  const int n = a->values.cuts->n_channels;
  int32_t *begin = laci_arena_alloc(&a->arena, (size_t)cut->n_blocks + 1, sizeof *begin);
  int32_t *places = laci_arena_alloc(&a->arena, (size_t)n, sizeof *places);
  if (!begin || !places) return laci_fail_memory(err, a->values.cuts->problem->name);
  int at = 0;
  for (int g = 0; g < cut->n_blocks; g++) {
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      if (cut->entries[e].place >= 0) places[at++] = cut->entries[e].place;
    }
    begin[g + 1] = at;
  }
  a->n_groups = cut->n_blocks;
  a->place_begin = begin;
  a->places = places;
  return LAC_OK;
}

lac_status laci_anneal_init(laci_anneal *a, const laci_cuts *cuts, const laci_cut *cut,
                            const int32_t *order, laci_pool *pool, lac_error *err) {
  *a = (laci_anneal){0};
  const size_t n = (size_t)cuts->n_channels, g = (size_t)cut->n_blocks;
  lac_status st =
      laci_values_init(&a->values, cuts, cut, LACI_I16, cuts->n_channels <= MOST_REMEMBERED, err);
  if (!st) st = laci_lap_init(&a->lap, cut->n_blocks, err);
  if (!st) st = list_places_of_blocks(a, cut, err);
  if (st) return st;
  a->slot = laci_arena_alloc(&a->arena, g, sizeof *a->slot);
  a->changed_places = laci_arena_alloc(&a->arena, g, sizeof *a->changed_places);
  a->offered_channel = laci_arena_alloc(&a->arena, g, sizeof *a->offered_channel);
  a->noise_key = laci_arena_alloc(&a->arena, g, sizeof *a->noise_key);
  a->column_sum = laci_arena_alloc(&a->arena, g, sizeof *a->column_sum);
  a->order = laci_arena_alloc(&a->arena, n, sizeof *a->order);
  a->table = laci_alloc(g, g * sizeof *a->table);
  a->price = laci_arena_alloc(&a->arena, n, sizeof *a->price);
  a->priced = laci_arena_alloc(&a->arena, n, sizeof *a->priced);
  if (!a->priced || !a->slot || !a->changed_places || !a->offered_channel || !a->noise_key ||
      !a->column_sum || !a->order || !a->table || !a->price) {
    return laci_fail_memory(err, cuts->problem->name);
  }
  memcpy(a->order, order, n * sizeof *order);
  /* wakes the pool's threads only for steps that take much longer than the microseconds of
     waking */
  if ((double)g * (double)g * (double)laci_matrix_count_padded_rows(cut) > 4e6) a->pool = pool;
  return LAC_OK;
}

void laci_anneal_clear(laci_anneal *a) {
  laci_free(a->table);
  laci_lap_clear(&a->lap);
  laci_values_clear(&a->values);
  laci_arena_clear(&a->arena);
}

static int32_t clamp_price(int64_t price) {
  const int64_t most = LACI_LAP_PRICE_LIMIT;
  return (int32_t)(price < -most ? -most : price > most ? most : price);
}

void laci_anneal_use_matrix(laci_anneal *a, const laci_matrix *x) {
  const double growth = a->values.x ? laci_matrix_growth(a->values.x, x) : 1;
  for (int c = 0; c < a->values.cuts->n_channels; c++) {
    a->price[c] = clamp_price(laci_clamp_to_int64(a->price[c] * growth));
  }
  laci_values_set_matrix(&a->values, x, a->order, a->pool);
  a->total = laci_values_sum_kept(&a->values, a->order);
}

static void draw_slot_of_each_block(laci_anneal *a, int64_t iteration) {
  for (int g = 0; g < a->n_groups; g++) {
    uint64_t n = (uint64_t)(a->place_begin[g + 1] - a->place_begin[g]);
    uint64_t bits = laci_rng(a->seed, (uint64_t)iteration,
                             (uint64_t)g); /* the upper 32 random bits choose the slot, the lower 32
                                              seed its noise */
    a->slot[g] = a->places[a->place_begin[g] + (int32_t)((bits >> 32) * n >> 32)];
    a->noise_key[g] = (uint32_t)bits;
    a->offered_channel[g] = a->order[a->slot[g]];
  }
}

typedef struct row_job {
  laci_anneal *anneal;
  laci_anneal_step step;
} row_job;

/* Computes rows [begin, end) of a->table: for the slots of these blocks, the values of all channels
 * that blocks offer. */
static void compute_value_rows(laci_anneal *a, int64_t begin, int64_t end) {
  enum { BATCH = 64 };
  const laci_matrix *x = a->values.x;
  const void *open[ROWS_A_PART], *columns[BATCH];
  laci_maxsum_job job = {.t = open, .x = columns, .nt = (int)(end - begin), .rows = x->rows};
  job.out_stride = (size_t)a->n_groups;
  for (int i = 0; i < job.nt; i++)
    open[i] = laci_values_open_column(&a->values, a->slot[begin + i]);
  for (int h = 0; h < a->n_groups; h += BATCH) {
    job.nx = a->n_groups - h < BATCH ? a->n_groups - h : BATCH;
    for (int i = 0; i < job.nx; i++) columns[i] = laci_matrix_column(x, a->offered_channel[h + i]);
    job.out = a->table + begin * a->n_groups + h;
    laci_maxsum_compute_table(x->number, &job);
  }
}

/* Returns the value of block k if its slot gets the channel that block h offers. */
static int32_t value_of_channel_in_slot(const laci_anneal *a, int64_t k, int h) {
  if (a->caches) return laci_values_row(&a->values, a->slot[k])[a->offered_channel[h]];
  return a->table[k * a->n_groups + h];
}

/* Returns a constant that is subtracted from the costs in row k, which does not change the best
 * assignment. It is the slot's present value. For a solver that begins without prices it is the
 * row's mean, so that rows compete for different columns. */
static int32_t constant_of_cost_row(const laci_anneal *a, int64_t k) {
  if (a->n_groups >= LEAST_HINTED) return value_of_channel_in_slot(a, k, (int)k);
  int64_t sum = 0;
  for (int h = 0; h < a->n_groups; h++) sum += value_of_channel_in_slot(a, k, h);
  return (int32_t)(sum / a->n_groups);
}

static void compute_cost_rows(int64_t begin, int64_t end, void *context) {
  const row_job *j = context;
  laci_anneal *a = j->anneal;
  if (!a->caches) compute_value_rows(a, begin, end);
  for (int64_t k = begin; k < end; k++) {
    const int32_t zero = constant_of_cost_row(a, k);
    int32_t *cost = laci_lap_row(&a->lap, k);
    if (a->caches) {
      const int32_t *values = laci_values_row(&a->values, a->slot[k]), *dealt = a->offered_channel;
      for (int h = 0; h < a->n_groups; h++) cost[h] = zero - values[dealt[h]];
    } else {
      const int32_t *values = a->table + k * a->n_groups;
      for (int h = 0; h < a->n_groups; h++) cost[h] = zero - values[h];
    }
    if (j->step.temperature == 0) continue;
    laci_gumbel_noise_subtract(cost, a->n_groups, j->step.temperature, a->noise_key[k]);
  }
}

/* Sets the prices of channels that have none yet. A column's mean cost is a good first price. It is
 * shifted to the level of the known prices. */
static void set_prices_of_new_channels(laci_anneal *a) {
  const int n = a->n_groups;
  int64_t *sum = a->column_sum, off = 0;
  int n_known = 0;
  for (int h = 0; h < n; h++) n_known += a->priced[a->offered_channel[h]];
  if (n_known == n) return;
  memset(sum, 0, (size_t)n * sizeof *sum);
  for (int k = 0; k < n; k++) {
    const int32_t *cost = laci_lap_row(&a->lap, k);
    for (int h = 0; h < n; h++) sum[h] += cost[h];
  }
  for (int h = 0; h < n; h++) {
    if (a->priced[a->offered_channel[h]]) off += sum[h] / n - a->price[a->offered_channel[h]];
  }
  if (n_known > 0) off /= n_known;
  for (int h = 0; h < n; h++) {
    if (a->priced[a->offered_channel[h]]) continue;
    a->priced[a->offered_channel[h]] = true;
    a->price[a->offered_channel[h]] = clamp_price(sum[h] / n - off);
  }
}

/* Solves the assignment, beginning with the prices of the last step. They hardly change from step
 * to step; if many rows compete for a column, this is several times as fast. Each solution shifts
 * all prices by a constant, which is subtracted again. */
static void solve_assignment(laci_anneal *a) {
  const int n = a->n_groups;
  if (n < LEAST_HINTED) {
    laci_lap_solve(&a->lap);
    return;
  }
  int64_t rise = 0;
  set_prices_of_new_channels(a);
  for (int h = 0; h < n; h++) a->lap.price[h] = a->price[a->offered_channel[h]];
  laci_lap_solve_hinted(&a->lap);
  for (int h = 0; h < n; h++) rise += a->lap.price[h] - a->price[a->offered_channel[h]];
  for (int h = 0; h < n; h++)
    a->price[a->offered_channel[h]] = clamp_price(a->lap.price[h] - rise / n);
}

static int move_assigned_channels(laci_anneal *a) {
  int n_moved = 0;
  for (int k = 0; k < a->n_groups; k++) {
    int h = a->lap.column_of[k];
    if (h == k) continue;
    a->total += value_of_channel_in_slot(a, k, h) - value_of_channel_in_slot(a, k, k);
    a->order[a->slot[k]] = a->offered_channel[h];
    a->changed_places[n_moved++] = a->slot[k];
  }
  laci_values_update_open_columns(&a->values, a->changed_places, n_moved, a->order, a->pool);
  return n_moved;
}

int laci_anneal_run_step(laci_anneal *a, laci_anneal_step step) {
  a->caches = step.caches && a->values.table;
  draw_slot_of_each_block(a, step.iteration);
  if (a->caches) laci_values_update_table_rows(&a->values, a->slot, a->n_groups, a->pool);
  row_job j = {.anneal = a, .step = step};
  laci_pool_for(a->pool, a->n_groups, ROWS_A_PART, compute_cost_rows, &j);
  solve_assignment(a);
  return move_assigned_channels(a);
}

int64_t laci_anneal_mean_deviation(const laci_anneal *a) {
  const int n = a->n_groups;
  int64_t all = 0, sum = 0, *column = a->column_sum;
  for (int h = 0; h < n; h++) {
    column[h] = 0;
    for (int k = 0; k < n; k++) column[h] += a->table[(int64_t)k * n + h];
    all += column[h];
  }
  for (int k = 0; k < n; k++) {
    const int32_t *table = a->table + (int64_t)k * n;
    int64_t row = 0;
    for (int h = 0; h < n; h++) row += table[h];
    for (int h = 0; h < n; h++) {
      int64_t centred = table[h] - row / n - column[h] / n + all / n / n;
      sum += centred < 0 ? -centred : centred;
    }
  }
  return sum / n / n;
}

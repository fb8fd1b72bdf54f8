/* SPDX-License-Identifier: Apache-2.0
 * exact: the proven best order of up to 20 channels, by dynamic programming over subsets.
 *
 *     best(S) = max over blocks B in S:  best(S without B) + score(B)
 *
 * Blocks are interchangeable, so the lowest channel that has no block yet may always be dealt next.
 * A last block that is not full is dealt first, in every possible way. Scores are float64 sums over
 * all rows. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "permute/search_rows.h"
#include "permute/strategy.h"

enum { MOST_CHANNELS = 20 };
#define MOST_WORK 4e8 /* sets of columns times rows: about a second */

typedef struct tables {
  int n, m, keep,
      rest; /* channels, block, kept of a block, channels of the block that is not full (0: none) */
  double *score;  /* [2^n] of sets of m (and of `rest`) channels */
  double *best;   /* [2^n] -1: not reached */
  uint32_t *last; /* [2^n] the block that was dealt last */
} tables;

static double binomial(int n, int k) {
  double ways = 1;
  for (int i = 1; i <= k; i++) ways = ways * (n - k + i) / i;
  return ways;
}

/* All blocks are full, but for at most one. */
static bool blocks_are_full(const laci_cuts *cuts) {
  const laci_cut *cut = &cuts->cuts[0];
  int n_short = 0;
  for (int g = 0; g < cut->n_blocks; g++)
    n_short += cut->block_begin[g + 1] - cut->block_begin[g] < cuts->pattern.m;
  return n_short == (cuts->n_channels % cuts->pattern.m != 0);
}

static bool fits(const laci_cuts *cuts) {
  if (!laci_cuts_plain(cuts) || cuts->n_channels > MOST_CHANNELS || !blocks_are_full(cuts))
    return false;
  return binomial(cuts->n_channels, cuts->pattern.m) * (double)cuts->cuts[0].n_rows < MOST_WORK;
}

/* Sums go by four lanes, in an order that no compiler may change. */
static double sum_of_max(const double *open, const double *x) {
  double lane[4] = {0};
  for (int r = 0; r < LACI_TILE_ROWS; r += 4) {
    for (int i = 0; i < 4; i++) lane[i] += open[r + i] > x[r + i] ? open[r + i] : x[r + i];
  }
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

static double sum_of(const double *x) {
  double lane[4] = {0};
  for (int r = 0; r < LACI_TILE_ROWS; r += 4) {
    for (int i = 0; i < 4; i++) lane[i] += x[r + i];
  }
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* The `keep` largest of some columns, row by row, sorted. */
typedef double top_rows[MOST_CHANNELS][LACI_TILE_ROWS];

static void sink(top_rows to, const top_rows from, int keep, const double *x) {
  double sinking[LACI_TILE_ROWS];
  memcpy(sinking, x, sizeof sinking);
  for (int place = 0; place < keep; place++) {
    for (int r = 0; r < LACI_TILE_ROWS; r++) {
      double here = from[place][r];
      to[place][r] = here > sinking[r] ? here : sinking[r];
      sinking[r] = here > sinking[r] ? sinking[r] : here;
    }
  }
}

/* Adds one tile to the scores of all sets of `left` more channels from `first` on. The last one of
 * a set needs no sorting: it joins as max(n-th largest of the others, x). */
static void score_sets(const tables *t, const double *tile, const top_rows top, uint32_t set,
                       int first, int left) {
  if (left == 1) {
    double others = 0;
    for (int place = 0; place < t->keep - 1; place++) others += sum_of(top[place]);
    for (int c = first; c < t->n; c++) {
      t->score[set | 1U << c] +=
          others + sum_of_max(top[t->keep - 1], tile + (int64_t)c * LACI_TILE_ROWS);
    }
    return;
  }
  for (int c = first; c <= t->n - left; c++) {
    top_rows next;
    sink(next, top, t->keep, tile + (int64_t)c * LACI_TILE_ROWS);
    score_sets(t, tile, next, set | 1U << c, c + 1, left - 1);
  }
}

static lac_status score_all(const tables *t, const laci_cut *cut, lac_error *err) {
  laci_tile tile = {.score = laci_alloc((size_t)t->n * LACI_TILE_ROWS, sizeof(double))};
  if (!tile.score) return laci_fail_memory(err, "the scores of a search");
  static const top_rows nothing = {{0}};
  int64_t n_tiles = laci_tiles_count(cut);
  for (int64_t index = 0; index < n_tiles; index++) {
    laci_tile_read(cut, index, &tile);
    if (t->n >= t->m) score_sets(t, tile.score, nothing, 0, 0, t->m);
    if (t->rest > 0) score_sets(t, tile.score, nothing, 0, 0, t->rest);
  }
  laci_free(tile.score);
  return LAC_OK;
}

/* Deals `left` more channels, free ones from index `first` on, to a block that already holds
 * `block`. */
static void deal(const tables *t, uint32_t dealt, const int *free_channels, int n_free, int first,
                 uint32_t block, int left) {
  if (left > 0) {
    for (int i = first; i <= n_free - left; i++) {
      deal(t, dealt, free_channels, n_free, i + 1, block | 1U << free_channels[i], left - 1);
    }
    return;
  }
  double total = t->best[dealt] + t->score[block];
  if (total > t->best[dealt | block]) {
    t->best[dealt | block] = total;
    t->last[dealt | block] = block;
  }
}

static void solve(const tables *t) {
  const uint32_t n_sets = 1U << t->n;
  for (uint32_t set = 0; set < n_sets; set++) {
    bool begins =
        __builtin_popcount(set) == t->rest; /* the block that is not full, or nothing yet */
    t->best[set] = begins ? t->score[set] : -1;
    t->last[set] = begins ? set : 0;
  }
  for (uint32_t dealt = 0; dealt + 1 < n_sets; dealt++) {
    if (t->best[dealt] < 0) continue;
    int free_channels[MOST_CHANNELS], n_free = 0;
    for (int c = 0; c < t->n; c++) {
      if (!(dealt >> c & 1)) free_channels[n_free++] = c;
    }
    deal(t, dealt, free_channels, n_free, 1, 1U << free_channels[0], t->m - 1);
  }
}

/* Walks back from the full set: its last block goes to the first full block of places, and so on.
 */
static void write_order(const tables *t, const laci_cut *cut, int32_t *order) {
  uint32_t left = (1U << t->n) - 1;
  int next_full = 0;
  while (left) {
    uint32_t block = t->last[left];
    int size = __builtin_popcount(block), g = 0;
    left &= ~block;
    if (size == t->m) {
      while (cut->block_begin[next_full + 1] - cut->block_begin[next_full] < t->m) next_full++;
      g = next_full++;
    } else {
      while (cut->block_begin[g + 1] - cut->block_begin[g] == t->m) g++;
    }
    for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
      int channel = __builtin_ctz(block);
      order[cut->entries[e].place] = channel;
      block &= block - 1;
    }
  }
}

static lac_status run(laci_task *task, lac_error *err) {
  const laci_cut *cut = &task->cuts->cuts[0];
  const laci_pattern pattern = task->cuts->pattern;
  tables t = {.n = task->cuts->n_channels, .m = pattern.m, .keep = pattern.n};
  t.rest = t.n % t.m;
  t.score = laci_alloc((size_t)1 << t.n, sizeof *t.score);
  t.best = laci_alloc((size_t)1 << t.n, sizeof *t.best);
  t.last = laci_alloc((size_t)1 << t.n, sizeof *t.last);
  lac_status st = LAC_OK;
  if (!t.score || !t.best || !t.last) st = laci_fail_memory(err, task->cuts->problem->name);
  else st = score_all(&t, cut, err);
  if (!st) {
    solve(&t);
    write_order(&t, cut, task->order);
    task->iterations = 1;
    task->proven = true;
  }
  laci_free(t.last);
  laci_free(t.best);
  laci_free(t.score);
  return st;
}

const laci_strategy laci_strategy_exact = {.name = "exact", .fits = fits, .run = run};

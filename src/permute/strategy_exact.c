/* SPDX-License-Identifier: Apache-2.0
 * Strategy exact: finds the best order of up to 20 channels (24 on request), and proves that it is
 * the best, by dynamic programming over sets of channels.
 *
 *     best(S) = max over blocks B in S that hold S' highest channel:  best(S without B) + score(B)
 *
 * Blocks are interchangeable, so the next block may always be the one with the highest remaining
 * channel. With j of K blocks remaining, only subsets of the lowest n - K + j channels are then
 * needed: half a million of the 2^24 sets at 24 channels. A set's index in a table is its
 * colexicographic rank among the sets of the same size, so that tables have no gaps. If the last
 * block is not full, all choices for it are tried at the end. All sums are float64 in a fixed
 * order, since the rounded integers of other searches could not prove anything. */
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "permute/search_rows.h"
#include "permute/strategy.h"

enum {
  MOST_CHANNELS = 20, /* maximum number of channels, unless the user names the strategy */
  MOST_CHANNELS_ASKED = 24,
  MOST_BLOCK = 16,
  HALF = 12, /* number of bits in half a set. A set's rank is the sum of two table look-ups, one for
                each half */
  TILES_AT_ONCE = 32,
  UNPROVEN_STEPS = 1000, /* number of annealing iterations after the deadline, which take about a
                            millisecond */
};
/* Limits for the work of a problem: the number of elements that are sorted or added, plus the
 * number of splits of sets. Each takes 0.5 ns (2:4) to 3 ns (large blocks). */
#define MOST_WORK 1e8
#define MOST_WORK_ASKED 4e9

typedef struct tables {
  /* n: number of channels. m: channels of a block. keep: number that the pattern keeps of a block.
     rest: channels of the block that is not full; 0: there is none. n_blocks: number of full
     blocks */
  int n, m, keep, rest, n_blocks;
  uint32_t choose[MOST_CHANNELS_ASKED + 1][MOST_CHANNELS_ASKED + 1];
  uint32_t low[1 << HALF];           /* rank of each lower half of a set */
  double *block_score, *rest_score;  /* score of each possible block of m channels, and of `rest`
                                        channels, by the set's rank */
  double *best[MOST_CHANNELS_ASKED]; /* best[j]: best score of each set of j blocks, by the set's
                                        rank */
  laci_pool *pool;
  const laci_task *task;
  atomic_bool gave_up; /* true: the work was ended early, and some tables are incomplete */
  laci_arena arena;
} tables;

static double count_combinations(int n, int k) {
  double combinations = 1;
  for (int i = 1; i <= k; i++) combinations = combinations * (n - k + i) / i;
  return combinations;
}

/* Do all blocks have m channels, except for at most one? */
static bool are_all_blocks_but_one_full(const laci_cuts *cuts) {
  const laci_cut *cut = &cuts->cuts[0];
  int n_short = 0;
  for (int g = 0; g < cut->n_blocks; g++)
    n_short += cut->block_begin[g + 1] - cut->block_begin[g] < cuts->pattern.m;
  return n_short == (cuts->n_channels % cuts->pattern.m != 0);
}

static double estimate_work(const laci_cuts *cuts) {
  const int n = cuts->n_channels, m = cuts->pattern.m, n_blocks = n / m;
  double all =
      count_combinations(n, m < n ? m : n) * (double)cuts->cuts[0].n_rows * cuts->pattern.n;
  for (int j = 1; j <= n_blocks; j++) {
    all += count_combinations(n - n_blocks + j, j * m) * count_combinations(j * m - 1, m - 1);
  }
  return all;
}

static bool is_exact_applicable(const laci_cuts *cuts, bool asked) {
  return laci_cuts_are_plain(cuts) && are_all_blocks_but_one_full(cuts) &&
         cuts->pattern.m <= MOST_BLOCK &&
         cuts->n_channels <= (asked ? MOST_CHANNELS_ASKED : MOST_CHANNELS) &&
         estimate_work(cuts) <= (asked ? MOST_WORK_ASKED : MOST_WORK);
}

/* Should the work continue? After it has once returned false, it always returns false. */
static bool should_continue(tables *t) {
  if (atomic_load_explicit(&t->gave_up, memory_order_relaxed)) return false;
  if (!laci_task_is_over(t->task)) return true;
  atomic_store_explicit(&t->gave_up, true, memory_order_relaxed);
  return false;
}

/* ---- scores of sets ---- */

/* Returns the sum over a tile's rows of max(open, x). It is computed as four partial sums in a
 * fixed order. */
static double sum_larger_values(const double *open, const double *x) {
  double lane[4] = {0};
  for (int r = 0; r < LACI_TILE_ROWS; r += 4) {
    for (int i = 0; i < 4; i++) lane[i] += open[r + i] > x[r + i] ? open[r + i] : x[r + i];
  }
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

static double sum_of_rows(const double *x) {
  double lane[4] = {0};
  for (int r = 0; r < LACI_TILE_ROWS; r += 4) {
    for (int i = 0; i < 4; i++) lane[i] += x[r + i];
  }
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* For some columns: their `keep` largest values in each row of a tile, sorted. */
typedef double top_rows[MOST_BLOCK][LACI_TILE_ROWS];

static const top_rows nothing = {{0}};

static void insert_sorted_by_row(top_rows to, const top_rows from, int keep, const double *x) {
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

/* Adds the score of one tile to the score of each set of channels. The set so far has its `keep`
 * largest values per row in `top`. Each choice of `more` channels with numbers below `below` makes
 * one set, whose score is in score[]. Channels are added in descending order, so that sets which
 * differ only in the last channel are adjacent there. The last channel needs no sorting: in each
 * row, the larger of its value and the keep-th largest value so far is kept. */
static void add_tile_to_set_scores(const tables *t, const double *tile, const top_rows top,
                                   int below, int more, double *score) {
  if (more == 1) {
    double others = 0;
    for (int place = 0; place < t->keep - 1; place++) others += sum_of_rows(top[place]);
    for (int c = 0; c < below; c++) {
      score[c] += others + sum_larger_values(top[t->keep - 1], tile + (int64_t)c * LACI_TILE_ROWS);
    }
    return;
  }
  for (int c = more - 1; c < below; c++) {
    top_rows next;
    insert_sorted_by_row(next, top, t->keep, tile + (int64_t)c * LACI_TILE_ROWS);
    add_tile_to_set_scores(t, tile, next, c, more - 1, score + t->choose[c][more]);
  }
}

typedef struct batch {
  tables *t;
  const double *tiles; /* [n_tiles][n][LACI_TILE_ROWS] scores of the channels */
  int n_tiles;
} batch;

/* Computes the scores of all blocks whose highest channel is in [begin, end), counted from the
 * highest on, which has the most blocks. Threads divide the sets, not the rows, so that each set's
 * tiles are added in order. */
static void score_possible_blocks(int64_t begin, int64_t end, void *context) {
  const batch *b = context;
  tables *t = b->t;
  for (int64_t i = begin; i < end; i++) {
    const int highest = t->n - 1 - (int)i;
    for (int k = 0; k < b->n_tiles && should_continue(t); k++) {
      const double *tile = b->tiles + (int64_t)k * t->n * LACI_TILE_ROWS;
      top_rows top;
      insert_sorted_by_row(top, nothing, t->keep, tile + (int64_t)highest * LACI_TILE_ROWS);
      add_tile_to_set_scores(t, tile, top, highest, t->m - 1,
                             t->block_score + t->choose[highest][t->m]);
    }
  }
}

static lac_status score_all_blocks(tables *t, const laci_cut *cut, lac_error *err) {
  const int64_t n_tiles = laci_cut_count_tiles(cut), tile_size = (int64_t)t->n * LACI_TILE_ROWS;
  double *tiles = laci_alloc((size_t)(TILES_AT_ONCE * tile_size), sizeof *tiles);
  if (!tiles) return laci_fail_memory(err, "the scores of a search");
  for (int64_t first = 0; first < n_tiles && should_continue(t); first += TILES_AT_ONCE) {
    batch b = {.t = t, .tiles = tiles};
    for (; b.n_tiles < TILES_AT_ONCE && first + b.n_tiles < n_tiles; b.n_tiles++) {
      laci_tile tile = {.score = tiles + b.n_tiles * tile_size};
      laci_cut_read_tile(cut, first + b.n_tiles, &tile);
      if (t->rest > 0) add_tile_to_set_scores(t, tile.score, nothing, t->n, t->rest, t->rest_score);
    }
    laci_pool_for(t->pool, t->n - t->m + 1, 1, score_possible_blocks, &b);
  }
  laci_free(tiles);
  return LAC_OK;
}

/* ---- ranks of sets ---- */

/* The rank of a set among the sets of its size is the sum of choose(c_i, i + 1) over its channels
 * c_0 < c_1 < ... Returns the part of that sum for the channels base + (bits of `half`). first:
 * number of channels below these. */
static uint32_t rank_of_half_set(const tables *t, uint32_t half, int base, int first) {
  uint32_t rank = 0;
  for (; half; half &= half - 1) rank += t->choose[base + __builtin_ctz(half)][++first];
  return rank;
}

static uint32_t find_set_of_rank(const tables *t, uint32_t rank, int size) {
  uint32_t set = 0;
  for (int c = t->n - 1; size > 0; c--) {
    if (t->choose[c][size] > rank) continue;
    rank -= t->choose[c][size--];
    set |= 1U << c;
  }
  return set;
}

/* Returns the set with the next rank: the next larger number with as many bits set. */
static uint32_t find_next_set(uint32_t set) {
  uint32_t lowest = set & -set, carried = set + lowest;
  return carried | ((set ^ carried) >> 2) / lowest;
}

/* ---- best splits ---- */

typedef struct level {
  tables *t;
  int n_blocks;             /* number of blocks that each set of this level is split into */
  const double *below;      /* best score of each set with one block less, by its rank */
  uint32_t high[1 << HALF]; /* for each upper half of a set, its part of the rank */
} level;

typedef struct split {
  double kept;
  uint32_t left; /* the set without the chosen block */
} split;

/* A block needs one more channel, which is chosen from the first n_channels in channel[]. Returns
 * the best such block. left: the set without the channels of the block chosen so far. */
static inline split find_best_last_channel(const level *l, const int8_t *channel, int n_channels,
                                           uint32_t left, const double *score) {
  split best = {.kept = -1};
  for (int i = 0; i < n_channels; i++) {
    uint32_t set = left ^ 1U << channel[i];
    double kept = l->below[l->t->low[set & ((1 << HALF) - 1)] + l->high[set >> HALF]];
    kept += score[channel[i]];
    best.left = kept > best.kept ? set : best.left;
    best.kept = kept > best.kept ? kept : best.kept;
  }
  return best;
}

/* A block needs `more` further channels, which are chosen from the first n_channels in channel[]
 * (ascending). Returns the best such block. left: the set without the channels of the block chosen
 * so far. score: scores of the possible blocks, from the lowest rank on. */
static split find_best_block_of_set(const level *l, const int8_t *channel, int n_channels,
                                    uint32_t left, int more, const double *score) {
  if (more == 1) return find_best_last_channel(l, channel, n_channels, left, score);
  split best = {.kept = -1};
  for (int i = n_channels - 1; i >= more - 1; i--) {
    const int c = channel[i];
    const double *from = score + l->t->choose[c][more];
    split here = more == 2 ? find_best_last_channel(l, channel, i, left ^ 1U << c, from)
                           : find_best_block_of_set(l, channel, i, left ^ 1U << c, more - 1, from);
    if (here.kept > best.kept) best = here;
  }
  return best;
}

static split split_off_best_block(const level *l, uint32_t set) {
  const tables *t = l->t;
  int8_t channel[MOST_CHANNELS_ASKED];
  int n = 0;
  for (uint32_t bits = set; bits; bits &= bits - 1) channel[n++] = (int8_t)__builtin_ctz(bits);
  const int highest = channel[n - 1];
  return find_best_block_of_set(l, channel, n - 1, set ^ 1U << highest, t->m - 1,
                                t->block_score + t->choose[highest][t->m]);
}

static void init_level(level *l, tables *t, int n_blocks) {
  const int size = (n_blocks - 1) * t->m;
  l->t = t;
  l->n_blocks = n_blocks;
  l->below = t->best[n_blocks - 1];
  for (uint32_t half = 0; half < 1U << (t->n > HALF ? t->n - HALF : 0); half++) {
    int in_low = size - __builtin_popcount(half);
    l->high[half] = in_low >= 0 ? rank_of_half_set(t, half, HALF, in_low) : 0;
  }
}

static void split_sets_of_level(int64_t begin, int64_t end, void *context) {
  const level *l = context;
  uint32_t set = find_set_of_rank(l->t, (uint32_t)begin, l->n_blocks * l->t->m);
  if (!should_continue(l->t)) return;
  for (int64_t i = begin; i < end; i++, set = find_next_set(set)) {
    l->t->best[l->n_blocks][i] = split_off_best_block(l, set).kept;
  }
}

static uint32_t count_sets(const tables *t, int n_blocks) {
  return t->choose[t->n - t->n_blocks + n_blocks][n_blocks * t->m];
}

static void split_sets_of_all_levels(tables *t) {
  for (int j = 1; j <= t->n_blocks; j++) {
    level l;
    init_level(&l, t, j);
    laci_pool_for(t->pool, count_sets(t, j), 256, split_sets_of_level, &l);
  }
}

/* ---- writing the order ---- */

/* Puts the channels of a set into the next block that has as many places. */
static void place_set_in_block(const laci_cut *cut, uint32_t set, int *next_block, int32_t *order) {
  const int size = __builtin_popcount(set);
  int g = *next_block;
  while (cut->block_begin[g + 1] - cut->block_begin[g] != size) g++;
  *next_block = g + 1;
  for (int e = cut->block_begin[g]; set; e++, set &= set - 1) {
    order[cut->entries[e].place] = __builtin_ctz(set);
  }
}

/* Writes the best order. It tries every choice of channels for the block that is not full; the
 * complement of the set of rank i has the i-th rank from the end. Then it computes the best splits
 * again, from the full set downwards. */
static void write_best_order(tables *t, const laci_cut *cut, int32_t *order) {
  const uint32_t n_rests = t->choose[t->n][t->rest], all = (1U << t->n) - 1;
  const double *best = t->best[t->n_blocks];
  uint32_t rest = 0;
  for (uint32_t i = 1; i < n_rests; i++) {
    double kept = best[n_rests - 1 - i] + t->rest_score[i];
    if (kept > best[n_rests - 1 - rest] + t->rest_score[rest]) rest = i;
  }
  uint32_t left = find_set_of_rank(t, n_rests - 1 - rest, t->n - t->rest);
  int next_full = 0, next_short = 0;
  if (t->rest > 0) place_set_in_block(cut, all ^ left, &next_short, order);
  for (int j = t->n_blocks; j > 0; j--) {
    level l;
    init_level(&l, t, j);
    split s = split_off_best_block(&l, left);
    place_set_in_block(cut, left ^ s.left, &next_full, order);
    left = s.left;
  }
}

static bool init_tables(tables *t) {
  for (int i = 0; i <= MOST_CHANNELS_ASKED; i++) {
    t->choose[i][0] = 1;
    for (int k = 1; k <= i; k++) t->choose[i][k] = t->choose[i - 1][k - 1] + t->choose[i - 1][k];
  }
  for (uint32_t half = 0; half < 1U << HALF; half++) t->low[half] = rank_of_half_set(t, half, 0, 0);
  bool ok = true;
  for (int j = 0; j <= t->n_blocks; j++) {
    t->best[j] = laci_arena_alloc(&t->arena, count_sets(t, j), sizeof(double));
    ok &= t->best[j] != NULL;
  }
  /* without a full block, no block has to be scored */
  uint32_t n_scores = t->n_blocks > 0 ? t->choose[t->n][t->m] : 0;
  t->block_score = laci_arena_alloc(&t->arena, n_scores, sizeof(double));
  t->rest_score = laci_arena_alloc(&t->arena, t->choose[t->n][t->rest], sizeof(double));
  return ok && t->block_score && t->rest_score;
}

static lac_status run_strategy(laci_task *task, lac_error *err) {
  const laci_cut *cut = &task->cuts->cuts[0];
  const laci_pattern pattern = task->cuts->pattern;
  tables *t = laci_alloc(1, sizeof *t);
  if (!t) return laci_fail_memory(err, task->cuts->problem->name);
  t->n = task->cuts->n_channels;
  t->m = pattern.m;
  t->keep = pattern.n;
  t->rest = t->n % t->m;
  t->n_blocks = t->n / t->m;
  t->task = task;
  t->pool =
      estimate_work(task->cuts) > 4e6 ? task->pool : NULL; /* waking threads takes microseconds,
                                                              which small problems do not */
  lac_status st = LAC_OK;
  if (!init_tables(t)) st = laci_fail_memory(err, task->cuts->problem->name);
  else st = score_all_blocks(t, cut, err);
  if (!st) split_sets_of_all_levels(t);
  if (!st && !atomic_load(&t->gave_up)) {
    write_best_order(t, cut, task->order);
    task->iterations = 1;
    task->proven = true;
  } else if (!st && !laci_interrupted()) { /* there is no proof within the time limit, so it finds a
                                              good order quickly */
    task->deadline = 0;
    task->iterations_wanted = UNPROVEN_STEPS;
    task->found_by = "assign";
    st = laci_search_cut_by_assignment(task, cut, err);
  }
  task->final = true;
  laci_arena_clear(&t->arena);
  laci_free(t);
  return st;
}

const laci_strategy laci_strategy_exact = {.fits = is_exact_applicable, .run = run_strategy};

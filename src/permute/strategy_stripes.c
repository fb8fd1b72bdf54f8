/* SPDX-License-Identifier: Apache-2.0
 * stripes: all 35 ways to split the eight columns of two blocks anew, for every pair of blocks,
 * until none helps.
 *
 * The classic method for 2:4 (J. Pool, C. Yu, "Channel permutations for N:M sparsity", NeurIPS
 * 2021) and the yardstick for the others. Row by row, a block of the pairs (a, b) and (c, d) keeps
 *     max(high_ab + high_cd, high_ab + low_ab, high_cd + low_cd),
 * so 28 sorted pairs serve all 70 blocks. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "permute/search_matrix.h"
#include "permute/strategy.h"

enum { N_SPLITS = 35, ROWS_AT_ONCE = 256, WIDE = 8 };

/* Block A of each split as a set of the eight columns: those that hold column 0, so that no split
 * comes twice. */
static void list_splits(uint8_t splits[N_SPLITS]) {
  int n = 0;
  for (int set = 0; set < 256; set++) {
    if ((set & 1) && __builtin_popcount((unsigned)set) == 4) splits[n++] = (uint8_t)set;
  }
}

typedef struct sorted_pairs {
  uint16_t high[WIDE][WIDE][ROWS_AT_ONCE], low[WIDE][WIDE][ROWS_AT_ONCE]; /* [i][j], i < j */
} sorted_pairs;

static void sort_pairs(const int16_t *const column[WIDE], size_t row, size_t rows,
                       sorted_pairs *p) {
  uint16_t x[WIDE][ROWS_AT_ONCE] = {{0}};
  for (int i = 0; i < WIDE; i++) memcpy(x[i], column[i] + row, rows * sizeof *x[i]);
  for (int i = 0; i < WIDE; i++) {
    for (int j = i + 1; j < WIDE; j++) {
      for (int r = 0; r < ROWS_AT_ONCE; r++) {
        p->high[i][j][r] = x[i][r] > x[j][r] ? x[i][r] : x[j][r];
        p->low[i][j][r] = x[i][r] > x[j][r] ? x[j][r] : x[i][r];
      }
    }
  }
}

/* Two elements of 15 bits sum to 16. */
static uint32_t kept_of_set(const sorted_pairs *p, unsigned set) {
  int c[4];
  for (int i = 0; i < 4; i++, set &= set - 1) c[i] = __builtin_ctz(set);
  const uint16_t *high_a = p->high[c[0]][c[1]], *low_a = p->low[c[0]][c[1]];
  const uint16_t *high_b = p->high[c[2]][c[3]], *low_b = p->low[c[2]][c[3]];
  uint32_t sum = 0;
  for (int r = 0; r < ROWS_AT_ONCE; r++) {
    uint16_t across = (uint16_t)(high_a[r] + high_b[r]), first = (uint16_t)(high_a[r] + low_a[r]);
    uint16_t second = (uint16_t)(high_b[r] + low_b[r]), most = first > second ? first : second;
    sum += across > most ? across : most;
  }
  return sum;
}

typedef struct search {
  laci_task *task;
  const laci_cut *cut;
  laci_matrix x;
  sorted_pairs *pairs;
  uint8_t splits[N_SPLITS];
  int64_t *changed; /* [n_blocks] sweep in which a block last changed */
} search;

static int32_t place_at(const search *s, int block_a, int block_b, int i) {
  int at = i < 4 ? s->cut->block_begin[block_a] + i : s->cut->block_begin[block_b] + i - 4;
  return s->cut->entries[at].place;
}

/* The best split of the columns of two blocks; true if it is better than how they are. */
static bool split_pair(search *s, int block_a, int block_b) {
  const int16_t *column[WIDE];
  int32_t channel[WIDE], *order = s->task->order;
  int64_t kept[N_SPLITS] = {0};
  for (int i = 0; i < WIDE; i++) {
    channel[i] = order[place_at(s, block_a, block_b, i)];
    column[i] = laci_matrix_column(&s->x, channel[i]);
  }
  for (size_t row = 0; row < s->x.rows; row += ROWS_AT_ONCE) {
    sort_pairs(column, row, s->x.rows - row < ROWS_AT_ONCE ? s->x.rows - row : ROWS_AT_ONCE,
               s->pairs);
    for (int k = 0; k < N_SPLITS; k++) {
      kept[k] += kept_of_set(s->pairs, s->splits[k]);
      kept[k] += kept_of_set(s->pairs, ~(unsigned)s->splits[k] & 255);
    }
  }
  int best = 0; /* split 0 is {0, 1, 2, 3}: how they are */
  for (int k = 1; k < N_SPLITS; k++) best = kept[k] > kept[best] ? k : best;
  int at_a = 0, at_b = 4;
  for (int i = 0; best > 0 && i < WIDE; i++) {
    bool in_a = s->splits[best] >> i & 1;
    order[place_at(s, block_a, block_b, in_a ? at_a++ : at_b++)] = channel[i];
  }
  return best > 0;
}

/* Pairs of blocks that have not changed since they were last looked at cannot have got better. */
static bool sweep(search *s, int64_t number) {
  bool improved = false;
  for (int a = 0; a < s->cut->n_blocks; a++) {
    for (int b = a + 1; b < s->cut->n_blocks; b++) {
      if (s->changed[a] < number - 1 && s->changed[b] < number - 1) continue;
      if (laci_interrupted()) return false;
      if (!split_pair(s, a, b)) continue;
      s->changed[a] = s->changed[b] = number;
      improved = true;
    }
  }
  return improved;
}

static bool fits(const laci_cuts *cuts) {
  if (!laci_cuts_plain(cuts) || cuts->pattern.n != 2 || cuts->pattern.m != 4) return false;
  const laci_cut *cut = &cuts->cuts[0];
  for (int g = 0; g < cut->n_blocks; g++) {
    if (cut->block_begin[g + 1] - cut->block_begin[g] != 4) return false;
  }
  return true;
}

static lac_status run(laci_task *task, lac_error *err) {
  search s = {.task = task, .cut = &task->cuts->cuts[0]};
  lac_status st =
      laci_matrix_init(&s.x, LACI_I16, task->cuts, s.cut, task->measure, task->pool, err);
  if (st) return st;
  list_splits(s.splits);
  s.pairs = laci_alloc(1, sizeof *s.pairs);
  s.changed = laci_alloc((size_t)s.cut->n_blocks, sizeof *s.changed);
  if (!s.pairs || !s.changed) st = laci_fail_memory(err, task->cuts->problem->name);
  for (bool improved = !st; improved;) improved = sweep(&s, ++task->iterations);
  laci_free(s.changed);
  laci_free(s.pairs);
  laci_matrix_clear(&s.x);
  return st;
}

const laci_strategy laci_strategy_stripes = {.name = "stripes", .fits = fits, .run = run};

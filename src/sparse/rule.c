/* SPDX-License-Identifier: Apache-2.0
 * Chooses and measures masks by any mask rule (mask.h), block by block. */
#include "sparse/mask.h"

#include <stdatomic.h>
#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "sparse/blocks.h"
#include "sparse/score.h"
#include "sparse/shared_columns.h"
#include "sparse/square.h"

enum { SUM_ELEMENTS = 1 << 16, SUM_AT_ONCE = 1024 };

bool laci_mask_form_find(const char *name, laci_mask_form *form) {
  static const char *const names[] = {"1d", "2d-greedy", "2d-best"};
  for (int at = 0; at < (int)(sizeof names / sizeof *names); at++) {
    if (strcmp(names[at], name) != 0) continue;
    *form = (laci_mask_form)at;
    return true;
  }
  return false;
}

lac_status laci_mask_rule_check(const laci_mask_rule *rule, lac_error *err) {
  const int n = rule->pattern.n, m = rule->pattern.m;
  if (rule->form != LACI_MASK_SHARED) return laci_pattern_check(rule->pattern, err);
  if (n >= 1 && n <= LACI_SHARED_COLUMNS && n < m && m >= LACI_SHARED_COLUMNS &&
      m <= LACI_MOST_PATTERN_M && rule->v >= 1 && rule->v <= LACI_SHARED_MOST_ROWS) {
    return LAC_OK;
  }
  return laci_fail(
      err, LAC_BAD_ARGUMENT,
      "pattern %d:%d:%d: wanted V:N:M with 1 <= V <= %d, 1 <= N <= %d, N < M and %d <= "
      "M <= %d",
      rule->v, n, m, LACI_SHARED_MOST_ROWS, LACI_SHARED_COLUMNS, LACI_SHARED_COLUMNS,
      LACI_MOST_PATTERN_M);
}

/* ---- Work on blocks ---- */

typedef struct block_job {
  const laci_blocks *blocks;
  const laci_mask_rule *rule;
  laci_elements_read *read;
  uint8_t *mask;     /* the mask that is chosen */
  atomic_bool fails; /* result of a check: some block violates the rule */
  atomic_bool no_memory;
} block_job;

/* Scratch memory of one thread. */
typedef struct scratch {
  double *raw, *values, *work;
  uint8_t *mask;
  laci_square *square;
} scratch;

static void scratch_clear(scratch *b) {
  laci_free(b->raw);
  laci_free(b->values);
  laci_free(b->work);
  laci_free(b->mask);
  laci_square_destroy(b->square);
}

static bool scratch_init(const block_job *j, scratch *b) {
  const laci_blocks_size size = j->blocks->size;
  const size_t capacity = (size_t)laci_blocks_largest_block(j->blocks);
  const size_t area = (size_t)size.rows * (size_t)size.columns;
  *b =
      (scratch){.raw = laci_alloc(capacity, sizeof *b->raw),
                .values = laci_alloc(capacity, sizeof *b->values),
                .work = laci_alloc(area + (size_t)size.rows * LACI_SHARED_COLUMNS, sizeof *b->work),
                .mask = laci_alloc(area, 1)};
  bool ok = b->raw && b->values && b->work && b->mask;
  bool square = j->mask && j->rule->form != LACI_MASK_SHARED;
  return ok && (!square || laci_square_create(j->rule->pattern, &b->square, NULL) == LAC_OK);
}

/* ---- Choosing ---- */

static void choose_mask_at_position(const block_job *j, const laci_block *k, const double *score,
                                    scratch *b) {
  const int rows = k->n_rows, columns = k->n_columns, n = j->rule->pattern.n;
  switch (j->rule->form) {
    case LACI_MASK_2D_GREEDY:
      laci_square_choose_greedily(b->square, score, rows, columns, b->mask);
      break;
    case LACI_MASK_2D_BEST:
      laci_square_choose_best(b->square, score, rows, columns, b->mask);
      break;
    default: laci_shared_columns_mask(score, rows, columns, n, b->work, b->mask); break;
  }
}

static void choose_mask_of_block(const block_job *j, const laci_block *k, scratch *b) {
  const int64_t area = (int64_t)k->n_rows * k->n_columns;
  for (int64_t p = 0; p < k->n_positions; p++) {
    choose_mask_at_position(j, k, b->values + p * area, b);
    for (int row = 0; row < k->n_rows; row++) {
      for (int c = 0; c < k->n_columns; c++)
        j->mask[laci_block_element(j->blocks, k, row, c) + p] = b->mask[row * k->n_columns + c];
    }
  }
}

/* ---- Checking ---- */

/* Does the block, at one kernel position, have at most four columns with a nonzero? distance: |w -
 * zero| of each element. */
static bool has_few_columns(const double *distance, int rows, int columns) {
  int n_used = 0;
  for (int c = 0; c < columns; c++) {
    bool used = false;
    for (int row = 0; row < rows && !used; row++) used = distance[row * columns + c] != 0;
    n_used += used;
  }
  return n_used <= LACI_SHARED_COLUMNS;
}

static bool has_at_most_n_per_column(const double *distance, int rows, int columns, int n) {
  for (int c = 0; c < columns; c++) {
    int filled = 0;
    for (int row = 0; row < rows; row++) filled += distance[row * columns + c] != 0;
    if (filled > n) return false;
  }
  return true;
}

static bool does_block_meet_rule(const block_job *j, const laci_block *k, const scratch *b) {
  const int64_t area = (int64_t)k->n_rows * k->n_columns;
  for (int64_t p = 0; p < k->n_positions; p++) {
    const double *at = b->values + p * area;
    bool holds = j->rule->form == LACI_MASK_SHARED
                     ? has_few_columns(at, k->n_rows, k->n_columns)
                     : has_at_most_n_per_column(at, k->n_rows, k->n_columns, j->rule->pattern.n);
    if (!holds) return false;
  }
  return true;
}

static void process_blocks(int64_t begin, int64_t end, void *context) {
  block_job *j = context;
  scratch b;
  if (scratch_init(j, &b)) {
    for (int64_t at = begin; at < end && !atomic_load(&j->fails); at++) {
      const laci_block k = laci_block_at(j->blocks, at);
      laci_block_read_scores(j->blocks, &k, j->read, b.raw, b.values);
      if (j->mask) choose_mask_of_block(j, &k, &b);
      else if (!does_block_meet_rule(j, &k, &b)) atomic_store(&j->fails, true);
    }
  } else {
    atomic_store(&j->no_memory, true);
  }
  scratch_clear(&b);
}

static lac_status process_all_blocks(block_job *j, laci_pool *pool, lac_error *err) {
  const laci_weight_view *weight = j->blocks->weight;
  const int64_t n = j->blocks->n, grain = n / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n, grain > 0 ? grain : 1, process_blocks, j);
  return atomic_load(&j->no_memory) ? laci_fail_memory(err, weight->name) : LAC_OK;
}

/* ---- Masks ---- */

static laci_blocks_size block_size_of_rule(const laci_mask_rule *rule) {
  const int m = rule->pattern.m;
  return (laci_blocks_size){rule->form == LACI_MASK_SHARED ? rule->v : m, m};
}

lac_status laci_mask_choose_by_rule(const laci_weight_view *weight, const laci_mask_rule *rule,
                                    laci_pool *pool, uint8_t *mask, lac_error *err) {
  if (rule->form == LACI_MASK_1D) return laci_mask_choose(weight, rule->pattern, pool, mask, err);
  laci_blocks blocks;
  lac_status st = laci_mask_rule_check(rule, err);
  if (!st) st = laci_weight_check(weight, rule->pattern, err);
  if (!st) st = laci_weight_check_finite(weight, pool, err);
  if (!st) st = laci_blocks_init(&blocks, weight, block_size_of_rule(rule), err);
  if (st) return st;
  block_job j = {.blocks = &blocks, .rule = rule, .read = laci_scores_read, .mask = mask};
  return process_all_blocks(&j, pool, err);
}

lac_status laci_weight_has_pattern_along_rows(const laci_weight_view *weight, laci_pattern pattern,
                                              laci_pool *pool, bool *holds, lac_error *err) {
  const laci_mask_rule rule = {.pattern = pattern, .form = LACI_MASK_2D_BEST};
  laci_blocks blocks;
  *holds = false;
  lac_status st = laci_weight_check(weight, pattern, err);
  if (st || weight->rows == 0) return st;
  st = laci_blocks_init(&blocks, weight, block_size_of_rule(&rule), err);
  if (st) return st;
  block_job j = {.blocks = &blocks, .rule = &rule, .read = laci_zero_distances_read};
  st = process_all_blocks(&j, pool, err);
  *holds = !st && !atomic_load(&j.fails);
  return st;
}

static lac_status check_shared_columns(const laci_weight_view *weight, const laci_mask_rule *rule,
                                       laci_pool *pool, bool *holds, lac_error *err) {
  laci_blocks blocks;
  lac_status st = laci_blocks_init(&blocks, weight, block_size_of_rule(rule), err);
  if (st) return st;
  block_job j = {.blocks = &blocks, .rule = rule, .read = laci_zero_distances_read};
  st = process_all_blocks(&j, pool, err);
  *holds = !st && !atomic_load(&j.fails);
  return st;
}

/* ---- Measuring ---- */

typedef struct sums {
  double kept, score_kept, score_total;
} sums;

typedef struct sum_job {
  const laci_weight_view *weight, *own; /* own: the same view without `score`, so that its scores
                                           are |w| */
  const uint8_t *mask;
  int64_t count;
  sums *parts;
} sum_job;

static void sum_scores_of_elements(const sum_job *j, int64_t first, int64_t n, sums *to) {
  double own[SUM_AT_ONCE], score[SUM_AT_ONCE];
  laci_scores_read(j->own, first, n, own);
  laci_scores_read(j->weight, first, n, score);
  for (int64_t e = 0; e < n; e++) {
    const bool keeps = j->mask[first + e];
    to->kept += keeps ? own[e] : 0;
    to->score_kept += keeps ? score[e] : 0;
    to->score_total += score[e];
  }
}

static void sum_scores_of_parts(int64_t begin, int64_t end, void *context) {
  const sum_job *j = context;
  for (int64_t part = begin; part < end; part++) {
    int64_t last = (part + 1) * SUM_ELEMENTS;
    if (last > j->count) last = j->count;
    for (int64_t at = part * SUM_ELEMENTS; at < last; at += SUM_AT_ONCE)
      sum_scores_of_elements(j, at, last - at < SUM_AT_ONCE ? last - at : SUM_AT_ONCE,
                             &j->parts[part]);
  }
}

/* Sums the scores that the rule's mask keeps. Parts of a fixed size are summed, and their sums are
 * added in order. */
static lac_status sum_kept_scores(sum_job *j, const laci_mask_rule *rule, laci_pool *pool,
                                  sums *all, lac_error *err) {
  const int64_t n_parts = laci_ceil_div(j->count, SUM_ELEMENTS);
  uint8_t *mask = laci_alloc((size_t)j->count, 1);
  j->parts = laci_alloc((size_t)n_parts, sizeof *j->parts);
  j->mask = mask;
  lac_status st = mask && j->parts ? LAC_OK : laci_fail_memory(err, j->weight->name);
  if (!st) st = laci_mask_choose_by_rule(j->weight, rule, pool, mask, err);
  if (!st) laci_pool_for(pool, n_parts, 1, sum_scores_of_parts, j);
  for (int64_t part = 0; part < n_parts && !st; part++) {
    all->kept += j->parts[part].kept;
    all->score_kept += j->parts[part].score_kept;
    all->score_total += j->parts[part].score_total;
  }
  laci_free(j->parts);
  laci_free(mask);
  return st;
}

lac_status laci_mask_measure_by_rule(const laci_weight_view *weight, const laci_mask_rule *rule,
                                     laci_pool *pool, laci_mask_stats *stats,
                                     laci_mask_scores *scores, lac_error *err) {
  laci_weight_view own = *weight;
  own.score = NULL;
  lac_status st = laci_mask_rule_check(rule, err);
  if (!st) st = laci_mask_measure(&own, rule->pattern, pool, stats, err);
  if (!st && rule->form == LACI_MASK_SHARED && stats->holds_pattern)
    st = check_shared_columns(&own, rule, pool, &stats->holds_pattern, err);
  if (st) return st;
  *scores = (laci_mask_scores){stats->kept, stats->total};
  if (rule->form == LACI_MASK_1D && !weight->score) return LAC_OK;
  sums all = {0};
  sum_job j = {
      .weight = weight, .own = &own, .count = weight->outer * weight->columns * weight->inner};
  st = sum_kept_scores(&j, rule, pool, &all, err);
  if (st) return st;
  stats->kept = all.kept;
  *scores = (laci_mask_scores){all.score_kept, all.score_total};
  return LAC_OK;
}

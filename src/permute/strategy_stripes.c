/* SPDX-License-Identifier: Apache-2.0
 * Strategy stripes: computes the best exchange of columns for every pair of blocks and applies the
 * best ones first, until no exchange helps.
 *
 * It is the classic method (J. Pool, C. Yu, "Channel permutations for N:M sparsity", NeurIPS 2021),
 * and the baseline for the other strategies. For 2:4 the classic method tries all 35 splits of the
 * eight columns of two blocks. Exchanges of up to two columns are equivalent to that, and also
 * defined for other patterns (search_exchange.h). In each round the best exchange of every pair is
 * known. Exchanges are applied in order of decreasing gain, except for pairs with a block that was
 * already changed in this round. Then pairs with changed blocks are computed again. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "permute/search_exchange.h"
#include "permute/search_matrix.h"
#include "permute/strategy.h"

enum { MOST_BLOCKS = 4096 }; /* maximum number of blocks, which have 8 million pairs */

typedef struct pair {
  int32_t a, b;
  laci_exchange best;
} pair;

typedef struct search {
  const laci_task *task;
  const laci_cut *cut;
  const laci_matrix *x;
  int64_t n_pairs;
  pair *pairs;         /* pairs of blocks (a, b) with a < b, sorted by a, then by b */
  const pair **ranked; /* [n_pairs] pairs whose best exchange helps, sorted by gain */
  bool *changed;       /* [n_blocks] true: the block changed since the exchanges of its pairs were
                          computed */
  atomic_bool no_memory;
} search;

static laci_exchange_block list_columns_of_block(const search *s, int g) {
  const int begin = s->cut->block_begin[g];
  laci_exchange_block b = {.n = s->cut->block_begin[g + 1] - begin};
  for (int i = 0; i < b.n; i++) {
    int32_t channel = s->task->order[s->cut->entries[begin + i].place];
    b.column[i] = laci_matrix_column(s->x, channel);
  }
  return b;
}

static void find_exchanges_of_pairs(int64_t begin, int64_t end, void *context) {
  search *s = context;
  laci_exchange_scratch *scratch = NULL;
  for (int64_t i = begin; i < end && !laci_task_is_over(s->task); i++) {
    pair *p = &s->pairs[i];
    if (!s->changed[p->a] && !s->changed[p->b]) continue;
    if (!scratch) scratch = laci_exchange_scratch_create();
    if (!scratch) {
      atomic_store(&s->no_memory, true);
      return;
    }
    laci_exchange_block a = list_columns_of_block(s, p->a), b = list_columns_of_block(s, p->b);
    p->best = laci_exchange_find_best(&a, &b, s->task->cuts->pattern.n, s->x->rows, scratch);
  }
  laci_free(scratch);
}

static int compare_largest_gain_first(const void *x, const void *y) {
  const pair *a = *(const pair *const *)x, *b = *(const pair *const *)y;
  if (a->best.gain != b->best.gain) return a->best.gain > b->best.gain ? -1 : 1;
  return (a > b) - (a < b); /* a and b both point into pairs[] */
}

static void apply_pair_exchange(const search *s, const pair *p) {
  const laci_entry *a = s->cut->entries + s->cut->block_begin[p->a];
  const laci_entry *b = s->cut->entries + s->cut->block_begin[p->b];
  for (int i = 0; i < p->best.n; i++) {
    int32_t *x = &s->task->order[a[p->best.from_a[i]].place];
    int32_t *y = &s->task->order[b[p->best.from_b[i]].place];
    int32_t channel = *x;
    *x = *y;
    *y = channel;
  }
}

/* Applies the best exchanges, at most one for each block. Returns whether it applied any. */
static bool apply_best_exchanges(search *s) {
  int64_t n = 0;
  for (int64_t i = 0; i < s->n_pairs; i++) {
    if (s->pairs[i].best.gain > 0) s->ranked[n++] = &s->pairs[i];
  }
  qsort(s->ranked, (size_t)n, sizeof *s->ranked, compare_largest_gain_first);
  for (int g = 0; g < s->cut->n_blocks; g++) s->changed[g] = false;
  for (int64_t i = 0; i < n; i++) {
    const pair *p = s->ranked[i];
    if (s->changed[p->a] || s->changed[p->b]) continue;
    apply_pair_exchange(s, p);
    s->changed[p->a] = s->changed[p->b] = true;
  }
  return n > 0;
}

static lac_status init_search(search *s, lac_error *err) {
  const int64_t n = s->cut->n_blocks;
  s->n_pairs = n * (n - 1) / 2;
  s->pairs = laci_alloc((size_t)s->n_pairs, sizeof *s->pairs);
  s->ranked = laci_alloc((size_t)s->n_pairs, sizeof *s->ranked);
  s->changed = laci_alloc((size_t)n, sizeof *s->changed);
  if (!s->pairs || !s->ranked || !s->changed)
    return laci_fail_memory(err, s->task->cuts->problem->name);
  pair *next = s->pairs;
  for (int a = 0; a < n; a++) {
    s->changed[a] = true;
    for (int b = a + 1; b < n; b++) *next++ = (pair){.a = a, .b = b};
  }
  return LAC_OK;
}

static bool is_stripes_applicable(const laci_cuts *cuts, bool asked) {
  (void)asked;
  return laci_cuts_are_plain(cuts) && cuts->pattern.m <= LACI_EXCHANGE_BLOCK &&
         cuts->cuts[0].n_blocks <= MOST_BLOCKS;
}

static lac_status run_strategy(laci_task *task, lac_error *err) {
  search s = {.task = task, .cut = &task->cuts->cuts[0]};
  lac_status st = laci_task_find_or_make_matrix(task, s.cut, LACI_I16, &s.x, err);
  if (st) return st;
  st = init_search(&s, err);
  for (bool improved = !st; improved; task->iterations++) {
    laci_pool_for(task->pool, s.n_pairs, 64, find_exchanges_of_pairs, &s);
    if (atomic_load(&s.no_memory)) st = laci_fail_memory(err, task->cuts->problem->name);
    improved = !st && !laci_task_is_over(task) && apply_best_exchanges(&s);
  }
  task->final = true; /* a higher effort gives the same result */
  laci_free(s.changed);
  laci_free(s.ranked);
  laci_free(s.pairs);
  return st;
}

const laci_strategy laci_strategy_stripes = {.fits = is_stripes_applicable, .run = run_strategy};

/* SPDX-License-Identifier: Apache-2.0
 * Strategy swap: exchanges pairs of channels as long as this improves the sum of the scores that
 * all cuts (tables of columns) keep. It is applicable to every problem.
 *
 * In a stacked cut the change is read from the table of values. With channel xa at place a and xb
 * at b, in different blocks, it is value(a, xb) - value(a, xa) + value(b, xa) - value(b, xb). If
 * copies of one channel share a block, the blocks with a or b are evaluated again. The budget
 * limits the number of elements that are read. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/to_int.h"
#include "kernel/search/topn.h"
#include "permute/search_values.h"
#include "permute/strategy.h"

enum { MOST_TABLED = 4096, FINE_ELEMENTS = 1 << 24 };

/* The state of the search in one cut (table of columns). */
typedef struct side {
  const laci_cut *cut;
  const laci_matrix *x;
  bool tabled;
  laci_values values;    /* table of values of a stacked cut. It is used if `tabled` is true: the
                            cut is not too large for it */
  int64_t *kept;         /* [n_blocks] sum of the scores that each block keeps. This and the fields
                            below are only for cuts without a table */
  int32_t *blocks_begin; /* [n_channels + 1] index in `blocks` at which the list of each place's
                            blocks begins */
  int32_t *blocks;
} side;

typedef struct search {
  laci_task *task;
  const laci_cuts *cuts;
  int n;
  int32_t *order;
  side *sides;
  int64_t left; /* number of elements that may still be read */
  int64_t clock;
  int64_t *changed, *last_visit; /* changed: [n] time when a place last changed. last_visit: [n]
                                    time when its pairs were last tried; pairs that did not change
                                    since are skipped */
  laci_arena arena;
} search;

static lac_status fail_no_memory(const search *s, lac_error *err) {
  return laci_fail_memory(err, s->cuts->problem->name);
}

static int64_t sum_kept_of_block(const search *s, const side *d, int g, const int32_t *order) {
  const void *columns[64];
  int n = 0, keep = s->cuts->pattern.n;
  for (int e = d->cut->block_begin[g]; e < d->cut->block_begin[g + 1]; e++) {
    columns[n++] =
        laci_matrix_column(d->x, laci_entry_column(s->cuts, d->cut, &d->cut->entries[e], order));
  }
  return laci_sum_n_largest(d->x->number, columns, n, keep < n ? keep : n, d->x->rows);
}

/* Lists for each place the blocks that contain it, each once, ascending. The first pass counts
 * them, shifted by one place: writing in the second pass advances each beginning to that of the
 * next place. */
static lac_status list_blocks_of_places(search *s, side *d, lac_error *err) {
  const laci_cut *cut = d->cut;
  const int n_entries = cut->block_begin[cut->n_blocks];
  d->blocks_begin = laci_arena_alloc(&s->arena, (size_t)s->n + 2, sizeof *d->blocks_begin);
  d->blocks = laci_arena_alloc(&s->arena, (size_t)n_entries, sizeof *d->blocks);
  int32_t *last =
      laci_arena_alloc(&s->arena, (size_t)s->n, sizeof *last); /* number of the last block that was
                                                                  listed for each place, plus 1 */
  if (!d->blocks_begin || !d->blocks || !last) return fail_no_memory(s, err);
  for (int pass = 0; pass < 2; pass++) {
    memset(last, 0, (size_t)s->n * sizeof *last);
    for (int g = 0; g < cut->n_blocks; g++) {
      for (int e = cut->block_begin[g]; e < cut->block_begin[g + 1]; e++) {
        int32_t place = cut->entries[e].place;
        if (place < 0 || last[place] == g + 1) continue;
        last[place] = g + 1;
        if (pass == 0) d->blocks_begin[place + 2]++;
        else d->blocks[d->blocks_begin[place + 1]++] = g;
      }
    }
    for (int j = 0; pass == 0 && j < s->n; j++) d->blocks_begin[j + 2] += d->blocks_begin[j + 1];
  }
  return LAC_OK;
}

static int64_t count_matrix_elements(const laci_cuts *cuts) {
  double all = 0;
  for (int i = 0; i < cuts->n_cuts; i++)
    all += (double)cuts->cuts[i].n_rows * cuts->cuts[i].n_columns;
  return laci_clamp_to_int64(all);
}

static lac_status prepare_swaps_in_cut(search *s, side *d, lac_error *err) {
  laci_number number = count_matrix_elements(s->cuts) <= FINE_ELEMENTS ? LACI_I16 : LACI_U8;
  lac_status st = laci_task_find_or_make_matrix(s->task, d->cut, number, &d->x, err);
  if (st) return st;
  d->tabled = d->cut->stacked && s->n <= MOST_TABLED;
  if (d->tabled) {
    st = laci_values_init(&d->values, s->cuts, d->cut, number, true, err);
    if (!st) laci_values_set_matrix(&d->values, d->x, s->order, s->task->pool);
    return st;
  }
  d->kept = laci_arena_alloc(&s->arena, (size_t)d->cut->n_blocks, sizeof *d->kept);
  if (!d->kept) return fail_no_memory(s, err);
  for (int g = 0; g < d->cut->n_blocks; g++) d->kept[g] = sum_kept_of_block(s, d, g, s->order);
  return list_blocks_of_places(s, d, err);
}

/* An iterator over the blocks that contain place a or b, each once, ascending. It merges two sorted
 * lists. */
typedef struct merged {
  const int32_t *a, *a_end, *b, *b_end;
} merged;

static merged start_listing_blocks_of_places(const side *d, int a, int b) {
  const int32_t *begin = d->blocks_begin;
  return (merged){d->blocks + begin[a], d->blocks + begin[a + 1], d->blocks + begin[b],
                  d->blocks + begin[b + 1]};
}

static int take_next_block(merged *m) {
  if (m->a == m->a_end) return m->b == m->b_end ? -1 : *m->b++;
  if (m->b == m->b_end || *m->a < *m->b) return *m->a++;
  if (*m->a == *m->b) m->a++;
  return *m->b++;
}

static void swap_places(int32_t *order, int a, int b) {
  int32_t channel = order[a];
  order[a] = order[b];
  order[b] = channel;
}

/* Returns the gain of swapping places a and b, in a cut (table of columns) with a table of values.
 * Reduces the budget by the number of elements that are read. */
static int64_t compute_gain_by_table(search *s, side *d, int a, int b) {
  if (d->values.block_of[a] == d->values.block_of[b]) return 0;
  const int32_t pair[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    if (!d->values.valid[pair[i]]) s->left -= (int64_t)d->x->rows * s->n / 16;
  }
  laci_values_update_table_rows(&d->values, pair, 2, NULL);
  const int32_t *at_a = laci_values_row(&d->values, a), *at_b = laci_values_row(&d->values, b);
  int32_t xa = s->order[a], xb = s->order[b];
  return (int64_t)at_a[xb] - at_a[xa] + at_b[xa] - at_b[xb];
}

/* Returns the gain of swapping places a and b, in a cut (table of columns) without a table of
 * values. order: the order after the swap. */
static int64_t compute_gain_by_blocks(search *s, side *d, int a, int b, const int32_t *order) {
  int64_t gain = 0;
  merged m = start_listing_blocks_of_places(d, a, b);
  for (int g = take_next_block(&m); g >= 0; g = take_next_block(&m)) {
    gain += sum_kept_of_block(s, d, g, order) - d->kept[g];
    s->left -= (int64_t)d->x->rows * (d->cut->block_begin[g + 1] - d->cut->block_begin[g]) *
               s->cuts->pattern.n;
  }
  return gain;
}

static int64_t compute_gain_of_swap(search *s, int a, int b) {
  int64_t gain = 0;
  for (int i = 0; i < s->cuts->n_cuts; i++) {
    if (s->sides[i].tabled) gain += compute_gain_by_table(s, &s->sides[i], a, b);
  }
  swap_places(s->order, a, b);
  for (int i = 0; i < s->cuts->n_cuts; i++) {
    if (!s->sides[i].tabled) gain += compute_gain_by_blocks(s, &s->sides[i], a, b, s->order);
  }
  swap_places(s->order, a, b);
  s->left -= 4;
  return gain;
}

static void apply_swap(search *s, int a, int b) {
  const int32_t pair[2] = {a, b};
  swap_places(s->order, a, b);
  for (int i = 0; i < s->cuts->n_cuts; i++) {
    side *d = &s->sides[i];
    if (d->tabled) {
      if (d->values.block_of[a] == d->values.block_of[b])
        continue; /* the block has the same channels after the swap */
      laci_values_update_open_columns(&d->values, pair, 2, s->order, NULL);
      for (int j = 0; j < s->n; j++) {
        int g = d->values.block_of[j];
        if (g == d->values.block_of[a] || g == d->values.block_of[b]) s->changed[j] = s->clock;
      }
      continue;
    }
    merged m = start_listing_blocks_of_places(d, a, b);
    for (int g = take_next_block(&m); g >= 0; g = take_next_block(&m)) {
      d->kept[g] = sum_kept_of_block(s, d, g, s->order);
      for (int e = d->cut->block_begin[g]; e < d->cut->block_begin[g + 1]; e++) {
        if (d->cut->entries[e].place >= 0) s->changed[d->cut->entries[e].place] = s->clock;
      }
    }
  }
  s->changed[a] = s->changed[b] = s->clock;
}

/* Tries to swap every pair of places once, and applies each swap that improves the sum over all
 * cuts. Returns whether there was one. */
static bool try_all_pairs(search *s) {
  bool improved = false;
  for (int a = 0; a < s->n; a++) {
    int64_t seen = s->last_visit[a];
    s->last_visit[a] = ++s->clock;
    for (int b = a + 1; b < s->n; b++) {
      if (s->changed[a] < seen && s->changed[b] < seen) continue;
      if (s->left <= 0 || laci_task_is_over(s->task)) return false;
      if (compute_gain_of_swap(s, a, b) <= 0) continue;
      s->clock++;
      apply_swap(s, a, b);
      improved = true;
    }
  }
  return improved;
}

lac_status laci_search_by_swaps(laci_task *task, lac_error *err) {
  static const int64_t budget[] = {[LACI_EFFORT_FAST] = 250000000,
                                   [LACI_EFFORT_NORMAL] = 1000000000,
                                   [LACI_EFFORT_BEST] = 10000000000};
  search s = {.task = task, .cuts = task->cuts, .n = task->cuts->n_channels, .order = task->order};
  s.left = budget[task->effort];
  lac_status st = LAC_OK;
  s.sides = laci_arena_alloc(&s.arena, (size_t)s.cuts->n_cuts, sizeof *s.sides);
  s.changed = laci_arena_alloc(&s.arena, (size_t)s.n, sizeof *s.changed);
  s.last_visit = laci_arena_alloc(&s.arena, (size_t)s.n, sizeof *s.last_visit);
  if (!s.sides || !s.changed || !s.last_visit) st = fail_no_memory(&s, err);
  for (int i = 0; !st && i < s.cuts->n_cuts; i++) {
    s.sides[i].cut = &s.cuts->cuts[i];
    st = prepare_swaps_in_cut(&s, &s.sides[i], err);
  }
  for (bool improved = !st; improved; task->iterations++) improved = try_all_pairs(&s);
  task->final = s.left > 0; /* a larger budget would change nothing if some is left */
  for (int i = 0; s.sides && i < s.cuts->n_cuts; i++) { laci_values_clear(&s.sides[i].values); }
  laci_arena_clear(&s.arena);
  return st;
}

static bool is_swap_applicable(const laci_cuts *cuts, bool asked) {
  (void)asked;
  (void)cuts;
  return true;
}

const laci_strategy laci_strategy_swap = {.fits = is_swap_applicable, .run = laci_search_by_swaps};

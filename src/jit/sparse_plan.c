/* SPDX-License-Identifier: Apache-2.0
 * Cuts a sparse product into groups of rows and pieces of columns, and brings what is kept into the
 * order in which code reads it. */
#include "base/error.h"
#include "base/memory.h"
#include "base/divide.h"
#include "jit/sparse_in.h"

/* Groups of about the same size; none has rows of two of a convolution's groups. */
static bool plan_groups(const laci_sparse_product *p, int most_rows, laci_sparse_plan *plan) {
  const int64_t each = laci_ceil_div(p->rows_together, most_rows);
  plan->n_groups = p->n_rows / p->rows_together * each;
  plan->groups = laci_alloc((size_t)plan->n_groups, sizeof *plan->groups);
  if (!plan->groups) return false;
  for (int64_t at = 0; at < plan->n_groups; at++) {
    const int64_t begin = at / each * p->rows_together, part = at % each;
    const int64_t first = part * p->rows_together / each;
    const int64_t last = (part + 1) * p->rows_together / each;
    plan->groups[at] =
        (laci_sparse_group){.row_first = begin + first, .n_rows = (int)(last - first)};
  }
  return true;
}

/* The rows of a group walk along together, column by column. */
typedef struct walk {
  int64_t at[LACI_SPARSE_MOST_ROWS], end[LACI_SPARSE_MOST_ROWS];
  int32_t column[LACI_SPARSE_MOST_ROWS]; /* the next one of a row; INT32_MAX behind its last */
  int n_rows;
} walk;

static void look(const laci_sparse_product *p, walk *w, int row) {
  w->column[row] = w->at[row] < w->end[row] ? p->column[w->at[row]] : INT32_MAX;
}

static walk begin_walk(const laci_sparse_product *p, const laci_sparse_group *group) {
  walk w = {.n_rows = group->n_rows};
  for (int row = 0; row < w.n_rows; row++) {
    w.at[row] = p->row_begin[group->row_first + row];
    w.end[row] = p->row_begin[group->row_first + row + 1];
    look(p, &w, row);
  }
  return w;
}

/* Takes the terms of the next column. Returns how many; 0 at the end. */
static int64_t take_column(const laci_sparse_product *p, walk *w, laci_sparse_term *terms,
                           int64_t *source) {
  int32_t column = INT32_MAX;
  int64_t n = 0;
  for (int row = 0; row < w->n_rows; row++) {
    column = w->column[row] < column ? w->column[row] : column;
  }
  for (int row = 0; column < INT32_MAX && row < w->n_rows; row++) {
    if (w->column[row] != column) continue;
    terms[n] = (laci_sparse_term){column, row};
    source[n++] = w->at[row]++;
    look(p, w, row);
  }
  return n;
}

static bool end_piece(laci_sparse_plan *plan, int64_t terms) {
  size_t capacity = (size_t)plan->pieces_capacity;
  if (!laci_grow((void **)&plan->piece_first, (size_t)plan->n_pieces + 1, &capacity,
                 sizeof *plan->piece_first)) {
    return false;
  }
  plan->pieces_capacity = (int64_t)capacity;
  plan->piece_first[++plan->n_pieces] = terms;
  return true;
}

/* A group without anything kept has one empty piece, which stores the bias. */
static bool plan_pieces(const laci_sparse_product *p, laci_sparse_group *group, int64_t least,
                        int64_t *n, laci_sparse_plan *plan) {
  int64_t begin = *n, left = 0;
  for (int row = 0; row < group->n_rows; row++) {
    left += p->row_begin[group->row_first + row + 1] - p->row_begin[group->row_first + row];
  }
  /* Pieces of the same length: the last one would else be short. */
  const int64_t n_pieces = left > least ? laci_ceil_div(left, least) : 1,
                each = laci_ceil_div(left, n_pieces);
  walk w = begin_walk(p, group);
  group->piece_first = plan->n_pieces;
  for (;;) {
    const int64_t taken = take_column(p, &w, plan->terms + *n, plan->source + *n);
    *n += taken;
    if (taken > 0 && *n - begin < each) continue;
    if ((*n > begin || plan->n_pieces == group->piece_first) && !end_piece(plan, *n)) return false;
    begin = *n;
    if (taken == 0) break;
  }
  group->piece_last = plan->n_pieces;
  return true;
}

lac_status laci_sparse_plan_init(const laci_sparse_product *p, laci_sparse_cut cut,
                                 laci_sparse_plan *plan, lac_error *err) {
  const size_t n_kept = (size_t)p->row_begin[p->n_rows];
  int64_t n = 0;
  *plan = (laci_sparse_plan){.terms = laci_alloc(n_kept, sizeof *plan->terms),
                             .source = laci_alloc(n_kept, sizeof *plan->source),
                             .piece_first = laci_alloc(1, sizeof *plan->piece_first),
                             .pieces_capacity = 1};
  bool made = plan->terms && plan->source && plan->piece_first && plan_groups(p, cut.rows, plan);
  for (int64_t at = 0; made && at < plan->n_groups; at++) {
    made = plan_pieces(p, &plan->groups[at], cut.terms, &n, plan);
  }
  if (made) return LAC_OK;
  laci_sparse_plan_clear(plan);
  return laci_fail_memory(err, "the plan of a sparse product's code");
}

void laci_sparse_plan_clear(laci_sparse_plan *plan) {
  laci_free(plan->groups);
  laci_free(plan->piece_first);
  laci_free(plan->terms);
  laci_free(plan->source);
  *plan = (laci_sparse_plan){.n_groups = 0};
}

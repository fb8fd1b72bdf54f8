/* SPDX-License-Identifier: Apache-2.0
 * Divides a sparse product into groups of rows and code blocks of columns. For each column of a
 * group it finds the bits of the rows that keep it; from these, code is written and weights are
 * ordered. */
#include <assert.h>
#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "jit/sparse_in.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/int8x4.h"

/* Makes groups of about equal size. No group has rows of two groups of a convolution. Where several
 * rows share four bytes of a result, each group begins with the first of them. */
static bool divide_rows_into_groups(const laci_sparse_product *p, int most_rows,
                                    laci_sparse_plan *plan) {
  const int64_t unit = laci_sparse_values_per_word(p->values),
                units = laci_ceil_div(p->rows_together, unit);
  const int64_t each = laci_ceil_div(units, most_rows / unit);
  plan->n_groups = p->n_rows / p->rows_together * each;
  plan->groups = laci_alloc((size_t)plan->n_groups, sizeof *plan->groups);
  if (!plan->groups) return false;
  for (int64_t at = 0; at < plan->n_groups; at++) {
    const int64_t begin = at / each * p->rows_together, part = at % each;
    const int64_t first = part * units / each * unit, end = (part + 1) * units / each * unit;
    const int64_t last = end < p->rows_together ? end : p->rows_together;
    plan->groups[at] =
        (laci_sparse_group){.row_first = begin + first, .n_rows = (int)(last - first)};
  }
  return true;
}

/* Returns how many columns must stay together in a code block. */
static int64_t columns_per_block(laci_sparse_values values) {
  if (values == LACI_SPARSE_S8) return LACI_INT8X8_COLUMNS;
  return values == LACI_SPARSE_F32 ? 1 : LACI_SPARSE_BLOCK;
}

/* Sets the group's columns: from the first to the last one that any of its rows keeps. */
static void find_group_columns(const laci_sparse_product *p, laci_sparse_group *group) {
  int64_t first = p->n_columns, last = 0;
  for (int64_t row = group->row_first; row < group->row_first + group->n_rows; row++) {
    const int64_t begin = p->row_begin[row], end = p->row_begin[row + 1];
    if (begin == end) continue;
    if (p->column[begin] < first) first = p->column[begin];
    if (p->column[end - 1] >= last) last = p->column[end - 1] + 1;
  }
  const int64_t unit = columns_per_block(p->values);
  first -= first % unit;
  last = laci_ceil_div(last, unit) * unit;
  group->column_first = first < last ? first : 0;
  group->n_columns = first < last ? last - first : 0;
}

static int64_t count_kept_weights_of_group(const laci_sparse_plan *plan,
                                           const laci_sparse_group *group) {
  return plan->row_begin[group->row_first + group->n_rows] - plan->row_begin[group->row_first];
}

/* Returns the largest number of code blocks that a group can have. A row has no more terms than it
 * keeps weights. A group without weights has one empty code block, which stores the bias. */
static int64_t max_code_blocks(const laci_sparse_plan *plan, const laci_sparse_group *group,
                               int64_t terms) {
  const int64_t kept = count_kept_weights_of_group(plan, group);
  return kept > terms ? laci_ceil_div(kept, terms) : 1;
}

/* Finds the columns of all groups, and allocates memory for columns and code blocks. */
static bool find_columns_of_groups(const laci_sparse_product *p, int terms,
                                   laci_sparse_plan *plan) {
  int64_t n_columns = 0, n_code_blocks = 0;
  for (int64_t at = 0; at < plan->n_groups; at++) {
    laci_sparse_group *group = &plan->groups[at];
    find_group_columns(p, group);
    group->rows_at = n_columns;
    n_columns += group->n_columns;
    n_code_blocks += max_code_blocks(plan, group, terms);
  }
  plan->rows = laci_alloc((size_t)n_columns, sizeof *plan->rows);
  plan->code_blocks = laci_alloc((size_t)n_code_blocks, sizeof *plan->code_blocks);
  return plan->rows && plan->code_blocks;
}

typedef struct marking {
  const laci_sparse_product *p;
  const laci_sparse_plan *plan;
} marking;

static void mark_kept_columns_of_groups(int64_t begin, int64_t end, void *context) {
  const marking *m = context;
  for (int64_t at = begin; at < end; at++) {
    const laci_sparse_group *group = &m->plan->groups[at];
    uint32_t *rows = m->plan->rows + group->rows_at;
    for (int row = 0; row < group->n_rows; row++) {
      const int64_t *of_row = m->p->row_begin + group->row_first + row;
      for (int64_t k = of_row[0]; k < of_row[1]; k++) {
        rows[m->p->column[k] - group->column_first] |= 1U << row;
      }
    }
  }
}

/* Returns the number of terms of a block of columns. */
static int64_t count_terms_of_columns(const laci_sparse_plan *plan, const uint32_t *rows) {
  uint32_t twos[LACI_SPARSE_N_DOTS];
  int64_t n = 0;
  if (plan->values == LACI_SPARSE_F32) return __builtin_popcount(rows[0]);
  if (plan->values == LACI_SPARSE_S8) {
    uint32_t of[LACI_INT8X8_REGISTERS];
    laci_int8x8_find_rows(&plan->int8x8, rows, of);
    for (int at = 0; at < LACI_INT8X8_REGISTERS; at++) n += __builtin_popcount(of[at]);
    return n;
  }
  laci_sparse_find_row_dots(rows, twos);
  for (int two = 0; two < LACI_SPARSE_N_DOTS; two++) n += __builtin_popcount(twos[two]);
  return n;
}

static int64_t count_group_terms(const laci_sparse_plan *plan, const laci_sparse_group *group) {
  int64_t n = 0;
  for (int64_t column = 0; column < group->n_columns; column += columns_per_block(plan->values)) {
    n += count_terms_of_columns(plan, plan->rows + group->rows_at + column);
  }
  return n;
}

/* Divides a group into code blocks of about equal length, so that the last one is not much
 * shorter. */
static void divide_group_into_blocks(laci_sparse_plan *plan, laci_sparse_group *group,
                                     int64_t most_terms) {
  const int64_t terms = count_group_terms(plan, group), block = columns_per_block(plan->values);
  const int64_t n_code_blocks = terms > most_terms ? laci_ceil_div(terms, most_terms) : 1;
  const int64_t each = laci_ceil_div(terms, n_code_blocks);
  int64_t begin = 0, taken = 0, left = terms;
  group->block_first = plan->n_code_blocks;
  for (int64_t column = 0; column < group->n_columns; column += block) {
    taken += count_terms_of_columns(plan, plan->rows + group->rows_at + column);
    if (taken < each && taken < left) continue;
    plan->code_blocks[plan->n_code_blocks++] =
        (laci_sparse_columns){begin, column + block, plan->n_terms + terms - left};
    begin = column + block;
    left -= taken;
    taken = 0;
    if (left == 0) break;
  }
  if (terms == 0) plan->code_blocks[plan->n_code_blocks++] = (laci_sparse_columns){0};
  plan->n_terms += terms;
  group->block_last = plan->n_code_blocks;
}

lac_status laci_sparse_plan_init(const laci_sparse_product *p, laci_sparse_cut cut, laci_pool *pool,
                                 laci_sparse_plan *plan, lac_error *err) {
  const size_t n_begins = (size_t)p->n_rows + 1;
  *plan = (laci_sparse_plan){.row_begin = laci_alloc(n_begins, sizeof *plan->row_begin),
                             .values = p->values};
  if (!plan->row_begin) return laci_fail_memory(err, "the plan of a sparse product's code");
  if (p->values == LACI_SPARSE_S8) laci_int8x8_init(&plan->int8x8);
  memcpy(plan->row_begin, p->row_begin, n_begins * sizeof *plan->row_begin);
  if (!divide_rows_into_groups(p, cut.rows, plan) || !find_columns_of_groups(p, cut.terms, plan)) {
    laci_sparse_plan_clear(plan);
    return laci_fail_memory(err, "the plan of a sparse product's code");
  }
  marking m = {p, plan};
  laci_pool_for(pool, plan->n_groups, 1, mark_kept_columns_of_groups, &m);
  for (int64_t at = 0; at < plan->n_groups; at++)
    divide_group_into_blocks(plan, &plan->groups[at], cut.terms);
  return LAC_OK;
}

void laci_sparse_plan_clear(laci_sparse_plan *plan) {
  laci_free(plan->groups);
  laci_free(plan->code_blocks);
  laci_free(plan->rows);
  laci_free(plan->row_begin);
  *plan = (laci_sparse_plan){.n_groups = 0};
}

/* Pointers to the next kept weight of each row of a group. */
typedef struct weights {
  const float *next[LACI_SPARSE_MOST_ROWS];
} weights;

static float *copy_column_weights(uint32_t rows, weights *w, float *to) {
  for (; rows; rows &= rows - 1) *to++ = *w->next[__builtin_ctz(rows)]++;
  return to;
}

/* Writes both halves of each term of a block, the low one first. Kept weights are in the order of
 * columns, but a bf16 pair has its own order. nothing: the value for columns that are not kept. */
static float *write_bf16_halves(const uint32_t *kept, float nothing, weights *w, float *to) {
  uint32_t twos[LACI_SPARSE_N_DOTS];
  laci_sparse_find_row_dots(kept, twos);
  for (int at = 0; at < LACI_SPARSE_N_DOTS; at++) {
    const laci_sparse_dot_columns two = laci_sparse_all_dots[at];
    for (uint32_t left = twos[at]; left; left &= left - 1) {
      const int row = __builtin_ctz(left);
      const int has_low = kept[two.low] >> row & 1, has_high = kept[two.high] >> row & 1;
      const float *from = w->next[row];
      const bool swapped = two.low > two.high;
      *to++ = has_low ? from[swapped && has_high] : nothing;
      *to++ = has_high ? from[!swapped && has_low] : nothing;
      w->next[row] += has_low + has_high;
    }
  }
  return to;
}

static float *write_bf16_weights(const uint32_t *kept, weights *w, float *to) {
  float halves[2 * LACI_SPARSE_BLOCK * LACI_SPARSE_MOST_ROWS];
  const float *end = write_bf16_halves(kept, 0, w, halves);
  for (const float *at = halves; at < end; at += 2) {
    const uint32_t pair = laci_bf16_pair(at[0], at[1]);
    memcpy(to++, &pair, sizeof pair);
  }
  return to;
}

/* Writes the weights of an int8x8. The kept weights of each row are first copied out, since a row
 * can have two terms. */
static float *write_int8x8_weights(const laci_int8x8 *int8x8, const uint32_t *kept, weights *w,
                                   float *to) {
  int8_t taken[LACI_SPARSE_MOST_ROWS][LACI_INT8X8_COLUMNS] = {{0}};
  uint32_t rows[LACI_INT8X8_REGISTERS];
  laci_int8x8_find_rows(int8x8, kept, rows);
  for (int column = 0; column < LACI_INT8X8_COLUMNS; column++) {
    for (uint32_t left = kept[column]; left; left &= left - 1) {
      const int row = __builtin_ctz(left);
      taken[row][column] = laci_sparse_weight_to_s8(*w->next[row]++);
    }
  }
  for (int number = 0; number < LACI_INT8X8_REGISTERS; number++) {
    uint8_t columns[LACI_INT8X4_CHANNELS];
    if (rows[number]) laci_int8x8_columns_of_register(number, columns);
    for (uint32_t left = rows[number]; left; left &= left - 1) {
      int8_t int8x4[LACI_INT8X4_CHANNELS];
      for (int at = 0; at < LACI_INT8X4_CHANNELS; at++) {
        int8x4[at] = taken[__builtin_ctz(left)][columns[at]];
      }
      memcpy(to++, int8x4, sizeof int8x4);
    }
  }
  return to;
}

typedef struct ordering {
  const laci_sparse_plan *plan;
  const float *weight;
  float *to;
  bool halves; /* for bf16: halves are written one after the other, not packed */
} ordering;

/* Writes the weights of a block of columns. */
static float *order_weights_of_columns(const ordering *o, const uint32_t *rows, weights *w,
                                       float *to) {
  static const int32_t nowhere = LACI_SPARSE_NO_SOURCE;
  float nothing;
  switch (o->plan->values) {
    case LACI_SPARSE_F32: return copy_column_weights(rows[0], w, to);
    case LACI_SPARSE_S8: return write_int8x8_weights(&o->plan->int8x8, rows, w, to);
    default: break;
  }
  memcpy(&nothing, &nowhere, sizeof nothing);
  return o->halves ? write_bf16_halves(rows, nothing, w, to) : write_bf16_weights(rows, w, to);
}

static void order_weights_of_groups(int64_t begin, int64_t end, void *context) {
  const ordering *o = context;
  const laci_sparse_plan *plan = o->plan;
  for (int64_t at = begin; at < end; at++) {
    const laci_sparse_group *group = &plan->groups[at];
    const uint32_t *rows = plan->rows + group->rows_at;
    const int64_t *row_begin = plan->row_begin + group->row_first;
    const int64_t first = plan->code_blocks[group->block_first].weight_first;
    float *to = o->to + (o->halves ? 2 * first : first);
    weights w;
    for (int row = 0; row < group->n_rows; row++) w.next[row] = o->weight + row_begin[row];
    for (int64_t column = 0; column < group->n_columns; column += columns_per_block(plan->values)) {
      to = order_weights_of_columns(o, rows + column, &w, to);
    }
  }
}

void laci_sparse_plan_order_weights(const laci_sparse_plan *plan, const float *weight,
                                    laci_pool *pool, float *to) {
  ordering o = {.plan = plan, .weight = weight, .to = to};
  laci_pool_for(pool, plan->n_groups, 1, order_weights_of_groups, &o);
}

/* Orders indices with the functions that order weights: these copy bits and compute nothing. */
lac_status laci_sparse_plan_order_places(const laci_sparse_plan *plan,
                                         const laci_sparse_places *from, laci_pool *pool,
                                         laci_sparse_places *to, lac_error *err) {
  assert(plan->values != LACI_SPARSE_S8);
  *to = (laci_sparse_places){.n = plan->n_terms * laci_sparse_values_per_word(plan->values)};
  float *weight = laci_alloc((size_t)from->n, sizeof *weight);
  float *ordered = laci_alloc((size_t)to->n, sizeof *ordered);
  to->at = laci_alloc((size_t)to->n, sizeof *to->at);
  const bool made = weight && ordered && to->at;
  if (made) {
    memcpy(weight, from->at, (size_t)from->n * sizeof *weight);
    ordering o = {
        .plan = plan, .weight = weight, .to = ordered, .halves = plan->values == LACI_SPARSE_BF16};
    laci_pool_for(pool, plan->n_groups, 1, order_weights_of_groups, &o);
    memcpy(to->at, ordered, (size_t)to->n * sizeof *to->at);
  } else {
    laci_free(to->at);
    *to = (laci_sparse_places){.n = 0};
  }
  laci_free(weight);
  laci_free(ordered);
  return made ? LAC_OK : laci_fail_memory(err, "the order of a sparse product's weights");
}

/* SPDX-License-Identifier: Apache-2.0
 * Arranges the weights of byte_pairs.h. */
#include "kernel/sparse/byte_pairs.h"

#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/sparse/int8x4.h"

enum {
  INT8X4 = LACI_INT8X4_CHANNELS,
  ROWS = LACI_BYTE_PAIRS_ROWS,
  VECTOR = LACI_BYTE_PAIRS_BYTES,
  LANES = VECTOR / 2,   /* sums of 16 bits in a vector */
  COLUMNS = 2 * INT8X4, /* columns of a selected step */
  KEPT = INT8X4,        /* maximum number of columns that a row keeps of these */
  MOST = 128,           /* 255 times it is within 16 bits */
};

/* ---- Limits of sums of 16 bits ---- */

/* What a lane adds at most, and what it subtracts at most, in multiples of 255. */
typedef struct lane_sum {
  int16_t positive, negative;
} lane_sum;

static void add_to_lane(lane_sum *sum, int weight) {
  if (weight > 0) sum->positive = (int16_t)(sum->positive + weight);
  else sum->negative = (int16_t)(sum->negative - weight);
}

/* Returns by how much a weight must be nearer to zero for two weights to fit in a lane. */
static int excess_of(int a, int b) {
  const int sum = a + b;
  if ((a > 0) != (b > 0)) return 0;
  return sum > MOST ? sum - MOST : sum < -MOST ? sum + MOST : 0;
}

/* ---- A block being arranged ---- */

/* A vector of weights of one int8x4. */
typedef struct dense_step {
  int64_t int8x4;
  int64_t other; /* index of the dense step that is in the same double step; -1: it is single */
  bool follows;  /* it is the second one of a double step */
  lane_sum sums[LANES];
  int8_t weight[VECTOR];
} dense_step;

typedef struct arranger {
  const laci_sparse_product *p;
  const float *weight;
  laci_byte_pairs_weights *w;
  int64_t int8x4_each; /* number of int8x4 that a group reads */
  int64_t n_taps;      /* int8x4 `i` and `i + n_taps` are pair_stride apart */
  int8_t *left;        /* [int8x4_each][8 rows][4] weights that no step has yet */
  dense_step *steps;   /* [2 * int8x4_each] */
  int64_t n_steps;
  int64_t *offset; /* those of all blocks so far */
  size_t n_offsets, offset_capacity;
  int8_t *vectors;
  size_t n_vectors, vector_capacity;
} arranger;

static bool append_offset(arranger *a, int64_t group, int64_t int8x4) {
  if (!laci_grow((void **)&a->offset, a->n_offsets, &a->offset_capacity, sizeof *a->offset))
    return false;
  a->offset[a->n_offsets++] = a->p->column_at[(group * a->int8x4_each + int8x4) * INT8X4];
  return true;
}

static bool append_vector(arranger *a, const int8_t *vector) {
  if (!laci_grow((void **)&a->vectors, a->n_vectors, &a->vector_capacity, VECTOR)) return false;
  memcpy(a->vectors + a->n_vectors++ * VECTOR, vector, VECTOR);
  return true;
}

/* ---- Selected steps ---- */

/* Finds the columns of eight that a row keeps, at most four. Returns how many there are. */
static int find_kept_columns(const int8_t *const pair[2], int row, int kept[COLUMNS]) {
  int n = 0;
  for (int column = 0; column < COLUMNS; column++) {
    if (pair[column / INT8X4][row * INT8X4 + column % INT8X4] != 0) kept[n++] = column;
  }
  return n;
}

/* Does every row keep at most four of the eight columns, and some row at least one? */
static bool can_be_selected(const int8_t *const pair[2]) {
  int kept[COLUMNS], any = 0;
  for (int row = 0; row < ROWS; row++) {
    const int n = find_kept_columns(pair, row, kept);
    if (n > KEPT) return false;
    any += n;
  }
  return any > 0;
}

/* Brings the kept columns of a row into an order in which neighbours fit in a lane, if there is
 * one: the first column and one of the others, and the other two. */
static void pair_columns(const int weight[KEPT], int order[KEPT]) {
  static const int orders[][KEPT] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2}};
  int least = INT32_MAX;
  for (size_t at = 0; at < sizeof orders / sizeof *orders; at++) {
    const int *of = orders[at];
    const int first = excess_of(weight[of[0]], weight[of[1]]);
    const int second = excess_of(weight[of[2]], weight[of[3]]);
    const int excess = (first < 0 ? -first : first) + (second < 0 ? -second : second);
    if (excess >= least) continue;
    least = excess;
    memcpy(order, of, KEPT * sizeof *order);
  }
}

/* Moves the weights of a row from `pair` to a step. What is too much for a lane stays. */
static void select_row(int8_t *const pair[2], int row, int8_t *bytes, int8_t *weights) {
  enum { NONE = -128 }; /* a shuffle makes it zero */
  int kept[COLUMNS] = {0}, weight[KEPT] = {0}, order[KEPT] = {0};
  const int n = find_kept_columns((const int8_t *const *)pair, row, kept);
  for (int at = 0; at < n; at++)
    weight[at] = pair[kept[at] / INT8X4][row * INT8X4 + kept[at] % INT8X4];
  pair_columns(weight, order);
  for (int at = 0; at < KEPT; at++) {
    const int from = order[at];
    const int excess = at % 2 == 0 ? excess_of(weight[from], weight[order[at + 1]]) : 0;
    bytes[row * KEPT + at] = (int8_t)(from < n ? kept[from] : NONE);
    weights[row * KEPT + at] = (int8_t)(weight[from] - excess);
    if (from < n) pair[kept[from] / INT8X4][row * INT8X4 + kept[from] % INT8X4] = (int8_t)excess;
  }
}

/* Makes the selected steps of a block. Returns how many; -1: no memory. */
static int64_t append_selected_steps(arranger *a, int64_t group) {
  int8_t bytes[VECTOR], weights[VECTOR];
  int64_t n = 0;
  if (a->w->pair_stride == 0) return 0;
  for (int64_t at = 0; at + a->n_taps < a->int8x4_each; at++) {
    if (at / a->n_taps % 2 != 0) continue;
    int8_t *const pair[] = {a->left + at * VECTOR, a->left + (at + a->n_taps) * VECTOR};
    if (!can_be_selected((const int8_t *const *)pair)) continue;
    for (int row = 0; row < ROWS; row++) select_row(pair, row, bytes, weights);
    if (!append_offset(a, group, at) || !append_vector(a, bytes) || !append_vector(a, weights))
      return -1;
    n++;
  }
  return n;
}

/* ---- Dense steps ---- */

/* Moves the weights of an int8x4 to a dense step. What is too much for a lane stays. Returns
 * whether there were any. */
static bool take_dense_step(arranger *a, int64_t int8x4) {
  int8_t *left = a->left + int8x4 * VECTOR;
  dense_step *s = &a->steps[a->n_steps];
  bool any = false;
  *s = (dense_step){.int8x4 = int8x4, .other = -1};
  for (int lane = 0; lane < LANES; lane++) {
    int8_t *of = left + (ptrdiff_t)2 * lane;
    const int excess = excess_of(of[0], of[1]), first = of[0] - excess, second = of[1];
    any = any || of[0] != 0 || of[1] != 0;
    s->weight[2 * lane] = (int8_t)first;
    s->weight[2 * lane + 1] = (int8_t)second;
    add_to_lane(&s->sums[lane], first);
    add_to_lane(&s->sums[lane], second);
    of[0] = (int8_t)excess;
    of[1] = 0;
  }
  a->n_steps += any;
  return any;
}

static bool fit_together(const dense_step *a, const dense_step *b) {
  bool fit = true;
  for (int lane = 0; lane < LANES; lane++) {
    fit = fit && a->sums[lane].positive + b->sums[lane].positive <= MOST &&
          a->sums[lane].negative + b->sums[lane].negative <= MOST;
  }
  return fit;
}

/* Finds pairs of dense steps that fit together, each among the last few that have none. Returns
 * the number of pairs. */
static int64_t pair_dense_steps(arranger *a) {
  enum { OPEN = 32 };
  int64_t open[OPEN], n_open = 0, n_pairs = 0;
  for (int64_t at = 0; at < a->n_steps; at++) {
    int64_t other = 0;
    while (other < n_open && !fit_together(&a->steps[open[other]], &a->steps[at])) other++;
    if (other < n_open) {
      a->steps[open[other]].other = at;
      a->steps[at].follows = true;
      n_pairs++;
    } else if (n_open == OPEN) {
      other = 0; /* the oldest remains single */
    }
    if (other < n_open) {
      memmove(&open[other], &open[other + 1], (size_t)(--n_open - other) * sizeof *open);
    }
    if (!a->steps[at].follows) open[n_open++] = at;
  }
  return n_pairs;
}

static bool append_dense_step(arranger *a, int64_t group, const dense_step *s) {
  return append_offset(a, group, s->int8x4) && append_vector(a, s->weight);
}

/* Makes the dense steps of a block of all weights that are left. Returns whether there is memory
 * for them. */
static bool append_dense_steps(arranger *a, int64_t group, laci_byte_pairs_block *block) {
  a->n_steps = 0;
  for (int again = 0; again < 2; again++) {
    for (int64_t at = 0; at < a->int8x4_each; at++) (void)take_dense_step(a, at);
  }
  block->n_doubles = pair_dense_steps(a);
  block->n_singles = a->n_steps - 2 * block->n_doubles;
  bool has_memory = true;
  for (int64_t at = 0; has_memory && at < a->n_steps; at++) {
    const dense_step *s = &a->steps[at];
    if (s->other < 0) continue;
    has_memory = append_dense_step(a, group, s) && append_dense_step(a, group, &a->steps[s->other]);
  }
  for (int64_t at = 0; has_memory && at < a->n_steps; at++) {
    const dense_step *s = &a->steps[at];
    if (s->other < 0 && !s->follows) has_memory = append_dense_step(a, group, s);
  }
  return has_memory;
}

/* ---- All blocks ---- */

/* Reads the weights of a block's rows. */
static void read_rows(arranger *a, int64_t group, int64_t first, int64_t last) {
  memset(a->left, 0, (size_t)(a->int8x4_each * VECTOR));
  for (int64_t row = first; row < last; row++) {
    const int64_t in_product = group * a->w->rows_each + row;
    for (int64_t k = a->p->row_begin[in_product]; k < a->p->row_begin[in_product + 1]; k++) {
      const int64_t column = a->p->column[k] - group * a->int8x4_each * INT8X4;
      a->left[column / INT8X4 * VECTOR + (row - first) * INT8X4 + column % INT8X4] =
          laci_sparse_weight_to_s8(a->weight[k]);
    }
  }
}

static bool arrange_block(arranger *a, int64_t group, int64_t at, laci_byte_pairs_block *block) {
  const int64_t first = at * ROWS, left = a->w->rows_each - first;
  read_rows(a, group, first, first + (left < ROWS ? left : ROWS));
  *block = (laci_byte_pairs_block){.offset_first = (int64_t)a->n_offsets,
                                   .vector_first = (int64_t)a->n_vectors};
  block->n_selected = append_selected_steps(a, group);
  return block->n_selected >= 0 && append_dense_steps(a, group, block);
}

/* Finds the fewest taps for which all int8x4 have the same distance from the one so many after
 * them, and sets pair_stride to it; 0: there are none. */
static void find_pair_stride(arranger *a) {
  const int64_t n = a->p->n_columns / INT8X4;
  for (a->n_taps = 1; a->n_taps < a->int8x4_each; a->n_taps++) {
    const int64_t *at = a->p->column_at, stride = at[a->n_taps * INT8X4] - at[0];
    bool same = stride > 0;
    for (int64_t i = 0; same && i + a->n_taps < n; i++) {
      const bool one_group = i % a->int8x4_each + a->n_taps < a->int8x4_each;
      same = !one_group || at[(i + a->n_taps) * INT8X4] - at[i * INT8X4] == stride;
    }
    if (same) a->w->pair_stride = stride;
    if (same) return;
  }
}

/* Without selected steps there is no need of a copy. */
static void drop_unused_copy(laci_byte_pairs_weights *w, const laci_byte_pairs_block *blocks) {
  bool any = false;
  for (int64_t at = 0; at < w->n_groups * w->blocks_each; at++)
    any = any || blocks[at].n_selected > 0;
  if (!any) w->pair_stride = 0;
}

/* Do rows keep so few weights that a copy of x pays? */
static bool keeps_few_weights(const laci_sparse_product *p) {
  const double all = (double)p->n_rows * (double)laci_sparse_columns_per_group(p);
  const double few = 0.7;
  return (double)p->row_begin[p->n_rows] < few * all;
}

/* Where the arrays are in the memory that holds all of them. */
static void point_to_arrays(laci_byte_pairs_weights *w, size_t n_vectors, size_t n_offsets,
                            char *memory) {
  const size_t vectors = n_vectors * VECTOR, offsets = n_offsets * sizeof *w->offset;
  w->vectors = (const int8_t *)memory;
  w->offset = (const int64_t *)(const void *)(memory + vectors);
  w->blocks = (const laci_byte_pairs_block *)(const void *)(memory + vectors + offsets);
}

/* Moves the arranged arrays to one piece of memory. */
static lac_status store_arrays(arranger *a, const laci_byte_pairs_block *blocks, lac_error *err) {
  laci_byte_pairs_weights *w = a->w;
  const size_t n_blocks = (size_t)(w->n_groups * w->blocks_each);
  const size_t vectors = a->n_vectors * VECTOR, offsets = a->n_offsets * sizeof *a->offset;
  w->bytes = vectors + offsets + n_blocks * sizeof *blocks;
  char *memory = laci_alloc(w->bytes, 1);
  if (!memory) return laci_fail_memory(err, "a product of bytes");
  if (vectors > 0) memcpy(memory, a->vectors, vectors);
  if (offsets > 0) memcpy(memory + vectors, a->offset, offsets);
  memcpy(memory + vectors + offsets, blocks, n_blocks * sizeof *blocks);
  w->memory = memory;
  point_to_arrays(w, a->n_vectors, a->n_offsets, memory);
  return LAC_OK;
}

void laci_byte_pairs_move(laci_byte_pairs_weights *w, void *to) {
  const size_t n_vectors = (size_t)((const char *)w->offset - (const char *)w->vectors) / VECTOR;
  const size_t n_offsets =
      (size_t)((const char *)w->blocks - (const char *)w->offset) / sizeof *w->offset;
  memcpy(to, w->memory, w->bytes);
  laci_free(w->memory);
  w->memory = NULL;
  point_to_arrays(w, n_vectors, n_offsets, to);
}

lac_status laci_byte_pairs_init(const laci_sparse_product *p, const float *weight,
                                laci_byte_pairs_weights *w, lac_error *err) {
  *w = (laci_byte_pairs_weights){.row_stride = p->row_stride,
                                 .n_groups = p->n_rows / p->rows_together,
                                 .rows_each = p->rows_together,
                                 .blocks_each = laci_ceil_div(p->rows_together, ROWS)};
  arranger a = {
      .p = p, .weight = weight, .w = w, .int8x4_each = laci_sparse_columns_per_group(p) / INT8X4};
  const int64_t n_blocks = w->n_groups * w->blocks_each;
  laci_byte_pairs_block *blocks = laci_alloc((size_t)n_blocks, sizeof *blocks);
  a.left = laci_alloc((size_t)a.int8x4_each, VECTOR);
  a.steps = laci_alloc((size_t)a.int8x4_each, 2 * sizeof *a.steps);
  bool has_memory = blocks && a.left && a.steps;
  if (keeps_few_weights(p)) find_pair_stride(&a);
  for (int64_t at = 0; has_memory && at < n_blocks; at++)
    has_memory = arrange_block(&a, at / w->blocks_each, at % w->blocks_each, &blocks[at]);
  if (has_memory) drop_unused_copy(w, blocks);
  lac_status st =
      has_memory ? store_arrays(&a, blocks, err) : laci_fail_memory(err, "a product of bytes");
  laci_free(a.left);
  laci_free(a.steps);
  laci_free(a.offset);
  laci_free(a.vectors);
  laci_free(blocks);
  return st;
}

void laci_byte_pairs_clear(laci_byte_pairs_weights *w) {
  laci_free(w->memory);
  *w = (laci_byte_pairs_weights){.memory = NULL};
}

size_t laci_byte_pairs_copy_bytes(const laci_byte_pairs_weights *w, int64_t n) {
  return w->pair_stride == 0 ? 0 : (size_t)(n + LACI_SPARSE_LANES) * LACI_BYTE_PAIRS_COPY;
}

#if !defined(__x86_64__)
/* Never called: laci_byte_pairs_can_run() is false. */
void laci_byte_pairs_copy(const laci_byte_pairs_weights *w, const float *x, int64_t n,
                          int64_t begin, int64_t end, void *copy) {
  (void)w, (void)x, (void)n, (void)begin, (void)end, (void)copy;
}

void laci_byte_pairs_multiply(const laci_byte_pairs_weights *w, const laci_sparse_operands *o,
                              const laci_sparse_part *part, const void *copy) {
  (void)w, (void)o, (void)part, (void)copy;
}

void laci_byte_pairs_sum_lines(const laci_byte_pairs_weights *w, int64_t block,
                               const laci_byte_pairs_lines *lines, int32_t *sums) {
  (void)w, (void)block, (void)lines, (void)sums;
}
#endif

bool laci_byte_pairs_can_run(void) {
  const laci_cpu_level level = laci_cpu_level_in_force();
  return level == LACI_CPU_AVX2 || level == LACI_CPU_AVX512;
}

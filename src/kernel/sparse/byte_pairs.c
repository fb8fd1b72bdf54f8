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
  int64_t n_taps;    /* int8x4 `i` and `i + n_taps` are pair_stride apart */
  int8_t *left;      /* [int8x4_each][8 rows][4] weights that no step has yet */
  dense_step *steps; /* [2 * int8x4_each] */
  int64_t n_steps;
  int64_t *offset; /* those of all blocks so far */
  size_t n_offsets, offset_capacity;
  int8_t *vectors;
  size_t n_vectors, vector_capacity;
} arranger;

static bool append_offset(arranger *a, int64_t group, int64_t int8x4) {
  if (!laci_grow((void **)&a->offset, a->n_offsets, &a->offset_capacity, sizeof *a->offset))
    return false;
  a->offset[a->n_offsets++] = a->p->column_at[(group * a->w->int8x4_each + int8x4) * INT8X4];
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

static bool has_weights(const int8_t *int8x4) {
  static const int8_t none[VECTOR];
  return memcmp(int8x4, none, VECTOR) != 0;
}

/* Moves the weights of two int8x4 to a selected step, or leaves them as they are where both would
 * keep what is too much for a lane: two widened steps take less time than three. Returns whether
 * they were moved. */
static bool select_columns(int8_t *const pair[2], int8_t *bytes, int8_t *weights) {
  int8_t before[2][VECTOR];
  for (int side = 0; side < 2; side++) memcpy(before[side], pair[side], VECTOR);
  for (int row = 0; row < ROWS; row++) select_row(pair, row, bytes, weights);
  if (!has_weights(pair[0]) || !has_weights(pair[1])) return true;
  for (int side = 0; side < 2; side++) memcpy(pair[side], before[side], VECTOR);
  return false;
}

/* Makes the selected steps of a block. Returns whether there is memory for them. */
static bool append_selected_steps(arranger *a, int64_t group, laci_byte_pairs_block *block) {
  int8_t bytes[VECTOR], weights[VECTOR];
  if (a->w->copy != LACI_BYTE_PAIRS_NEIGHBOURS) return true;
  for (int64_t at = 0; at + a->n_taps < a->w->int8x4_each; at++) {
    if (at / a->n_taps % 2 != 0) continue;
    int8_t *const pair[] = {a->left + at * VECTOR, a->left + (at + a->n_taps) * VECTOR};
    if (!can_be_selected((const int8_t *const *)pair)) continue;
    if (!select_columns(pair, bytes, weights)) continue;
    if (!append_offset(a, group, at) || !append_vector(a, bytes) || !append_vector(a, weights))
      return false;
    block->n_selected++;
  }
  return true;
}

/* ---- Widened and whole steps ---- */

/* Does some lane of the int8x4 need one more step, and does every row keep at most two columns? */
static bool should_be_widened(const int8_t *int8x4) {
  bool exceeds = false;
  for (int row = 0; row < ROWS; row++) {
    const int8_t *of = int8x4 + (ptrdiff_t)row * INT8X4;
    int n = 0;
    for (int column = 0; column < INT8X4; column++) n += of[column] != 0;
    if (n > 2) return false;
    exceeds = exceeds || excess_of(of[0], of[1]) != 0 || excess_of(of[2], of[3]) != 0;
  }
  return exceeds;
}

static void store_word(int8_t *words, int at, int16_t word) {
  memcpy(words + (ptrdiff_t)at * 2, &word, sizeof word);
}

/* Moves the weights of an int8x4, of which each row keeps two at most, to a widened step. */
static void widen_columns(int8_t *int8x4, int8_t *bytes, int8_t *weights) {
  enum { NONE = -128 }; /* a shuffle makes it zero */
  memset(bytes, NONE, VECTOR);
  memset(weights, 0, VECTOR);
  for (int row = 0; row < ROWS; row++) {
    int n = 0;
    for (int column = 0; column < INT8X4; column++) {
      int8_t *weight = &int8x4[row * INT8X4 + column];
      if (*weight == 0) continue;
      bytes[row * INT8X4 + 2 * n] = (int8_t)column;
      store_word(weights, row * 2 + n++, *weight);
      *weight = 0;
    }
  }
}

/* Makes the widened steps of a block. Returns whether there is memory for them. */
static bool append_widened_steps(arranger *a, int64_t group, laci_byte_pairs_block *block) {
  int8_t bytes[VECTOR], weights[VECTOR];
  for (int64_t at = 0; at < a->w->int8x4_each; at++) {
    int8_t *int8x4 = a->left + at * VECTOR;
    if (!should_be_widened(int8x4)) continue;
    widen_columns(int8x4, bytes, weights);
    if (!append_offset(a, group, at) || !append_vector(a, bytes) || !append_vector(a, weights))
      return false;
    block->n_widened++;
  }
  return true;
}

/* Makes whole steps of all weights of a block: bytes 0 and 2 of each int8x4, then 1 and 3. */
static bool append_whole_steps(arranger *a, int64_t group, laci_byte_pairs_block *block) {
  int8_t words[2][VECTOR];
  for (int64_t at = 0; at < a->w->int8x4_each; at++) {
    const int8_t *int8x4 = a->left + at * VECTOR;
    if (!has_weights(int8x4)) continue;
    for (int i = 0; i < VECTOR; i++)
      store_word(words[i % 2], i / INT8X4 * 2 + i % INT8X4 / 2, int8x4[i]);
    if (!append_offset(a, group, at) || !append_vector(a, words[0]) || !append_vector(a, words[1]))
      return false;
    block->n_whole++;
  }
  return true;
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
    for (int64_t at = 0; at < a->w->int8x4_each; at++) (void)take_dense_step(a, at);
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
  memset(a->left, 0, (size_t)(a->w->int8x4_each * VECTOR));
  for (int64_t row = first; row < last; row++) {
    const int64_t in_product = group * a->w->rows_each + row;
    for (int64_t k = a->p->row_begin[in_product]; k < a->p->row_begin[in_product + 1]; k++) {
      const int64_t column = a->p->column[k] - group * a->w->int8x4_each * INT8X4;
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
  if (a->w->copy == LACI_BYTE_PAIRS_WORDS) return append_whole_steps(a, group, block);
  return append_selected_steps(a, group, block) && append_widened_steps(a, group, block) &&
         append_dense_steps(a, group, block);
}

static bool arrange_blocks(arranger *a, laci_byte_pairs_block *blocks) {
  const int64_t n = a->w->n_groups * a->w->blocks_each;
  a->n_offsets = a->n_vectors = 0;
  for (int64_t at = 0; at < n; at++) {
    if (!arrange_block(a, at / a->w->blocks_each, at % a->w->blocks_each, &blocks[at]))
      return false;
  }
  return true;
}

/* Do whole steps of all weights take less time than the steps of these blocks? The numbers are
 * tenths of cycles for eight pixels, measured on a Zen 3. */
static bool are_whole_steps_faster(const laci_byte_pairs_weights *w,
                                   const laci_byte_pairs_block *blocks) {
  enum { SELECTED = 103, WIDENED = 91, DOUBLE = 141, SINGLE = 91, WHOLE = 112 };
  const int64_t n = w->n_groups * w->blocks_each;
  int64_t time = 0;
  for (const laci_byte_pairs_block *b = blocks; b < blocks + n; b++) {
    time += b->n_selected * SELECTED + b->n_widened * WIDENED + b->n_doubles * DOUBLE +
            b->n_singles * SINGLE;
  }
  return n * w->int8x4_each * WHOLE < time;
}

/* Finds the fewest taps for which all int8x4 have the same distance from the one so many after
 * them. If there are such, x is copied with these neighbours. */
static void find_pair_stride(arranger *a) {
  const int64_t n = a->p->n_columns / INT8X4;
  for (a->n_taps = 1; a->n_taps < a->w->int8x4_each; a->n_taps++) {
    const int64_t *at = a->p->column_at, stride = at[a->n_taps * INT8X4] - at[0];
    bool same = stride > 0;
    for (int64_t i = 0; same && i + a->n_taps < n; i++) {
      const bool one_group = i % a->w->int8x4_each + a->n_taps < a->w->int8x4_each;
      same = !one_group || at[(i + a->n_taps) * INT8X4] - at[i * INT8X4] == stride;
    }
    if (!same) continue;
    a->w->pair_stride = stride;
    a->w->copy = LACI_BYTE_PAIRS_NEIGHBOURS;
    return;
  }
}

/* Without selected steps there is no need of a copy of neighbours. */
static void drop_unused_copy(laci_byte_pairs_weights *w, const laci_byte_pairs_block *blocks) {
  bool any = w->copy == LACI_BYTE_PAIRS_WORDS;
  for (int64_t at = 0; at < w->n_groups * w->blocks_each; at++)
    any = any || blocks[at].n_selected > 0;
  if (!any) w->copy = LACI_BYTE_PAIRS_NO_COPY;
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

/* Moves the arranged arrays to memory that holds all of them. */
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

/* Arranges all weights. Returns whether there is memory for them. */
static bool arrange_weights(arranger *a, bool with_words, laci_byte_pairs_block *blocks) {
  if (keeps_few_weights(a->p)) find_pair_stride(a);
  if (!arrange_blocks(a, blocks)) return false;
  if (with_words && are_whole_steps_faster(a->w, blocks)) {
    a->w->copy = LACI_BYTE_PAIRS_WORDS;
    if (!arrange_blocks(a, blocks)) return false;
  }
  drop_unused_copy(a->w, blocks);
  return true;
}

lac_status laci_byte_pairs_init(const laci_sparse_product *p, const float *weight, bool with_words,
                                laci_byte_pairs_weights *w, lac_error *err) {
  *w = (laci_byte_pairs_weights){.row_stride = p->row_stride,
                                 .n_groups = p->n_rows / p->rows_together,
                                 .rows_each = p->rows_together,
                                 .blocks_each = laci_ceil_div(p->rows_together, ROWS),
                                 .int8x4_each = laci_sparse_columns_per_group(p) / INT8X4};
  arranger a = {.p = p, .weight = weight, .w = w};
  laci_byte_pairs_block *blocks =
      laci_alloc((size_t)(w->n_groups * w->blocks_each), sizeof *blocks);
  a.left = laci_alloc((size_t)w->int8x4_each, VECTOR);
  a.steps = laci_alloc((size_t)w->int8x4_each, 2 * sizeof *a.steps);
  const bool done = blocks && a.left && a.steps && arrange_weights(&a, with_words, blocks);
  const lac_status st =
      done ? store_arrays(&a, blocks, err) : laci_fail_memory(err, "a product of bytes");
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
  return w->copy == LACI_BYTE_PAIRS_NO_COPY
             ? 0
             : (size_t)(n + LACI_SPARSE_LANES) * LACI_BYTE_PAIRS_COPY;
}

#if !defined(__x86_64__)
/* Never called: laci_byte_pairs_can_run() is false. */
void laci_byte_pairs_copy_x(const laci_byte_pairs_weights *w, const float *x, int64_t n,
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

/* SPDX-License-Identifier: Apache-2.0
 * Computes Gram matrices from input vectors, which are written out transposed, a block of positions
 * at a time.
 *
 * The work is divided into tiles of the Gram matrices: one thread computes a tile, for all
 * positions of a block. For layers in many small groups, the input vectors of several groups are
 * written out at once. */
#include "kernel/gram/gram.h"

#include "base/divide.h"
#include "cpu/pool.h"
#include "kernel/gram/gram_in.h"

enum { BLOCK = 2048, TILE = LACI_GRAM_TILE, COLUMNS_AT_ONCE = 1024 };

bool laci_gram_can_correlate(const laci_unfold *u) {
  const laci_unfold_axis *axis = u->axis;
  int64_t taps = 1;
  if (u->transposed || axis[0].in > 1 || axis[0].out > 1 || axis[0].kernel > 1) return false;
  for (int i = 1; i < LACI_UNFOLD_AXES; i++) {
    const int64_t reach = (axis[i].kernel - 1) * axis[i].dilation;
    /* The border may cut off only a small part, and padding must not be negative. */
    if (axis[i].stride != 1 || axis[i].in < 3 * reach || axis[i].pad < 0 ||
        axis[i].out + reach < axis[i].in + axis[i].pad)
      return false;
    taps *= axis[i].kernel;
  }
  return taps > 1 && u->channels >= 8;
}

/* ---- Blocks ---- */

typedef struct block {
  const laci_gram *gram;
  int64_t columns, group, n_groups; /* groups [group, group + n_groups) */
  int64_t first, n, tiles, n_tiles; /* positions [first, first + n); number of tiles in a row, and
                                       in a group's matrix */
  const float *value;               /* the value whose vectors are written out */
  float *to;
  const float *left, *right;
  double *sum;
  bool half;
  laci_dots_kernel *kernel;
} block;

static int64_t max_groups_at_once(const laci_unfold *u) {
  const int64_t some = COLUMNS_AT_ONCE / laci_unfold_n_columns(u);
  return some < 1 ? 1 : laci_min(some, u->groups);
}

static int64_t floats_between_lines(const laci_unfold *u) {
  return laci_gram_round_up_to_odd_vectors(laci_min(BLOCK, laci_unfold_n_positions(u)));
}

uint64_t laci_gram_scratch_bytes(const laci_unfold *u, bool with_dense) {
  const uint64_t lines =
      (uint64_t)(max_groups_at_once(u) * laci_unfold_n_columns(u) * floats_between_lines(u));
  const uint64_t bytes = lines * (with_dense ? 2 : 1) * sizeof(float);
  const uint64_t other =
      laci_gram_can_correlate(u) ? laci_gram_correlate_scratch_bytes(u, with_dense) : 0;
  return bytes > other ? bytes : other;
}

static void fill_line_range(int64_t begin, int64_t end, void *context) {
  const block *b = context;
  for (int64_t at = begin; at < end; at++) {
    const int64_t group = at / b->columns, column = at % b->columns;
    const int64_t distance = floats_between_lines(b->gram->unfold);
    const laci_unfold_lines to = {.unfold = b->gram->unfold,
                                  .value = b->value,
                                  .group = b->group + group,
                                  .first = b->first,
                                  .n = b->n,
                                  .positions = b->gram->positions,
                                  .lines = b->to + group * b->columns * distance,
                                  .distance = distance};
    laci_unfold_fill_lines(&to, column, laci_min(column + end - at, b->columns));
    at += laci_min(end - at, b->columns - column) - 1;
  }
}

static void multiply_matrix_tiles(int64_t begin, int64_t end, void *context) {
  const block *b = context;
  const int64_t distance = floats_between_lines(b->gram->unfold);
  for (int64_t at = begin; at < end; at++) {
    const int64_t group = at / b->n_tiles, tile = at % b->n_tiles;
    const int64_t i = tile / b->tiles * TILE, j = tile % b->tiles * TILE;
    if (b->half && j < i) continue;
    const int64_t line = group * b->columns;
    const laci_dots dots = {
        .m = (int)laci_min(TILE, b->columns - i),
        .n = (int)laci_min(TILE, b->columns - j),
        .a = b->left + (line + i) * distance,
        .b = b->right + (line + j) * distance,
        .lda = distance,
        .ldb = distance,
        .ldo = b->columns,
        .n_runs = 1,
        .length = laci_gram_round_up_to_vectors(b->n),
        .out = b->sum + ((b->group + group) * b->columns + i) * b->columns + j,
    };
    if (b->half && i == j) laci_gram_add_upper_half(b->kernel, &dots);
    else b->kernel(&dots);
  }
}

static void write_input_vectors(block *b, const float *value, float *to, laci_pool *pool) {
  b->value = value;
  b->to = to;
  laci_pool_for(pool, b->n_groups * b->columns, 8, fill_line_range, b);
}

static void add_products_of_position_block(block *b, laci_pool *pool) {
  const laci_unfold *u = b->gram->unfold;
  float *pruned = b->gram->scratch;
  float *dense = pruned + max_groups_at_once(u) * b->columns * floats_between_lines(u);
  /* small tiles are too little work for a thread, so it takes several */
  const int64_t grain = b->columns < TILE ? laci_ceil_div(TILE, b->columns) : 1;
  write_input_vectors(b, b->gram->pruned, pruned, pool);
  b->left = b->right = pruned;
  b->sum = b->gram->h;
  b->half = true;
  laci_pool_for(pool, b->n_groups * b->n_tiles, grain, multiply_matrix_tiles, b);
  if (!b->gram->dense) return;
  write_input_vectors(b, b->gram->dense, dense, pool);
  b->left = dense;
  b->sum = b->gram->k;
  b->half = false;
  laci_pool_for(pool, b->n_groups * b->n_tiles, grain, multiply_matrix_tiles, b);
}

void laci_gram_add_positions(const laci_gram *gram, laci_pool *pool) {
  const laci_unfold *u = gram->unfold;
  const int64_t size = BLOCK, some = max_groups_at_once(u);
  const int64_t positions = gram->positions ? gram->n : laci_unfold_n_positions(u);
  if (!gram->positions && laci_gram_can_correlate(u)) {
    laci_gram_correlate(gram, pool);
    return;
  }
  block b = {.gram = gram, .columns = laci_unfold_n_columns(u), .kernel = laci_dots_variant()};
  b.tiles = laci_ceil_div(b.columns, TILE);
  b.n_tiles = b.tiles * b.tiles;
  for (b.group = 0; b.group < u->groups; b.group += some) {
    b.n_groups = laci_min(some, u->groups - b.group);
    for (b.first = 0; b.first < positions; b.first += size) {
      b.n = laci_min(size, positions - b.first);
      add_products_of_position_block(&b, pool);
    }
  }
}

/* ---- The lower triangle ---- */

typedef struct mirror {
  double *h;
  int64_t columns;
} mirror;

static void copy_upper_rows_to_lower(int64_t begin, int64_t end, void *context) {
  const mirror *m = context;
  const int64_t n = m->columns;
  for (int64_t from = 0; from < laci_min(end * TILE, n); from += TILE) { /* one block of columns at
                                                                            a time, which stays in
                                                                            the cache */
    for (int64_t i = begin * TILE; i < laci_min(end * TILE, n); i++) {
      for (int64_t j = from; j < laci_min(from + TILE, i); j++) m->h[i * n + j] = m->h[j * n + i];
    }
  }
}

void laci_gram_mirror_upper(double *h, int64_t columns, laci_pool *pool) {
  mirror m = {h, columns};
  laci_pool_for(pool, laci_ceil_div(columns, TILE), 1, copy_upper_rows_to_lower, &m);
}

/* SPDX-License-Identifier: Apache-2.0
 * Writes code blocks for 64-bit ARM. The sums of six rows are in four vectors each, v0 to 23; a
 * column's four vectors are in v24 to 27; weights are in memory order, four in a vector, in v28 to
 * 31 in turn.
 *
 *     fmla v8.4s, v24.4s, v29.s[1]    row 2, lanes 0 to 3
 *     fmla v9.4s, v25.4s, v29.s[1]    row 2, lanes 4 to 7, and so on
 *
 * Instructions can multiply by one lane of a vector, so that one load gets four weights. Generated
 * code does not compute results: a group's last code block also leaves its sums (sparse_code.c). */
#include <stddef.h>

#include "jit/arm64.h"
#include "jit/sparse_in.h"

enum { CALL, SUMS, TILE, TILES_END, AHEAD_CODE, AHEAD_WEIGHT, X, WEIGHT, AT, PLACE };
enum {
  QUARTERS = 4,
  VECTOR = 16, /* bytes of a vector */
  COLUMN = 24, /* v24 to 27: the four vectors of a column */
  WEIGHTS = 28,
  REACH = 1008,          /* largest offset of a load pair, in bytes */
  FETCH_REACH = 1 << 15, /* largest offset of a prefetch, in bytes */
};

#define FIELD(name) ((int)offsetof(laci_sparse_code_arguments, name))
#define TILE_FIELD(name) ((int)offsetof(laci_sparse_tile, name))

static size_t write_tile_start(laci_code *code) {
  laci_arm64_save_vectors(code);
  laci_arm64_load(code, SUMS, CALL, FIELD(sums));
  laci_arm64_load(code, TILE, CALL, FIELD(tiles));
  laci_arm64_load(code, TILES_END, CALL, FIELD(tiles_end));
  laci_arm64_load(code, AHEAD_CODE, CALL, FIELD(ahead_code));
  laci_arm64_load(code, AHEAD_WEIGHT, CALL, FIELD(ahead_weight));
  laci_arm64_load(code, X, CALL, FIELD(x));
  const size_t loop = code->n;
  laci_arm64_load(code, WEIGHT, CALL, FIELD(weight));
  laci_arm64_load(code, AT, TILE, TILE_FIELD(in));
  laci_arm64_add(code, AT, X, AT, 2);
  return loop;
}

static void write_initial_sums(laci_code *code, const laci_code_block *code_block) {
  const int n = QUARTERS * code_block->n_rows;
  if (code_block->first) laci_arm64_load(code, PLACE, CALL, FIELD(bias));
  for (int at = 0; code_block->first && at < n; at += QUARTERS) {
    laci_arm64_broadcast_next(code, at, PLACE);
    for (int quarter = 1; quarter < QUARTERS; quarter++) laci_arm64_move(code, at + quarter, at);
  }
  for (int at = 0; !code_block->first && at < n; at += 2) {
    laci_arm64_load_pair(code, at, SUMS, at * VECTOR);
  }
}

static void write_column_load(laci_code *code, int64_t at_floats) {
  const uint32_t bytes = (uint32_t)(at_floats * (int64_t)sizeof(float));
  const bool near = bytes % VECTOR == 0 && bytes + 2 * VECTOR <= REACH;
  if (!near) laci_arm64_add_number(code, PLACE, AT, bytes);
  for (int quarter = 0; quarter < QUARTERS; quarter += 2) {
    laci_arm64_load_pair(code, COLUMN + quarter, near ? AT : PLACE,
                         quarter * VECTOR + (near ? (int)bytes : 0));
  }
}

/* Writes the prefetches of the next code block that belong after `done` columns of this one. */
static void write_prefetch(laci_code *code, const laci_sparse_frame *f, int64_t n_columns,
                           int64_t done) {
  const int64_t lines[] = {f->prefetch.n_code_lines, f->prefetch.n_weight_lines};
  for (int what = 0; what < 2; what++) {
    for (int64_t line = (done - 1) * lines[what] / n_columns; line < done * lines[what] / n_columns;
         line++) {
      const int offset = (int)line * LACI_SPARSE_LINE;
      if (offset >= FETCH_REACH) continue;
      if (what == 0) laci_arm64_prefetch_code(code, AHEAD_CODE, offset);
      else laci_arm64_prefetch_data(code, AHEAD_WEIGHT, offset);
    }
  }
}

/* Writes the n-th term: multiplies a column by the weight of a row. */
static void write_multiply_add(laci_code *code, int row, int64_t n) {
  const int weight = WEIGHTS + (int)(n / QUARTERS % QUARTERS), lane = (int)(n % QUARTERS);
  if (lane == 0) laci_arm64_load_next(code, weight, WEIGHT);
  for (int quarter = 0; quarter < QUARTERS; quarter++) {
    laci_arm64_multiply_add(code, QUARTERS * row + quarter, COLUMN + quarter, weight, lane);
  }
}

static void write_multiply_adds(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block) {
  int64_t n = 0;
  for (int64_t column = 0; column < code_block->n_columns; column++) {
    const uint32_t rows = code_block->rows[column];
    write_prefetch(code, f, code_block->n_columns, column + 1);
    if (rows) write_column_load(code, code_block->column_at[column]);
    for (uint32_t left = rows; left; left &= left - 1)
      write_multiply_add(code, __builtin_ctz(left), n++);
  }
}

static void write_end_of_tile(laci_code *code, const laci_sparse_frame *f,
                              const laci_code_block *code_block, size_t loop) {
  const int n = QUARTERS * code_block->n_rows;
  for (int at = 0; at < n; at += 2) laci_arm64_store_pair(code, at, SUMS, at * VECTOR);
  laci_arm64_add_number(code, SUMS, SUMS, (uint32_t)(n * VECTOR));
  laci_arm64_add_number(code, AHEAD_CODE, AHEAD_CODE,
                        (uint32_t)(f->prefetch.n_code_lines * LACI_SPARSE_LINE));
  laci_arm64_add_number(code, AHEAD_WEIGHT, AHEAD_WEIGHT,
                        (uint32_t)(f->prefetch.n_weight_lines * LACI_SPARSE_LINE));
  laci_arm64_add_number(code, TILE, TILE, sizeof(laci_sparse_tile));
  laci_arm64_compare(code, TILE, TILES_END);
  laci_arm64_branch_below(code, loop);
  laci_arm64_restore_vectors(code);
  laci_arm64_return(code);
}

void laci_sparse_write_neon(laci_code *code, const laci_sparse_frame *f,
                            const laci_code_block *code_block) {
  const size_t loop = write_tile_start(code);
  write_initial_sums(code, code_block);
  write_multiply_adds(code, f, code_block);
  write_end_of_tile(code, f, code_block, loop);
}

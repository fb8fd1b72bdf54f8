/* SPDX-License-Identifier: Apache-2.0
 * Writes code blocks for AVX-512. The sums of a group's rows are in zmm0 and on; the last registers
 * hold columns.
 *
 *     vmovups     zmm30, [x + column]
 *     vfmadd231ps zmm3, zmm30, [weight + 4]{1to16}     row 3 keeps the column
 *     vfmadd231ps zmm7, zmm30, [weight + 8]{1to16}     row 7, too
 *
 * A column may read the pixels before or after the lanes' own: those that exist are loaded, the
 * others become zero. The pointer to weights points to the middle of the 256 weights that one byte
 * of displacement reaches. */
#include <stddef.h>

#include "jit/sparse_in.h"

enum {
  REGISTERS = 32,
  VECTOR = 64,         /* bytes of a vector */
  MOST_AHEAD = 4,      /* maximum number of columns that are loaded before they are used */
  MASK = 1,            /* mask register k1: the tile's lanes */
  NEIGHBOUR_MASKS = 1, /* mask registers k2 and k3: the lanes that have a pixel before, or after */
  LOW = 31,            /* zmm31, which is free after the last column */
  HIGH = 30,
};

#define ZMM LACI_X86_ZMM

static laci_x86_memory memory_operand_of_row(laci_x86_reg base, const laci_sparse_frame *f,
                                             int row) {
  return laci_x86_at(base, (int32_t)(row * f->row_stride * (int64_t)sizeof(float)));
}

void laci_sparse_write_initial_sums_zmm(laci_code *code, const laci_code_block *code_block) {
  if (code_block->first) laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(bias));
  for (int row = 0; row < code_block->n_rows; row++) {
    if (code_block->first) {
      laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_BROADCASTSS, row, 0,
                                     laci_x86_at(LACI_X86_R8, row * (int32_t)sizeof(float)));
    } else {
      laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, row, 0,
                                     laci_x86_at(LACI_SPARSE_SUMS, row * VECTOR));
    }
  }
}

/* Returns the first column from `at` on that is kept by a row, or n_columns. */
static int64_t find_next_kept_column(const laci_code_block *code_block, int64_t at) {
  while (at < code_block->n_columns && !code_block->rows[at]) at++;
  return at;
}

/* The state of loading columns; `next` is the next column to load. */
typedef struct loader {
  int64_t next;
  int n_loaded, n_registers;
  int64_t x_first; /* number of floats by which the pointer to x is ahead of its beginning */
} loader;

static void write_column_load(laci_code *code, const laci_sparse_frame *f,
                              const laci_code_block *code_block, loader *l) {
  if (l->next == code_block->n_columns) return;
  const int64_t at = (code_block->column_at[l->next] - l->x_first) * (int64_t)sizeof(float);
  const int to = REGISTERS - 1 - l->n_loaded++ % l->n_registers;
  const laci_x86_memory from = laci_x86_at(LACI_SPARSE_AT, (int32_t)at);
  const int neighbour = code_block->neighbour ? code_block->neighbour[l->next] : LACI_SPARSE_ITSELF;
  if (neighbour) laci_x86_load_masked(code, to, NEIGHBOUR_MASKS + neighbour, from);
  else laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, to, 0, from);
  if (f->x_prefetch_distance) {
    const int64_t ahead = f->x_prefetch_distance * (int64_t)sizeof(float);
    laci_x86_prefetch0(code, laci_x86_at(LACI_SPARSE_AT, (int32_t)(at + ahead)));
  }
  l->next = find_next_kept_column(code_block, l->next + 1);
}

void laci_sparse_write_terms_zmm(laci_code *code, laci_x86_op op, uint32_t rows, int with,
                                 int32_t *at) {
  while (rows) {
    uint32_t later = rows;
    for (int32_t end = *at; later && end < LACI_SPARSE_REACH; end += (int32_t)sizeof(float)) {
      later &= later - 1;
    }
    laci_x86_multiply_add_broadcasts(code, op, rows & ~later, with,
                                     laci_x86_at(LACI_SPARSE_WEIGHT, *at));
    *at += __builtin_popcount(rows & ~later) * (int32_t)sizeof(float);
    rows = later;
    if (*at < LACI_SPARSE_REACH) continue;
    laci_x86_add(code, LACI_SPARSE_WEIGHT, 2 * LACI_SPARSE_REACH);
    *at = -LACI_SPARSE_REACH;
  }
}

static void write_neighbour_mask_loads(laci_code *code, const laci_code_block *code_block) {
  const laci_x86_memory before = laci_x86_at(LACI_SPARSE_TILE, offsetof(laci_sparse_tile, before));
  const laci_x86_memory after = laci_x86_at(LACI_SPARSE_TILE, offsetof(laci_sparse_tile, after));
  if (!code_block->neighbour) return;
  laci_x86_load_mask(code, NEIGHBOUR_MASKS + LACI_SPARSE_BEFORE, before);
  laci_x86_load_mask(code, NEIGHBOUR_MASKS + LACI_SPARSE_AFTER, after);
}

static void write_multiply_adds(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block, loader l) {
  int32_t at = -LACI_SPARSE_REACH;
  int used = 0;
  for (int ahead = 1; ahead < l.n_registers; ahead++) write_column_load(code, f, code_block, &l);
  for (int64_t column = 0; column < code_block->n_columns; column++) {
    laci_sparse_write_prefetch(code, f, code_block, column + 1);
    if (!code_block->rows[column]) continue;
    write_column_load(code, f, code_block, &l);
    const int with = REGISTERS - 1 - used++ % l.n_registers;
    laci_sparse_write_terms_zmm(code, LACI_X86_FMADD231PS, code_block->rows[column], with, &at);
  }
}

void laci_sparse_write_lane_mask_load(laci_code *code) {
  laci_x86_load_mask(code, MASK, laci_x86_at(LACI_SPARSE_TILE, offsetof(laci_sparse_tile, lanes)));
}

void laci_sparse_write_clip_zmm(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block) {
  const laci_sparse_epilogue after = f->after;
  if (after.low)
    laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_BROADCASTSS, LOW, 0, LACI_SPARSE_FIELD(low));
  if (after.high)
    laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_BROADCASTSS, HIGH, 0,
                                   LACI_SPARSE_FIELD(high));
  for (int row = 0; row < code_block->n_rows; row++) {
    if (after.low) laci_x86_vector_op(code, ZMM, LACI_X86_MAXPS, row, LOW, row);
    if (after.high) laci_x86_vector_op(code, ZMM, LACI_X86_MINPS, row, HIGH, row);
  }
}

static void write_result_stores(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block) {
  const bool residual = f->after.residual;
  laci_sparse_write_results_start(code, residual);
  laci_sparse_write_lane_mask_load(code);
  for (int row = 0; residual && row < code_block->n_rows; row++) {
    const int to = REGISTERS - 1 - row % (REGISTERS - code_block->n_rows);
    laci_x86_load_masked(code, to, MASK, memory_operand_of_row(LACI_SPARSE_WEIGHT, f, row));
    laci_x86_vector_op(code, ZMM, LACI_X86_ADDPS, row, row, to);
  }
  laci_sparse_write_clip_zmm(code, f, code_block);
  for (int row = 0; row < code_block->n_rows; row++) {
    laci_x86_store_masked(code, row, MASK, memory_operand_of_row(LACI_SPARSE_AT, f, row));
  }
}

void laci_sparse_write_end_of_tile_zmm(laci_code *code, const laci_sparse_frame *f,
                                       const laci_code_block *code_block, size_t loop) {
  for (int row = 0; !code_block->last && row < code_block->n_rows; row++) {
    laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_STORE, row, 0,
                                   laci_x86_at(LACI_SPARSE_SUMS, row * VECTOR));
  }
  laci_sparse_write_end_of_tile(code, f, loop, code_block->n_rows * VECTOR);
}

void laci_sparse_write_avx512(laci_code *code, const laci_sparse_frame *f,
                              const laci_code_block *code_block) {
  const int spare = REGISTERS - code_block->n_rows;
  loader l = {.next = find_next_kept_column(code_block, 0),
              .n_registers = spare < MOST_AHEAD ? spare : MOST_AHEAD};
  /* Points x into the middle of the first columns' vectors, so that one byte of displacement
   * reaches 128 vectors on both sides. */
  if (l.next < code_block->n_columns)
    l.x_first = code_block->column_at[l.next] + 128 * (VECTOR / 4);
  const size_t loop = laci_sparse_write_tile_start(
      code, (int32_t)(l.x_first * (int64_t)sizeof(float)), LACI_SPARSE_REACH);
  laci_sparse_write_initial_sums_zmm(code, code_block);
  write_neighbour_mask_loads(code, code_block);
  laci_sparse_write_prefetch_start(code, f, code_block);
  write_multiply_adds(code, f, code_block, l);
  if (code_block->last) write_result_stores(code, f, code_block);
  laci_sparse_write_end_of_tile_zmm(code, f, code_block, loop);
}

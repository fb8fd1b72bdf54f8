/* SPDX-License-Identifier: Apache-2.0
 * Writes code blocks for AVX2. The sums of six rows are in two vectors each, ymm0 to 11; a column's
 * two vectors are in ymm12 and 13; a weight, in all lanes, is alternately in ymm14 and 15.
 *
 *     vbroadcastss ymm14, [weight + 4]
 *     vfmadd231ps  ymm6, ymm14, ymm12    row 3, lanes 0 to 7
 *     vfmadd231ps  ymm7, ymm14, ymm13    row 3, lanes 8 to 15
 *
 * A broadcast is one load for two multiply-adds, so a core's two load units and its two multipliers
 * are all busy. */
#include <stddef.h>

#include "jit/sparse_in.h"

enum {
  HALVES = 2,
  VECTOR = 32,   /* bytes of a vector */
  COLUMN = 12,   /* ymm12 and 13: the two vectors of a column */
  WEIGHT = 14,   /* ymm14 and 15, alternately: a weight in all lanes */
  REACH = 128,   /* bytes that a short displacement reaches on both sides of the pointer to
                    weights */
  LANES_AT = 12, /* ymm12 and 13: masks of the lanes that are results */
  LOW = 14,
  HIGH = 15,
};

#define YMM LACI_X86_YMM

static int register_of_sum(int row, int half) { return HALVES * row + half; }

static laci_x86_memory memory_operand_of_result(laci_x86_reg base, const laci_sparse_frame *f,
                                                int row, int half) {
  return laci_x86_at(
      base, (int32_t)(row * f->row_stride * (int64_t)sizeof(float) + (int64_t)half * VECTOR));
}

static void write_initial_sums(laci_code *code, const laci_code_block *code_block) {
  if (code_block->first) laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(bias));
  for (int at = 0; at < HALVES * code_block->n_rows; at++) {
    if (code_block->first) {
      laci_x86_vector_op_with_memory(
          code, YMM, LACI_X86_BROADCASTSS, at, 0,
          laci_x86_at(LACI_X86_R8, at / HALVES * (int32_t)sizeof(float)));
    } else {
      laci_x86_vector_op_with_memory(code, YMM, LACI_X86_LOAD, at, 0,
                                     laci_x86_at(LACI_SPARSE_SUMS, at * VECTOR));
    }
  }
}

static void write_column_load(laci_code *code, const laci_sparse_frame *f, int64_t at_floats) {
  const int64_t at = at_floats * (int64_t)sizeof(float);
  const int64_t ahead = at + f->x_prefetch_distance * (int64_t)sizeof(float);
  for (int half = 0; half < HALVES; half++) {
    laci_x86_vector_op_with_memory(
        code, YMM, LACI_X86_LOAD, COLUMN + half, 0,
        laci_x86_at(LACI_SPARSE_AT, (int32_t)(at + (int64_t)half * VECTOR)));
  }
  if (f->x_prefetch_distance) laci_x86_prefetch0(code, laci_x86_at(LACI_SPARSE_AT, (int32_t)ahead));
}

/* Writes the n-th term: multiplies a column by the weight of a row. */
static void write_multiply_add(laci_code *code, int row, int64_t n, int32_t *at) {
  const int weight = WEIGHT + (int)(n % 2);
  laci_x86_vector_op_with_memory(code, YMM, LACI_X86_BROADCASTSS, weight, 0,
                                 laci_x86_at(LACI_SPARSE_WEIGHT, *at));
  for (int half = 0; half < HALVES; half++) {
    laci_x86_vector_op(code, YMM, LACI_X86_FMADD231PS, register_of_sum(row, half), weight,
                       COLUMN + half);
  }
  *at += (int32_t)sizeof(float);
  if (*at == REACH) {
    laci_x86_add(code, LACI_SPARSE_WEIGHT, 2 * REACH);
    *at = -REACH;
  }
}

static void write_multiply_adds(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block) {
  int32_t at = -REACH;
  int64_t n = 0;
  for (int64_t column = 0; column < code_block->n_columns; column++) {
    const uint32_t rows = code_block->rows[column];
    laci_sparse_write_prefetch(code, f, code_block, column + 1);
    if (rows) write_column_load(code, f, code_block->column_at[column]);
    for (uint32_t left = rows; left; left &= left - 1) {
      write_multiply_add(code, __builtin_ctz(left), n++, &at);
    }
  }
}

/* Expands the tile's bits to a mask of all ones or zeros in each lane. */
static void write_lane_masks(laci_code *code) {
  const int32_t lanes = (int32_t)offsetof(laci_sparse_tile, lanes);
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(bits));
  for (int half = 0; half < HALVES; half++) {
    const laci_x86_memory bits = laci_x86_at(LACI_X86_R8, half * VECTOR);
    const int to = LANES_AT + half;
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_PBROADCASTD, to, 0,
                                   laci_x86_at(LACI_SPARSE_TILE, lanes));
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_PAND, to, to, bits);
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_PCMPEQD, to, to, bits);
  }
}

/* Writes the code that stores the results of a tile. whole: all lanes are stored, with zeros in
 * lanes that are no results; else only lanes that are results are stored. */
static void write_result_stores(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block, bool whole) {
  const laci_sparse_epilogue after = f->after;
  const int n = HALVES * code_block->n_rows;
  laci_sparse_write_results_start(code, after.residual);
  write_lane_masks(code);
  for (int at = 0; after.residual && at < n; at++) {
    const int half = at % HALVES;
    laci_x86_vector_op_with_memory(
        code, YMM, LACI_X86_MASKLOAD, WEIGHT + half, LANES_AT + half,
        memory_operand_of_result(LACI_SPARSE_WEIGHT, f, at / HALVES, half));
    laci_x86_vector_op(code, YMM, LACI_X86_ADDPS, at, at, WEIGHT + half);
  }
  if (after.low)
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_BROADCASTSS, LOW, 0, LACI_SPARSE_FIELD(low));
  if (after.high)
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_BROADCASTSS, HIGH, 0,
                                   LACI_SPARSE_FIELD(high));
  for (int at = 0; at < n; at++) {
    const int half = at % HALVES, mask = LANES_AT + half;
    if (after.low) laci_x86_vector_op(code, YMM, LACI_X86_MAXPS, at, LOW, at);
    if (after.high) laci_x86_vector_op(code, YMM, LACI_X86_MINPS, at, HIGH, at);
    if (whole) laci_x86_vector_op(code, YMM, LACI_X86_PAND, at, at, mask);
    laci_x86_vector_op_with_memory(code, YMM, whole ? LACI_X86_STORE : LACI_X86_MASKSTORE, at,
                                   whole ? 0 : mask,
                                   memory_operand_of_result(LACI_SPARSE_AT, f, at / HALVES, half));
  }
}

static void write_end_of_tile(laci_code *code, const laci_sparse_frame *f,
                              const laci_code_block *code_block, size_t loop) {
  laci_sparse_write_end_of_tile(code, f, loop, HALVES * code_block->n_rows * VECTOR);
}

/* Writes the end of the last code block: results of whole tiles without masks, and of other tiles
 * with masks. Masked stores take twelve cycles and more on some processors (Zen 3). */
static void write_end_of_last_block(laci_code *code, const laci_sparse_frame *f,
                                    const laci_code_block *code_block, size_t loop) {
  laci_x86_load(code, LACI_X86_R8,
                laci_x86_at(LACI_SPARSE_TILE, (int32_t)offsetof(laci_sparse_tile, lanes)));
  laci_x86_load(code, LACI_X86_RDX, LACI_SPARSE_FIELD(all_lanes));
  laci_x86_compare(code, LACI_X86_R8, LACI_X86_RDX);
  const size_t some = laci_x86_jump_below_forward(code);
  write_result_stores(code, f, code_block, true);
  write_end_of_tile(code, f, code_block, loop);
  laci_x86_set_jump_target(code, some);
  write_result_stores(code, f, code_block, false);
  write_end_of_tile(code, f, code_block, loop);
}

void laci_sparse_write_avx2(laci_code *code, const laci_sparse_frame *f,
                            const laci_code_block *code_block) {
  const size_t loop = laci_sparse_write_tile_start(code, 0, REACH);
  write_initial_sums(code, code_block);
  laci_sparse_write_prefetch_start(code, f, code_block);
  write_multiply_adds(code, f, code_block);
  if (code_block->last) {
    write_end_of_last_block(code, f, code_block, loop);
    return;
  }
  for (int at = 0; at < HALVES * code_block->n_rows; at++) {
    laci_x86_vector_op_with_memory(code, YMM, LACI_X86_STORE, at, 0,
                                   laci_x86_at(LACI_SPARSE_SUMS, at * VECTOR));
  }
  write_end_of_tile(code, f, code_block, loop);
}

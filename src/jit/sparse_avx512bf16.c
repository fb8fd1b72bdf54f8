/* SPDX-License-Identifier: Apache-2.0
 * Writes code blocks of bf16 for AVX512-BF16. The sums of a group's rows are in zmm0 to 23. For
 * each block of four columns, two bf16 pairs are loaded. One rotation and four blends make all
 * other pairs that a row can keep; each pair is in a register of its own:
 *
 *     vmovups    zmm24, [x + 0 1]
 *     vmovups    zmm25, [x + 2 3]
 *     vpblendmw  zmm28{k2}, zmm24, zmm25                 0 3
 *     vpblendmw  zmm29{k2}, zmm25, zmm24                 2 1
 *     vprold     zmm31, zmm25, 16                        3 2
 *     vpblendmw  zmm30{k2}, zmm24, zmm31                 0 2
 *     vpblendmw  zmm31{k2}, zmm31, zmm24                 3 1
 *     vdpbf16ps  zmm7, zmm29, [weight + 4]{1to16}        row 7 keeps 1 and 2 */
#include <stddef.h>

#include "jit/sparse_in.h"
#include "kernel/sparse/bf16_pairs.h"

enum {
  BLOCK = LACI_SPARSE_BLOCK,
  N_TWOS = LACI_SPARSE_N_DOTS,
  VECTOR = 64,    /* bytes of a vector */
  HALF_BITS = 16, /* bits of one half of a bf16 pair */
  FIRST = 24,     /* zmm24 and 25: the bf16 pairs of a block; 26 and 27: of the next block */
  /* dot k of laci_sparse_all_dots has register ACROSS + k, from k = 2 on */
  ACROSS = 28 - 2,
  LANES_MASK = 1, /* mask register k1: the tile's lanes */
  ODD = 2,        /* mask register k2: the upper half of each bf16 pair */
  /* registers from this one on are free when the sums are complete: for a residual, or two rows as
   * bf16 pairs */
  TAKEN = 28,
  ZEROS = 28,
  ORDER = 29,
};

#define ZMM LACI_X86_ZMM

static int64_t count_column_blocks(const laci_code_block *code_block) {
  return code_block->n_columns / BLOCK;
}

/* Returns the first block from `at` on in which a row keeps a column; count_column_blocks: there is
 * none. */
static int64_t find_next_kept_block(const laci_code_block *code_block, int64_t at) {
  for (; at < count_column_blocks(code_block); at++) {
    const uint32_t *rows = code_block->rows + at * BLOCK;
    if (rows[0] | rows[1] | rows[2] | rows[3]) break;
  }
  return at;
}

/* Loads those bf16 pairs of a block of which at least one row keeps a column. x_first: number of
 * floats by which the pointer to x is ahead of its beginning. */
static void write_block_load(laci_code *code, const laci_sparse_frame *f,
                             const laci_code_block *code_block, int64_t block, int to,
                             int64_t x_first) {
  if (block == count_column_blocks(code_block)) return;
  for (int pair = 0; pair < 2; pair++) {
    const int64_t column = block * BLOCK + (int64_t)pair * 2;
    const int64_t at = (code_block->column_at[column] - x_first) * (int64_t)sizeof(float);
    if (!(code_block->rows[column] | code_block->rows[column + 1])) continue;
    laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, to + pair, 0,
                                   laci_x86_at(LACI_SPARSE_AT, (int32_t)at));
    if (f->x_prefetch_distance) {
      const int64_t ahead = f->x_prefetch_distance * (int64_t)sizeof(float);
      laci_x86_prefetch0(code, laci_x86_at(LACI_SPARSE_AT, (int32_t)(at + ahead)));
    }
  }
}

static void write_dots_of_block(laci_code *code, const uint32_t *rows, int from, int32_t *at) {
  uint32_t twos[N_TWOS];
  const int second = from + 1, rotated = ACROSS + 5;
  laci_sparse_find_row_dots(rows, twos);
  if (twos[2]) laci_x86_blend_words(code, ACROSS + 2, ODD, from, second);
  if (twos[3]) laci_x86_blend_words(code, ACROSS + 3, ODD, second, from);
  if (twos[4] | twos[5]) laci_x86_rotate_left(code, rotated, second, HALF_BITS);
  if (twos[4]) laci_x86_blend_words(code, ACROSS + 4, ODD, from, rotated);
  if (twos[5]) laci_x86_blend_words(code, rotated, ODD, rotated, from);
  for (int two = 0; two < N_TWOS; two++) {
    const int with = two < 2 ? from + two : ACROSS + two;
    laci_sparse_write_terms_zmm(code, LACI_X86_DPBF16PS, twos[two], with, at);
  }
}

/* Writes all terms. Each block is loaded before the dots of the previous one. */
static void write_dots(laci_code *code, const laci_sparse_frame *f,
                       const laci_code_block *code_block, int64_t x_first) {
  int32_t at = -LACI_SPARSE_REACH;
  int64_t block = find_next_kept_block(code_block, 0);
  write_block_load(code, f, code_block, block, FIRST, x_first);
  for (int step = 0; block < count_column_blocks(code_block); step++) {
    const int64_t next = find_next_kept_block(code_block, block + 1);
    write_block_load(code, f, code_block, next, FIRST + (step + 1) % 2 * 2, x_first);
    write_dots_of_block(code, code_block->rows + block * BLOCK, FIRST + step % 2 * 2, &at);
    for (int64_t done = block * BLOCK; done < next * BLOCK; done++) {
      laci_sparse_write_prefetch(code, f, code_block, done + 1);
    }
    block = next;
  }
}

static laci_x86_memory memory_operand_of_rows(laci_x86_reg base, const laci_sparse_frame *f,
                                              int row) {
  return laci_x86_at(base, (int32_t)(row / f->rows_each * f->row_stride * (int64_t)sizeof(float)));
}

static void write_residual_addition(laci_code *code, const laci_sparse_frame *f,
                                    const laci_code_block *code_block) {
  for (int row = 0; row < code_block->n_rows; row += 2) {
    const int pairs = TAKEN + row % 4, halves = pairs + 1;
    laci_x86_load_masked(code, pairs, LANES_MASK,
                         memory_operand_of_rows(LACI_SPARSE_WEIGHT, f, row));
    laci_x86_shift_left(code, halves, pairs, HALF_BITS);
    laci_x86_vector_op(code, ZMM, LACI_X86_ADDPS, row, row, halves);
    if (row + 1 == code_block->n_rows) continue;
    laci_x86_keep_words(code, pairs, ODD, pairs);
    laci_x86_vector_op(code, ZMM, LACI_X86_ADDPS, row + 1, row + 1, pairs);
  }
}

/* Writes the code that converts two rows to bf16 (all words of one row, then all of the other) and
 * interleaves them. */
static void write_stores_of_two_rows(laci_code *code, const laci_sparse_frame *f,
                                     const laci_code_block *code_block) {
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(pairing));
  laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, ORDER, 0, laci_x86_at(LACI_X86_R8, 0));
  if (code_block->n_rows % 2) laci_x86_vector_op(code, ZMM, LACI_X86_PXOR, ZEROS, ZEROS, ZEROS);
  for (int row = 0; row < code_block->n_rows; row += 2) {
    const int second = row + 1 < code_block->n_rows ? row + 1 : ZEROS;
    laci_x86_vector_op(code, ZMM, LACI_X86_CVTNE2PS2BF16, row, second, row);
    laci_x86_vector_op(code, ZMM, LACI_X86_PERMW, row, ORDER, row);
    laci_x86_store_masked(code, row, LANES_MASK, memory_operand_of_rows(LACI_SPARSE_AT, f, row));
  }
}

void laci_sparse_write_avx512bf16(laci_code *code, const laci_sparse_frame *f,
                                  const laci_code_block *code_block) {
  const int64_t first = find_next_kept_block(code_block, 0);
  int64_t x_first = 0;
  /* As in sparse_avx512.c: x points into the middle of what one byte of displacement reaches. */
  if (first < count_column_blocks(code_block))
    x_first = code_block->column_at[first * BLOCK] + 128 * (VECTOR / 4);
  laci_x86_load_word_mask(code, ODD, LACI_SPARSE_FIELD(odd_words));
  const size_t loop = laci_sparse_write_tile_start(
      code, (int32_t)(x_first * (int64_t)sizeof(float)), LACI_SPARSE_REACH);
  laci_sparse_write_initial_sums_zmm(code, code_block);
  laci_sparse_write_prefetch_start(code, f, code_block);
  write_dots(code, f, code_block, x_first);
  if (code_block->last) {
    laci_sparse_write_results_start(code, f->after.residual);
    laci_sparse_write_lane_mask_load(code);
    if (f->after.residual) write_residual_addition(code, f, code_block);
    laci_sparse_write_clip_zmm(code, f, code_block);
    write_stores_of_two_rows(code, f, code_block);
  }
  laci_sparse_write_end_of_tile_zmm(code, f, code_block, loop);
}

/* SPDX-License-Identifier: Apache-2.0
 * Writes code blocks of int8 for AVX512-VNNI. The sums of a group's rows are in zmm0 to 23. For
 * each eight columns, two int8x4 are loaded, A and B. One blend makes a register that holds two
 * bytes of both, in the positions that a pair of 2:4 patterns needs. So a row needs only one dot
 * for all of the eight columns that it keeps (int8x8.h):
 *
 *     vmovups    zmm24, [x + A]
 *     vmovups    zmm25, [x + B]
 *     vprord     zmm26, zmm25, 8                         B's bytes 1 2 3 0
 *     vpblendmb  zmm29{k2}, zmm24, zmm25                 0 1 of B, 2 3 of A
 *     vpdpbusd   zmm7, zmm29, [weight + 4]{1to16}        row 7 keeps these */
#include <stddef.h>

#include "jit/sparse_in.h"
#include "jit/int8x8.h"
#include "kernel/sparse/int8x4.h"

enum {
  INT8X8 = LACI_INT8X8_COLUMNS,
  INT8X4 = LACI_INT8X4_CHANNELS,
  N_NUMBERS = LACI_INT8X8_REGISTERS,
  BYTE_BITS = 8,
  VECTOR = 64,    /* bytes of a vector */
  LANES_MASK = 1, /* mask register k1: the tile's lanes */
  MASKS = 2,      /* mask registers k2 and on: the bytes that come from B */
  A = 24,         /* zmm24: A as it is loaded, then in other orders */
  B = 25,
  ROTATED_B = 26,
  ROTATED_A = 27, /* zmm27 and 28, alternately: A in other orders */
  BLENDED = 29,   /* blends go to zmm29 to 31 in turn */
  ORDER = 24,     /* zmm24 and on are used for other numbers when the sums are complete */
  ZERO = 25,
  LOW = 26,
  MOST = 27,
  RESIDUAL = 28,
  TAKEN = 29,
  BYTE = 30,
  RESIDUAL_ZERO = 31,
};

#define ZMM LACI_X86_ZMM
#define CONSTANT(base, name) laci_x86_at(base, (int32_t)offsetof(laci_int8x4_constants, name))

static int64_t count_int8x8_of_block(const laci_code_block *code_block) {
  return code_block->n_columns / INT8X8;
}

static uint32_t union_of_row_bits(const uint32_t *rows, int n) {
  uint32_t any = 0;
  for (int at = 0; at < n; at++) any |= rows[at];
  return any;
}

/* Returns the first int8x8 from `at` on in which a row keeps a column; count_int8x8_of_block: there
 * is none. */
static int64_t find_next_kept_int8x8(const laci_code_block *code_block, int64_t at) {
  while (at < count_int8x8_of_block(code_block) &&
         !union_of_row_bits(code_block->rows + at * INT8X8, INT8X8))
    at++;
  return at;
}

/* Loads those int8x4 of an int8x8 in which a row keeps a column. x_first: number of floats by which
 * the pointer to x is ahead of its beginning. */
static void write_int8x8_load(laci_code *code, const laci_sparse_frame *f,
                              const laci_code_block *code_block, int64_t int8x8, int64_t x_first) {
  for (int int8x4 = 0; int8x4 < INT8X8 / INT8X4; int8x4++) {
    const int64_t column = int8x8 * INT8X8 + (int64_t)int8x4 * INT8X4;
    if (!union_of_row_bits(code_block->rows + column, INT8X4)) continue;
    const int64_t at = (code_block->column_at[column] - x_first) * (int64_t)sizeof(float);
    laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, A + int8x4, 0,
                                   laci_x86_at(LACI_SPARSE_AT, (int32_t)at));
    if (f->x_prefetch_distance) {
      const int64_t ahead = f->x_prefetch_distance * (int64_t)sizeof(float);
      laci_x86_prefetch0(code, laci_x86_at(LACI_SPARSE_AT, (int32_t)(at + ahead)));
    }
  }
}

/* Brings A into an order and returns its register; two of the orders are rotations. */
static int write_rotation_of_a(laci_code *code, int order) {
  const int to = ROTATED_A + order % 2;
  const laci_x86_memory by = laci_x86_at(
      LACI_X86_R8, (int32_t)(offsetof(laci_int8x4_constants, orders) + (size_t)order * VECTOR));
  if (order == 0) return A;
  if (order == LACI_SPARSE_ORDERS_A - 1) laci_x86_rotate_left(code, to, A, 2 * BYTE_BITS);
  else laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_PSHUFB, to, A, by);
  return to;
}

static void write_dots_of_int8x8(laci_code *code, const laci_sparse_frame *f, const uint32_t *kept,
                                 int32_t *at) {
  uint32_t rows[N_NUMBERS];
  int a = A, next = 0, order = 0;
  bool rotated = false;
  laci_int8x8_find_rows(f->int8x8, kept, rows);
  laci_sparse_write_terms_zmm(code, LACI_X86_DPBUSD, rows[LACI_SPARSE_ALL_A], A, at);
  laci_sparse_write_terms_zmm(code, LACI_X86_DPBUSD, rows[LACI_SPARSE_ALL_B], B, at);
  for (int number = LACI_SPARSE_BLENDS; number < N_NUMBERS; number++) {
    const laci_sparse_blend blend = laci_sparse_blend_of_register(number);
    if (!rows[number]) continue;
    if (blend.a != order) a = write_rotation_of_a(code, blend.a);
    order = blend.a;
    if (blend.b && !rotated) laci_x86_rotate_left(code, ROTATED_B, B, 3 * BYTE_BITS);
    rotated = rotated || blend.b;
    const int to = BLENDED + next++ % 3;
    laci_x86_blend_bytes(code, to, MASKS + blend.mask, a, blend.b ? ROTATED_B : B);
    laci_sparse_write_terms_zmm(code, LACI_X86_DPBUSD, rows[number], to, at);
  }
}

static void write_dots(laci_code *code, const laci_sparse_frame *f,
                       const laci_code_block *code_block, int64_t x_first) {
  int32_t at = -LACI_SPARSE_REACH;
  int64_t int8x8 = find_next_kept_int8x8(code_block, 0);
  while (int8x8 < count_int8x8_of_block(code_block)) {
    const int64_t next = find_next_kept_int8x8(code_block, int8x8 + 1);
    write_int8x8_load(code, f, code_block, int8x8, x_first);
    write_dots_of_int8x8(code, f, code_block->rows + int8x8 * INT8X8, &at);
    for (int64_t done = int8x8 * INT8X8; done < next * INT8X8; done++) {
      laci_sparse_write_prefetch(code, f, code_block, done + 1);
    }
    int8x8 = next;
  }
}

static laci_x86_memory memory_operand_of_rows(laci_x86_reg base, const laci_sparse_frame *f,
                                              int row) {
  return laci_x86_at(base, (int32_t)(row / INT8X4 * f->row_stride * (int64_t)sizeof(float)));
}

static void write_broadcast_load(laci_code *code, int to, laci_x86_memory from) {
  laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_BROADCASTSS, to, 0, from);
}

/* Loads constants that the results of all rows need; RDX is free until the end of the tile. */
static void write_constant_loads(laci_code *code, const laci_sparse_frame *f) {
  laci_x86_load(code, LACI_X86_RDX, LACI_SPARSE_FIELD(int8x4));
  laci_x86_vector_op_with_memory(code, ZMM, LACI_X86_LOAD, ORDER, 0,
                                 CONSTANT(LACI_X86_RDX, together));
  write_broadcast_load(code, ZERO, LACI_SPARSE_FIELD(zero_words));
  if (f->after.low) write_broadcast_load(code, LOW, LACI_SPARSE_FIELD(low_bytes));
  write_broadcast_load(code, MOST, LACI_SPARSE_FIELD(most));
  if (!f->after.residual) return;
  write_broadcast_load(code, BYTE, CONSTANT(LACI_X86_RDX, byte));
  write_broadcast_load(code, RESIDUAL_ZERO, LACI_SPARSE_FIELD(residual_zero));
}

/* Converts a row's sums to numbers. The rest of a bias is added without rounding in between. */
static void write_scaling(laci_code *code, const laci_sparse_frame *f, int row) {
  const int32_t at = row * (int32_t)sizeof(float);
  laci_x86_vector_op(code, ZMM, LACI_X86_CVTDQ2PS, row, 0, row);
  if (!f->after.rest) {
    laci_x86_multiply_add_broadcast(code, LACI_X86_MULPS, row, row, laci_x86_at(LACI_X86_R8, at));
    return;
  }
  write_broadcast_load(code, TAKEN, laci_x86_at(LACI_X86_RDX, at));
  laci_x86_multiply_add_broadcast(code, LACI_X86_FMADD231PS, TAKEN, row,
                                  laci_x86_at(LACI_X86_R8, at));
  laci_x86_vector_op(code, ZMM, LACI_X86_PAND, row, TAKEN, TAKEN);
}

static void write_residual_addition(laci_code *code, int row) {
  const int at = row % INT8X4 * BYTE_BITS;
  int from = RESIDUAL;
  if (at > 0) {
    laci_x86_shift_right(code, TAKEN, RESIDUAL, at);
    from = TAKEN;
  }
  laci_x86_vector_op(code, ZMM, LACI_X86_PAND, TAKEN, from, BYTE);
  laci_x86_vector_op(code, ZMM, LACI_X86_PSUBD, TAKEN, TAKEN, RESIDUAL_ZERO);
  laci_x86_vector_op(code, ZMM, LACI_X86_CVTDQ2PS, TAKEN, 0, TAKEN);
  laci_x86_multiply_add_broadcast(code, LACI_X86_FMADD231PS, row, TAKEN,
                                  LACI_SPARSE_FIELD(residual_scale));
}

/* Converts the numbers of four rows to bytes: first row after row, then interleaved lane by
 * lane. */
static void write_conversion_to_bytes(laci_code *code, const laci_sparse_frame *f, int row) {
  laci_x86_vector_op(code, ZMM, LACI_X86_PACKSSDW, row, row, row + 1);
  laci_x86_vector_op(code, ZMM, LACI_X86_PACKSSDW, row + 2, row + 2, row + 3);
  laci_x86_vector_op(code, ZMM, LACI_X86_PADDSW, row, row, ZERO);
  laci_x86_vector_op(code, ZMM, LACI_X86_PADDSW, row + 2, row + 2, ZERO);
  laci_x86_vector_op(code, ZMM, LACI_X86_PACKUSWB, row, row, row + 2);
  if (f->after.low) laci_x86_vector_op(code, ZMM, LACI_X86_PMAXUB, row, row, LOW);
  laci_x86_vector_op(code, ZMM, LACI_X86_PSHUFB, row, row, ORDER);
}

static void write_result_stores(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block) {
  laci_sparse_write_results_start(code, f->after.residual);
  laci_sparse_write_lane_mask_load(code);
  write_constant_loads(code, f);
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(scale));
  if (f->after.rest) laci_x86_load(code, LACI_X86_RDX, LACI_SPARSE_FIELD(rest));
  for (int first = 0; first < code_block->n_rows; first += INT8X4) {
    if (f->after.residual) {
      laci_x86_load_masked(code, RESIDUAL, LANES_MASK,
                           memory_operand_of_rows(LACI_SPARSE_WEIGHT, f, first));
    }
    for (int row = first; row < first + INT8X4; row++) {
      if (row >= code_block->n_rows) {
        laci_x86_vector_op(code, ZMM, LACI_X86_PXOR, row, row, row);
        continue;
      }
      write_scaling(code, f, row);
      if (f->after.residual) write_residual_addition(code, row);
      /* Limits numbers that are too large for 32 bits, which would convert to the lowest integer. A
       * NaN stays, and converts to that integer. */
      laci_x86_vector_op(code, ZMM, LACI_X86_MINPS, row, MOST, row);
      laci_x86_vector_op(code, ZMM, LACI_X86_CVTPS2DQ, row, 0, row);
    }
    write_conversion_to_bytes(code, f, first);
    laci_x86_store_masked(code, first, LANES_MASK,
                          memory_operand_of_rows(LACI_SPARSE_AT, f, first));
  }
}

void laci_sparse_write_avx512vnni(laci_code *code, const laci_sparse_frame *f,
                                  const laci_code_block *code_block) {
  int64_t x_first = 0;
  /* As in sparse_avx512.c: x points into the middle of what one byte of displacement reaches. */
  for (int64_t column = 0; column < code_block->n_columns; column += INT8X4) {
    if (!union_of_row_bits(code_block->rows + column, INT8X4)) continue;
    x_first = code_block->column_at[column] + 128 * (VECTOR / 4);
    break;
  }
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(int8x4));
  for (int at = 0; at < LACI_INT8X8_MASKS; at++) {
    const size_t mask = offsetof(laci_int8x4_constants, masks) + (size_t)at * sizeof(uint64_t);
    laci_x86_load_byte_mask(code, MASKS + at, laci_x86_at(LACI_X86_R8, (int32_t)mask));
  }
  const size_t loop = laci_sparse_write_tile_start(
      code, (int32_t)(x_first * (int64_t)sizeof(float)), LACI_SPARSE_REACH);
  laci_sparse_write_initial_sums_zmm(code, code_block);
  laci_sparse_write_prefetch_start(code, f, code_block);
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(int8x4));
  write_dots(code, f, code_block, x_first);
  if (code_block->last) write_result_stores(code, f, code_block);
  laci_sparse_write_end_of_tile_zmm(code, f, code_block, loop);
}

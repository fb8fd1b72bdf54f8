/* SPDX-License-Identifier: Apache-2.0
 * What the plan of a sparse product's code (sparse_plan.c), the writers of code for each
 * instruction set, and the code's runner (sparse_code.c) share. */
#ifndef LACI_JIT_SPARSE_IN_H
#define LACI_JIT_SPARSE_IN_H

#include <stddef.h>

#include "jit/sparse_code.h"
#include "jit/int8x8.h"
#include "jit/x86.h"
#include "kernel/sparse/one_lane.h"

enum { LACI_SPARSE_MOST_ROWS = 30, LACI_SPARSE_LINE = 64 /* bytes of a cache line */ };

/** Code without branches for some columns of a group of rows: one multiply-add, called a term, for
 * each row that keeps a column, ascending in (column, row). With bf16 a term is a dot
 * (kernel/sparse/bf16_pairs.h), ascending in (block, dot, row), and no block is cut; with int8, in
 * (int8x8, register, row) (int8x8.h), and no int8x8 is cut. */
typedef struct laci_code_block {
  const uint32_t *rows;     /* [n_columns]: bit r is set where the group's row r keeps the column */
  const int64_t *column_at; /* [n_columns] offset of each column in x, as in laci_sparse_product */
  const uint8_t *neighbour; /* [n_columns] laci_sparse_neighbour of each column; NULL: every lane
                               has the pixel of every column. Not NULL with AVX-512 only */
  int64_t n_columns;
  int n_rows;
  bool first, last; /* `first`: sums begin at the bias, else at those of the block before; `last`:
                       the block ends with results, else with sums (never true on ARM) */
} laci_code_block;

/** How many cache lines of the next code block each tile prefetches. Processors prefetch data by
 * themselves, but code not at all or one line at a time. */
typedef struct laci_sparse_prefetch {
  int n_code_lines, n_weight_lines; /* number of cache lines of code, and of weights */
} laci_sparse_prefetch;

/** What all code blocks of a product share. */
typedef struct laci_sparse_frame {
  int64_t row_stride, rows_each; /* number of rows whose results share four bytes (rows_each): 1, 2
                                    or 4; distance, in floats, from the results of such rows to
                                    those of the next rows (row_stride) */
  laci_sparse_prefetch prefetch; /* what each tile prefetches of the next code block */
  int64_t x_prefetch_distance; /* distance, in floats of x, from a column to what is prefetched with
                                  it; 0: no prefetch */
  laci_sparse_epilogue after;
  const laci_int8x8 *int8x8; /* table of registers, for int8; else NULL */
} laci_sparse_frame;

/** Constants that code of int8 reads, the same for all layers. */
typedef struct laci_int8x4_constants {
  uint8_t orders[LACI_SPARSE_ORDERS_A][64]; /* operands of vpshufb that bring A into its orders */
  uint8_t together[64];                     /* operand of vpshufb that interleaves the bytes of four
                                               rows, lane by lane */
  uint64_t masks[LACI_INT8X8_MASKS];        /* for each mask of int8x8.h: a bit for each of the 64
                                               bytes, set where the byte comes from B */
  uint32_t byte;                            /* a mask of the lowest byte of a 32-bit lane */
} laci_int8x4_constants;

/** The only argument of a code block. Pointers refer to the group's first row. */
typedef struct laci_sparse_code_arguments {
  const float *x, *weight, *bias, *residual;
  float *y;
  float *sums;                               /* [tiles][n_rows][16] sums of the tiles from `tiles`
                                                on, read from the code block before and written for
                                                the next */
  const laci_sparse_tile *tiles, *tiles_end; /* first tile, and the address after the last one; at
                                                least one tile */
  const char *ahead_code;    /* code of the next code block; each tile prefetches some lines of
                                it */
  const float *ahead_weight; /* weights of the next code block; each tile prefetches some lines of
                                them */
  float low, high;
  const uint32_t *bits;    /* [16] for AVX2: bits[lane] is 1 << lane */
  uint64_t all_lanes;      /* for AVX2: a tile whose `lanes` is at least this value can be stored
                              whole */
  const uint16_t *pairing; /* [32], for bf16: the order that interleaves the words of a row with
                              those of the next row */
  uint64_t odd_words;      /* for bf16: a mask with a bit for each word that is an upper half */
  /* this field and those below are for int8, whose bias is integers */
  const laci_int8x4_constants *int8x4;
  const float *scale, *rest;
  uint32_t zero_words, low_bytes; /* the zero point in all 16-bit words; the lower bound in all
                                     bytes */
  float most;                     /* upper bound of a result before the zero point is added: the
                                     highest byte minus the zero point */
  int32_t residual_zero;
  float residual_scale;
} laci_sparse_code_arguments;
typedef void laci_code_block_run(const laci_sparse_code_arguments *call);

/** Writes the machine code of a code block. */
typedef void laci_sparse_write(laci_code *code, const laci_sparse_frame *frame,
                               const laci_code_block *code_block);
laci_sparse_write laci_sparse_write_avx512, laci_sparse_write_avx2, laci_sparse_write_avx512bf16,
    laci_sparse_write_avx512vnni, laci_sparse_write_neon;

/** Bytes that a short displacement reaches on both sides of the pointer to weights. */
enum { LACI_SPARSE_REACH = 128 * 4 };

/* What code blocks of all AVX-512 instruction sets have in common: the sum of row r, for 16 lanes,
 * is in register zmm r. Defined in sparse_avx512.c. */

void laci_sparse_write_initial_sums_zmm(laci_code *code, const laci_code_block *code_block);
/** Writes a multiply-add with the column in register `with` for each row whose bit in `rows` is
 * set. *at: position of the pointer to weights in the code block's weights, which is updated. */
void laci_sparse_write_terms_zmm(laci_code *code, laci_x86_op op, uint32_t rows, int with,
                                 int32_t *at);
/** Loads the tile's lanes into mask register 1. */
void laci_sparse_write_lane_mask_load(laci_code *code);
void laci_sparse_write_clip_zmm(laci_code *code, const laci_sparse_frame *frame,
                                const laci_code_block *code_block);
/** Stores sums if the code block does not end with results; then goes to the next tile, or ends. */
void laci_sparse_write_end_of_tile_zmm(laci_code *code, const laci_sparse_frame *frame,
                                       const laci_code_block *code_block, size_t loop);

/** Registers of a code block, and what AVX2 and AVX-512 have in common around the terms. */
#define LACI_SPARSE_CALL LACI_X86_RDI
#define LACI_SPARSE_FIELD(name) \
  laci_x86_at(LACI_SPARSE_CALL, (int32_t)offsetof(laci_sparse_code_arguments, name))
#define LACI_SPARSE_TILE LACI_X86_RSI
#define LACI_SPARSE_AT LACI_X86_RAX /* address of the tile in x; while results are computed, in y */
/* address of the next weights; while results are computed, of the tile's residual */
#define LACI_SPARSE_WEIGHT LACI_X86_R10
#define LACI_SPARSE_SUMS LACI_X86_R9
#define LACI_SPARSE_AHEAD_CODE LACI_X86_R11
#define LACI_SPARSE_AHEAD_WEIGHT LACI_X86_RCX
/* while terms are added: the residual to prefetch; where a tile ends: the address after the last
 * tile */
#define LACI_SPARSE_AHEAD_RESIDUAL LACI_X86_RDX
/** Loads the pointers and begins the loop over tiles; returns where the loop begins. The pointers
 * to the tile's x and to the weights are `x_ahead` and `weight_ahead` bytes beyond the
 * beginnings. */
size_t laci_sparse_write_tile_start(laci_code *code, int32_t x_ahead, int32_t weight_ahead);
/** Sets LACI_SPARSE_AT to the tile's results, and LACI_SPARSE_WEIGHT to its residual if there is
 * one. */
void laci_sparse_write_results_start(laci_code *code, bool residual);
/** Goes to the next tile, or ends. sums_bytes: bytes of a tile's sums. */
void laci_sparse_write_end_of_tile(laci_code *code, const laci_sparse_frame *f, size_t loop,
                                   int32_t sums_bytes);
/** Prepares prefetching the residual, if results will add one. To be written after the loading of
 * sums. */
void laci_sparse_write_prefetch_start(laci_code *code, const laci_sparse_frame *f,
                                      const laci_code_block *code_block);
/** Prefetches the share of the next code block and of the residual that belongs after `done`
 * columns of this code block. */
void laci_sparse_write_prefetch(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block, int64_t done);

/** A group of rows of a product, and its columns. */
typedef struct laci_sparse_group {
  int64_t row_first;
  int n_rows;
  /* the group's columns: from the first to the last one that any of its rows keeps */
  int64_t column_first, n_columns;
  int64_t rows_at; /* index in laci_sparse_plan.rows of the first column of the group */
  int64_t block_first, block_last;
} laci_sparse_group;

/** The columns [column_first, column_last) of a code block, counted from the group's first
 * column. */
typedef struct laci_sparse_columns {
  int64_t column_first, column_last;
  int64_t weight_first; /* index of the first weight of the code block, in the order of code */
} laci_sparse_columns;

typedef struct laci_sparse_plan {
  laci_sparse_group *groups;
  laci_sparse_columns *code_blocks;
  int64_t n_groups, n_code_blocks;
  int64_t n_terms;
  uint32_t *rows;     /* [columns of all groups] bits as in laci_code_block.rows */
  int64_t *row_begin; /* [rows of the product + 1] copy of laci_sparse_product.row_begin */
  laci_sparse_values values;
  laci_int8x8 int8x8; /* table of registers, for int8 */
} laci_sparse_plan;

LAC_MUST_CHECK lac_status laci_sparse_plan_init(const laci_sparse_product *p, laci_sparse_cut cut,
                                                laci_pool *pool, laci_sparse_plan *plan,
                                                lac_error *err);
void laci_sparse_plan_clear(laci_sparse_plan *plan);
/** Reorders weights from the product's order, [n_kept], to that of code, [n_terms] floats, or
 * groups of four bytes for bf16 and int8. */
void laci_sparse_plan_order_weights(const laci_sparse_plan *plan, const float *weight,
                                    laci_pool *pool, float *to);
/** Does the work of laci_sparse_code_order_places. */
LAC_MUST_CHECK lac_status laci_sparse_plan_order_places(const laci_sparse_plan *plan,
                                                        const laci_sparse_places *from,
                                                        laci_pool *pool, laci_sparse_places *to,
                                                        lac_error *err);

/** Offsets of the columns of a product, for tiles that have one lane; owns its arrays. Defined in
 * sparse_one_lane.c. */
typedef struct laci_sparse_one_lane {
  int64_t n;          /* number of columns; 0: no tile has one lane */
  int64_t *at;        /* [n] offset of each column in x: column_at of the product */
  uint8_t *neighbour; /* [n] laci_sparse_neighbour of each column: `neighbour` of the product, or
                         zeros */
} laci_sparse_one_lane;

/** What is needed to compute a code block for a tile of one lane. */
typedef struct laci_sparse_one_lane_run {
  const laci_sparse_operands *o;
  laci_one_lane_columns columns;
  laci_sparse_part part; /* the tile, and the rows of the group, at least two */
  int64_t row_stride;
  float *sums; /* [rows of the group][16]: sums of the previous code block, which this one reads, or
                  its own, which it writes */
  bool first, last; /* `first`: sums begin at the bias; `last`: the block computes results */
} laci_sparse_one_lane_run;

bool laci_sparse_is_one_lane(const laci_sparse_tile *tile);
/** Returns false if there is no memory; clear one_lane in any case. */
LAC_MUST_CHECK bool laci_sparse_one_lane_init(const laci_sparse_product *p,
                                              laci_sparse_one_lane *one_lane);
void laci_sparse_one_lane_clear(laci_sparse_one_lane *one_lane);
/** Copies the tile's value of each column to `to`, [n]. */
void laci_sparse_gather_one_lane_inputs(const laci_sparse_one_lane *one_lane,
                                        const laci_sparse_tile *tile, const float *x, float *to);
void laci_sparse_run_one_lane(const laci_sparse_one_lane_run *run);

#endif

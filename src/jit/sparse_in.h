/* SPDX-License-Identifier: Apache-2.0
 * Between the plan of a sparse product's code (sparse_plan.c), those who write it for an
 * instruction set, and who runs it (sparse_code.c). */
#ifndef LACI_JIT_SPARSE_IN_H
#define LACI_JIT_SPARSE_IN_H

#include <stddef.h>

#include "jit/sparse_code.h"
#include "jit/int8x8.h"
#include "jit/x86.h"
#include "kernel/sparse/one_lane.h"

enum { LACI_SPARSE_MOST_ROWS = 30, LACI_SPARSE_LINE = 64 /* bytes of the cache's lines */ };

/** Straight code for some columns of a group of rows: one multiply-add, called a term, for each row
 * that keeps a column, ascending in (column, row). With bf16 a term is a dot
 * (kernel/sparse/bf16_pairs.h), ascending in (block, two, row), and all blocks are whole; with
 * int8, in (int8x8, register, row) (int8x8.h), and every int8x8 is whole. */
typedef struct laci_code_block {
  const uint32_t *rows;     /* [n_columns]: bit r is set where the group's row r keeps the column */
  const int64_t *column_at; /* [n_columns]: of the product's */
  const uint8_t *neighbour; /* [n_columns]: of the product's; NULL: all are there (AVX-512 alone) */
  int64_t n_columns;
  int n_rows;
  bool first, last; /* begins at the bias; ends with results, not sums: never on ARM */
} laci_code_block;

/** Cache lines that each tile fetches of the code block that runs next. Processors fetch what code
 * reads, but not code, or one line of it at a time. */
typedef struct laci_sparse_ahead {
  int code, weight;
} laci_sparse_ahead;

/** What all code blocks of a product share. */
typedef struct laci_sparse_frame {
  int64_t row_stride, rows_each; /* so many rows share four bytes of a result: 1, 2 or 4 */
  laci_sparse_ahead ahead;
  int64_t x_ahead; /* floats from a column to what is fetched with it; 0: nothing is */
  laci_sparse_after after;
  const laci_int8x8 *int8x8; /* of int8 */
} laci_sparse_frame;

/** What code of int8 reads, whatever the layer. */
typedef struct laci_int8x4_constants {
  uint8_t orders[LACI_SPARSE_ORDERS_A][64]; /* for vpshufb: A in another order */
  uint8_t together[64];                     /* four rows' bytes, interleaved lane by lane */
  uint64_t masks[LACI_INT8X8_MASKS];        /* a bit for each byte that is of B */
  uint32_t byte;                            /* the lowest of a lane */
} laci_int8x4_constants;

/** The only argument of a code block; pointers are those of the group's first row. */
typedef struct laci_sparse_call {
  const float *x, *weight, *bias, *residual;
  float *y;
  float *sums;                               /* [tiles][n_rows][16], those of the tiles below */
  const laci_sparse_tile *tiles, *tiles_end; /* one at least */
  const char *ahead_code;    /* the next code block's: tile after tile fetches its lines */
  const float *ahead_weight; /* that code block's, too */
  float low, high;
  const uint32_t *bits;    /* [16]: 1 << lane (AVX2) */
  uint64_t all_lanes;      /* of a tile that can be stored whole, or more (AVX2) */
  const uint16_t *pairing; /* [32]: of bf16, the order that interleaves a row's words with the next
                              row's */
  uint64_t odd_words;      /* a bit for each word: of bf16, the upper halves */
  /* Of int8, whose bias is of integers: */
  const laci_int8x4_constants *int8x4;
  const float *scale;
  uint32_t zero_words, low_bytes; /* the same in all words, or bytes */
  float most; /* above which no v may be: the highest byte without the zero point */
  int32_t residual_zero;
  float residual_scale;
} laci_sparse_call;
typedef void laci_code_block_run(const laci_sparse_call *call);

/** Write a code block. */
typedef void laci_sparse_write(laci_code *code, const laci_sparse_frame *frame,
                               const laci_code_block *code_block);
laci_sparse_write laci_sparse_write_avx512, laci_sparse_write_avx2, laci_sparse_write_avx512bf16,
    laci_sparse_write_avx512vnni, laci_sparse_write_neon;

/** A row's sum for the 16 lanes is in the zmm register of its number: what code blocks of AVX-512
 * have in common. sparse_avx512.c */
enum { LACI_SPARSE_REACH = 128 * 4 }; /* bytes on both sides of the pointer to weights */
void laci_sparse_begin_sums_zmm(laci_code *code, const laci_code_block *code_block);
/** Terms of all `rows` with a register; `at` is where the pointer to weights has come to. */
void laci_sparse_terms_zmm(laci_code *code, laci_x86_op op, uint32_t rows, int with, int32_t *at);
/** The tile's lanes into mask register 1. */
void laci_sparse_load_lanes(laci_code *code);
void laci_sparse_clip_zmm(laci_code *code, const laci_sparse_frame *frame,
                          const laci_code_block *code_block);
/** Leaves sums where results are not due; the next tile, or the end. */
void laci_sparse_end_zmm(laci_code *code, const laci_sparse_frame *frame,
                         const laci_code_block *code_block, size_t loop);

/** Registers of a code block, and what both instruction sets do alike around its terms. */
#define LACI_SPARSE_CALL LACI_X86_RDI
#define LACI_SPARSE_FIELD(name) \
  laci_x86_at(LACI_SPARSE_CALL, (int32_t)offsetof(laci_sparse_call, name))
#define LACI_SPARSE_TILE LACI_X86_RSI
#define LACI_SPARSE_AT LACI_X86_RAX     /* the tile's x, then its y */
#define LACI_SPARSE_WEIGHT LACI_X86_R10 /* runs along, then the tile's residual */
#define LACI_SPARSE_SUMS LACI_X86_R9
#define LACI_SPARSE_AHEAD_CODE LACI_X86_R11
#define LACI_SPARSE_AHEAD_WEIGHT LACI_X86_RCX
#define LACI_SPARSE_AHEAD_RESIDUAL LACI_X86_RDX /* then the tiles' end */
/** Loads pointers and begins the loop over tiles; returns where it begins. The tile's x and the
 * weights are `x_ahead` and `weight_ahead` bytes further than their beginnings. */
size_t laci_sparse_begin_tile(laci_code *code, int32_t x_ahead, int32_t weight_ahead);
/** Points LACI_SPARSE_AT, and LACI_SPARSE_WEIGHT where there is a residual, to the results. */
void laci_sparse_begin_results(laci_code *code, bool residual);
/** The next tile, or the end. sums_bytes: of a tile. */
void laci_sparse_end_tile(laci_code *code, const laci_sparse_frame *f, size_t loop,
                          int32_t sums_bytes);
/** To be written after the beginning of sums, where results will take in a residual. */
void laci_sparse_point_ahead(laci_code *code, const laci_sparse_frame *f,
                             const laci_code_block *code_block);
/** To be written after `done` of a code block's columns: fetches what is due of the next code block
 * and of the residual. */
void laci_sparse_fetch_ahead(laci_code *code, const laci_sparse_frame *f,
                             const laci_code_block *code_block, int64_t done);

/** Groups and code blocks of a product; owns its arrays. */
typedef struct laci_sparse_group {
  int64_t row_first;
  int n_rows;
  int64_t column_first, n_columns; /* all that its rows keep is there */
  int64_t rows_at;                 /* of plan->rows: its first column's */
  int64_t block_first, block_last;
} laci_sparse_group;

/** Columns [column_first, column_last), from the group's first. */
typedef struct laci_sparse_columns {
  int64_t column_first, column_last;
  int64_t weight_first; /* of the weights in the order of code */
} laci_sparse_columns;

typedef struct laci_sparse_plan {
  laci_sparse_group *groups;
  laci_sparse_columns *code_blocks;
  int64_t n_groups, n_code_blocks;
  int64_t n_terms;
  uint32_t *rows;     /* of all groups: as a code block's */
  int64_t *row_begin; /* [rows of the product + 1], the product's */
  laci_sparse_values values;
  laci_int8x8 int8x8; /* of int8 */
} laci_sparse_plan;

LAC_MUST_CHECK lac_status laci_sparse_plan_init(const laci_sparse_product *p, laci_sparse_cut cut,
                                                laci_pool *pool, laci_sparse_plan *plan,
                                                lac_error *err);
void laci_sparse_plan_clear(laci_sparse_plan *plan);
/** Weights in the product's order, [n_kept], -> in that of code, [n_terms]: floats, or as many of
 * others as share four bytes. */
void laci_sparse_plan_order(const laci_sparse_plan *plan, const float *weight, laci_pool *pool,
                            float *to);
/** laci_sparse_code_order of the plan. */
LAC_MUST_CHECK lac_status laci_sparse_plan_places(const laci_sparse_plan *plan,
                                                  const laci_sparse_places *from, laci_pool *pool,
                                                  laci_sparse_places *to, lac_error *err);

/** Where the columns of a product are, for tiles of one lane; owns its arrays. sparse_one_lane.c */
typedef struct laci_sparse_one_lane {
  int64_t n;          /* columns; 0: no tile has one lane */
  int64_t *at;        /* [n], the product's column_at */
  uint8_t *neighbour; /* [n], the product's, or zeros */
} laci_sparse_one_lane;

/** A code block over such a tile. */
typedef struct laci_sparse_one_lane_run {
  const laci_sparse_operands *o;
  laci_one_lane_columns columns;
  laci_sparse_part part; /* the tile, and the group's rows, two at least */
  int64_t row_stride;
  float *sums; /* [rows of the group][16]: what the code block before has left, or this one leaves
                  */
  bool first, last; /* of the group's code blocks: from the bias on; up to results */
} laci_sparse_one_lane_run;

bool laci_sparse_is_one_lane(const laci_sparse_tile *tile);
/** False: no memory; clear it in any case. */
LAC_MUST_CHECK bool laci_sparse_one_lane_init(const laci_sparse_product *p,
                                              laci_sparse_one_lane *one_lane);
void laci_sparse_one_lane_clear(laci_sparse_one_lane *one_lane);
/** What the tile reads of each column, [n]. */
void laci_sparse_take_one_lane(const laci_sparse_one_lane *one_lane, const laci_sparse_tile *tile,
                               const float *x, float *to);
void laci_sparse_run_one_lane(const laci_sparse_one_lane_run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Code generated for one sparse product (kernel/sparse/product.h), of floats, bf16 or int8.
 *
 * The pattern of kept weights becomes the code: a group of rows has its sums in registers, a column
 * is loaded once, and every row that keeps it has one multiply-add, whose weight is a broadcast
 * memory operand. No index is ever read, nothing is shuffled, and rows stay where they are. Weights
 * are stored in the order in which the code reads them, and may be replaced at any time.
 *
 * Code is straight, cut into code blocks: a code block is some columns of a group of rows, runs
 * over the tiles of a chunk, and passes its sums to the next code block through scratch memory.
 * Functions after the clip are a compiled pass over the sums of a group's last code block; on ARM
 * so is the clip. A last tile of one lane is done by compiled code, which reads the same weights.
 * Results are the same bits as the definition's (product_scalar.c). Next: sparse_plan.c (groups and
 * code blocks), sparse_avx512.c, sparse_avx512bf16.c, sparse_avx512vnni.c, sparse_neon.c,
 * sparse_one_lane.c. */
#ifndef LACI_JIT_SPARSE_CODE_H
#define LACI_JIT_SPARSE_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/pool.h"
#include "jit/isa.h"
#include "kernel/sparse/product.h"

/** What follows the sums; known when the code is made. */
typedef struct laci_sparse_after {
  bool residual; /* one is added before the clip */
  bool low,
      high; /* results are clipped from below, from above; of int8: not by what u8 can be alone */
  bool functions; /* functions may follow, or results of int8 that are floats, and then a residual:
                     which ones, and all of the above, only a run's operands say */
} laci_sparse_after;

/** How code is cut. Results do not depend on it. */
typedef struct laci_sparse_cut {
  int rows; /* of a group at most: 1 to 30 (AVX-512), to 6 (AVX2, NEON), 2 to 24 (AVX512-BF16), 4 to
           24 (AVX512-VNNI) */
  int terms;       /* multiply-adds of a code block: about so many */
  int chunk_tiles; /* tiles that go through all code blocks of all rows before the next ones */
  int64_t x_ahead; /* floats from what a tile reads to what is fetched meanwhile; 0: nothing is */
  bool columns_first; /* of a chunk: all rows' first columns, then their next ones; else row by row
                       */
  bool one_lane;      /* a chunk's last tile that has one lane is done by compiled code
                         (kernel/sparse/one_lane.h); of AVX-512 alone */
} laci_sparse_cut;

typedef struct laci_sparse_options {
  laci_jit_isa isa; /* not NONE; AVX512BF16 for products of bf16, and for no others; AVX512VNNI
                       likewise for int8 */
  laci_sparse_after after;
  laci_sparse_cut cut;
  laci_pool *pool; /* makes the code and takes weights: the same for any pool; borrowed as long as
                      the code lives. NULL: the caller alone */
} laci_sparse_options;

typedef struct laci_code_cache laci_code_cache;
typedef struct laci_sparse_code laci_sparse_code;

/** How often and where a product will most often run. */
typedef struct laci_sparse_extent {
  const laci_sparse_tile *tiles;
  int64_t n_tiles, n_x; /* n_x: floats of x that all tiles read; both >= 1 */
  int n_threads;
} laci_sparse_extent;

/** The cut that measurements spoke for (docs/sparse-kernels.md). */
laci_sparse_cut laci_sparse_cut_rule(const laci_sparse_product *p, laci_jit_isa isa,
                                     const laci_sparse_extent *extent);

/** Generates code into a cache that is not sealed; it can run once that is. The
 * product is read here only. Weights are zero until filled in. Fails LAC_UNSUPPORTED where a
 * distance needs more than 32 bits, or columns may be missing and it is not AVX-512, LAC_NO_MEMORY;
 * *code is then NULL. */
LAC_MUST_CHECK lac_status laci_sparse_code_create(const laci_sparse_product *p,
                                                  const laci_sparse_options *options,
                                                  laci_code_cache *cache, laci_sparse_code **code,
                                                  lac_error *err);
void laci_sparse_code_destroy(laci_sparse_code *code); /* NULL is fine */

/** Takes new weights, [n_kept] in the product's order, while nobody runs the code. */
void laci_sparse_code_fill(laci_sparse_code *code, const float *weight);

/** For callers that fill in weights often, of floats or bf16. `from` says where each kept weight's
 * elements are, in the product's order; `to` the same in the code's order; to->at is the caller's
 * to free. The element at to->at[i] belongs into weights[i], and may be written there while nobody
 * runs the code. With bf16, to->at[2 i] and to->at[2 i + 1] are the two halves of weights[i]
 * (kernel/sparse/bf16_pairs.h). Fails LAC_NO_MEMORY; *to is then empty. */
LAC_MUST_CHECK lac_status laci_sparse_code_order(const laci_sparse_code *code,
                                                 const laci_sparse_places *from,
                                                 laci_sparse_places *to, lac_error *err);
float *laci_sparse_code_weights(laci_sparse_code *code);

/** Scratch of a run on so many threads, in bytes; aligned to 64. */
size_t laci_sparse_code_scratch(const laci_sparse_code *code, int n_threads);

/** All rows of some tiles: product.h with the weights filled in (o->weight is not read). Same
 * bytes for any pool. */
void laci_sparse_code_run(const laci_sparse_code *code, const laci_sparse_operands *o,
                          const laci_sparse_tile *tiles, int64_t n_tiles, laci_pool *pool,
                          void *scratch);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Code generated for one sparse product (kernel/sparse/product.h), of floats, bf16 or int8.
 *
 * The pattern of kept weights becomes the code: a group of rows has its sums in registers, a column
 * is loaded once, and every row that keeps it has one multiply-add, whose weight is a broadcast
 * memory operand. No index is read, nothing is shuffled, and rows keep their order. Weights
 * are stored in the order in which the code reads them, and may be replaced at any time.
 *
 * The code has no branches within a tile. It is cut into code blocks: a code block computes some
 * columns of a group of rows. It runs over the tiles of a chunk, and passes its sums to the next
 * code block through scratch memory. Functions after the clip are applied by compiled code to the
 * sums of a group's last code block; on ARM so is the clip. A last tile with one lane is computed
 * by compiled code, which reads the same weights. Results have the same bits as those of the
 * reference (product_scalar.c). Read next: sparse_plan.c (groups and code blocks), sparse_avx512.c,
 * sparse_avx512bf16.c, sparse_avx512vnni.c, sparse_neon.c, sparse_one_lane.c. */
#ifndef LACI_JIT_SPARSE_CODE_H
#define LACI_JIT_SPARSE_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/pool.h"
#include "jit/isa.h"
#include "kernel/sparse/product.h"

/** What follows the sums, as far as it must be known when code is generated. */
typedef struct laci_sparse_epilogue {
  bool residual; /* a residual is added before the clip */
  bool low,
      high;  /* whether results are clipped from below, and from above; with int8: to a narrower
               range than that of u8 */
  bool rest; /* with int8: the rest of a bias is added to a row's product of sum and factor */
  bool functions; /* functions may follow, or int8 results may be floats, which a residual may
                     follow. Which functions and residual, and whether results are clipped, is then
                     read from the operands of each run */
} laci_sparse_epilogue;

/** How the work is divided into groups, code blocks and chunks. Results do not depend on it. */
typedef struct laci_sparse_cut {
  int rows;        /* maximum number of rows in a group: 1 to 30 (AVX-512), 1 to 6 (AVX2, NEON), 2
                      to 24 (AVX512-BF16), 4 to 24 (AVX512-VNNI) */
  int terms;       /* approximate number of multiply-adds in a code block */
  int chunk_tiles; /* number of tiles in a chunk; they go through all code blocks of all rows before
                      the next chunk begins */
  int64_t x_prefetch_distance; /* distance, in floats of x, from what a tile reads to what it
                                  prefetches; 0: no prefetch */
  bool columns_first; /* order of the code blocks in a chunk. true: the first columns of all row
                         groups, then their next columns; false: all columns of a row group, then
                         the next row group */
  bool one_lane;      /* a chunk's last tile, if it has one lane, is computed by compiled code
                         (kernel/sparse/one_lane.h); AVX-512 only */
} laci_sparse_cut;

typedef struct laci_sparse_options {
  laci_jit_isa isa; /* not NONE; AVX512BF16 for products of bf16 and no others, AVX512VNNI for
                       products of int8 and no others */
  laci_sparse_epilogue after; /* what is computed after the sums */
  laci_sparse_cut cut;        /* how the work is divided */
  laci_pool *pool; /* threads that make the code and take weights; borrowed as long as the code
                      exists. The code does not depend on it. NULL: the calling thread alone */
} laci_sparse_options;

typedef struct laci_code_cache laci_code_cache;
typedef struct laci_sparse_code laci_sparse_code;

/** The tiles and threads with which a product will usually run. */
typedef struct laci_sparse_extent {
  const laci_sparse_tile *tiles;
  int64_t n_tiles, n_x; /* number of tiles, and of floats of x that all tiles read; both >= 1 */
  int n_threads;
} laci_sparse_extent;

/** Returns the division that was fastest in measurements (bench/notes/sparse-kernels.md). */
laci_sparse_cut laci_sparse_choose_cut(const laci_sparse_product *p, laci_jit_isa isa,
                                       const laci_sparse_extent *extent);

/** Generates code into a cache that is not sealed; it can run once the cache is sealed. The product
 * is only read during this call. Weights are zero until filled in. Fails LAC_NO_MEMORY, or
 * LAC_UNSUPPORTED where a distance needs more than 32 bits, or where the product has `neighbour`
 * and the instruction set is not AVX-512; *code is then NULL. */
LAC_MUST_CHECK lac_status laci_sparse_code_create(const laci_sparse_product *p,
                                                  const laci_sparse_options *options,
                                                  laci_code_cache *cache, laci_sparse_code **code,
                                                  lac_error *err);
void laci_sparse_code_destroy(laci_sparse_code *code); /* code may be NULL */

/** Replaces the weights by `weight`, [n_kept] in the product's order. No thread may be running the
 * code. */
void laci_sparse_code_set_weights(laci_sparse_code *code, const float *weight);

/** For callers that often replace weights of floats or bf16. `from` gives the index of each kept
 * weight's element in the product's order. The function sets `to` to these indices in the code's
 * order; the caller frees to->at. The element at index to->at[i] belongs in
 * laci_sparse_code_weights()[i], and may be written there while no thread runs the code. With bf16,
 * to->at[2 i] and to->at[2 i + 1] are the two halves of that weight (kernel/sparse/bf16_pairs.h).
 * Fails LAC_NO_MEMORY; *to is then empty. */
LAC_MUST_CHECK lac_status laci_sparse_code_order_places(const laci_sparse_code *code,
                                                        const laci_sparse_places *from,
                                                        laci_sparse_places *to, lac_error *err);
float *laci_sparse_code_weights(laci_sparse_code *code);

/** Returns the bytes of scratch, aligned to 64, for a run on n_threads threads. */
size_t laci_sparse_code_scratch_bytes(const laci_sparse_code *code, int n_threads);

/** Computes all rows of some tiles, as in product.h, with the weights filled in (o->weight is not
 * read). Results are the same bytes for any pool. */
void laci_sparse_code_run(const laci_sparse_code *code, const laci_sparse_operands *o,
                          const laci_sparse_tile *tiles, int64_t n_tiles, laci_pool *pool,
                          void *scratch);

#endif

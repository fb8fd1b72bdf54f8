/* SPDX-License-Identifier: Apache-2.0
 * Products of int8 (int8x4.h) by AMX, the matrix registers of Intel processors, zeros included.
 *
 * One instruction multiplies 16 rows of 64 weights by 64 columns of 16 lanes. The columns of a
 * register are 16 int8x4 of 16 lanes each, which is how tiles store them. The int8x4 of a register
 * are neighbouring channels of one tap of the window. In x they have the same distance from each
 * other, so that a register is loaded from x as it is. Where a tap has fewer than 16 int8x4,
 * registers have as many. Where most of a register would be empty, int8x4 of several taps are first
 * copied together. A block is 32 rows times two tiles, whose sums stay in four of the eight
 * registers. Sums are exact, so results have the bits of product_int8x4_scalar.c. */
#ifndef LACI_KERNEL_SPARSE_AMX_H
#define LACI_KERNEL_SPARSE_AMX_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"

enum {
  LACI_AMX_ROWS = 16,    /* number of rows of a register of weights */
  LACI_AMX_INT8X4 = 16,  /* maximum number of int8x4 in a row of weights, and in a register of x */
  LACI_AMX_BYTES = 1024, /* bytes of a register */
};

/** The dense weights of a product, as registers. A group is rows that read the same columns
 * (laci_sparse_product.rows_together); its rows and int8x4 are filled up with zeros. */
typedef struct laci_amx_weights {
  int64_t row_stride;          /* that of the product */
  int64_t n_groups, rows_each; /* number of groups, and of rows in each group */
  int64_t int8x4_each;         /* number of int8x4 that each row of a group reads */
  int64_t n_taps;             /* number of taps of the window: int8x4 i belongs to tap i % n_taps */
  int64_t deep;               /* number of int8x4 in a register, 16 or fewer */
  int64_t n_deep;             /* number of registers of weights that hold 16 rows */
  int64_t int8x4_stride;      /* distance of a register's int8x4 from each other in x, in floats; 0:
                                  there is none, so that registers are loaded from a copy */
  const int64_t *int8x4_at;   /* [n_groups * int8x4_each] offset of each int8x4 in x, in floats */
  const int64_t *register_at; /* [n_groups * n_deep] offset of the first int8x4 of each register,
                                  in x or in a tile's copy, in floats */
  const int8_t *weight;       /* [n_groups][rows / 16][n_deep][16][64], aligned to 64 bytes */
  void *memory;
  size_t bytes; /* bytes of all arrays together */
} laci_amx_weights;

/** Stores the weights of an int8 product, [n_kept], as registers. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_amx_weights_init(const laci_sparse_product *p, const float *weight,
                                                laci_amx_weights *w, lac_error *err);
void laci_amx_weights_clear(laci_amx_weights *w);

/** Returns how many tiles one part should have at most, so that what it reads of x stays in the
 * second-level cache; an even number. */
int64_t laci_amx_tiles_per_part(const laci_amx_weights *w);
/** Returns the bytes of scratch, aligned to 64, for a part with so many tiles. */
size_t laci_amx_scratch_bytes(const laci_amx_weights *w, int64_t n_tiles);

/** Computes a part of the product. It begins at a multiple of 32 rows of a group, and ends at one
 * or at the group's last row. Only where laci_cpu_has_int8_tiles(). */
void laci_amx_multiply(const laci_amx_weights *w, const laci_sparse_operands *o,
                       const laci_sparse_part *part, void *scratch);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Moves bytes from int8x4 tensors (int8x4.h) to another one: Concat, Slice, Resize to the nearest
 * pixel, Pad and the like, between values whose scales may differ.
 *
 * The result has one or more parts. A part says, for each channel, row and column of the result,
 * which one of its operand is moved there, if any:
 *
 *     y[c][row][column] = table[x[channels[c]][rows[row]][columns[column]]]
 *
 * Every byte of the result belongs to one part at most. Bytes that belong to none are `fill`. */
#ifndef LACI_KERNEL_SPARSE_BYTE_MOVES_H
#define LACI_KERNEL_SPARSE_BYTE_MOVES_H

#include "kernel/pointwise/table.h"
#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** Columns of the result, from `to` on, that have columns of an operand, from `from` on:
 * y[to + i * to_step + k] = x[from + i * from_step] for i < n and k < repeat. */
typedef struct laci_byte_run {
  int32_t to, from, n, to_step, from_step, repeat;
} laci_byte_run;

/** One part of a result. The lists have an entry for each channel and row of the result; -1: the
 * part does not have it. */
typedef struct laci_byte_move_part {
  int x;                 /* number of the operand */
  laci_sparse_layout in; /* layout of the operand */
  int64_t width;         /* number of columns of the operand */
  const int32_t *channels, *rows;
  const laci_byte_run *runs; /* [n_runs] the columns */
  int64_t n_runs;
  const uint8_t *table; /* [256] the byte that each byte becomes; NULL: the same byte */
} laci_byte_move_part;

typedef struct laci_byte_move {
  laci_sparse_layout out;
  int64_t channels, h, w; /* size of the result, in bytes */
  int64_t n_image_blocks; /* number of images, or of groups of 16 images in HWC16N */
  int n_parts;
  const laci_byte_move_part *parts;  /* [n_parts] */
  bool is_filled;                    /* every byte of the channels belongs to a part */
  uint8_t fill;                      /* the byte where no part has one */
  uint8_t zero;                      /* the byte after the last channel of the last int8x4 */
  laci_table_look_up_bytes *look_up; /* looks up tables */
} laci_byte_move;

/** Finds the runs of a list of columns, [n], -1 where the part has none. Returns their number, and
 * writes them unless runs is NULL. */
int64_t laci_byte_move_find_runs(const int32_t *columns, int64_t n, laci_byte_run *runs);

/** Returns the number of work items, which are independent of each other. An item is an int8x4
 * channel of an image block. */
int64_t laci_byte_move_n_items(const laci_byte_move *m);

/** Writes items [first, last) of y. Layouts may have different formats, but both or neither are
 * HWC16N. The memory of y that is no pixel must hold zero points in CHW; it keeps them. x [number
 * of operands] does not overlap y. */
typedef void laci_byte_move_run(const laci_byte_move *m, const uint32_t *const *x, uint32_t *y,
                                int64_t first, int64_t last);

#define LACI_BYTE_MOVE_DECLARE(name, level) laci_byte_move_run laci_byte_move_##name;
LACI_KERNEL_VARIANTS(LACI_BYTE_MOVE_DECLARE)
#undef LACI_BYTE_MOVE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_byte_move_run *laci_byte_move_variant(void);

#endif

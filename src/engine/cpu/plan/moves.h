/* SPDX-License-Identifier: Apache-2.0
 * Operators whose results are elements of their operands, moved along each axis for itself: Concat,
 * Slice, Split, Gather, Tile, Pad, Resize to the nearest element, DepthToSpace, SpaceToDepth.
 *
 * A result has one or more parts. A part says, for each index along each axis of the result, which
 * index of its operand is moved there:
 *
 *     y[i, j, ..] = x[at[0][i], at[1][j], ..]    where none of these is -1
 *
 * Each element of the result belongs to one part at most; others are a constant, as in a Pad. */
#ifndef LACI_ENGINE_CPU_PLAN_MOVES_H
#define LACI_ENGINE_CPU_PLAN_MOVES_H

#include "engine/cpu/plan/plan.h"

/** One part of a result. The lists are in the plan's memory. */
typedef struct laci_moved_part {
  int value;                        /* the operand */
  const int32_t *at[LACI_MAX_RANK]; /* [size of the axis] index along each axis; -1: none */
} laci_moved_part;

typedef struct laci_moves {
  int n_parts;
  laci_moved_part *parts; /* [n_parts] */
  bool is_padded;         /* some elements belong to no part; they are `constant` */
  double constant;
  bool is_view; /* dense kernels read the result where the operand is stored */
} laci_moves;

/** Finds which elements the output `port` of a node has. False: the node does not move elements in
 * this form, its indices are not constant, or there is no memory, which is recorded in the plan. */
bool laci_plan_find_moves(laci_cpu_plan *plan, const laci_node *node, int port, laci_moves *moves);
/** Is it an operator that laci_plan_find_moves may know, which computes no new elements? */
bool laci_plan_is_move(const laci_node *node);

/** Where a Slice starts and how it steps along every axis of its operand. */
typedef struct laci_slice_start {
  int64_t starts[LACI_MAX_RANK], steps[LACI_MAX_RANK];
  bool strided; /* some step is not 1 */
} laci_slice_start;

/** Reads starts and steps of a Slice; false: its elements are integers, or the starts or steps
 * depend on data. */
bool laci_plan_read_slice_start(laci_cpu_plan *plan, const laci_node *node,
                                laci_slice_start *slice);

#endif

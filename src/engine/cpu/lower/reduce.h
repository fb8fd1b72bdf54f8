/* SPDX-License-Identifier: Apache-2.0
 * What the files of reductions share: reduce.c, reduce_sums.c, extreme.c. */
#ifndef LACI_ENGINE_CPU_LOWER_REDUCE_H
#define LACI_ENGINE_CPU_LOWER_REDUCE_H

#include "engine/cpu/net_in.h"

typedef struct laci_reduction {
  laci_shape x, y; /* shape of the operand (x) and of the result (y), which keeps the reduced axes
                      with size 1 */
  bool axes[LACI_MAX_RANK]; /* whether each axis is reduced */
} laci_reduction;

/** Reads the axes and shapes of a reduction. False: the axes are not constant, or the element type
 * is not supported. */
bool laci_reduce_read_node(laci_net *net, const laci_node *node, laci_reduction *r);

/** Describes x as an array [outer, n, inner], whose axis of size n is reduced. False: the reduced
 * axes are not next to each other, and the sizes must not be used. */
bool laci_reduce_merge_axes(const laci_reduction *r, int64_t *outer, int64_t *n, int64_t *inner);

/** Implementation of sums and means over axes that are next to each other, where oneDNN has no
 * quick kernel. */
laci_lower_supports laci_can_lower_reduce_sums;
laci_lower_function laci_lower_reduce_sums;

/** Implementations of the largest and smallest elements: of ReduceMax and ReduceMin over axes that
 * are next to each other, and of GlobalMaxPool of a row-major value. */
laci_lower_supports laci_can_lower_extremes, laci_can_lower_global_max;
laci_lower_function laci_lower_extremes, laci_lower_global_max;

#endif

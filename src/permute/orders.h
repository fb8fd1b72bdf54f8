/* SPDX-License-Identifier: Apache-2.0
 * The orders that a chosen reordering gives to every value and stored tensor.
 *
 * A value is reordered by zero or more *axis orders*. Each applies to one axis, or to several axes
 * together (heads x size). Let p be the combined index along these axes, the first one slowest.
 * Then new[p] = old[order[p]]. */
#ifndef LACI_PERMUTE_ORDERS_H
#define LACI_PERMUTE_ORDERS_H

#include "base/memory.h"
#include "tensor/shape.h"

typedef struct laci_axis_order {
  int n_axes;
  int axes[LACI_MAX_RANK]; /* axes that the order applies to, the slowest first */
  int64_t count;           /* length of `order`: the product of the sizes of `axes`; for a grouped
                              convolution, n_groups * size of axes[0] */
  const int32_t *order;    /* [count] for each new combined index, the old one that moves there */
  /* number of groups of a grouped convolution; 0: none. axes[0] is then reordered in each group by
     itself. With s = size of axes[0], rows of group g (along row_axis, counted after reordering)
     take new[.., j, ..] = old[.., order[g * s + j] - g * s, ..] */
  int64_t n_groups;
  int row_axis;
} laci_axis_order;

typedef struct laci_value_orders {
  int n;
  laci_axis_order *items;
} laci_value_orders;

/** The orders of all values of a graph, [n_values]. A stored tensor has the orders of its value.
 * All memory is in the arena. */
typedef struct laci_orders {
  laci_arena arena;
  int n_values;
  laci_value_orders *values;
} laci_orders;

void laci_orders_clear(laci_orders *orders);

/** Does reordering change nothing, since there are no orders or all are identities? */
bool laci_orders_are_identity(const laci_value_orders *orders);

/** Copies `in` to `out` with every order of `orders` applied. Both are row-major, of `shape`, with
 * elements of element_size bytes, and must not overlap. Fails with LAC_NO_MEMORY, or with
 * LAC_INTERNAL if an order does not fit the shape. */
LAC_MUST_CHECK lac_status laci_reorder(const laci_shape *shape, size_t element_size,
                                       const laci_value_orders *orders, const void *in, void *out,
                                       lac_error *err);

/** Maps the elements of a reordered tensor to their old offsets, in runs of adjacent elements. Run
 * r of the new tensor has its elements [r * run, (r + 1) * run). They are copied from the old
 * tensor's elements beginning at sources[r] (laci_order_walk_list_offsets). With this a caller can
 * compare or gather elements without a reordered copy. Zero-initialize it; clear it also after a
 * failure. */
typedef struct laci_order_walk {
  int64_t n_runs, run; /* number of runs, and of elements in a run; n_runs * run is the number of
                          elements of the tensor */
  int rank;            /* number of axes up to the last reordered one, which is the innermost axis
                          here */
  int64_t dims[LACI_MAX_RANK], strides[LACI_MAX_RANK];
  int n_items;
  struct laci_order_walk_item {
    int64_t *offset;              /* [count] old offset for each combined index of the order's
                                     axes */
    int64_t step[LACI_MAX_RANK];  /* combined index = sum over axes of step[axis] * index along the
                                     axis; 0: the axis is not in the order */
    int row_axis;                 /* for a grouped convolution: the axis whose index determines the
                                     group; else -1 */
    int64_t rows_per_group, size; /* for a grouped convolution: index of row_axis / rows_per_group *
                                     size is added to the combined index */
  } items[LACI_MAX_RANK];
} laci_order_walk;

/** Initializes a walk. Fails with LAC_NO_MEMORY, or with LAC_INTERNAL if an order does not fit the
 * shape or is no permutation. */
LAC_MUST_CHECK lac_status laci_order_walk_init(laci_order_walk *walk, const laci_shape *shape,
                                               const laci_value_orders *orders, lac_error *err);
void laci_order_walk_clear(laci_order_walk *walk);
/** Lists n runs of adjacent elements, from run number `first` on: sets sources[i] to the offset of
 * run first + i in the old tensor, in elements. Any thread may call it. */
void laci_order_walk_list_offsets(const laci_order_walk *walk, int64_t first, int64_t n,
                                  int64_t *sources);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What ScatterElements and ScatterND share: how an update is combined with the old element (opset
 * 16: add, mul; 18: max, min), and tuples of indices, which GatherND reads too. */
#ifndef LACI_GRAPH_OPS_SHARED_SCATTER_IN_H
#define LACI_GRAPH_OPS_SHARED_SCATTER_IN_H

#include "graph/ops/shared/op_in.h"

typedef enum laci_scatter {
  LACI_SCATTER_SET,
  LACI_SCATTER_ADD,
  LACI_SCATTER_MUL,
  LACI_SCATTER_MAX,
  LACI_SCATTER_MIN
} laci_scatter;

LAC_MUST_CHECK lac_status laci_scatter_read_reduction(const laci_node *node, laci_scatter *scatter,
                                                      lac_error *err);
/** Combines n elements of out, from `at` on, with those of updates, from `from` on. */
void laci_scatter_combine_run(laci_scatter scatter, laci_buf *out, int64_t at,
                              const laci_buf *updates, int64_t from, int64_t n);

/** Computes the flat offset into input 0 that a tuple of n indices (at `at` of `indices`) names,
 * for its axes from `first` on. Fails LAC_BAD_SHAPE where an index is outside. */
LAC_MUST_CHECK lac_status laci_index_tuple_offset(const laci_eval *eval, const laci_buf *indices,
                                                  int64_t at, int64_t n, int first,
                                                  int64_t *offset);

#endif

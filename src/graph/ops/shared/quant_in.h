/* SPDX-License-Identifier: Apache-2.0
 * What QuantizeLinear and DequantizeLinear share: scale and zero point for the whole tensor, for
 * each index along one axis, or (opset 21) for each block of indices along it, separately for each
 * index of the other axes. The code is in dequantize_linear.c. */
#ifndef LACI_GRAPH_OPS_SHARED_QUANT_IN_H
#define LACI_GRAPH_OPS_SHARED_QUANT_IN_H

#include "graph/ops/shared/op_in.h"

/** Checks scale and zero point against the data as far as shapes are known. */
LAC_MUST_CHECK lac_status laci_quant_check_shapes(laci_infer *infer);

/** The formula for the scale that an element uses. Without blocks, element `at` uses scale (at /
 * inner) % n, where n is 1 for the whole tensor. With blocks, there are n blocks of `block` indices
 * along an axis of `size`. */
typedef struct laci_quant {
  int64_t inner, n, size, block; /* block 0: no blocks */
  const laci_buf *scale, *zero;  /* zero may be NULL */
} laci_quant;

LAC_MUST_CHECK lac_status laci_quant_read_parameters(const laci_eval *eval, laci_quant *quant);

static inline int64_t laci_quant_index_of_scale(const laci_quant *quant, int64_t at) {
  int64_t place = at / quant->inner;
  if (quant->block == 0) return place % quant->n;
  int64_t run = place / quant->size * quant->n + place % quant->size / quant->block;
  return run * quant->inner + at % quant->inner;
}

lac_status laci_quant_couple_orders(const laci_graph *graph, const laci_node *node,
                                    laci_coupling *c);

#endif

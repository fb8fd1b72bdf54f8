/* SPDX-License-Identifier: Apache-2.0
 * What SquaredError and its gradient share. */
#ifndef LACI_GRAPH_OPS_SHARED_SQUARED_ERROR_IN_H
#define LACI_GRAPH_OPS_SHARED_SQUARED_ERROR_IN_H

#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Returns factor / d as defined in squared_error.c; 0 where d is 0. */
static inline double laci_squared_error_factor(const laci_node *node, const laci_buf *t) {
  double factor = (double)laci_node_float(node, "factor", 1), energy = 0;
  if (laci_node_int(node, "relative", 0) == 0) return factor;
  for (int64_t i = 0; i < t->count; i++) energy += t->f[i] * t->f[i];
  return energy > 0 ? factor / energy : 0;
}

#endif

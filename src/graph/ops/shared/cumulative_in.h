/* SPDX-License-Identifier: Apache-2.0
 * Running sums and products along an axis, written once in cum_sum.c. */
#ifndef LACI_GRAPH_OPS_SHARED_CUMULATIVE_IN_H
#define LACI_GRAPH_OPS_SHARED_CUMULATIVE_IN_H

#include "graph/ops/shared/op_in.h"

lac_status laci_cumulative_infer(laci_infer *infer);
LAC_MUST_CHECK lac_status laci_cumulative_eval(laci_eval *eval, bool product);
lac_status laci_cumulative_couple_orders(const laci_graph *graph, const laci_node *node,
                                         laci_coupling *c);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * ArgMax and ArgMin: the index of the largest or smallest element along an axis, written once in
 * arg_max.c. */
#ifndef LACI_GRAPH_OPS_SHARED_ARG_IN_H
#define LACI_GRAPH_OPS_SHARED_ARG_IN_H

#include "graph/ops/shared/op_in.h"

lac_status laci_arg_max_min_infer(laci_infer *infer);
lac_status laci_arg_max_min_eval(laci_eval *eval, bool largest);
lac_status laci_arg_max_min_couple_orders(const laci_node *node, laci_coupling *c, const char *why);

#endif

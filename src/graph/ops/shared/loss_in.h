/* SPDX-License-Identifier: Apache-2.0
 * The losses of a classifier: what it says about the class that is right, weighted, then as it is,
 * summed or averaged. Written once in negative_log_likelihood_loss.c.
 *
 *   loss[n, d] = -x[n, label[n, d], d] * weight[label[n, d]],  0 where the label is to be ignored
 *   mean = sum of losses / sum of weights */
#ifndef LACI_GRAPH_OPS_SHARED_LOSS_IN_H
#define LACI_GRAPH_OPS_SHARED_LOSS_IN_H

#include "graph/ops/shared/op_in.h"

/** Output 0 from scores [N, C, d...] and labels [N, d...]. */
LAC_MUST_CHECK lac_status laci_loss_infer(laci_infer *infer);
/** Output 0, from x [N, C, d...] instead of the node's scores. */
LAC_MUST_CHECK lac_status laci_loss_eval(const laci_eval *eval, const double *x);
/** Classes are told apart by number, so they stay; the batch and the places may move, since they
 * are at most summed. */
lac_status laci_loss_couple(const laci_graph *graph, const laci_node *node, laci_coupling *c);

#endif

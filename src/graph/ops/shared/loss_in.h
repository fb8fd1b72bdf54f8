/* SPDX-License-Identifier: Apache-2.0
 * The losses of a classifier: the negative score of the right class, weighted; then left as it is,
 * summed or averaged. Written once in negative_log_likelihood_loss.c.
 *
 *   loss[n, d] = -x[n, label[n, d], d] * weight[label[n, d]],  0 where the label is to be ignored
 *   mean = sum of losses / sum of weights */
#ifndef LACI_GRAPH_OPS_SHARED_LOSS_IN_H
#define LACI_GRAPH_OPS_SHARED_LOSS_IN_H

#include "graph/ops/shared/op_in.h"

/** Infers output 0 from scores [N, C, d...] and labels [N, d...]. */
LAC_MUST_CHECK lac_status laci_loss_infer(laci_infer *infer);
/** Computes output 0 from x [N, C, d...], which replaces the node's scores. */
LAC_MUST_CHECK lac_status laci_loss_eval(const laci_eval *eval, const double *x);
/** The axis of classes is FIXED, for labels are indices into it. The batch and the spatial axes may
 * be reordered, since they are at most summed. */
lac_status laci_loss_couple_orders(const laci_graph *graph, const laci_node *node,
                                   laci_coupling *c);

#endif

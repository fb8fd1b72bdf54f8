/* SPDX-License-Identifier: Apache-2.0
 * Windows over images whose channels are the last axis, as ONNX Runtime's optimizer writes them.
 * They are computed by the operator on images with channels as axis 1: input 0 is copied, and the
 * result is copied back. */
#ifndef LACI_GRAPH_OPS_SHARED_CHANNELS_LAST_IN_H
#define LACI_GRAPH_OPS_SHARED_CHANNELS_LAST_IN_H

#include "graph/ops/shared/op_in.h"

/** Does the attribute channels_last say that channels are the last axis? */
bool laci_has_channels_last(const laci_node *node);
/** Infers output 0 by `infer_first`, which reads input 0 with channels as axis 1. */
LAC_MUST_CHECK lac_status laci_channels_last_infer(laci_infer *infer,
                                                   lac_status (*infer_first)(laci_infer *infer));
/** Computes output 0 by `eval_first`, which reads input 0 with channels as axis 1. */
LAC_MUST_CHECK lac_status laci_channels_last_eval(laci_eval *eval,
                                                  lac_status (*eval_first)(laci_eval *eval));

/** A pool of quantized numbers whose channels are axis 1, or the last axis where the attribute
 * channels_last says so; these stay in place. */
lac_status laci_quantized_pool_infer(laci_infer *infer);
lac_status laci_quantized_pool_eval(laci_eval *eval);
lac_status laci_quantized_pool_couple(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c);

#endif

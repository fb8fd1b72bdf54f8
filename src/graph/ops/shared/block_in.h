/* SPDX-License-Identifier: Apache-2.0
 * What DepthToSpace and SpaceToDepth share: the block size, and the sizes on the deep and on the
 * wide side. Deep is [N, C * b * b, H, W], wide is [N, C, H * b, W * b]. */
#ifndef LACI_GRAPH_OPS_SHARED_BLOCK_IN_H
#define LACI_GRAPH_OPS_SHARED_BLOCK_IN_H

#include "graph/ops/shared/op_in.h"

/** Reads the attribute blocksize, checked to be positive and small enough to be squared. */
LAC_MUST_CHECK lac_status laci_depth_space_block_size(const laci_node *node, int64_t *block,
                                                      lac_error *err);

/** Infers the shape of output 0 from that of input 0: from deep to wide, or from wide to deep. */
LAC_MUST_CHECK lac_status laci_depth_space_infer(laci_infer *infer, bool to_wide);

/** Reads the attribute mode: does a block of one channel come from b * b neighbouring channels
 * (CRD)? False: channels of one position in all blocks are neighbours (DCR). */
bool laci_depth_space_is_crd_mode(const laci_node *node);
LAC_MUST_CHECK lac_status laci_depth_space_check_mode(const laci_node *node, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Weights of 2, 4 or 8 bits in blocks, as com.microsoft.MatMulNBits reads them. */
#ifndef LACI_GRAPH_OPS_SHARED_BLOCKS_IN_H
#define LACI_GRAPH_OPS_SHARED_BLOCKS_IN_H

#include "graph/ops/shared/op_in.h"

/** The sizes of a weight [n, k] in blocks along k. blob: bytes of a block. */
typedef struct laci_weight_blocks {
  int64_t k, n, bits, block, n_blocks, blob;
} laci_weight_blocks;

/** Reads the sizes from the attributes K, N, bits and block_size. False: they are of no weight. */
bool laci_weight_blocks_read(const laci_node *node, laci_weight_blocks *blocks);
/** Writes the weight [n, k] as floats. ports: those of the packed numbers, the scales, and the zero
 * points, which may be absent. Fails LAC_UNSUPPORTED where these do not fit the sizes. */
LAC_MUST_CHECK lac_status laci_weight_blocks_unpack(const laci_eval *eval,
                                                    const laci_weight_blocks *blocks,
                                                    const int ports[3], double *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * lacuna.UnpackBlocks: the weight [N, K] of com.microsoft.MatMulNBits as floats, from its packed
 * numbers, scales and zero points. Its attributes are that operator's. Where these inputs are
 * stored, it is constant, and computed once. */
#include "graph/ops/shared/blocks_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  laci_weight_blocks blocks;
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (!st && !laci_weight_blocks_read(infer->node, &blocks))
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "sizes that are of no weight");
  if (st) return st;
  const int64_t dims[2] = {blocks.n, blocks.k};
  infer->out[0] = (laci_type){.dtype = infer->in[1]->dtype, .shape = laci_shape_of(2, dims)};
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_weight_blocks blocks;
  if (!laci_weight_blocks_read(eval->node, &blocks) || !eval->out[0]->f)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_FILE, "parts that are of no weight");
  return laci_weight_blocks_unpack(eval, &blocks, (const int[]){0, 1, 2}, eval->out[0]->f);
}

const laci_op laci_op_unpack_blocks = {.name = "UnpackBlocks",
                                       .domain = "lacuna",
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .infer = infer,
                                       .eval = eval,
                                       .couple = laci_couple_nothing};

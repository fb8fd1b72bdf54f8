/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.MatMulNBits: y = A B^T + bias, for a weight B [N, K] of 2, 4 or 8 bits, divided
 * into blocks along K. Each block has a scale and a zero point: B = (b - zero) * scale, where an
 * absent zero point is 2^(bits - 1). B is [N, blocks, bytes], the lowest bits of a byte first.
 *
 * Channels: all are FIXED: their order must stay (coupling.h). A block's scale belongs to the K
 * channels in it, so moving a channel would change the rounding of blocks. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/blocks_in.h"
#include "graph/ops/shared/gemm_f64.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };

static lac_status infer(laci_infer *infer) {
  laci_weight_blocks s;
  lac_status st = laci_check_n_inputs(infer, 3, 6);
  if (!st && !laci_weight_blocks_read(infer->node, &s))
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_FILE,
                        "sizes and bits that are not of a matrix of 2, 4 or 8 bits");
  if (!st) st = laci_check_input_sizes(infer, BIAS, 1, &s.n);
  if (st) return st;
  infer->out[0].dtype = infer->in[A]->dtype;
  const laci_shape *a = laci_in_shape(infer, A);
  if (!a) return LAC_OK;
  infer->out[0].shape = *a;
  if (a->rank < 1 || (a->dims[a->rank - 1] >= 0 && a->dims[a->rank - 1] != s.k))
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the data has no %lld channels",
                          (long long)s.k);
  infer->out[0].shape.dims[a->rank - 1] = s.n;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_weight_blocks s;
  const laci_node *node = eval->node;
  const laci_buf *order = laci_operand(eval, G_IDX);
  if (!laci_weight_blocks_read(node, &s) || order || !eval->in[A]->f ||
      (laci_operand(eval, BIAS) && !eval->in[BIAS]->f))
    return laci_node_fail(node, eval->err, LAC_UNSUPPORTED,
                          "blocks in another order, or parts that do not fit");
  double *w = laci_alloc((size_t)(s.n * s.k), sizeof *w);
  if (!w) return laci_fail_memory(eval->err, node->name);
  lac_status st = laci_weight_blocks_unpack(eval, &s, (const int[]){B, SCALES, ZEROS}, w);
  const laci_buf *bias = laci_operand(eval, BIAS);
  laci_buf *y = eval->out[0];
  for (int64_t at = 0; bias && at < y->count; at++) y->f[at] = bias->f[at % s.n];
  int64_t zero = 0;
  laci_gemm_matrix right = {.data = w, .row_stride = 1, .col_stride = s.k, .offset = &zero};
  laci_gemm product = {.n_batch = 1,
                       .m = eval->in[A]->count / s.k,
                       .n = s.n,
                       .k = s.k,
                       .a = eval->in[A]->f,
                       .a_row_stride = s.k,
                       .a_col_stride = 1,
                       .a_offset = &zero,
                       .a_period = 1,
                       .pack_b = laci_gemm_pack_matrix,
                       .pack_context = &right,
                       .c = y->f,
                       .c_row_stride = s.n,
                       .c_offset = &zero};
  if (!st) st = laci_gemm_run(eval, &product);
  laci_free(w);
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *a = laci_port_shape(c, A), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "its weight is in packed blocks, whose scales belong to the channels that stand in them";
  if (a && y && a->rank == y->rank && a->rank > 0)
    laci_couple_other_axes(c, A, LACI_OUT(0), a->rank - 1);
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_mat_mul_n_bits = {
    .name = "MatMulNBits",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_INFER,
    .attributes =
        LACI_ATTRIBUTES({"K", LACI_ATTR_INT}, {"N", LACI_ATTR_INT},
                        {"accuracy_level", LACI_ATTR_INT}, {"bits", LACI_ATTR_INT},
                        {"block_size", LACI_ATTR_INT}, {"weight_prepacked", LACI_ATTR_INT}),
    .packed_weight = B,
    .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

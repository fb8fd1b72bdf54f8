/* SPDX-License-Identifier: Apache-2.0
 * Reads weights in blocks: blocks_in.h. */
#include "graph/ops/shared/blocks_in.h"

#include "tensor/buf.h"

bool laci_weight_blocks_read(const laci_node *node, laci_weight_blocks *s) {
  *s = (laci_weight_blocks){.k = laci_node_int(node, "K", 0),
                            .n = laci_node_int(node, "N", 0),
                            .bits = laci_node_int(node, "bits", 4),
                            .block = laci_node_int(node, "block_size", 0)};
  bool bits = s->bits == 2 || s->bits == 4 || s->bits == 8;
  if (!bits || s->k < 1 || s->n < 1 || s->block < 8 || s->k > INT32_MAX || s->n > INT32_MAX ||
      s->block > INT32_MAX)
    return false;
  s->n_blocks = (s->k + s->block - 1) / s->block;
  s->blob = (s->block * s->bits + 7) / 8;
  return true;
}

/** Returns number `at` of a run of packed numbers. */
static int64_t unpack_element(const laci_buf *buf, int64_t first, int64_t at, int64_t bits) {
  int64_t per_byte = 8 / bits, byte = buf->i[first + at / per_byte] & 255;
  return byte >> (at % per_byte * bits) & ((1 << bits) - 1);
}

static double read_zero_point(const laci_buf *zeros, const laci_weight_blocks *s, int64_t row,
                              int64_t block) {
  if (!zeros) return (double)(1 << (s->bits - 1));
  if (zeros->f) return zeros->f[row * s->n_blocks + block];
  return (double)unpack_element(zeros, row * ((s->n_blocks * s->bits + 7) / 8), block, s->bits);
}

static bool has_fitting_operands(const laci_buf *b, const laci_buf *scales, const laci_buf *zeros,
                                 const laci_weight_blocks *s) {
  const int64_t packed = s->n * ((s->n_blocks * s->bits + 7) / 8);
  return b->i && scales->f && b->count == s->n * s->n_blocks * s->blob &&
         scales->count == s->n * s->n_blocks &&
         (!zeros || zeros->count == (zeros->f ? s->n * s->n_blocks : packed));
}

lac_status laci_weight_blocks_unpack(const laci_eval *eval, const laci_weight_blocks *s,
                                     const int ports[3], double *w) {
  const laci_buf *b = eval->in[ports[0]], *scales = eval->in[ports[1]];
  const laci_buf *zeros = laci_operand(eval, ports[2]);
  if (!has_fitting_operands(b, scales, zeros, s))
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "parts that do not fit");
  for (int64_t at = 0; at < s->n * s->k; at++) {
    const int64_t row = at / s->k, k = at % s->k, block = k / s->block;
    const int64_t own = row * s->n_blocks + block;
    const double q = (double)unpack_element(b, own * s->blob, k % s->block, s->bits);
    w[at] = (q - read_zero_point(zeros, s, row, block)) * scales->f[own];
  }
  return LAC_OK;
}

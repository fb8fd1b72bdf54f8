/* SPDX-License-Identifier: Apache-2.0
 * The reference of product.h: it computes one result at a time. References for bf16 and int8 are in
 * product_bf16_scalar.c and product_int8x4_scalar.c. */
#include <math.h>
#include <stddef.h>

#include "kernel/pointwise/function.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/int8x4.h"

static float compute_result(const laci_sparse_product *p, const laci_sparse_operands *o,
                            int64_t row, const laci_sparse_tile *tile, int lane) {
  const float *x = o->x + tile->in + lane;
  float sum = o->bias[row];
  for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
    const int32_t column = p->column[k];
    const uint8_t neighbour = p->neighbour ? p->neighbour[column] : LACI_SPARSE_ITSELF;
    const bool there = laci_sparse_lanes_read(tile, neighbour) >> lane & 1;
    sum = fmaf(o->weight[k], there ? x[p->column_at[column]] : 0, sum);
  }
  return sum;
}

static float apply_clip_and_functions(const laci_sparse_operands *o, float v, int64_t out) {
  if (o->residual && !o->residual_last) v += o->residual[out];
  v = o->low > v ? o->low : v;
  v = o->high < v ? o->high : v;
  for (int at = 0; at < o->n_functions; at++) {
    laci_pointwise_apply_scalar(&o->functions[at], &v, 1);
  }
  return o->residual && o->residual_last ? v + o->residual[out] : v;
}

void laci_sparse_multiply_scalar(const laci_sparse_product *p, const laci_sparse_operands *o,
                                 const laci_sparse_part *part) {
  if (p->values == LACI_SPARSE_S8) {
    laci_sparse_multiply_int8x4_scalar(p, o, part);
    return;
  }
  if (p->values == LACI_SPARSE_BF16) {
    laci_sparse_multiply_bf16_scalar(p, o, part);
    return;
  }
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = part->row_first; row < part->row_last; row++) {
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
        if (!(tile->lanes >> lane & 1)) continue;
        const int64_t out = tile->out + row * p->row_stride + lane;
        o->y[out] = apply_clip_and_functions(o, compute_result(p, o, row, tile, lane), out);
      }
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Converts integer sums of int8 products to results (int8x4.h), for some rows and tiles. Compiled
 * for every instruction set. */
#include <string.h>

#include "kernel/pointwise/fake_quantize.h"
#include "kernel/pointwise/function.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/variants.h"

enum { LANES = LACI_SPARSE_LANES, INT8X4 = LACI_INT8X4_CHANNELS };

static int64_t result_offset(const laci_sparse_tile *tile, int64_t row_stride, int64_t row) {
  return tile->out + row / INT8X4 * row_stride;
}

void LACI_VARIANT(laci_sparse_scale_sums)(const laci_sparse_quantized *q,
                                          const laci_sparse_part *part, float *v) {
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    for (int64_t row = part->row_first; row < part->row_last; row++, v += LANES) {
      int32_t sums[LANES];
      memcpy(sums, v, sizeof sums);
      if (!q->rest) {
        for (int lane = 0; lane < LANES; lane++) v[lane] = (float)sums[lane] * q->scale[row];
        continue;
      }
      for (int lane = 0; lane < LANES; lane++)
        v[lane] = fmaf((float)sums[lane], q->scale[row], q->rest[row]);
    }
  }
}

/* Quantizes a sum before the residual is added to it, and returns it without the zero point. */
static float quantize_sum(const laci_sparse_middle *m, float v) {
  const float low = (float)(m->low - m->zero), high = (float)(m->high - m->zero);
  return rintf(laci_quantize_clip(v, low, high));
}

/* Returns the sum v of a row, with a value of the residual added. */
static float add_to_sum(const laci_sparse_quantized *q, float v, float residual) {
  const laci_sparse_middle *m = q->middle;
  if (!m) return fmaf(residual, q->residual_scale, v);
  const float u = quantize_sum(m, v);
  return m->last ? fmaf(u, m->scale, residual * q->residual_scale)
                 : fmaf(residual, q->residual_scale, u * m->scale);
}

static void add_residual(const laci_sparse_operands *o, int64_t row_stride,
                         const laci_sparse_part *part, float *v) {
  const laci_sparse_quantized *q = o->quantized;
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = part->row_first; row < part->row_last; row++, v += LANES) {
      const float *from = o->residual + result_offset(tile, row_stride, row);
      for (int lane = 0; lane < LANES; lane++) {
        uint32_t int8x4 = 0;
        if (tile->lanes >> lane & 1) memcpy(&int8x4, from + lane, sizeof int8x4);
        const int32_t value = (int32_t)(int8x4 >> row % INT8X4 * 8 & 0xFFU) - q->residual_zero;
        v[lane] = add_to_sum(q, v[lane], (float)value);
      }
    }
  }
}

/* Scales to a byte: clips, rounds and adds the zero point. Bounds are integers, so that clipping
 * before rounding gives the same as clipping after it. */
static uint32_t round_to_byte(const laci_sparse_quantized *q, float v) {
  const float low = (float)(q->low - q->zero), high = (float)(q->high - q->zero);
  return (uint32_t)((int32_t)rintf(laci_quantize_clip(v, low, high)) + q->zero);
}

static void write_bytes(const laci_sparse_operands *o, int64_t row_stride,
                        const laci_sparse_part *part, const float *v) {
  const int64_t n = part->row_last - part->row_first;
  for (int64_t t = part->tile_first; t < part->tile_last; t++, v += n * LANES) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = 0; row < n; row += INT8X4) {
      float *y = o->y + result_offset(tile, row_stride, part->row_first + row);
      for (int lane = 0; lane < LANES; lane++) {
        uint32_t int8x4 = 0;
        if (!(tile->lanes >> lane & 1)) continue;
        for (int64_t at = 0; at < INT8X4; at++) {
          const float value = row + at < n ? v[(row + at) * LANES + lane] : 0;
          int8x4 |= round_to_byte(o->quantized, value) << 8 * at;
        }
        memcpy(y + lane, &int8x4, sizeof int8x4);
      }
    }
  }
}

void LACI_VARIANT(laci_sparse_finish_bytes)(const laci_sparse_operands *o, int64_t row_stride,
                                            const laci_sparse_part *part, float *v) {
  const int64_t n_tiles = part->tile_last - part->tile_first;
  const int64_t n = n_tiles * (part->row_last - part->row_first) * LANES;
  if (o->residual && !o->residual_last) add_residual(o, row_stride, part, v);
  for (int at = 0; at < o->n_functions; at++) {
    LACI_VARIANT(laci_pointwise_apply)(&o->functions[at], v, n);
  }
  if (o->residual && o->residual_last) add_residual(o, row_stride, part, v);
  write_bytes(o, row_stride, part, v);
}

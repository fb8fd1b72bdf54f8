/* SPDX-License-Identifier: Apache-2.0
 * Converts the sums of some rows and tiles to results (laci_sparse_finish in product.h). It applies
 * the residual, the clip and the functions to all sums in place, then stores them in y. Compiled
 * for every instruction set. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/pointwise/function.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/tile_isa.h"
#include "kernel/variants.h"

enum { LANES = LACI_SPARSE_LANES };

/* How results are stored. With bf16, two rows share four bytes. row_stride: number of floats from
 * one such group of rows to the next. */
typedef struct target {
  int64_t row_stride;
  laci_sparse_values values;
} target;

static int64_t result_offset(const target *t, const laci_sparse_tile *tile, int64_t row) {
  return tile->out + row / laci_sparse_values_per_word(t->values) * t->row_stride;
}

/* Adds the residual of a row to all 16 lanes of v. */
static void add_residual_lanes(const float *residual, const target *t, int64_t row, float *v) {
  uint32_t pairs[LANES];
  memcpy(pairs, residual, sizeof pairs);
  if (t->values == LACI_SPARSE_F32) {
    for (int lane = 0; lane < LANES; lane++) v[lane] += residual[lane];
  } else if (row % 2) {
    for (int lane = 0; lane < LANES; lane++) v[lane] += laci_bf16_pair_high(pairs[lane]);
  } else {
    for (int lane = 0; lane < LANES; lane++) v[lane] += laci_bf16_pair_low(pairs[lane]);
  }
}

static void add_residual(const laci_sparse_operands *o, const target *to,
                         const laci_sparse_part *part, float *v) {
  float residual[LANES];
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = part->row_first; row < part->row_last; row++, v += LANES) {
      laci_sparse_load_tile(o->residual + result_offset(to, tile, row), tile->lanes, residual);
      add_residual_lanes(residual, to, row, v);
    }
  }
}

/* Converts the f32 lanes of two rows to bf16 pairs. If `both` is false, there is no second row, and
 * zeros take its place. */
static void convert_rows_to_pairs(const float *v, bool both, float *pairs) {
  static const float zeros[LANES];
  const float *second = both ? v + LANES : zeros;
  uint32_t bits[LANES];
  for (int lane = 0; lane < LANES; lane++) bits[lane] = laci_bf16_pair(v[lane], second[lane]);
  memcpy(pairs, bits, sizeof bits);
}

static void write_results(const laci_sparse_operands *o, const target *to,
                          const laci_sparse_part *part, const float *v) {
  const int64_t each = laci_sparse_values_per_word(to->values),
                n = part->row_last - part->row_first;
  float pairs[LANES];
  for (int64_t t = part->tile_first; t < part->tile_last; t++, v += n * LANES) {
    const laci_sparse_tile *tile = &part->tiles[t];
    float *y = o->y + result_offset(to, tile, part->row_first);
    for (int64_t row = 0; row < n; row += each, y += to->row_stride) {
      const float *from = v + row * LANES;
      if (to->values == LACI_SPARSE_BF16) {
        convert_rows_to_pairs(from, row + 1 < n, pairs);
        from = pairs;
      }
      laci_sparse_store_tile(y, tile->lanes, from);
    }
  }
}

void LACI_VARIANT(laci_sparse_finish)(const laci_sparse_operands *o, int64_t row_stride,
                                      laci_sparse_values values, const laci_sparse_part *part,
                                      float *sums) {
  const target to = {row_stride, values == LACI_SPARSE_S8 ? LACI_SPARSE_F32 : values};
  const int64_t n_tiles = part->tile_last - part->tile_first;
  const int64_t n = n_tiles * (part->row_last - part->row_first) * LANES;
  const laci_pointwise clip = {LACI_POINTWISE_CLIP, o->low, o->high};
  if (values == LACI_SPARSE_S8) {
    LACI_VARIANT(laci_sparse_scale_sums)(o->quantized, part, sums);
    if (!o->quantized->floats) {
      LACI_VARIANT(laci_sparse_finish_bytes)(o, row_stride, part, sums);
      return;
    }
  }
  if (o->residual && !o->residual_last) add_residual(o, &to, part, sums);
  if (o->low > -INFINITY || o->high < INFINITY) {
    LACI_VARIANT(laci_pointwise_apply)(&clip, sums, n);
  }
  for (int at = 0; at < o->n_functions; at++) {
    LACI_VARIANT(laci_pointwise_apply)(&o->functions[at], sums, n);
  }
  if (o->residual && o->residual_last) add_residual(o, &to, part, sums);
  write_results(o, &to, part, sums);
}

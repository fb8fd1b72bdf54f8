/* SPDX-License-Identifier: Apache-2.0
 * Products of int8 (product.h): four bytes hold those of four neighbouring channels, so that every
 * layout, tile and reorder of floats serves with a quarter of the channels.
 *
 * x and results are u8, weights integers from -128 to 127. An s8 value is a u8 one that is 128
 * higher, and so is its zero point: nothing here knows of it. Sums are integers of 32 bits
 *
 *     sum[row] = bias[row] + sum over kept k of weight[k] * x[column[k]]
 *
 * and exact, in any order, as long as they fit; beyond that they wrap. Products of up to 65536 kept
 * weights a row fit in addition to a bias below 2^23. A zero point z of x is in the bias: -z * sum
 * of weights, and z is then the padding around images. Then, each a rounding to the nearest, to
 * even:
 *
 *     v = (float)sum * scale[row]
 *     v = fma((float)(residual - residual_zero), residual_scale, v)     where there is a residual
 *     y = clip(low, high, whole(v) + zero)
 *
 * where a v above high - zero is that before it becomes an integer, as no v that 32 bits cannot
 * hold may come out at the other end; one that is too low, or a NaN, becomes low. Where rows are
 * not a multiple of four, a place's last bytes are those of v = 0. Results can be floats, too: v
 * without a residual, and all that follows sums of floats. */
#ifndef LACI_KERNEL_SPARSE_INT8X4_H
#define LACI_KERNEL_SPARSE_INT8X4_H

#include <math.h>
#include <stdint.h>

#include "kernel/sparse/product.h"
#include "kernel/variants.h"

enum { LACI_INT8X4_CHANNELS = 4 };

/** A kept weight. */
static inline int8_t laci_sparse_s8(float weight) { return (int8_t)lrintf(weight); }

/** finish_int8x4_isa.c: sums, integers of 32 bits, become floats in place. */
typedef void laci_sparse_scale_sums(const laci_sparse_quantized *q, const laci_sparse_part *part,
                                    float *sums);
/** And these become bytes in y. */
typedef void laci_sparse_finish_bytes(const laci_sparse_operands *o, int64_t row_stride,
                                      const laci_sparse_part *part, float *v);
#define LACI_INT8X4_DECLARE(name, level)                \
  laci_sparse_scale_sums laci_sparse_scale_sums_##name; \
  laci_sparse_finish_bytes laci_sparse_finish_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_INT8X4_DECLARE)
#undef LACI_INT8X4_DECLARE

/** product.h's definition for products of int8; parts begin at a multiple of four rows.
 * product_int8x4_scalar.c */
laci_sparse_multiply laci_sparse_multiply_int8x4_scalar;

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Sparse products (product.h) of int8. Four bytes, an int8x4, hold the values of four neighbouring
 * channels. So the layouts, tiles and reorders of floats serve for int8 too, with a quarter of the
 * channels.
 *
 * x and results are u8, weights integers from -128 to 127. The caller stores an s8 value as a u8
 * value that is 128 higher, with a zero point that is 128 higher. Sums are 32-bit integers,
 *
 *     sum[row] = bias[row] + sum over kept k of weight[k] * x[column[k]]
 *
 * which are exact in any order as long as they fit; beyond that they wrap. Products of up to 65536
 * kept weights a row fit in addition to a bias below 2^23. A zero point z of x is accounted for in
 * the bias, as -z * sum of weights; the padding around images is then z. The result y is computed
 * from the sum. Each operation rounds to the nearest, halves to even:
 *
 *     v = (float)sum * scale[row]                        or, where the rest of a bias is given,
 *     v = fma((float)sum, scale[row], rest[row])
 *     v = fma((float)(residual - residual_zero), residual_scale, v)     where there is a residual
 *     y = clip(low, high, whole(v) + zero)
 *
 * Where a network quantizes the sum before it adds the residual (laci_sparse_middle m),
 *
 *     u = clip(m.low, m.high, whole(v) + m.zero) - m.zero
 *     v = fma((float)(residual - residual_zero), residual_scale, (float)u * m.scale)
 *
 * or, with m.last, v = fma((float)u, m.scale, (float)(residual - residual_zero) * residual_scale).
 *
 * A v above high - zero is clipped to it before whole() converts it to an integer: a v beyond 32
 * bits would else overflow to the lowest integer. A v that is too low, or a NaN, becomes low. If
 * the number of rows is not a multiple of four, the last bytes of an int8x4 are those of v = 0.
 * Results can also be floats: v without a residual, then processed like the sums of a float
 * product. */
#ifndef LACI_KERNEL_SPARSE_INT8X4_H
#define LACI_KERNEL_SPARSE_INT8X4_H

#include <math.h>
#include <stdint.h>

#include "kernel/sparse/product.h"
#include "kernel/variants.h"

enum { LACI_INT8X4_CHANNELS = 4 };

/** Converts a kept weight, a float that is an integer from -128 to 127, to its byte. */
static inline int8_t laci_sparse_weight_to_s8(float weight) { return (int8_t)lrintf(weight); }

/** Converts 32-bit integer sums to floats v (see above), in place. Defined in
 * finish_int8x4_isa.c. */
typedef void laci_sparse_scale_sums(const laci_sparse_quantized *q, const laci_sparse_part *part,
                                    float *sums);
/** Converts the floats v (see above) of a part to bytes, and stores them in o->y. */
typedef void laci_sparse_finish_bytes(const laci_sparse_operands *o, int64_t row_stride,
                                      const laci_sparse_part *part, float *v);
#define LACI_INT8X4_DECLARE(name, level)                \
  laci_sparse_scale_sums laci_sparse_scale_sums_##name; \
  laci_sparse_finish_bytes laci_sparse_finish_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_INT8X4_DECLARE)
#undef LACI_INT8X4_DECLARE

/** The reference for products of int8. A part must begin at a multiple of four rows. Defined in
 * product_int8x4_scalar.c. */
laci_sparse_multiply laci_sparse_multiply_int8x4_scalar;

#endif

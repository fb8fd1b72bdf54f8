/* SPDX-License-Identifier: Apache-2.0
 * What bytes_isa.c and image_bytes_isa.c share. */
#ifndef LACI_KERNEL_SPARSE_BYTES_IN_H
#define LACI_KERNEL_SPARSE_BYTES_IN_H

#include <math.h>
#include <stdint.h>

#include "kernel/pointwise/fake_quantize.h"
#include "kernel/sparse/product.h"

/** Quantizes x [16] to bytes, and adds byte i, shifted left by `shift` bits, to the word
 * int8x4[i]. */
static inline void laci_quantize_lanes(const laci_fake_quantized *q, const float *x, int shift,
                                       uint32_t *restrict int8x4) {
  const float scale = q->scale, low = q->low, high = q->high;
  for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
    const float byte = laci_quantize_clip(rintf(x[lane] / scale), low, high) - low;
    int8x4[lane] |= (uint32_t)(int32_t)byte << shift;
  }
}

#endif

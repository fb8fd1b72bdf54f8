/* SPDX-License-Identifier: Apache-2.0
 * Quantizes an image of floats to int8 (int8x4.h), and stores it in the layout that a layer reads,
 * in one pass. For the first layer of a network: images have few channels, so that passes over
 * whole channels would leave most threads without work. Bytes are those of bytes.h. Memory between
 * pixels is not written. */
#ifndef LACI_KERNEL_SPARSE_IMAGE_BYTES_H
#define LACI_KERNEL_SPARSE_IMAGE_BYTES_H

#include "kernel/pointwise/fake_quantize.h"
#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** The layouts of both. Floats are in CHW without phases; int8x4 in CHW or PC16P. size: that of the
 * floats. */
typedef struct laci_image_bytes {
  laci_sparse_layout floats, int8x4;
  laci_sparse_size size;
  const laci_fake_quantized *q;
} laci_image_bytes;

/** Can an image be quantized from the layout `floats` to the layout `int8x4`? */
bool laci_image_bytes_can_pack(const laci_sparse_layout *floats, const laci_sparse_layout *int8x4);
/** Returns the number of work items, which are independent of each other. An item is a row of
 * pixels of four channels. */
int64_t laci_image_bytes_n_items(const laci_image_bytes *b);

/** Quantizes items [first, last). The arrays need only the alignment of floats. */
typedef void laci_image_bytes_pack(const laci_image_bytes *b, const float *floats, float *int8x4,
                                   int64_t first, int64_t last);
#define LACI_IMAGE_BYTES_DECLARE(name, level) laci_image_bytes_pack laci_image_bytes_pack_##name;
LACI_KERNEL_VARIANTS(LACI_IMAGE_BYTES_DECLARE)
#undef LACI_IMAGE_BYTES_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_image_bytes_pack *laci_image_bytes_variant(void);

#endif

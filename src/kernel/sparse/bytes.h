/* SPDX-License-Identifier: Apache-2.0
 * Tensors of int8 (int8x4.h) from floats and back, and sums of two of them.
 *
 * The value of a byte follows from the scale and the bounds of the fake quantization of floats
 * (kernel/pointwise/fake_quantize.h): (byte + low) * scale, and a float becomes the byte of
 *
 *     clip(round(x / scale), low, high) - low
 *
 * so that unpacking what was packed gives the bits of the fake quantization.
 *
 * The layouts of floats and of int8x4 have the same format (CHW, PC16P or HWC16N), border and size.
 * Everything in them is converted: a zero between pixels becomes the zero point, and the zero point
 * becomes a zero. In the last int8x4 of a pixel, channels beyond the last one are zero points. */
#ifndef LACI_KERNEL_SPARSE_BYTES_H
#define LACI_KERNEL_SPARSE_BYTES_H

#include "kernel/pointwise/fake_quantize.h"
#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** The byte of a zero; 0 to 255. */
static inline int32_t laci_bytes_zero(const laci_fake_quantized *q) { return (int32_t)-q->low; }

/** n_image_blocks: images, or groups of 16. */
typedef struct laci_bytes_form {
  laci_sparse_layout floats, int8x4;
  int64_t channels, n_image_blocks;
  const laci_fake_quantized *q;
} laci_bytes_form;

/** The number of items of the work, which are independent of each other: int8x4 channels (CHW),
 * blocks of 16 pixels (PC16P), or pixels of 16 images (HWC16N). */
int64_t laci_bytes_items(const laci_bytes_form *f);

/** Items [first, last) of image blocks that follow each other in memory; any alignment of floats.
 */
typedef void laci_bytes_pack(const laci_bytes_form *f, const float *floats, float *int8x4,
                             int64_t first, int64_t last);
typedef void laci_bytes_unpack(const laci_bytes_form *f, const float *int8x4, float *floats,
                               int64_t first, int64_t last);

/** The sum of two values, in units of the result:
 *
 *     v = fma(b - b_zero, b_scale, (a - a_zero) * a_scale)
 *     y = clip(low, high, whole(v) + zero)
 *
 * rounded to the nearest, to even. The scales are those of the values over the result's. */
typedef struct laci_bytes_sum {
  float a_scale, b_scale;
  float a_zero, b_zero, zero, low, high; /* integers, 0 to 255 */
} laci_bytes_sum;

/** n places of four bytes, of any alignment of floats; y may be a or b. */
typedef void laci_bytes_add(const laci_bytes_sum *s, const float *a, const float *b, int64_t n,
                            float *y);

typedef struct laci_bytes_kernel {
  laci_bytes_pack *pack;
  laci_bytes_unpack *unpack;
  laci_bytes_add *add;
} laci_bytes_kernel;

#define LACI_BYTES_DECLARE(name, level) extern const laci_bytes_kernel laci_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_BYTES_DECLARE)
#undef LACI_BYTES_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
const laci_bytes_kernel *laci_bytes_now(void);

#endif

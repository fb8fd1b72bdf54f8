/* SPDX-License-Identifier: Apache-2.0
 * Converts tensors of floats to int8 (int8x4.h) and back, and adds two int8 tensors, or a constant
 * for each channel to one.
 *
 * The value of a byte follows from the scale and the bounds of the fake quantization of floats
 * (kernel/pointwise/fake_quantize.h): (byte + low) * scale, and a float x becomes the byte
 *
 *     clip(round(x / scale), low, high) - low
 *
 * so that unpacking what was packed gives the bits of the fake quantization.
 *
 * The layouts of floats and of int8x4 have the same format (CHW, PC16P or HWC16N), border and size.
 * Padding between pixels is converted like all else: a float zero becomes the zero point and back.
 * In the last int8x4 of a pixel, bytes beyond the last channel are the zero point. */
#ifndef LACI_KERNEL_SPARSE_BYTES_H
#define LACI_KERNEL_SPARSE_BYTES_H

#include "kernel/pointwise/fake_quantize.h"
#include "kernel/sparse/window.h"
#include "kernel/variants.h"

/** Returns the byte that represents 0 (the zero point), 0 to 255. */
static inline int32_t laci_bytes_zero_point(const laci_fake_quantized *q) {
  return (int32_t)-q->low;
}

/** A conversion between floats and int8x4: the two layouts and the quantization. */
typedef struct laci_bytes_form {
  laci_sparse_layout floats, int8x4;
  int64_t channels, n_image_blocks; /* number of channels of the floats; number of images, or of
                                       groups of 16 images in HWC16N */
  const laci_fake_quantized *q;
} laci_bytes_form;

/** Returns the number of work items, which are independent of each other. An item is an int8x4
 * channel (CHW), a block of 16 pixels (PC16P), or a pixel of 16 images (HWC16N). */
int64_t laci_bytes_n_items(const laci_bytes_form *f);

/** Convert items [first, last). Image blocks are contiguous in memory; the arrays need only the
 * alignment of floats. */
typedef void laci_bytes_pack(const laci_bytes_form *f, const float *floats, float *int8x4,
                             int64_t first, int64_t last);
typedef void laci_bytes_unpack(const laci_bytes_form *f, const float *int8x4, float *floats,
                               int64_t first, int64_t last);

/** The parameters of a sum y of two bytes a and b, computed in units of the result's scale:
 *
 *     v = fma(b - b_zero, b_scale, (a - a_zero) * a_scale)
 *     y = clip(low, high, whole(v) + zero)
 *
 * whole() rounds to the nearest integer, halves to even. a_scale and b_scale are the scales of a
 * and b divided by the scale of y. */
typedef struct laci_bytes_sum {
  float a_scale, b_scale;
  float a_zero, b_zero, zero, low, high; /* zero points of a, b and y, and the bounds of y:
                                            integers, 0 to 255 */
} laci_bytes_sum;

/** Adds n groups of four bytes. The arrays need only the alignment of floats; y may be a or b. */
typedef void laci_bytes_add(const laci_bytes_sum *s, const float *a, const float *b, int64_t n,
                            float *y);

/** The constants that are added to the channels of a tensor, and the quantization of the result:
 *
 *     y = clip(round(((x + low) * scale + by[channel]) / to->scale), to->low, to->high) - to->low
 *
 * with the scale and low of the operand. Each operation is rounded, as that of single operators. */
typedef struct laci_bytes_shift {
  const float *by; /* [channels, rounded up to a multiple of four] */
  const laci_fake_quantized *to;
} laci_bytes_shift;

enum { LACI_BYTES_PER_WORD = 4 };

/** Adds a constant to each channel, for items [first, last). Padding is computed like all else. y
 * may be x. */
typedef void laci_bytes_shift_items(const laci_bytes_form *f, const laci_bytes_shift *s,
                                    const float *x, float *y, int64_t first, int64_t last);

/** A gate: a factor for each channel of an image, as in squeeze and excitation. Factors are bytes,
 * too. The product y of two bytes, in units of the result's scale, is
 *
 *     v = (x - x_zero) * ((gate - gate_zero) * scale)
 *     y = clip(low, high, whole(v) + zero)
 *
 * scale is the product of both scales, divided by that of y. */
typedef struct laci_bytes_gate {
  const float *factors;      /* the bytes of all gates */
  laci_sparse_layout layout; /* layout of the gates: an image of one pixel, in int8x4 */
  float scale;
  float x_zero, gate_zero, zero, low,
      high; /* zero points, and the bounds of y: integers, 0 to 255 */
} laci_bytes_gate;

/** Multiplies items [first, last) by their gates. Padding is computed like all else: it is the zero
 * point of y where it is that of x. y may be x. */
typedef void laci_bytes_multiply_items(const laci_bytes_form *f, const laci_bytes_gate *g,
                                       const float *x, float *y, int64_t first, int64_t last);

typedef struct laci_bytes_kernel {
  laci_bytes_pack *pack;
  laci_bytes_unpack *unpack;
  laci_bytes_add *add;
  laci_bytes_shift_items *shift;
  laci_bytes_multiply_items *multiply;
} laci_bytes_kernel;

#define LACI_BYTES_DECLARE(name, level) extern const laci_bytes_kernel laci_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_BYTES_DECLARE)
#undef LACI_BYTES_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
const laci_bytes_kernel *laci_bytes_variant(void);

#endif

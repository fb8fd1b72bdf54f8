/* SPDX-License-Identifier: Apache-2.0
 * Which layout every value of the native layers has, and how it is read. Next: tensors.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H
#define LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H

#include "engine/cpu/native/layer.h"

typedef struct laci_window laci_window;

/* ---- window.c ---- */

/** The window of a convolution or pool over values of three or four axes. */
laci_sparse_window laci_native_window_over(const laci_shape *x, const laci_shape *y,
                                           const laci_window *w);
/** The same of a 1x1 convolution without stride. */
laci_sparse_window laci_native_window_of_pixels(int64_t channels_in, int64_t channels_out,
                                                int64_t h, int64_t w);
/** Is it a 1x1 window that reads no padding? */
bool laci_native_is_pixel(const laci_sparse_window *g);
/** Is it a depthwise convolution that kernel/sparse/depthwise.h can compute? */
bool laci_native_is_depthwise(const laci_sparse_window *g);

/* ---- tensors.c ---- */

/** The values in the plan's native layouts, where they are not int8x4: f32, or bf16 pairs, which
 * take the place of one float. */
static inline laci_sparse_values laci_native_values(const laci_net *net) {
  return net->plan.bf16 ? LACI_SPARSE_BF16 : LACI_SPARSE_F32;
}
/** Are SIMD lanes images, 16 at a time (HWC16N)? Otherwise lanes are pixels. */
bool laci_native_by_images(int64_t n_images);
/** How many image blocks n images are: as many, or groups of 16 in HWC16N. */
int64_t laci_native_image_blocks(const laci_sparse_layout *layout, int64_t n_images);

/* ---- assign.c ---- */

/** Assigns a layout to every value that chosen layers write or add, or read as it is stored. */
void laci_native_lay_out(laci_net *net);
const laci_sparse_layout *laci_native_memory_at(const laci_net *net, int value);
/** The layout of the input that a chosen layer's kernel reads. */
laci_sparse_layout laci_native_layer_in(const laci_net *net, const laci_native_layer *layer);

/** Has the value a layout: does a chosen layer write or add it, or read it as it is stored? */
bool laci_native_has_place(const laci_net *net, int value);
/** Does a chosen int8 layer read it? */
bool laci_native_place_wants_bytes(const laci_net *net, int value);
/** The layout of such a value: of floats or bf16, or of int8 with the scale of `bytes`. */
laci_native_layout laci_native_layout_at(const laci_net *net, int value,
                                         const laci_fake_quantized *bytes);

/* ---- read.c ---- */

/** The value as a tensor that native reorders can read, and its layout. Declines where there is
 * none. */
int laci_native_source(laci_net *net, int value, bool rows, laci_sparse_layout *layout);
/** The value in that layout: as it is, an existing copy, or a new one, made by a reorder. */
int laci_native_read_as(laci_net *net, int value, const laci_native_layout *native);
/** A copy of the rows and pixels that the layer's 1x1 window with stride reads. */
int laci_native_read_subsampled(laci_net *net, const laci_native_layer *layer,
                                const laci_native_layout *native);

/** The tensors of a chosen layer, in the layouts that it reads, and a new one for its result. */
laci_native_tensors laci_native_take_tensors(laci_net *net, const laci_native_layer *layer);
/** The operands of the kernel: where the tensors are, once memory is placed, and what follows the
 * layer's sums. The weight is not set. */
laci_sparse_operands laci_native_operands_of(const laci_net *net, const laci_native_layer *layer,
                                             const laci_native_tensors *tensors);

/** In training under masks, values between native layers stay in HWC16N. May this value be in it?
 * It needs four axes, a multiple of 16 images, an even number of channels in bf16, and a plan with
 * such layers. */
bool laci_native_may_be_images(const laci_net *net, int value);
/** The kernels for what is between such layers: of f32, or of bf16. */
const struct laci_image_norm *laci_native_images_kernel(const laci_net *net);
/** Is the value stored in HWC16N? */
bool laci_native_in_images(const laci_net *net, int value);
/** The HWC16N layout that it is to have: the assigned one, or one without padding. */
laci_native_layout laci_native_images(const laci_net *net, int value);
/** The value in HWC16N, with any padding: as it is, an existing copy, or a new one, made by a
 * reorder. */
int laci_native_read_images(laci_net *net, int value);

/* ---- norm.c ---- */

/** Can a reorder into a native layout do this batch normalization? It must be by constants, of f32,
 * of three or four axes, and followed by nothing but a Relu. */
bool laci_native_is_norm(laci_net *net, const laci_fused *fused);

#endif

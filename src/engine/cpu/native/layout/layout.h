/* SPDX-License-Identifier: Apache-2.0
 * Which layout every value of the native back end has, and who reads it how. Next: tensors.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H
#define LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H

#include "engine/cpu/native/layer.h"

typedef struct laci_window laci_window;

/* ---- window.c ---- */

/** A node's window over values of three or four axes. */
laci_sparse_window laci_native_window_over(const laci_shape *x, const laci_shape *y,
                                           const laci_window *w);
/** One of a pixel. */
laci_sparse_window laci_native_window_of_pixels(int64_t channels_in, int64_t channels_out,
                                                int64_t h, int64_t w);
/** A window of one pixel that reads nothing around a picture. */
bool laci_native_is_pixel(const laci_sparse_window *g);
/** Is each channel by itself, as kernel/sparse/depthwise.h does it? */
bool laci_native_is_depthwise(const laci_sparse_window *g);

/* ---- tensors.c ---- */

/** What shares a place in a plan's pictures, where these are no quads. */
static inline laci_sparse_values laci_native_values(const laci_net *net) {
  return net->plan.bf16 ? LACI_SPARSE_BF16 : LACI_SPARSE_F32;
}
/** Are so many images done sixteen at a time? Else lanes are pixels. */
bool laci_native_by_images(int64_t n_images);
/** Pictures of a layout that n images make: as many, or groups of sixteen. */
int64_t laci_native_image_blocks(const laci_sparse_layout *layout, int64_t n_images);

/* ---- assign.c ---- */

/** Gives every value that chosen layers write, add, or read without a reorder its layout. */
void laci_native_lay_out(laci_net *net);
const laci_sparse_layout *laci_native_memory_at(const laci_net *net, int value);
/** The layout that a chosen layer reads. */
laci_sparse_layout laci_native_layer_in(const laci_net *net, const laci_native_layer *layer);

/** Is the value one that a chosen layer writes, adds, or reads without a reorder? */
bool laci_native_has_place(const laci_net *net, int value);
/** Does a chosen layer of int8 read it? */
bool laci_native_place_wants_bytes(const laci_net *net, int value);
/** The pictures that such a value has: of floats, or of bytes that stand for this. */
laci_native_layout laci_native_layout_at(const laci_net *net, int value,
                                         const laci_fake_quantized *bytes);

/* ---- read.c ---- */

/** The value as a tensor that reorders of ours read, and its layout. Declines where there is none.
 */
int laci_native_source(laci_net *net, int value, bool rows, laci_sparse_layout *layout);
/** The value in that layout: as it is stored, found again, or by a reorder now. */
int laci_native_read_as(laci_net *net, int value, const laci_native_layout *native);
/** Of the layer's input those rows and pixels that its window stops at. */
int laci_native_read_subsampled(laci_net *net, const laci_native_layer *layer,
                                const laci_native_layout *native);

/** What a layer's step reads and writes; residual -1: none. */
typedef struct laci_native_tensors {
  int x, bias, residual, y;
} laci_native_tensors;
/** Those of a chosen layer, in the layout that it reads, and a new one for its result. */
laci_native_tensors laci_native_take_tensors(laci_net *net, const laci_native_layer *layer);
/** Where they are, after placing, and what follows the layer's sums; no weight. */
laci_sparse_operands laci_native_operands_of(const laci_net *net, const laci_native_layer *layer,
                                             const laci_native_tensors *tensors);

/** Between layers whose weights change, values stay images. May this one be: four axes of whole
 * groups of 16 images, channels that share places in whole, in a plan with such layers? */
bool laci_native_may_be_images(const laci_net *net, int value);
/** What is done between them: of floats, or of pairs. */
const struct laci_image_norm *laci_native_images_kernel(const laci_net *net);
/** Is it there as images? */
bool laci_native_in_images(const laci_net *net, int value);
/** The images that it is to become: as its place says, or without a border. */
laci_native_layout laci_native_images(const laci_net *net, int value);
/** The value as images, with any border: as it is stored, found again, or by a reorder now. */
int laci_native_read_images(laci_net *net, int value);

/* ---- norm.c ---- */

/** A batch normalization by constants that can be written as pictures: of f32, of a convolution's
 * axes, and nothing but a Relu behind it? */
bool laci_native_is_norm(laci_net *net, const laci_fused *fused);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Which layout every value of the native layers has, and how it is read. Read next: tensors.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H
#define LACI_ENGINE_CPU_NATIVE_LAYOUT_LAYOUT_H

#include "engine/cpu/native/layer.h"

typedef struct laci_window laci_window;

/* ---- window.c ---- */

/** Returns, in the form that native kernels read, the window w of a convolution or pool from values
 * of shape x to values of shape y, which have three or four axes. */
laci_sparse_window laci_native_make_window(const laci_shape *x, const laci_shape *y,
                                           const laci_window *w);
/** Returns the window of a 1x1 convolution without stride. */
laci_sparse_window laci_native_make_1x1_window(int64_t channels_in, int64_t channels_out, int64_t h,
                                               int64_t w);
/** Is this a 1x1 window that reads no padding? */
bool laci_native_is_1x1(const laci_sparse_window *g);
/** Is this the window of a depthwise convolution that kernel/sparse/depthwise.h can compute? */
bool laci_native_is_depthwise(const laci_sparse_window *g);

/* ---- tensors.c ---- */

/** Returns the type of the plan's native values other than int8: f32, or bf16 pairs, each of which
 * takes the place of one float. */
static inline laci_sparse_values laci_native_value_type(const laci_net *net) {
  return net->plan.bf16 ? LACI_SPARSE_BF16 : LACI_SPARSE_F32;
}
/** Are SIMD lanes images, 16 at a time (HWC16N), for this number of images? Otherwise lanes are
 * pixels. */
bool laci_native_has_image_lanes(int64_t n_images);
/** Returns the number of image blocks of n images in the layout: groups of 16 images in HWC16N,
 * else n. */
int64_t laci_native_image_blocks(const laci_sparse_layout *layout, int64_t n_images);

/* ---- assign.c ---- */

/** Assigns a native layout to every value that chosen layers write, add, or read as it is
 * stored. */
void laci_native_assign_layouts(laci_net *net);
const laci_sparse_layout *laci_native_assigned_layout(const laci_net *net, int value);
/** Returns the layout of the input that a chosen layer's kernel reads. */
laci_sparse_layout laci_native_input_layout(const laci_net *net, const laci_native_layer *layer);

/** Was a native layout assigned to the value, because a chosen layer writes it, adds it, or reads
 * it as it is stored? */
bool laci_native_has_assigned_layout(const laci_net *net, int value);
/** Does a chosen int8 layer read the value? */
bool laci_native_is_read_as_int8(const laci_net *net, int value);
/** Returns the layout that was assigned to a value: of floats or bf16 (bytes NULL), or of int8
 * with the scale of `bytes`. */
laci_native_layout laci_native_layout_of_value(const laci_net *net, int value,
                                               const laci_fake_quantized *bytes);

/* ---- read.c ---- */

/** Returns a tensor of the value that native reorders can read, and sets *layout to its layout. If
 * there is no such tensor, declines the node (laci_net_decline_node). */
int laci_native_read_for_reorder(laci_net *net, int value, bool rows, laci_sparse_layout *layout);
/** Returns a tensor of the value in the layout `native`: the value's own tensor, an existing copy,
 * or a new copy made by a reorder. */
int laci_native_read_in_layout(laci_net *net, int value, const laci_native_layout *native);
/** Returns a copy of the layer's input with only the rows and pixels that its strided 1x1 window
 * reads. */
int laci_native_read_subsampled(laci_net *net, const laci_native_layer *layer,
                                const laci_native_layout *native);

/** Returns the tensors of a chosen layer: the operands in the layouts that it reads, and a new
 * tensor for its result. */
laci_native_tensors laci_native_make_layer_tensors(laci_net *net, const laci_native_layer *layer);
/** Returns the operands of the layer's kernel: the addresses of the tensors, and what is computed
 * after the sums. The weight is not set. Call it only after the tensors' memory has been placed. */
laci_sparse_operands laci_native_kernel_operands(const laci_net *net,
                                                 const laci_native_layer *layer,
                                                 const laci_native_tensors *tensors);

/** May the value be stored in HWC16N? When the network is trained under masks, values between
 * native layers are. The value needs four axes, a multiple of 16 images, an even number of channels
 * in bf16, and a plan with trained native layers. */
bool laci_native_may_be_hwc16n(const laci_net *net, int value);
/** Returns the kernels of normalizations and sums in HWC16N, for f32 or bf16. */
const struct laci_image_norm *laci_native_hwc16n_kernels(const laci_net *net);
/** Is the value stored in HWC16N? */
bool laci_native_is_hwc16n(const laci_net *net, int value);
/** Returns the HWC16N layout that the value has to have: the assigned one, or one without
 * padding. */
laci_native_layout laci_native_hwc16n_layout(const laci_net *net, int value);
/** Returns a tensor of the value in HWC16N, with any padding: the value's own tensor, an existing
 * copy, or a new copy made by a reorder. */
int laci_native_read_as_hwc16n(laci_net *net, int value);

/* ---- rows.c ---- */

/** Returns the value whose rows are those of `value`, a matrix: the operand of a Reshape or
 * Transpose that keeps the last axis and the order of elements, or of a quantization that changes
 * nothing. -1: there is none. */
int laci_native_find_same_rows(const laci_cpu_plan *plan, int value);
/** Sets images[v] for each value v that a layer reads or writes as images of a convolution.
 * chosen_alone: only chosen layers count. */
void laci_native_mark_images(const laci_net *net, bool chosen_alone, bool *images);

/* ---- norm.c ---- */

/** Can a reorder into a native layout compute this batch normalization? Its parameters must be
 * constants, its values f32 of three or four axes, and nothing but a Relu may be fused after it. */
bool laci_native_reorder_can_normalize(laci_net *net, const laci_fused *fused);

#endif

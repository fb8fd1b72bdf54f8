/* SPDX-License-Identifier: Apache-2.0
 * Tensors in native layouts, those of kernel/sparse, which oneDNN does not know. In a bf16 plan,
 * pairs of channels take the place of one float (kernel/sparse/product.h). This is a level below
 * values.h: code that reads a value in oneDNN's layouts may meet such tensors. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYOUT_TENSORS_H
#define LACI_ENGINE_CPU_NATIVE_LAYOUT_TENSORS_H

#include "engine/cpu/net_in.h"
#include "kernel/sparse/window.h"

typedef struct laci_fake_quantized laci_fake_quantized;
typedef struct laci_sparse_reorder laci_sparse_reorder;
typedef struct laci_sparse_size laci_sparse_size;

struct laci_native_layout {
  laci_sparse_layout layout;
  bool rows; /* the tensor is a matrix with features along its last axis, stored as one image of one
                line */
  const laci_fake_quantized *bytes; /* scale and bounds of the values, which are int8x4
                                       (kernel/sparse/int8x4.h); NULL: the values are f32, or bf16
                                       pairs */
  laci_sparse_layout as_floats;     /* for int8x4: the layout that the same values would have as
                                       floats */
};

/** Returns the size that a value of this shape has in native layouts. rows: the value is a matrix;
 * else it is a convolution's value with three or four axes. A bf16 pair counts as one channel. */
laci_sparse_size laci_native_value_size(const laci_net *net, const laci_shape *shape, bool rows);
/** Returns how many of n_items work items, which move n_floats floats together, a thread takes at a
 * time: at least so many that they take longer than starting the threads. */
int64_t laci_native_items_per_task(int64_t n_items, int64_t n_floats);
/** Returns the size that a value of this shape has in the layout `native`; in a layout of int8x4,
 * four channels count as one. */
laci_sparse_size laci_native_size_in_layout(const laci_net *net, const laci_shape *shape,
                                            const laci_native_layout *native);

/** Adds a tensor of this shape in the layout `native`. over: a tensor of the same layout, whose
 * memory the new tensor takes over if nothing reads it any more; -1: none. Otherwise the new tensor
 * has memory in the arena. */
int laci_native_tensor_new(laci_net *net, const laci_shape *shape, const laci_native_layout *native,
                           int over);
/** Returns the tensor in the layout `native` whose field `content` is this number; -1: there is
 * none. */
int laci_native_find_tensor(const laci_net *net, int content, const laci_native_layout *native);
/** Sets *layout to the tensor's layout as native reorders describe it. The tensor may be in a
 * native layout, row-major, or in blocks of 16 channels; in a bf16 plan also with channels last,
 * where bf16 pairs are neighbours. Returns false for other layouts. */
bool laci_native_find_layout(laci_net *net, int tensor, bool rows, laci_sparse_layout *layout);
/** Returns the layout in which native values are copied for oneDNN: blocks of 16 channels, if its
 * kernels have vectors of 16 and the number of channels allows it; channels last, if it computes in
 * bf16; otherwise row-major. NULL after a failure. */
laci_layout *laci_native_dense_layout(laci_net *net, const laci_shape *shape, bool rows);
/** Adds a step that copies tensor `from` to tensor `to` in another layout, as `r` describes: all
 * pixels, or only every stride-th row and pixel. Elements are f32 (bf16 in a bf16 plan) or int8x4,
 * of the same type in both tensors. The step belongs to no node until the caller sets one. NULL
 * after a failure. */
laci_net_step *laci_native_add_reorder_step(laci_net *net, int from, int to,
                                            const laci_sparse_reorder *r);
/** Was the step added by laci_native_add_reorder_step, and does it belong to no node? */
bool laci_native_is_reorder(const laci_net_step *step);
/** Returns a copy, in a layout of oneDNN, of a tensor in a native layout: an existing copy, or a
 * new one, made by a step. */
int laci_native_copy_for_onednn(laci_net *net, int tensor);
/** Returns the 32-bit word that memory between pixels must hold: zero, or for int8x4 four bytes of
 * the zero point. */
uint32_t laci_native_border_value(const laci_native_layout *native);
/** Writes the word `with` to all of the tensor's memory that is not a pixel, with all threads. */
void laci_native_fill_border(const laci_net *net, const laci_sparse_layout *layout,
                             const laci_sparse_size *size, uint32_t with, float *values);

/* ---- int8x4.c ---- */

/** Adds a step that quantizes a tensor of floats to int8x4 in the layout `to`; returns the new
 * tensor. */
int laci_native_add_quantize_step(laci_net *net, int tensor, const laci_native_layout *to);
/** Adds a step that quantizes a row-major image of floats to int8x4 in the layout `to`
 * (laci_image_bytes_can_pack); returns the new tensor. floats: the tensor's layout. */
int laci_native_add_image_step(laci_net *net, int tensor, const laci_sparse_layout *floats,
                               const laci_native_layout *to);
/** Returns a copy in floats of an int8x4 tensor: an existing one, or a new one, made by a step.
 * Other tensors are returned unchanged. */
int laci_native_copy_as_floats(laci_net *net, int tensor);

#endif

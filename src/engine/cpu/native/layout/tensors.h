/* SPDX-License-Identifier: Apache-2.0
 * Tensors in layouts of kernel/sparse, which oneDNN does not know: pictures; in a plan of bf16, of
 * pairs of channels (kernel/sparse/product.h). Below values.h's
 * words, since whoever reads a value in a layout of oneDNN's may find pictures. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYOUT_TENSORS_H
#define LACI_ENGINE_CPU_NATIVE_LAYOUT_TENSORS_H

#include "engine/cpu/net_in.h"
#include "kernel/sparse/window.h"

typedef struct laci_fake_quantized laci_fake_quantized;
typedef struct laci_sparse_reorder laci_sparse_reorder;
typedef struct laci_sparse_size laci_sparse_size;

struct laci_native_layout {
  laci_sparse_layout layout;
  bool rows; /* the value is rows of features, the last axis: a picture of one line */
  const laci_fake_quantized
      *bytes;                   /* these are quads of channels (kernel/sparse/int8x4.h), and what
                                       their bytes stand for; NULL: floats, or pairs */
  laci_sparse_layout as_floats; /* of quads: where floats of the same pixels lie */
};

/** A value as pictures: rows, or three or four axes of a convolution. Pairs are channels. */
laci_sparse_size laci_native_size(const laci_net *net, const laci_shape *shape, bool rows);
/** The same; quads are channels where these pictures are of them. */
laci_sparse_size laci_native_size_of(const laci_net *net, const laci_shape *shape,
                                     const laci_native_layout *native);

/** A tensor for pictures of that shape: in the arena, or over the bytes of `over` (-1: none), which
 * lie alike, where it dies. */
int laci_native_tensor(laci_net *net, const laci_shape *shape, const laci_native_layout *native,
                       int over);
/** A tensor of that content as such pictures, or -1. */
int laci_native_find(const laci_net *net, int content, const laci_native_layout *native);
/** The layout of a tensor as pictures of that kind, which it may be, or be row-major or in blocks,
 * or, of bf16, with channels last, where pairs are together; false: it is none of these. */
bool laci_native_layout_of(laci_net *net, int tensor, bool rows, laci_sparse_layout *layout);
/** What such pictures become for oneDNN: in blocks where its kernels have vectors of 16 and
 * channels allow it, channels last where it computes in bf16, else row-major. NULL after a failure.
 */
laci_layout *laci_native_dense_layout(laci_net *net, const laci_shape *shape, bool rows);
/** A step that reorders all rows and pixels, or thins them, from floats to floats, or from quads to
 * quads. It is of no node until the caller says otherwise; NULL after a failure. */
laci_net_step *laci_native_reorder(laci_net *net, int from, int to, const laci_sparse_reorder *r);
/** The step is one of those, and of no node. */
bool laci_native_is_reorder(const laci_net_step *step);
/** Pictures in a layout of oneDNN's: found again, or by a step now. */
int laci_native_to_onednn(laci_net *net, int tensor);
/** What lies where no pixel is: zero, or of bytes what stands for it, four times. */
uint32_t laci_native_around(const laci_native_layout *native);
/** Puts that there, by all threads. */
void laci_native_fill_border(const laci_net *net, const laci_sparse_layout *layout,
                             const laci_sparse_size *size, uint32_t with, float *values);

/* ---- int8x4.c ---- */

/** The tensor's content, pictures of floats, as quads by a step now, whose layout is `to`'s. */
int laci_native_pack(laci_net *net, int tensor, const laci_native_layout *to);
/** A tensor of quads as floats: found again, or by a step now. Others as they are. */
int laci_native_to_floats(laci_net *net, int tensor);

#endif

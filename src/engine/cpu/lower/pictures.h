/* SPDX-License-Identifier: Apache-2.0
 * Tensors in layouts of kernel/sparse, which oneDNN does not know: pictures; in a plan of bf16, of
 * pairs of channels (kernel/sparse/product.h). Below values.h's
 * words, since whoever reads a value in a layout of oneDNN's may find pictures. */
#ifndef LACI_ENGINE_CPU_LOWER_PICTURES_H
#define LACI_ENGINE_CPU_LOWER_PICTURES_H

#include "engine/cpu/net_in.h"
#include "kernel/sparse/reorder.h"

struct laci_pictures {
  laci_sparse_layout layout;
  bool rows; /* the value is rows of features, the last axis: a picture of one line */
};

/** What shares a place in them. */
static inline laci_sparse_values laci_pictures_values(const laci_net *net) {
  return net->plan.bf16 ? LACI_SPARSE_BF16 : LACI_SPARSE_F32;
}

/** A value as pictures: rows, or three or four axes of a convolution. Pairs are channels. */
laci_sparse_size laci_pictures_size(const laci_net *net, const laci_shape *shape, bool rows);
/** Are so many images done sixteen at a time? Else lanes are pixels. */
bool laci_pictures_by_images(int64_t n_images);
/** Pictures of a layout that n images make: as many, or groups of sixteen. */
int64_t laci_pictures_count(const laci_sparse_layout *layout, int64_t n_images);

/** A tensor for pictures of that shape: in the arena, or over the bytes of `over` (-1: none), which
 * lie alike, where it dies. */
int laci_pictures_new(laci_net *net, const laci_shape *shape, const laci_pictures *pictures,
                      int over);
/** The layout of a tensor as pictures of that kind, which it may be, or be row-major or in blocks,
 * or, of bf16, with channels last, where pairs are together; false: it is none of these. */
bool laci_pictures_layout(laci_net *net, int tensor, bool rows, laci_sparse_layout *layout);
/** What such pictures become for oneDNN: in blocks where its kernels have vectors of 16 and
 * channels allow it, channels last where it computes in bf16, else row-major. NULL after a failure.
 */
laci_layout *laci_pictures_wanted(laci_net *net, const laci_shape *shape, bool rows);
/** A step that reorders all rows and pixels, or thins them. It is of no node until the caller says
 * otherwise; NULL after a failure. */
laci_net_step *laci_pictures_reorder(laci_net *net, int from, int to, const laci_sparse_reorder *r);
/** The step is one of those, and of no node. */
bool laci_pictures_is_reorder(const laci_net_step *step);
/** Pictures in a layout of oneDNN's: found again, or by a step now. */
int laci_pictures_read(laci_net *net, int tensor);
/** All that is no pixel, by all threads. */
void laci_pictures_zero_border(const laci_net *net, const laci_sparse_layout *layout,
                               const laci_sparse_size *size, float *pictures);
/** Are these pictures that laci_pictures_read gives in blocks of channels? */
bool laci_pictures_become_blocks(laci_net *net, int tensor);

#endif

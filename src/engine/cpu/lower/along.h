/* SPDX-License-Identifier: Apache-2.0
 * A pass computes a tensor in which one axis is longer or shorter: each result is a weighted sum of
 * a few numbers along that axis, or a copy of one (kernel/image/resample.h). Users: resample.c,
 * pad.c. */
#ifndef LACI_ENGINE_CPU_LOWER_ALONG_H
#define LACI_ENGINE_CPU_LOWER_ALONG_H

#include "engine/cpu/net_in.h"
#include "graph/resample.h"

/** The order in which a tensor's elements are stored, from the outermost axis to the innermost. If
 * block > 1, axis 1 is cut into blocks of `block` channels, which are innermost. */
typedef struct laci_order {
  int n, axis[LACI_MAX_RANK]; /* number of axes (n), and the axes from the outermost to the
                                 innermost */
  int64_t block;              /* number of channels in a block; 1: axis 1 is not cut */
} laci_order;

/** Returns a tensor of floats with the content of `tensor`, and its order *o: the tensor itself, or
 * a row-major copy. channels: true if a pass along axis 1 will follow, for which this axis must not
 * be in blocks. */
int laci_axis_pass_read_tensor(laci_net *net, int tensor, bool channels, laci_order *o);
/** Adds a step that resamples tensor `from`, whose order is *o, along `axis` (a pass). Returns the
 * tensor of the result, which has the same order. */
int laci_axis_pass_add(laci_net *net, const laci_node *node, int from, const laci_order *o,
                       int axis, const laci_resample_taps *taps);
/** Adds a step that repeats the elements of tensor `from` along `axis` until the axis has `size`
 * elements; returns the tensor of the result. */
int laci_axis_pass_add_repeat(laci_net *net, const laci_node *node, int from, const laci_order *o,
                              int axis, int64_t size);

#endif

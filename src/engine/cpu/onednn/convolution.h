/* SPDX-License-Identifier: Apache-2.0
 * What the files of convolutions and pools share: windows, groups, and whether values are in blocks
 * of channels. */
#ifndef LACI_ENGINE_CPU_ONEDNN_CONVOLUTION_H
#define LACI_ENGINE_CPU_ONEDNN_CONVOLUTION_H

#include "engine/cpu/net_in.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- convolution_window.c ---- */

/** Fills the window from the node's attributes. The end pads follow from the output's size, which
 * shape inference has found (ceil_mode and auto_pad included). False: oneDNN does not support the
 * window. */
bool laci_conv_read_window(const laci_node *node, const laci_shape *x, const laci_shape *y,
                           const int64_t *kernel, laci_window *window);
/** Returns the shape [g, out / g, in / g, kernel] of the weight if there are several groups; with
 * one group, the shape `weight`. */
laci_shape laci_conv_grouped_shape(const laci_shape *weight, int64_t groups);
/** Can Winograd's algorithm compute the convolution? It needs f32, one group, a 3x3 window of
 * stride 1 without dilation, numbers of channels that are multiples of a block, and a result that
 * is not too small. It takes 2.25 (tiles of 2x2) to 4 times (4x4) fewer products. */
bool laci_conv_can_use_winograd(const laci_net *net, const laci_shape *x, const laci_shape *y,
                                int64_t groups, const laci_window *window);
/** Can x and y be in blocks of channels? Each group must have one channel (depthwise), or a
 * multiple of a block. */
bool laci_conv_can_use_blocks(const laci_shape *x, const laci_shape *y, int64_t groups);

/** Are x, y and the window one pixel wide, without pads along the width? oneDNN's kernels compute
 * many pixels of a row at a time. So such a layer is computed with height and width exchanged,
 * which moves no byte. */
bool laci_conv_is_one_pixel_wide(const laci_shape *x, const laci_shape *y,
                                 const laci_window *window);
/** Exchange height and width, the last two axes of a shape or of the window. */
void laci_conv_exchange_shape_axes(laci_shape *shape);
void laci_conv_exchange_window_axes(laci_window *window);
/** Returns a view of the tensor, one pixel wide or high, with height and width exchanged. */
int laci_conv_exchange_tensor_axes(laci_net *net, int tensor);

bool laci_is_constant_of_floats(const laci_net *net, int value);
/** Is it a convolution with constant weights and a window that oneDNN supports? */
laci_lower_supports laci_can_lower_conv_constant;

/* ---- convolution.c ---- */

laci_lower_function laci_lower_conv_dense;

/** A convolution of a tensor by constant weights. */
typedef struct laci_conv {
  laci_shape x, y;
  laci_shape weight; /* shape of the weights, with an axis for groups if there are several */
  int64_t groups;
  laci_window window;
  laci_element result; /* element type of the result */
  /* How it is computed: laci_conv_add_steps sets this field and those below. */
  bool has_bias;
  bool upright;   /* height and width are exchanged in all fields above, see
                     laci_conv_is_one_pixel_wide */
  bool widened;   /* x is the shape of a copy of the input that has zeros in each row instead of
                     pads */
  int64_t margin; /* if `widened`: zeros before each row of this copy */
} laci_conv;

/** The operands of a laci_conv. */
typedef struct laci_conv_operands {
  int x;                           /* index of the tensor of the input, which has the shape conv.x,
                                      in any layout */
  const laci_net_weight *constant; /* the weights, if they are constant; NULL: `weights` has them */
  int weights;                     /* index of the tensor of weights that change: floats of the
                                      shape conv.weight, row-major */
  int bias;                        /* index of the tensor of the bias; -1: none */
} laci_conv_operands;
/** Adds the steps of a convolution with the posts of the fused node; returns the result's tensor,
 * in a layout that oneDNN chooses. */
int laci_conv_add_steps(laci_net *net, const laci_fused *whole, const laci_conv *conv,
                        const laci_conv_operands *operands);
/** Returns the weights multiplied by the fused scale, with the axes of `shape`. */
laci_net_weight laci_conv_weight(const laci_net *net, const laci_fused *fused,
                                 const laci_shape *shape);
/** Returns scale * bias + shift as a weight tensor; -1 where there is neither bias nor shift. */
int laci_conv_bias(laci_net *net, const laci_fused *fused);
/** Would Winograd's algorithm be used, if the network's values are in blocks? */
bool laci_conv_is_winograd_faster(const laci_net *net, const laci_fused *fused);

/** Decides net->blocks, from shapes and the processor's instructions only, so that a plan is the
 * same every time.
 */
void laci_conv_choose_blocked_layout(laci_net *net);

/* ---- Weights that change ---- */

/** Convolutions of training, whose weights change, by oneDNN. convolution_train.c */
laci_lower_supports laci_can_lower_conv_values;
laci_lower_function laci_lower_conv_values;

#endif

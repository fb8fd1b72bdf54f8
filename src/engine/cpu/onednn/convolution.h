/* SPDX-License-Identifier: Apache-2.0
 * What the files of convolutions and pools share: windows, groups, and when values are in blocks of
 * channels. */
#ifndef LACI_ENGINE_CPU_ONEDNN_CONVOLUTION_H
#define LACI_ENGINE_CPU_ONEDNN_CONVOLUTION_H

#include "engine/cpu/net_in.h"

typedef struct laci_window laci_window;

/* ---- convolution_window.c ---- */

/** Kernel, strides, dilations and pads from the attributes; the end pads follow from the output's
 * size, which the operator's shape rule has found (ceil_mode and auto_pad included). False: not a
 * window that oneDNN takes. */
bool laci_conv_window(const laci_node *node, const laci_shape *x, const laci_shape *y,
                      const int64_t *kernel, laci_window *window);
/** [g, out / g, in / g, kernel] where there are groups. */
laci_shape laci_conv_grouped(const laci_shape *weight, int64_t groups);
/** 3x3, stride 1, channels a multiple of a block: Winograd's algorithm needs 2.25 (tiles of 2x2) to
 * 4 (4x4) times fewer products. */
bool laci_conv_allows_winograd(const laci_net *net, const laci_shape *x, const laci_shape *y,
                               int64_t groups, const laci_window *window);
/** Groups that blocks do not cut: depthwise ones, or groups of a multiple of a block. */
bool laci_conv_allows_blocks(const laci_shape *x, const laci_shape *y, int64_t groups);

/** Constant weights, and such a window? */
laci_lower_supports laci_conv_constant_fits;

/* ---- convolution.c ---- */

laci_lower_function laci_conv_dense;
/** The weights with the fused scale in them, cut into axes as `shape` says. */
laci_net_weight laci_conv_weight(const laci_net *net, const laci_fused *fused,
                                 const laci_shape *shape);
/** scale * bias + shift as a weight; -1 where there is neither bias nor shift. */
int laci_conv_bias(laci_net *net, const laci_fused *fused);
/** Would Winograd's algorithm be used, if the network is in blocks? */
bool laci_conv_gains_by_winograd(const laci_net *net, const laci_fused *fused);

/** Decides net->blocks: from shapes and instructions alone, so that a plan is the same every time.
 */
void laci_conv_choose_blocks(laci_net *net);

/* ---- Weights that change ---- */

/** Convolutions while training, by oneDNN. convolution_train.c */
laci_lower_supports laci_conv_values_fit;
laci_lower_function laci_conv_values;

#endif

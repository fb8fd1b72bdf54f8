/* SPDX-License-Identifier: Apache-2.0
 * Makes the windows of native layers, from the windows of nodes or as 1x1 windows. They have one
 * group and f32 values. */
#include "kernel/sparse/depthwise.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/onednn/onednn.h"

laci_sparse_window laci_native_make_window(const laci_shape *x, const laci_shape *y,
                                           const laci_window *w) {
  const bool two_d = x->rank == 4;
  const int last = x->rank - 3;
  return (laci_sparse_window){.channels_in = x->dims[1],
                              .channels_out = y->dims[1],
                              .groups = 1,
                              .h = two_d ? x->dims[2] : 1,
                              .w = x->dims[x->rank - 1],
                              .out_h = two_d ? y->dims[2] : 1,
                              .out_w = y->dims[y->rank - 1],
                              .kernel_h = two_d ? w->kernel[0] : 1,
                              .kernel_w = w->kernel[last],
                              .stride_h = two_d ? w->strides[0] : 1,
                              .stride_w = w->strides[last],
                              .dilation_h = two_d ? w->dilates[0] + 1 : 1,
                              .dilation_w = w->dilates[last] + 1,
                              .pad_top = two_d ? w->pads_begin[0] : 0,
                              .pad_left = w->pads_begin[last]};
}

laci_sparse_window laci_native_make_1x1_window(int64_t channels_in, int64_t channels_out, int64_t h,
                                               int64_t w) {
  return (laci_sparse_window){.channels_in = channels_in,
                              .channels_out = channels_out,
                              .groups = 1,
                              .h = h,
                              .w = w,
                              .out_h = h,
                              .out_w = w,
                              .kernel_h = 1,
                              .kernel_w = 1,
                              .stride_h = 1,
                              .stride_w = 1,
                              .dilation_h = 1,
                              .dilation_w = 1};
}

bool laci_native_is_1x1(const laci_sparse_window *g) {
  return g->kernel_h == 1 && g->kernel_w == 1 && g->pad_top == 0 && g->pad_left == 0 &&
         (g->out_h - 1) * g->stride_h < g->h && (g->out_w - 1) * g->stride_w < g->w;
}

bool laci_native_is_depthwise(const laci_sparse_window *g) { return laci_depthwise_can_compute(g); }

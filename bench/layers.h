/* SPDX-License-Identifier: Apache-2.0
 * The convolutions of ResNet-50 that stride by one, each kind once: what benches of single layers
 * run. */
#ifndef BENCH_LAYERS_H
#define BENCH_LAYERS_H

#include "kernel/sparse/window.h"

typedef struct layer {
  int64_t in, out, size, window;
} layer;

static const layer layers[] = {
    {64, 64, 56, 1},    {64, 256, 56, 1},   {256, 64, 56, 1},  {512, 128, 28, 1}, {128, 512, 28, 1},
    {1024, 256, 14, 1}, {256, 1024, 14, 1}, {2048, 512, 7, 1}, {512, 2048, 7, 1}, {64, 64, 56, 3},
    {128, 128, 28, 3},  {256, 256, 14, 3},  {512, 512, 7, 3},
};

static inline laci_sparse_window layer_window(const layer *l) {
  return (laci_sparse_window){.channels_in = l->in,
                              .channels_out = l->out,
                              .groups = 1,
                              .h = l->size,
                              .w = l->size,
                              .out_h = l->size,
                              .out_w = l->size,
                              .kernel_h = l->window,
                              .kernel_w = l->window,
                              .stride_h = 1,
                              .stride_w = 1,
                              .dilation_h = 1,
                              .dilation_w = 1,
                              .pad_top = l->window / 2,
                              .pad_left = l->window / 2};
}

#endif

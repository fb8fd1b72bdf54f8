/* SPDX-License-Identifier: Apache-2.0
 * Layers as calls: each adds nodes and stored tensors, and gives back the value that it made. After
 * a failure calls do nothing and return -1, so that a network reads like its description and is
 * checked once, at the end. */
#ifndef LACI_ARCH_BUILD_IN_H
#define LACI_ARCH_BUILD_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

enum { LACI_ARCH_OPSET = 17, LACI_ARCH_NAME = 96 };

typedef struct laci_arch_builder {
  laci_graph *graph;
  lac_status status;
  lac_error *err;
  uint64_t seed, stream; /* stream: of the next random tensor */
  bool fan_in;           /* what the variance of a convolution is counted by */
} laci_arch_builder;

typedef struct laci_arch_conv_spec {
  int in, out, kernel, stride, groups;
} laci_arch_conv_spec;

/** NAME.weight [out, in / groups, k, k], no bias, padding k / 2. */
int laci_arch_conv(laci_arch_builder *b, const char *name, int value, laci_arch_conv_spec spec);
/** NAME.weight .bias .running_mean .running_var [channels]; the scale is `gamma` everywhere. */
int laci_arch_norm(laci_arch_builder *b, const char *name, int value, int channels, float gamma);
/** NAME.weight [out, in], NAME.bias [out]; the result is called `output`. */
int laci_arch_linear(laci_arch_builder *b, const char *name, int value, int in, int out,
                     const char *output);
int laci_arch_relu(laci_arch_builder *b, const char *name, int value);
int laci_arch_add(laci_arch_builder *b, const char *name, int first, int second);
/** 3 x 3, stride 2, padding 1. */
int laci_arch_max_pool(laci_arch_builder *b, const char *name, int value);
/** Mean over height and width, then [N, channels]. */
int laci_arch_pool_flat(laci_arch_builder *b, const char *name, int value);
/** Every other pixel, and `zeros` channels of zeros before and after. */
int laci_arch_pad_shortcut(laci_arch_builder *b, const char *name, int value, int zeros);

/* weights.c */

/** Normal numbers of that standard deviation; numbers of a stream. */
void laci_arch_fill_normal(uint64_t seed, uint64_t stream, double deviation, float *to, size_t n);
/** Uniform in [-bound, bound). */
void laci_arch_fill_uniform(uint64_t seed, uint64_t stream, double bound, float *to, size_t n);

#endif

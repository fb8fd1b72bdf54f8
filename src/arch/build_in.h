/* SPDX-License-Identifier: Apache-2.0
 * Functions that add layers: each adds nodes and stored tensors, and returns the index of the
 * layer's output value. After a failure they do nothing and return -1, so that the code of a
 * network needs only one check, at the end. */
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
  uint64_t seed, stream; /* seed of the network; number of the random stream for the next tensor */
  bool fan_in;           /* the variance of convolutions is 2 / fan in; else 2 / fan out */
} laci_arch_builder;

typedef struct laci_arch_conv_spec {
  int in, out, kernel, stride, groups;
} laci_arch_conv_spec;

/** Adds a convolution: NAME.weight [out, in / groups, k, k], no bias, padding k / 2. */
int laci_arch_add_conv(laci_arch_builder *b, const char *name, int value, laci_arch_conv_spec spec);
/** Adds a batch normalization: NAME.weight .bias .running_mean .running_var [channels]; all scales
 * are `gamma`. */
int laci_arch_add_norm(laci_arch_builder *b, const char *name, int value, int channels,
                       float gamma);
/** Adds a linear layer: NAME.weight [out, in], NAME.bias [out]; its result is called `output`. */
int laci_arch_add_linear(laci_arch_builder *b, const char *name, int value, int in, int out,
                         const char *output);
int laci_arch_add_relu(laci_arch_builder *b, const char *name, int value);
int laci_arch_add_sum(laci_arch_builder *b, const char *name, int first, int second);
/** Adds a max pooling: 3 x 3, stride 2, padding 1. */
int laci_arch_add_max_pool(laci_arch_builder *b, const char *name, int value);
/** Adds a mean over height and width, reshaped to [N, channels]. */
int laci_arch_add_global_pool(laci_arch_builder *b, const char *name, int value);
/** Adds a shortcut: every other pixel, with `zeros` channels of zeros before and after the
 * channels. */
int laci_arch_add_pad_shortcut(laci_arch_builder *b, const char *name, int value, int zeros);

/* ---- Functions of weights.c ---- */

/** Fills an array with normal random numbers of this standard deviation, from one random stream. */
void laci_arch_fill_normal(uint64_t seed, uint64_t stream, double deviation, float *to, size_t n);
/** Fills an array with random numbers uniform in [-bound, bound). */
void laci_arch_fill_uniform(uint64_t seed, uint64_t stream, double bound, float *to, size_t n);

#endif

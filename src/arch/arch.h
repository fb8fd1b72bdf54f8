/* SPDX-License-Identifier: Apache-2.0
 * The networks that we train, as graphs with fresh weights: the same kind of graph that an ONNX
 * file becomes, BatchNormalization kept apart, names as PyTorch's model zoo has them.
 *
 * A network is a row of arch.c's table: a stem, four (or three) stages of blocks, pooling, a linear
 * layer. Next: arch.c, the table and the stages; build.c, a layer at a time; weights.c. */
#ifndef LACI_ARCH_ARCH_H
#define LACI_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

typedef struct laci_arch_options {
  const char *name;   /* as laci_arch_names lists them */
  int n_classes;      /* 0: 1000, or 10 for CIFAR and digits */
  int image_size;     /* pixels a side, 8..4096; 0: 224, 32 for CIFAR, 8 for digits */
  bool conv_shortcut; /* CIFAR: where the size changes, 1 x 1 convolution and BatchNormalization
                         instead of every other pixel and channels of zeros */
  uint64_t seed;      /* of the weights */
} laci_arch_options;

/** The names of all networks. */
const char *const *laci_arch_names(int *n);

/** A finished graph with inferred shapes: input "image" [N, C, size, size], N open, output "scores"
 * [N, classes], operators of opset 17. Convolutions are normal with variance 2 / fan (fan out for
 * ImageNet's and digits, fan in for CIFAR's), the linear layer uniform in +- 1 / sqrt(inputs),
 * scales 1, but 0 at the end of every block of ImageNet's networks, shifts 0, statistics 0 and 1.
 * The same bytes for the same options, on every machine but for the last bit of a logarithm. Fails
 * LAC_NOT_FOUND for another name, LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_arch_build(const laci_arch_options *options, laci_graph **graph,
                                          lac_error *err);

#endif

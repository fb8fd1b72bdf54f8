/* SPDX-License-Identifier: Apache-2.0
 * The networks that lac_network_create can make, as graphs with fresh weights. A graph is like one
 * read from an ONNX file, with BatchNormalization as separate nodes and the names of PyTorch's
 * model zoo.
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
  const char *name;   /* name of the network, one of laci_arch_names */
  int n_classes;      /* number of classes; 0: 1000, or 10 for CIFAR and digits */
  int image_size;     /* height and width of an image in pixels, 8..4096; 0: 224, 32 for CIFAR, 8
                         for digits */
  bool conv_shortcut; /* CIFAR networks, shortcuts where the size changes: 1 x 1 convolution and
                         BatchNormalization (true), or every other pixel and channels of zeros
                         (false) */
  uint64_t seed;      /* random seed of the initial weights */
} laci_arch_options;

/** Returns the names of all networks, *n of them; static strings. */
const char *const *laci_arch_names(int *n);

/** Builds a graph with inferred shapes: input "image" [N, C, size, size] with open N, output
 * "scores" [N, classes], operators of opset 17. Initial weights: convolutions are normal with
 * variance 2 / fan (fan out for ImageNet networks and digits, fan in for CIFAR networks); the
 * linear layer is uniform in +- 1 / sqrt(inputs); normalizations have scale 1 (0 for the last one
 * of every block of ImageNet networks), shift 0, mean 0 and variance 1. The same options give the
 * same bytes on every machine, up to the last bit of a logarithm. Fails LAC_NOT_FOUND for another
 * name, LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_arch_build(const laci_arch_options *options, laci_graph **graph,
                                          lac_error *err);

#endif

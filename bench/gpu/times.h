/* SPDX-License-Identifier: Apache-2.0
 * Layers on a GPU, dense by cuBLASLt against 2:4 by cuSPARSELt. */
#ifndef BENCH_GPU_TIMES_H
#define BENCH_GPU_TIMES_H

#include <cublasLt.h>

#include "gpu/ask.h"

/** A layer as a product of matrices. */
typedef struct gpu_layer {
  const char *network, *name;
  int64_t in, out, columns; /* columns: pixels or tokens of one input */
} gpu_layer;

extern const gpu_layer gpu_layers[];
extern const int n_gpu_layers;

typedef enum gpu_outcome {
  GPU_MEASURED,
  GPU_SIZE_REFUSED, /* by cuSPARSELt */
  GPU_DIFFERS,      /* the products differ: one of them is wrong */
} gpu_outcome;

typedef struct gpu_times {
  gpu_outcome outcome;
  int64_t columns;                    /* of `inputs` inputs, up to the next multiple of 32 */
  double dense_us, sparse_us;         /* medians of rounds, the two alternating */
  double gain, least_gain, most_gain; /* of the rounds: median, worst, best */
} gpu_times;

/** Weights and activations are small integers, so that dense and sparse give the same bits. Dense
 * is the fastest of cuBLASLt's proposals, sparse what cuSPARSELt's own search finds. */
gpu_times gpu_measure(cublasLtHandle_t dense, const cusparseLtHandle_t *sparse, lac_dtype type,
                      const gpu_layer *layer, int64_t inputs);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Memory of a GPU, and the end of the program where something there fails. */
#ifndef BENCH_GPU_DEVICE_H
#define BENCH_GPU_DEVICE_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lacuna/dtype.h"

static inline void die(const char *what, const char *why) {
  (void)fprintf(stderr, "cusparselt_bench: %s: %s\n", what, why);
  exit(1);
}

static inline void must(cudaError_t found, const char *what) {
  if (found) die(what, cudaGetErrorString(found));
}

static inline void *device_memory(size_t size) {
  void *at = NULL;
  must(cudaMalloc(&at, size ? size : 1), "memory of the GPU");
  return at;
}

static inline void *to_device(const void *bytes, size_t size) {
  void *at = device_memory(size);
  must(cudaMemcpy(at, bytes, size, cudaMemcpyHostToDevice), "a copy to the GPU");
  return at;
}

static inline cudaDataType device_type(lac_dtype type) {
  switch (type) {
    case LAC_DTYPE_F16: return CUDA_R_16F;
    case LAC_DTYPE_BF16: return CUDA_R_16BF;
    case LAC_DTYPE_I8: return CUDA_R_8I;
    default: return CUDA_R_32F;
  }
}

#endif

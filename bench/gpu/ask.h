/* SPDX-License-Identifier: Apache-2.0
 * What NVIDIA cuSPARSELt says of a matrix. */
#ifndef BENCH_GPU_ASK_H
#define BENCH_GPU_ASK_H

#include <cusparseLt.h>

#include "gpu/matrix.h"

typedef enum gpu_answer {
  GPU_TAKES,
  GPU_REFUSES_MASK, /* cusparseLtSpMMAPruneCheck: not the pattern */
  GPU_REFUSES_SIZE, /* no descriptor or no plan for a product of this size */
} gpu_answer;

extern const char *const gpu_answer_names[];

/** Asks about the mask of a matrix as it is stored. */
gpu_answer ask_mask(const cusparseLtHandle_t *handle, const matrix *m);

/** Asks for a plan of [out, in] times [in, columns]; elements are not looked at. */
gpu_answer ask_size(const cusparseLtHandle_t *handle, lac_dtype type, int64_t out, int64_t in,
                    int64_t columns);

/** A product as networks have it: weight [out, in] times activations [columns, in], transposed;
 * the result is [columns, out]. False where the library refuses the sizes. Destroy the plan and
 * its selection. */
typedef struct gpu_product {
  cusparseLtMatDescriptor_t weight, input, output;
  cusparseLtMatmulDescriptor_t product;
  cusparseLtMatmulAlgSelection_t selection;
  cusparseLtMatmulPlan_t plan;
} gpu_product;

bool gpu_product_init(const cusparseLtHandle_t *handle, lac_dtype type, int64_t out, int64_t in,
                      int64_t columns, gpu_product *p);
void gpu_product_destroy(gpu_product *p);

#endif

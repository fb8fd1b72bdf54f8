/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/ask.h"

#include "gpu/device.h"

enum { ALIGNMENT = 16 };

const char *const gpu_answer_names[] = {"takes it", "refuses the mask", "refuses the size"};

gpu_answer ask_mask(const cusparseLtHandle_t *handle, const matrix *m) {
  cusparseLtMatDescriptor_t weight;
  const cusparseOrder_t order = m->by_input ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW;
  const cusparseOperation_t op = CUSPARSE_OPERATION_NON_TRANSPOSE;
  if (cusparseLtStructuredDescriptorInit(handle, &weight, m->out, m->in, m->dims[1], ALIGNMENT,
                                         device_type(m->type), order,
                                         CUSPARSELT_SPARSITY_50_PERCENT))
    return GPU_REFUSES_SIZE;
  int wrong = 0; /* the library writes only where it finds a fault */
  int *at = to_device(&wrong, sizeof wrong);
  void *bytes = to_device(m->bytes, (size_t)(m->out * m->in) * lac_dtype_size(m->type));
  const cusparseStatus_t found =
      cusparseLtSpMMAPruneCheck2(handle, &weight, 1, op, bytes, at, NULL);
  if (found) die("cusparseLtSpMMAPruneCheck2", cusparseLtGetErrorString(found));
  must(cudaMemcpy(&wrong, at, sizeof wrong, cudaMemcpyDeviceToHost), "the answer");
  must(cudaFree(bytes), "memory");
  must(cudaFree(at), "memory");
  (void)cusparseLtMatDescriptorDestroy(&weight);
  return wrong ? GPU_REFUSES_MASK : GPU_TAKES;
}

static bool describe(const cusparseLtHandle_t *handle, lac_dtype type, int64_t out, int64_t in,
                     int64_t columns, gpu_product *p) {
  const cudaDataType of = device_type(type);
  const cusparseComputeType compute =
      type == LAC_DTYPE_I8 ? CUSPARSE_COMPUTE_32I : CUSPARSE_COMPUTE_32F;
  return !cusparseLtStructuredDescriptorInit(handle, &p->weight, in, out, in, ALIGNMENT, of,
                                             CUSPARSE_ORDER_COL, CUSPARSELT_SPARSITY_50_PERCENT) &&
         !cusparseLtDenseDescriptorInit(handle, &p->input, in, columns, in, ALIGNMENT, of,
                                        CUSPARSE_ORDER_COL) &&
         !cusparseLtDenseDescriptorInit(handle, &p->output, out, columns, out, ALIGNMENT, of,
                                        CUSPARSE_ORDER_COL) &&
         !cusparseLtMatmulDescriptorInit(handle, &p->product, CUSPARSE_OPERATION_TRANSPOSE,
                                         CUSPARSE_OPERATION_NON_TRANSPOSE, &p->weight, &p->input,
                                         &p->output, &p->output, compute) &&
         !cusparseLtMatmulAlgSelectionInit(handle, &p->selection, &p->product,
                                           CUSPARSELT_MATMUL_ALG_DEFAULT);
}

bool gpu_product_init(const cusparseLtHandle_t *handle, lac_dtype type, int64_t out, int64_t in,
                      int64_t columns, gpu_product *p) {
  return describe(handle, type, out, in, columns, p) &&
         !cusparseLtMatmulPlanInit(handle, &p->plan, &p->product, &p->selection);
}

void gpu_product_destroy(gpu_product *p) {
  (void)cusparseLtMatmulPlanDestroy(&p->plan);
  (void)cusparseLtMatmulAlgSelectionDestroy(&p->selection);
  (void)cusparseLtMatDescriptorDestroy(&p->weight);
  (void)cusparseLtMatDescriptorDestroy(&p->input);
  (void)cusparseLtMatDescriptorDestroy(&p->output);
}

gpu_answer ask_size(const cusparseLtHandle_t *handle, lac_dtype type, int64_t out, int64_t in,
                    int64_t columns) {
  gpu_product p;
  if (!gpu_product_init(handle, type, out, in, columns, &p)) return GPU_REFUSES_SIZE;
  gpu_product_destroy(&p);
  return GPU_TAKES;
}

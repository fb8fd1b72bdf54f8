/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/times.h"

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "gpu/device.h"
#include "tensor/buf.h"

enum { PROPOSALS = 16, ROUNDS = 9, MULTIPLE = 32 };
enum { WORKSPACE = 64 << 20 };
static const double ROUND_US = 4000; /* of each of the two in a round, about */

const gpu_layer gpu_layers[] = {
    {"ResNet-50", "layer1, conv1 of the first block", 64, 64, 3136},
    {"ResNet-50", "layer1, conv1", 256, 64, 3136},
    {"ResNet-50", "layer1, conv3", 64, 256, 3136},
    {"ResNet-50", "layer2, conv1 of the first block", 256, 128, 3136},
    {"ResNet-50", "layer2, downsample", 256, 512, 784},
    {"ResNet-50", "layer2, conv1", 512, 128, 784},
    {"ResNet-50", "layer2, conv3", 128, 512, 784},
    {"ResNet-50", "layer3, conv1 of the first block", 512, 256, 784},
    {"ResNet-50", "layer3, downsample", 512, 1024, 196},
    {"ResNet-50", "layer3, conv1", 1024, 256, 196},
    {"ResNet-50", "layer3, conv3", 256, 1024, 196},
    {"ResNet-50", "layer4, conv1 of the first block", 1024, 512, 196},
    {"ResNet-50", "layer4, downsample", 1024, 2048, 49},
    {"ResNet-50", "layer4, conv1", 2048, 512, 49},
    {"ResNet-50", "layer4, conv3", 512, 2048, 49},
    {"ViT-B/16", "query, key, value", 768, 2304, 197},
    {"ViT-B/16", "attention's output", 768, 768, 197},
    {"ViT-B/16", "MLP, first", 768, 3072, 197},
    {"ViT-B/16", "MLP, second", 3072, 768, 197},
};
const int n_gpu_layers = sizeof gpu_layers / sizeof *gpu_layers;

/* ---- Both products ---- */

typedef struct pair {
  lac_dtype type;
  int64_t out, in, columns;
  size_t output_bytes;
  void *weight, *input, *workspace, *out_dense, *out_sparse;
  /* dense */
  cublasLtHandle_t blas;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulAlgo_t algo;
  /* sparse */
  const cusparseLtHandle_t *lt;
  gpu_product kept;
  void *compressed, *sparse_workspace;
} pair;

typedef void run_fn(const pair *p);

static void blas_must(cublasStatus_t found, const char *what) {
  if (found) die(what, cublasLtGetStatusString(found));
}

static void lt_must(cusparseStatus_t found, const char *what) {
  if (found) die(what, cusparseLtGetErrorString(found));
}

static cublasStatus_t multiply_dense(const pair *p, const cublasLtMatmulAlgo_t *algo) {
  const float one = 1, none = 0;
  return cublasLtMatmul(p->blas, p->product, &one, p->weight, p->a, p->input, p->b, &none,
                        p->out_dense, p->d, p->out_dense, p->d, algo, p->workspace, WORKSPACE,
                        NULL);
}

static void run_dense(const pair *p) { blas_must(multiply_dense(p, &p->algo), "cublasLtMatmul"); }

static void run_sparse(const pair *p) {
  const float one = 1, none = 0;
  lt_must(cusparseLtMatmul(p->lt, &p->kept.plan, &one, p->compressed, p->input, &none,
                           p->out_sparse, p->out_sparse, p->sparse_workspace, NULL, 0),
          "cusparseLtMatmul");
}

/* ---- Time ---- */

static double time_us(run_fn *run, const pair *p, int times) {
  cudaEvent_t begin, end;
  float ms;
  must(cudaEventCreate(&begin), "an event");
  must(cudaEventCreate(&end), "an event");
  must(cudaEventRecord(begin, NULL), "an event");
  for (int i = 0; i < times; i++) run(p);
  must(cudaEventRecord(end, NULL), "an event");
  must(cudaEventSynchronize(end), "a product");
  must(cudaEventElapsedTime(&ms, begin, end), "a time");
  must(cudaEventDestroy(begin), "an event");
  must(cudaEventDestroy(end), "an event");
  return 1e3 * (double)ms / times;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int times_for(run_fn *run, const pair *p) {
  (void)time_us(run, p, 3);
  const double us = time_us(run, p, 5);
  return us * 10 > ROUND_US ? 10 : (int)(ROUND_US / us);
}

static void measure(const pair *p, gpu_times *t) {
  double dense[ROUNDS], sparse[ROUNDS], gain[ROUNDS];
  const int n_dense = times_for(run_dense, p), n_sparse = times_for(run_sparse, p);
  for (int r = 0; r < ROUNDS; r++) {
    dense[r] = time_us(run_dense, p, n_dense);
    sparse[r] = time_us(run_sparse, p, n_sparse);
    gain[r] = dense[r] / sparse[r];
  }
  qsort(dense, ROUNDS, sizeof *dense, by_value);
  qsort(sparse, ROUNDS, sizeof *sparse, by_value);
  qsort(gain, ROUNDS, sizeof *gain, by_value);
  t->dense_us = dense[ROUNDS / 2];
  t->sparse_us = sparse[ROUNDS / 2];
  t->gain = gain[ROUNDS / 2];
  t->least_gain = gain[0];
  t->most_gain = gain[ROUNDS - 1];
}

/* ---- Dense ---- */

static void choose_dense(pair *p) {
  cublasLtMatmulPreference_t wish;
  cublasLtMatmulHeuristicResult_t found[PROPOSALS];
  int n = 0;
  double best = 0;
  const uint64_t most = WORKSPACE;
  blas_must(cublasLtMatmulPreferenceCreate(&wish), "cuBLASLt's preference");
  blas_must(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &most, sizeof most),
            "cuBLASLt's workspace");
  blas_must(cublasLtMatmulAlgoGetHeuristic(p->blas, p->product, p->a, p->b, p->d, p->d, wish,
                                           PROPOSALS, found, &n),
            "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < n; i++) {
    if (found[i].state || multiply_dense(p, &found[i].algo)) continue;
    pair with = *p;
    with.algo = found[i].algo;
    (void)time_us(run_dense, &with, 3);
    const double us = time_us(run_dense, &with, 20);
    if (best > 0 && us >= best) continue;
    best = us;
    p->algo = found[i].algo;
  }
  if (!(best > 0)) die("cuBLASLt", "no algorithm");
  (void)cublasLtMatmulPreferenceDestroy(wish);
}

static void open_dense(pair *p) {
  const bool whole = p->type == LAC_DTYPE_I8;
  const cudaDataType of = device_type(p->type);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  blas_must(cublasLtMatmulDescCreate(&p->product, whole ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                     CUDA_R_32F),
            "a dense product");
  blas_must(cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                           sizeof transposed),
            "a dense product");
  blas_must(cublasLtMatrixLayoutCreate(&p->a, of, (uint64_t)p->in, (uint64_t)p->out, p->in),
            "a dense weight");
  blas_must(cublasLtMatrixLayoutCreate(&p->b, of, (uint64_t)p->in, (uint64_t)p->columns, p->in),
            "dense activations");
  blas_must(cublasLtMatrixLayoutCreate(&p->d, of, (uint64_t)p->out, (uint64_t)p->columns, p->out),
            "a dense result");
  choose_dense(p);
}

/* ---- Sparse ---- */

static void open_sparse(pair *p) {
  const float one = 1, none = 0;
  size_t size = 0, buffer_size = 0, workspace = 0;
  lt_must(cusparseLtSpMMACompressedSize(p->lt, &p->kept.plan, &size, &buffer_size),
          "cusparseLtSpMMACompressedSize");
  p->compressed = device_memory(size);
  void *buffer = device_memory(buffer_size);
  lt_must(cusparseLtSpMMACompress(p->lt, &p->kept.plan, p->weight, p->compressed, buffer, NULL),
          "cusparseLtSpMMACompress");
  must(cudaDeviceSynchronize(), "cusparseLtSpMMACompress");
  must(cudaFree(buffer), "memory");
  lt_must(cusparseLtMatmulSearch(p->lt, &p->kept.plan, &one, p->compressed, p->input, &none,
                                 p->out_sparse, p->out_sparse, NULL, NULL, 0),
          "cusparseLtMatmulSearch");
  lt_must(cusparseLtMatmulGetWorkspace(p->lt, &p->kept.plan, &workspace),
          "cusparseLtMatmulGetWorkspace");
  p->sparse_workspace = device_memory(workspace);
}

/* ---- One layer ---- */

static void *random_input(lac_dtype type, int64_t n) {
  const size_t size = lac_dtype_size(type);
  uint8_t *bytes = laci_alloc((size_t)n, size);
  if (!bytes) die("activations", "not enough memory");
  for (int64_t at = 0; at < n; at++) {
    const float x = (float)(int)(laci_rng_unit_interval(5, 1, (uint64_t)at) * 3) - 1;
    if (type == LAC_DTYPE_I8) bytes[at] = (uint8_t)(int8_t)x;
    else laci_write_f32(type, &x, 1, bytes + (size_t)at * size);
  }
  void *at = to_device(bytes, (size_t)n * size);
  laci_free(bytes);
  return at;
}

static bool same_results(const pair *p) {
  uint8_t *dense = malloc(p->output_bytes), *sparse = malloc(p->output_bytes);
  if (!dense || !sparse) die("results", "not enough memory");
  must(cudaMemset(p->out_dense, 0x55, p->output_bytes), "memory");
  must(cudaMemset(p->out_sparse, 0x2A, p->output_bytes), "memory");
  run_dense(p);
  run_sparse(p);
  must(cudaMemcpy(dense, p->out_dense, p->output_bytes, cudaMemcpyDeviceToHost), "results");
  must(cudaMemcpy(sparse, p->out_sparse, p->output_bytes, cudaMemcpyDeviceToHost), "results");
  const bool same = memcmp(dense, sparse, p->output_bytes) == 0;
  free(dense);
  free(sparse);
  return same;
}

static void close_pair(pair *p) {
  void *const memory[] = {p->weight,     p->input,      p->workspace,       p->out_dense,
                          p->out_sparse, p->compressed, p->sparse_workspace};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) must(cudaFree(memory[i]), "memory");
  (void)cublasLtMatrixLayoutDestroy(p->a);
  (void)cublasLtMatrixLayoutDestroy(p->b);
  (void)cublasLtMatrixLayoutDestroy(p->d);
  (void)cublasLtMatmulDescDestroy(p->product);
  gpu_product_destroy(&p->kept);
}

gpu_times gpu_measure(cublasLtHandle_t dense, const cusparseLtHandle_t *sparse, lac_dtype type,
                      const gpu_layer *layer, int64_t inputs) {
  const int64_t columns = (layer->columns * inputs + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
  const size_t size = lac_dtype_size(type);
  gpu_times t = {.columns = columns};
  pair p = {.type = type,
            .out = layer->out,
            .in = layer->in,
            .columns = columns,
            .output_bytes = (size_t)(layer->out * columns) * size,
            .blas = dense,
            .lt = sparse};
  if (!gpu_product_init(sparse, type, p.out, p.in, columns, &p.kept)) {
    t.outcome = GPU_SIZE_REFUSED;
    return t;
  }
  matrix weight = matrix_random(type, p.out, p.in, false, 7);
  p.weight = to_device(weight.bytes, (size_t)(p.out * p.in) * size);
  matrix_clear(&weight);
  p.input = random_input(type, p.in * columns);
  p.workspace = device_memory(WORKSPACE);
  p.out_dense = device_memory(p.output_bytes);
  p.out_sparse = device_memory(p.output_bytes);
  open_dense(&p);
  open_sparse(&p);
  if (same_results(&p)) measure(&p, &t);
  else t.outcome = GPU_DIFFERS;
  close_pair(&p);
  return t;
}

/* SPDX-License-Identifier: Apache-2.0
 * Gains of layers of ResNet-50 and ViT-B/16 by cuSPARSELt, as measured. Written by
 * bench/targets.py. */
#ifndef LACI_TARGET_LIST_CUSPARSELT_GAINS_H
#define LACI_TARGET_LIST_CUSPARSELT_GAINS_H

#include "target/target.h"

#define OF "a product for 32 inputs, NVIDIA H100 80GB HBM3"
static const laci_target_gain gains[] = {
    {"Conv", "f16", 1, 256, 64, 1.05, OF, "bench"},
    {"Conv", "bf16", 1, 256, 64, 0.94, OF, "bench"},
    {"Conv", "f16", 1, 64, 256, 1.11, OF, "bench"},
    {"Conv", "bf16", 1, 64, 256, 0.93, OF, "bench"},
    {"Conv", "i8", 1, 64, 256, 0.61, OF, "bench"},
    {"Conv", "f16", 1, 256, 128, 1.05, OF, "bench"},
    {"Conv", "bf16", 1, 256, 128, 0.94, OF, "bench"},
    {"Conv", "bf16", 1, 256, 512, 0.83, OF, "bench"},
    {"Gemm", "f16", 1, 768, 2304, 1.21, OF, "bench"},
    {"MatMul", "f16", 1, 768, 2304, 1.21, OF, "bench"},
    {"Gemm", "bf16", 1, 768, 2304, 1.01, OF, "bench"},
    {"MatMul", "bf16", 1, 768, 2304, 1.01, OF, "bench"},
    {"Gemm", "i8", 1, 768, 2304, 0.79, OF, "bench"},
    {"MatMul", "i8", 1, 768, 2304, 0.79, OF, "bench"},
    {"Gemm", "f16", 1, 768, 3072, 1.17, OF, "bench"},
    {"MatMul", "f16", 1, 768, 3072, 1.17, OF, "bench"},
    {"Gemm", "bf16", 1, 768, 3072, 1.06, OF, "bench"},
    {"MatMul", "bf16", 1, 768, 3072, 1.06, OF, "bench"},
    {"Gemm", "i8", 1, 768, 3072, 0.79, OF, "bench"},
    {"MatMul", "i8", 1, 768, 3072, 0.79, OF, "bench"},
    {"Gemm", "f16", 1, 3072, 768, 1.20, OF, "bench"},
    {"MatMul", "f16", 1, 3072, 768, 1.20, OF, "bench"},
    {"Gemm", "bf16", 1, 3072, 768, 0.82, OF, "bench"},
    {"MatMul", "bf16", 1, 3072, 768, 0.82, OF, "bench"},
    {"Gemm", "i8", 1, 3072, 768, 0.75, OF, "bench"},
    {"MatMul", "i8", 1, 3072, 768, 0.75, OF, "bench"},
};
#undef OF

#endif

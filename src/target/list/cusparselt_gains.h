/* SPDX-License-Identifier: Apache-2.0
 * Gains of layers of ResNet-50 and ViT-B/16 by cuSPARSELt, as measured. Written by
 * bench/targets.py. */
#ifndef LACI_TARGET_LIST_CUSPARSELT_GAINS_H
#define LACI_TARGET_LIST_CUSPARSELT_GAINS_H

#include "target/target.h"

#define WHERE "a product for 32 inputs, NVIDIA H100 80GB HBM3"
static const laci_target_gain gains[] = {
    {"Conv", "f16", 1, 256, 64, 1.05, WHERE, "bench"},
    {"Conv", "bf16", 1, 256, 64, 0.94, WHERE, "bench"},
    {"Conv", "f16", 1, 64, 256, 1.11, WHERE, "bench"},
    {"Conv", "bf16", 1, 64, 256, 0.93, WHERE, "bench"},
    {"Conv", "i8", 1, 64, 256, 0.61, WHERE, "bench"},
    {"Conv", "f16", 1, 256, 128, 1.05, WHERE, "bench"},
    {"Conv", "bf16", 1, 256, 128, 0.94, WHERE, "bench"},
    {"Conv", "bf16", 1, 256, 512, 0.83, WHERE, "bench"},
    {"Gemm", "f16", 1, 768, 2304, 1.21, WHERE, "bench"},
    {"MatMul", "f16", 1, 768, 2304, 1.21, WHERE, "bench"},
    {"Gemm", "bf16", 1, 768, 2304, 1.01, WHERE, "bench"},
    {"MatMul", "bf16", 1, 768, 2304, 1.01, WHERE, "bench"},
    {"Gemm", "i8", 1, 768, 2304, 0.79, WHERE, "bench"},
    {"MatMul", "i8", 1, 768, 2304, 0.79, WHERE, "bench"},
    {"Gemm", "f16", 1, 768, 3072, 1.17, WHERE, "bench"},
    {"MatMul", "f16", 1, 768, 3072, 1.17, WHERE, "bench"},
    {"Gemm", "bf16", 1, 768, 3072, 1.06, WHERE, "bench"},
    {"MatMul", "bf16", 1, 768, 3072, 1.06, WHERE, "bench"},
    {"Gemm", "i8", 1, 768, 3072, 0.79, WHERE, "bench"},
    {"MatMul", "i8", 1, 768, 3072, 0.79, WHERE, "bench"},
    {"Gemm", "f16", 1, 3072, 768, 1.20, WHERE, "bench"},
    {"MatMul", "f16", 1, 3072, 768, 1.20, WHERE, "bench"},
    {"Gemm", "bf16", 1, 3072, 768, 0.82, WHERE, "bench"},
    {"MatMul", "bf16", 1, 3072, 768, 0.82, WHERE, "bench"},
    {"Gemm", "i8", 1, 3072, 768, 0.75, WHERE, "bench"},
    {"MatMul", "i8", 1, 3072, 768, 0.75, WHERE, "bench"},
};
#undef WHERE

#endif

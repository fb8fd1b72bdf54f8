/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target TensorRT. It uses 2:4 along the input channels of convolutions and products,
 * for sparse Tensor Cores.
 *
 * The guide names convolution kernels [K, C, R, S] and fully connected weights, C a multiple of 4;
 * NVIDIA's own pruner and checker of ONNX files treats Conv, Gemm and MatMul of f32, f16 and bf16
 * in this form, also if their weight passes Cast, Transpose and QuantizeLinear. The builder times
 * dense and sparse kernels and keeps the faster one; a maintainer states the sizes from which the
 * sparse one is faster. */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"guide", "NVIDIA TensorRT Developer Guide", "Sparsity (Structured Sparsity)"},
    {"polygraphy", "NVIDIA/TensorRT", "tools/Polygraphy/polygraphy/tools/sparse.py"},
    {"3849", "NVIDIA/TensorRT issue 3849", "Only 3x3 conv can use 2:4 sparsity?"},
    {"4694", "NVIDIA/TensorRT issue 4694",
     "TensorRT 2:4 sparsity is not applied with Q/DQ quantization"},
    {"blog", "NVIDIA Technical Blog",
     "Accelerating Inference with Sparsity Using the NVIDIA Ampere Architecture and NVIDIA "
     "TensorRT"},
};

static const laci_target_rule rules[] = {
    {.ops = "Conv",
     .types = "f32 f16 bf16 i8",
     .pattern = {2, 4},
     .in_multiple = 4,
     .least_rank = 4, /* 4 is the rank of a convolution's weight [K, C, R, S] */
     .most_rank = 4,
     .other_rank = LACI_TARGET_UNSTATED,
     .groups = LACI_TARGET_UNSTATED,
     .pays_in = 257, /* the source says "C and K large enough (>256)"; a 3x3 window counts nine
                        times */
     .pays_out = 257,
     .source = "guide polygraphy 3849"},
    {.ops = "Gemm MatMul",
     .types = "f32 f16 bf16 i8",
     .pattern = {2, 4},
     .in_multiple = 4,
     .least_rank = 2,
     .most_rank = 2,
     .other_rank = LACI_TARGET_UNSTATED,
     .source = "guide polygraphy"},
};

const laci_target laci_target_tensorrt = {
    .title = "NVIDIA TensorRT",
    .needs = "the builder flag SPARSE_WEIGHTS, and FP16 or INT8",
    .unstated = "ConvTranspose",
    .remarks =
        "The builder times dense and sparse kernels and keeps the faster. An open issue (4694) "
        "finds "
        "no sparse kernels chosen with QuantizeLinear and DequantizeLinear (TensorRT 8.6). Whole "
        "networks: more than 30 % performance per watt over dense ones (blog).",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
};

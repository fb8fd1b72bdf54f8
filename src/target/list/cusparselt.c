/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target cuSPARSELt. It multiplies two matrices, one of which is 2:4 along the axis
 * that is summed over (1:2 for f32, which runs as TF32).
 *
 * The documentation gives the pattern for each type. The least sizes are those that PyTorch
 * requires of matrices before it passes them to cuSPARSELt; the library itself refused smaller
 * multiples when it was tried (bench). The weight of a 1x1 convolution is such a matrix as stored;
 * that of a larger window is not. The order of a matrix (row- or column-major) is a parameter. In
 * either order, the pattern is along the axis that is summed over. */
#include "target/list/cusparselt_gains.h"
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"types", "NVIDIA cuSPARSELt documentation", "cuSPARSELt Data Types, cusparseLtSparsity_t"},
    {"torch", "pytorch/pytorch",
     "torch/sparse/semi_structured.py, SparseSemiStructuredTensorCUSPARSELT"},
    {"19", "NVIDIA/CUDALibrarySamples issue 19",
     "cuSparseLT API makes it difficult to verify 2:4 format of the weight at model load time"},
    {"240", "NVIDIA/CUDALibrarySamples issue 240",
     "Does cuSPARSELt only support sparse matrix multiplication with 50% sparsity?"},
    {"bench", "Lacuna, bench/targets.py", "measured against cuBLASLt (bench/notes/targets.md)"},
};

static const laci_target_rule rules[] = {
    {.ops = "Gemm MatMul Conv",
     .types = "f16 bf16",
     .pattern = {2, 4},
     .in_multiple = 16,
     .out_multiple = 16,
     .most_positions = 1,
     .source = "types torch 19 bench"},
    {.ops = "Gemm MatMul Conv",
     .types = "i8",
     .pattern = {2, 4},
     .in_multiple = 32,
     .out_multiple = 32,
     .most_positions = 1,
     .source = "types torch 19 bench"},
    {.ops = "Gemm MatMul Conv",
     .types = "f32",
     .pattern = {1, 2},
     .in_multiple = 8,
     .out_multiple = 8,
     .most_positions = 1,
     .source = "types torch 19 bench"},
};

const laci_target laci_target_cusparselt = {
    .title = "NVIDIA cuSPARSELt",
    .needs = "a program that calls it for each product",
    .remarks =
        "Half of the elements are kept, no other share is known to it (240). Convolutions count "
        "where their kernel has one position and they have one group: their weight is a matrix as "
        "it is stored.",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
    LACI_TARGET_LIST(gains),
};

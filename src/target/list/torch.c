/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target PyTorch: torch.sparse.to_sparse_semi_structured on the weight of a Linear
 * layer.
 *
 * It takes 2-D CUDA tensors whose sizes are multiples of what the backend requires. Rows are output
 * channels and columns input channels, as in Linear. Gemm and MatMul of an ONNX file have the same
 * matrix, perhaps transposed; .t().contiguous() then gives the right layout. */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"code", "pytorch/pytorch", "torch/sparse/semi_structured.py, _DTYPE_SHAPE_CONSTRAINTS"},
    {"ao", "pytorch/ao", "torchao/sparsity/training/README.md"},
};

static const laci_target_rule rules[] = {
    {.by = "cuSPARSELt",
     .ops = "Gemm MatMul",
     .types = "f16 bf16",
     .pattern = {2, 4},
     .in_multiple = 16,
     .out_multiple = 16,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
    {.by = "cuSPARSELt",
     .ops = "Gemm MatMul",
     .types = "i8",
     .pattern = {2, 4},
     .in_multiple = 32,
     .out_multiple = 32,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
    {.by = "cuSPARSELt",
     .ops = "Gemm MatMul",
     .types = "f32",
     .pattern = {1, 2},
     .in_multiple = 8,
     .out_multiple = 8,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
    {.by = "CUTLASS",
     .ops = "Gemm MatMul",
     .types = "f16 bf16",
     .pattern = {2, 4},
     .in_multiple = 64,
     .out_multiple = 32,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
    {.by = "CUTLASS",
     .ops = "Gemm MatMul",
     .types = "i8",
     .pattern = {2, 4},
     .in_multiple = 128,
     .out_multiple = 16,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
    {.by = "CUTLASS",
     .ops = "Gemm MatMul",
     .types = "f32",
     .pattern = {1, 2},
     .in_multiple = 32,
     .out_multiple = 32,
     .least_rank = 2,
     .most_rank = 2,
     .source = "code"},
};

/* Speed-ups, as measured, of the two linear layers in the MLP of ViT-L. */
static const laci_target_gain gains[] = {
    {"Gemm", "f16", 1, 1024, 4096, 1.24, "a training step of 13008 rows, A100", "ao"},
    {"MatMul", "f16", 1, 1024, 4096, 1.24, "a training step of 13008 rows, A100", "ao"},
    {"Gemm", "f16", 1, 4096, 1024, 1.27, "a training step of 13008 rows, A100", "ao"},
    {"MatMul", "f16", 1, 4096, 1024, 1.27, "a training step of 13008 rows, A100", "ao"},
};

const laci_target laci_target_torch = {
    .title = "PyTorch, torch.sparse.to_sparse_semi_structured",
    .needs = "a GPU with sparse Tensor Cores, and the call for each Linear layer",
    .remarks =
        "Only 2-D tensors: convolutions stay dense. A weight runs in the type that it has: "
        "torch:f16 "
        "asks about a model that is stored in f32 and will be cast to f16.",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
    LACI_TARGET_LIST(gains),
};

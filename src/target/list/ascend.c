/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target Huawei Ascend: it uses 2:4 (called "4 choose 2" there) along the input
 * channels of int8 layers. It is enabled when a model is converted (ATC, sparsity=1).
 *
 * AMCT trains such models in f32 or f64 and quantizes them; the converter's pass requires int8
 * inputs and one group. Atlas A2 and A3 products and the 200I/500 A2 support it; the older Atlas
 * inference and training products and the 350 do not. */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"atc", "CANN, ATC tool guide", "the option sparsity"},
    {"amct", "CANN, AMCT user guide",
     "Sparsity Process (Workflow): layers that support 2:4 structured sparsity"},
    {"pass", "CANN, Graph Fusion Patterns", "ConvWeightCompressFusionPass"},
};

static const laci_target_rule rules[] = {
    {.ops = "Conv",
     .types = "i8 f32 f64",
     .pattern = {2, 4},
     .in_multiple = 4,
     .least_rank = 4,
     .most_rank = 4, /* 4 is the rank of a Conv2D's weight */
     .other_rank = LACI_TARGET_UNSTATED,
     .groups = LACI_TARGET_NO,
     .unshared = true,
     .source = "atc amct pass"},
    {.ops = "Gemm MatMul",
     .types = "i8 f32 f64",
     .pattern = {2, 4},
     .in_multiple = 4,
     .least_rank = 2,
     .most_rank = 2,
     .other_rank = LACI_TARGET_UNSTATED,
     .unshared = true,
     .source = "atc amct pass"},
};

const laci_target laci_target_ascend = {
    .title = "Huawei Ascend (Atlas A2, A3, 200I/500 A2)",
    .needs = "int8 inputs and weights (AMCT quantizes f32 ones), and ATC with sparsity=1",
    .unstated = "ConvTranspose",
    .remarks =
        "AMCT prunes deconvolutions, too, and the converter's pass does not name them. Larger "
        "multiples than the four of a block are not stated.",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
};

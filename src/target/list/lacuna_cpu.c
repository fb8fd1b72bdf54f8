/* SPDX-License-Identifier: Apache-2.0
 * Facts of this library's own engine as a target. It uses zeros anywhere in a constant weight, if
 * their share is large enough.
 *
 * engine/cpu/native/choose/find.c has the limits. cost.c in that folder has the estimate by which
 * the layers of a network are chosen together. So the gain of a single layer does not guarantee
 * that it is chosen. Figures are measured in f32 with one image, on one core of a Zen 5: dense is
 * the faster of oneDNN's direct and Winograd kernels. */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"layers", "this library", "src/engine/cpu/native/choose/find.c, algorithms/vector.c"},
    {"measured", "bench/notes/sparse-kernels.md", "Measured"},
    {"networks", "docs/explain/speed.md", "Pruned 2:4"},
};

static const laci_target_rule rules[] = {
    {.ops = "Conv",
     .types = "f32 f16 bf16 i8 u8",
     .least_zeros = 30,
     .least_rank = 3,
     .most_rank = 4,
     .in_multiple = 1,
     .out_multiple = 1,
     .groups = LACI_TARGET_YES,
     .source = "layers"},
    {.ops = "Gemm MatMul",
     .types = "f32 f16 bf16 i8 u8",
     .least_zeros = 30,
     .in_multiple = 1,
     .out_multiple = 1,
     .least_rank = 2,
     .most_rank = 2,
     .source = "layers"},
};

static const laci_target_gain gains[] = {
    {"Conv", "f32", 1, 64, 64, 1.63, "56 px", "measured"},
    {"Conv", "f32", 1, 64, 256, 1.61, "56 px", "measured"},
    {"Conv", "f32", 1, 256, 64, 1.74, "56 px", "measured"},
    {"Conv", "f32", 1, 512, 128, 1.77, "28 px", "measured"},
    {"Conv", "f32", 1, 128, 512, 1.73, "28 px", "measured"},
    {"Conv", "f32", 1, 1024, 256, 1.61, "14 px", "measured"},
    {"Conv", "f32", 1, 256, 1024, 1.67, "14 px", "measured"},
    {"Conv", "f32", 1, 2048, 512, 1.44, "7 px", "measured"},
    {"Conv", "f32", 1, 512, 2048, 1.47, "7 px", "measured"},
    {"Conv", "f32", 9, 64, 64, 0.88, "56 px, stride 1, against Winograd", "measured"},
    {"Conv", "f32", 9, 128, 128, 0.65, "28 px, stride 1, against Winograd", "measured"},
    {"Conv", "f32", 9, 256, 256, 0.96, "14 px, stride 1, against Winograd", "measured"},
    {"Conv", "f32", 9, 512, 512, 1.09, "7 px, stride 1, against Winograd", "measured"},
};

const laci_target laci_target_lacuna_cpu = {
    .title = "Lacuna's own engine, on x86-64 with AVX2 or AVX-512",
    .needs = "nothing: constant weights are looked at when a plan is made",
    .zero_points = true,
    .remarks =
        "Weights of quantized graphs run as floats. In bf16 a layer needs an even number of "
        "channels in "
        "each group. Layers are chosen together, with the reorders between them; whole networks "
        "gain "
        "0.98 to 1.75 times (networks).",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
    LACI_TARGET_LIST(gains),
};

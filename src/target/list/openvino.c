/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target OpenVINO. Its CPU plugin stores int8 weights of products without their zeros,
 * and decompresses them for AMX.
 *
 * It saves memory traffic, not multiplications, and needs no pattern: the share of zeros must be at
 * least the rate that the user sets (by default 1, which disables it). */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"property", "OpenVINO, C++ API",
     "Group Intel CPU specific properties: sparse_weights_decompression_rate"},
    {"code", "openvinotoolkit/openvino",
     "src/plugins/intel_cpu/src/nodes/fullyconnected.cpp, useSparseWeightsDecompression"},
};

static const laci_target_rule rules[] = {
    {.ops = "Gemm MatMul",
     .types = "i8",
     .in_multiple = 64,
     .out_multiple = 64,
     .least_rank = 2,
     .most_rank = 2,
     .source = "property code"},
};

const laci_target laci_target_openvino = {
    .title = "OpenVINO, sparse weights decompression",
    .needs =
        "a processor with AMX, inputs of u8 or i8, and CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE set "
        "to at "
        "most the layer's share of zeros",
    .remarks = "From which share on it pays is not stated.",
    LACI_TARGET_LIST(sources),
    LACI_TARGET_LIST(rules),
};

/* SPDX-License-Identifier: Apache-2.0
 * Facts of the target AMD Vitis AI, whose DPUs do not make use of zeros of single weights.
 *
 * The user guide has a table of pruning methods by DPU, and "fine-grained" is "N" (no) for DPUCZ,
 * DPUCV, DPUCV2 and DPUCA. The optimizer has a sparse pruner (half or three quarters of every 16
 * input channels), whose models run on "hardware for specified sparse computations" that no guide
 * names. The AI Engine-ML array itself multiplies by matrices with two zeros in every four
 * elements, in kernels that users write themselves. */
#include "target/target_in.h"

static const laci_target_source sources[] = {
    {"dpu", "AMD Vitis AI User Guide (UG1414)", "Pruning Methods Supported by the DPU"},
    {"pruner", "AMD Vitis AI Optimizer User Guide (UG1333) 3.0", "pytorch_nndct.SparsePruner"},
    {"aie", "AMD AI Engine-ML Kernel and Graph Programming Guide (UG1603)",
     "Sparse Matrix Multiplication"},
};

const laci_target laci_target_vitis = {
    .title = "AMD Vitis AI",
    .never = "no DPU of Vitis AI takes zeros of single weights, only channels that are left out",
    .never_source = "dpu",
    .remarks =
        "The optimizer's sparse pruner leaves a half or a quarter of every 16 input channels, for "
        "hardware that is not stated (pruner). AIE-ML multiplies by matrices with two zeros in "
        "every four elements (four bytes, of types of 8 bits and less) in custom kernels (aie). A "
        "2:4 mask is of that form, and nothing says that Vitis AI's compiler uses it.",
    LACI_TARGET_LIST(sources),
};

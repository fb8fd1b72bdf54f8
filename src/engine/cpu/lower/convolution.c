/* SPDX-License-Identifier: Apache-2.0
 * The list of implementations of convolutions. Next: onednn/convolution.c,
 * native/algorithms/generated.c, then onednn/convolution_train.c, for training. */
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_conv[] = {
    {"zeros left out, by our kernels", LACI_TAKES_SCALE | LACI_TAKES_FUNCTIONS | LACI_TAKES_SUM,
     laci_native_fits, laci_native_lower},
    {"constant weights, by oneDNN", LACI_TAKES_SCALE | LACI_TAKES_FUNCTIONS | LACI_TAKES_SUM,
     laci_conv_constant_fits, laci_conv_dense},
    {"winograd of bf16", LACI_TAKES_NOTHING, laci_conv_winograd_fits, laci_conv_winograd},
    {"weights that change, by oneDNN", LACI_TAKES_NOTHING, laci_conv_values_fit, laci_conv_values},
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0
 * The list of implementations of convolutions. Next: onednn/convolution.c,
 * native/algorithms/generated.c, then onednn/convolution_train.c, for training. */
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_conv[] = {
    {"zeros left out, by our kernels",
     LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM, laci_can_lower_native,
     laci_lower_native},
    {"constant weights, by oneDNN", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_can_lower_conv_constant, laci_lower_conv_dense},
    {"winograd of bf16", LACI_FUSIBLE_NOTHING, laci_can_lower_conv_winograd,
     laci_lower_conv_winograd},
    {"weights that change, by oneDNN", LACI_FUSIBLE_NOTHING, laci_can_lower_conv_values,
     laci_lower_conv_values},
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0
 * The lists of implementations of batch normalization. Next: batch_norm.c, native/train/norm.c. */
#include "engine/cpu/lower/batch_norm.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_batch_norm[] = {
    {"into a native layout", LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SINGLE_NODE,
     laci_can_lower_native_norm, laci_lower_native_norm},
    {"oneDNN's", LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SINGLE_NODE, laci_can_lower_norm_constant,
     laci_lower_norm_constant},
    {.name = NULL},
};
const laci_implementation laci_implementations_batch_norm_train[] = {
    {"over images", LACI_FUSIBLE_RELU | LACI_FUSIBLE_SINGLE_NODE, laci_can_lower_image_norm,
     laci_lower_image_norm},
    {"oneDNN's", LACI_FUSIBLE_RELU | LACI_FUSIBLE_SINGLE_NODE, NULL, laci_lower_norm_train},
    {.name = NULL},
};
const laci_implementation laci_implementations_batch_norm_train_grad[] = {
    {"over images", LACI_FUSIBLE_NOTHING, laci_can_lower_image_norm_gradient,
     laci_lower_image_norm_gradient},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, NULL, laci_lower_norm_train_gradient},
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0
 * The lists of implementations of batch normalization. Next: batch_norm.c, native/train/norm.c. */
#include "engine/cpu/lower/batch_norm.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_batch_norm[] = {
    {"into a native layout", LACI_TAKES_FUNCTIONS | LACI_TAKES_ONE, laci_native_norm_fits,
     laci_native_norm_lower},
    {"oneDNN's", LACI_TAKES_FUNCTIONS | LACI_TAKES_ONE, laci_norm_constant_fits,
     laci_norm_constant},
    {.name = NULL},
};
const laci_implementation laci_implementations_batch_norm_train[] = {
    {"over images", LACI_TAKES_RELU | LACI_TAKES_ONE, laci_image_norm_fits, laci_image_norm_lower},
    {"oneDNN's", LACI_TAKES_RELU | LACI_TAKES_ONE, NULL, laci_norm_train},
    {.name = NULL},
};
const laci_implementation laci_implementations_batch_norm_train_grad[] = {
    {"over images", LACI_TAKES_NOTHING, laci_image_norm_gradient_fits,
     laci_image_norm_lower_gradient},
    {"oneDNN's", LACI_TAKES_NOTHING, NULL, laci_norm_train_gradient},
    {.name = NULL},
};

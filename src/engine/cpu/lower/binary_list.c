/* SPDX-License-Identifier: Apache-2.0
 * The lists of implementations of element-wise operations of two values. Next: function.c,
 * binary.c, native/train/sum.c, native/int8/sum.c. */
#include "engine/cpu/lower/binary.h"
#include "engine/cpu/native/native.h"

/** Operators whose second operand may be a constant number. */
const laci_implementation laci_implementations_arithmetic[] = {
    {"of bytes, between layers of int8", LACI_FUSIBLE_FUNCTIONS, laci_native_fits,
     laci_lower_native},
    {"oneDNN's function", LACI_FUSIBLE_NOTHING, laci_function_fits, laci_lower_unary_function},
    {"by channel", LACI_FUSIBLE_NOTHING, laci_gate_fits, laci_lower_gate},
    {"over images", LACI_FUSIBLE_FUNCTIONS, laci_image_sum_fits, laci_lower_image_sum},
    {"oneDNN's binary", LACI_FUSIBLE_FUNCTIONS, laci_binary_fits, laci_lower_binary},
    {"oneDNN's binary of a repeated value", LACI_FUSIBLE_FUNCTIONS,
     laci_binary_of_two_broadcast_fits, laci_lower_binary_of_two_broadcast},
    {.name = NULL},
};
const laci_implementation laci_implementations_pair[] = {
    {"oneDNN's binary", LACI_FUSIBLE_NOTHING, laci_binary_fits, laci_lower_binary},
    {"oneDNN's binary of a repeated value", LACI_FUSIBLE_NOTHING, laci_binary_of_two_broadcast_fits,
     laci_lower_binary_of_two_broadcast},
    {.name = NULL},
};

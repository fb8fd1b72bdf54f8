/* SPDX-License-Identifier: Apache-2.0
 * The lists of implementations of element-wise operations of two values. Next: function.c,
 * binary.c, native/train/sum.c, native/int8/sum.c. */
#include "engine/cpu/lower/binary.h"
#include "engine/cpu/native/native.h"

/** Implementations of arithmetic operators, whose second operand may be a constant number. */
const laci_implementation laci_implementations_arithmetic[] = {
    {"of bytes, between layers of int8", LACI_FUSIBLE_FUNCTIONS, laci_can_lower_native,
     laci_lower_native},
    {"oneDNN's function", LACI_FUSIBLE_NOTHING, laci_can_lower_function, laci_lower_unary_function},
    {"by channel", LACI_FUSIBLE_NOTHING, laci_can_lower_gate, laci_lower_gate},
    {"over images", LACI_FUSIBLE_FUNCTIONS, laci_can_lower_image_sum, laci_lower_image_sum},
    {"oneDNN's binary", LACI_FUSIBLE_FUNCTIONS, laci_can_lower_binary, laci_lower_binary},
    {"oneDNN's binary of a repeated value", LACI_FUSIBLE_FUNCTIONS,
     laci_can_lower_binary_of_two_broadcast, laci_lower_binary_of_two_broadcast},
    {.name = NULL},
};
const laci_implementation laci_implementations_pair[] = {
    {"oneDNN's binary", LACI_FUSIBLE_NOTHING, laci_can_lower_binary, laci_lower_binary},
    {"oneDNN's binary of a repeated value", LACI_FUSIBLE_NOTHING,
     laci_can_lower_binary_of_two_broadcast, laci_lower_binary_of_two_broadcast},
    {.name = NULL},
};

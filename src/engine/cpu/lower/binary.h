/* SPDX-License-Identifier: Apache-2.0
 * Element-wise operations of two values, for the lists in binary_list.c. */
#ifndef LACI_ENGINE_CPU_LOWER_BINARY_H
#define LACI_ENGINE_CPU_LOWER_BINARY_H

#include "engine/cpu/net_in.h"

laci_lower_supports laci_can_lower_gate, laci_can_lower_binary;
laci_lower_function laci_lower_gate, laci_lower_binary;

/** Implementation of an element-wise function of one value, such as an operation whose other
 * operand is a constant number. function.c */
laci_lower_supports laci_can_lower_function;
laci_lower_function laci_lower_unary_function;

/** Implementation of an operation of two values, neither of which has the result's shape.
 * binary.c */
laci_lower_supports laci_can_lower_binary_of_two_broadcast;
laci_lower_function laci_lower_binary_of_two_broadcast;

#endif

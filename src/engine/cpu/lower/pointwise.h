/* SPDX-License-Identifier: Apache-2.0
 * Element-wise functions of a plan as functions of our kernels. */
#ifndef LACI_ENGINE_CPU_LOWER_POINTWISE_H
#define LACI_ENGINE_CPU_LOWER_POINTWISE_H

#include "engine/cpu/plan/plan.h"
#include "kernel/pointwise/function.h"

/** Writes the function of kernel/pointwise that is equal to f; false: there is none. */
bool laci_lower_to_pointwise(const laci_function *f, laci_pointwise *to);

#endif

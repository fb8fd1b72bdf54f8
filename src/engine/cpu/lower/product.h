/* SPDX-License-Identifier: Apache-2.0
 * Gemm of two values, which product_values.c has, for the list in product.c. */
#ifndef LACI_ENGINE_CPU_LOWER_PRODUCT_H
#define LACI_ENGINE_CPU_LOWER_PRODUCT_H

#include "engine/cpu/net_in.h"

laci_lower_supports laci_gemm_values_fit;
laci_lower_function laci_gemm_values;

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The lists of implementations of pools. Next: extreme.c, pool.c, native/algorithms/pool.c. */
#include "engine/cpu/lower/reduce.h"
#include "engine/cpu/onednn/pool.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_pool[] = {
    {"of bytes, between layers of int8", LACI_FUSIBLE_NOTHING, laci_can_lower_native,
     laci_lower_native},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, laci_can_lower_pool, laci_lower_pool},
    {.name = NULL},
};
const laci_implementation laci_implementations_global_pool[] = {
    {"of bytes, between layers of int8", LACI_FUSIBLE_NOTHING, laci_can_lower_native,
     laci_lower_native},
    {"largest", LACI_FUSIBLE_NOTHING, laci_can_lower_global_max, laci_lower_global_max},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, laci_can_lower_pool_channels, laci_lower_pool_channels},
    {.name = NULL},
};

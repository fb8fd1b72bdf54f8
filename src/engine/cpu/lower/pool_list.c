/* SPDX-License-Identifier: Apache-2.0
 * The list of implementations of pools over windows. Next: pool.c, native/algorithms/pool.c. */
#include "engine/cpu/onednn/pool.h"
#include "engine/cpu/native/native.h"

const laci_implementation laci_implementations_pool[] = {
    {"of bytes, between layers of int8", LACI_TAKES_NOTHING, laci_native_fits, laci_native_lower},
    {"oneDNN's", LACI_TAKES_NOTHING, laci_pool_fits, laci_pool_lower},
    {.name = NULL},
};

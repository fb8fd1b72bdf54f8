/* SPDX-License-Identifier: Apache-2.0
 * The mean of whole planes as a pool: reductions use it, too, since it takes any layout. */
#ifndef LACI_ENGINE_CPU_LOWER_POOL_H
#define LACI_ENGINE_CPU_LOWER_POOL_H

#include "engine/cpu/net_in.h"

laci_lower_supports laci_pool_planes_fit;
laci_lower_function laci_pool_planes;

#endif

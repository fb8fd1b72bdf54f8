/* SPDX-License-Identifier: Apache-2.0
 * Operations of two values, which pair.c has, for the lists in function.c. */
#ifndef LACI_ENGINE_CPU_LOWER_PAIR_H
#define LACI_ENGINE_CPU_LOWER_PAIR_H

#include "engine/cpu/net_in.h"

laci_lower_supports laci_gate_fits, laci_pair_fits;
laci_lower_function laci_lower_gate, laci_lower_pair;

#endif

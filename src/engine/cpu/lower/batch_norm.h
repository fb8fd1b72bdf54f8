/* SPDX-License-Identifier: Apache-2.0
 * When a batch normalisation is by constants: oneDNN and reorders into pictures ask the same. */
#ifndef LACI_ENGINE_CPU_LOWER_BATCH_NORM_H
#define LACI_ENGINE_CPU_LOWER_BATCH_NORM_H

#include "engine/cpu/net_in.h"

/** Constants of floats, one a channel, of two to five axes? */
laci_lower_supports laci_norm_constant_fits;

#endif

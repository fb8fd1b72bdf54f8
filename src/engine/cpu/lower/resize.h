/* SPDX-License-Identifier: Apache-2.0
 * The implementations of Resize and Upsample: onednn/resize.c, lower/resample.c. */
#ifndef LACI_ENGINE_CPU_LOWER_RESIZE_H
#define LACI_ENGINE_CPU_LOWER_RESIZE_H

#include "engine/cpu/net_in.h"

/** Implementation of Resize and Upsample by oneDNN (onednn/resize.c). */
laci_lower_supports laci_can_lower_resize;
laci_lower_function laci_lower_resize;

#endif

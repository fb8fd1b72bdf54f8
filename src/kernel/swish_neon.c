/* SPDX-License-Identifier: Apache-2.0
 * swish.h on 64-bit ARM. */
#define SWISH laci_swish_neon
#include "kernel/swish_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * quantise.h on 64-bit ARM: scalar by name, since its plain code is vector code already. */
#define QUANTISE laci_quantise_neon
#include "kernel/quantise_in.h"

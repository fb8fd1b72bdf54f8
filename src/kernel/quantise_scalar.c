/* SPDX-License-Identifier: Apache-2.0
 * quantise.h as every processor can: the definition of right for the other variants. */
#define QUANTISE laci_quantise_scalar
#include "kernel/quantise_in.h"

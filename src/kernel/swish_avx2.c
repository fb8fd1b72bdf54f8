/* SPDX-License-Identifier: Apache-2.0
 * swish.h by AVX2 and FMA. */
#define SWISH laci_swish_avx2
#include "kernel/swish_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * swish.h by AVX-512. */
#define SWISH laci_swish_avx512
#include "kernel/swish_text.h"

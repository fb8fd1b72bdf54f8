/* SPDX-License-Identifier: Apache-2.0
 * quantise.h by AVX2, as the compiler sees fit. */
#define QUANTISE laci_quantise_avx2
#include "kernel/quantise_in.h"

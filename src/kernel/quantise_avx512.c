/* SPDX-License-Identifier: Apache-2.0
 * quantise.h by AVX-512, as the compiler sees fit. */
#define QUANTISE laci_quantise_avx512
#include "kernel/quantise_in.h"

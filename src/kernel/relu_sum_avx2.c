/* SPDX-License-Identifier: Apache-2.0
 * relu_sum.h by AVX2. */
#define RELU_SUM laci_relu_sum_avx2
#include "kernel/relu_sum_text.h"

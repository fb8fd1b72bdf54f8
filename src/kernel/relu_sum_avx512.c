/* SPDX-License-Identifier: Apache-2.0
 * relu_sum.h by AVX-512. */
#define RELU_SUM laci_relu_sum_avx512
#include "kernel/relu_sum_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * relu_sum.h by NEON. */
#define RELU_SUM laci_relu_sum_neon
#include "kernel/relu_sum_text.h"

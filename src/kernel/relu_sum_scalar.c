/* SPDX-License-Identifier: Apache-2.0
 * relu_sum.h as every processor can: the definition of right for the other variants. */
#define RELU_SUM laci_relu_sum_scalar
#include "kernel/relu_sum_text.h"

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of relu_sum.h. */
#include "kernel/pointwise/relu_sum.h"

#include "cpu/cpu.h"

static const laci_relu_sum *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_relu_sum_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_relu_sum *laci_relu_sum_variant(void) { return of_level[laci_cpu_level_in_force()]; }

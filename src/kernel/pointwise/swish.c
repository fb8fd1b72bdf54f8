/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of swish.h. */
#include "kernel/pointwise/swish.h"

#include "cpu/cpu.h"

static laci_swish *const of_level[] = {
#define VARIANT(name, level) [level] = laci_swish_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_swish *laci_swish_variant(void) { return of_level[laci_cpu_level_in_force()]; }

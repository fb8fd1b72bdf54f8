/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of extreme.h. */
#include "kernel/pointwise/extreme.h"

#include "cpu/cpu.h"

static laci_extreme *const of_level[] = {
#define VARIANT(name, level) [level] = laci_extreme_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_extreme *laci_extreme_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of resample.h. */
#include "kernel/image/resample.h"

#include "cpu/cpu.h"

static laci_resample_lines *const of_level[] = {
#define VARIANT(name, level) [level] = laci_resample_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_resample_lines *laci_resample_variant(void) { return of_level[laci_cpu_level_in_force()]; }

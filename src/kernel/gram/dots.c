/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of dots.h. */
#include "kernel/gram/dots.h"

#include "cpu/cpu.h"

static laci_dots_kernel *const of_level[] = {
#define VARIANT(name, level) [level] = laci_dots_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_dots_kernel *laci_dots_variant(void) { return of_level[laci_cpu_level_in_force()]; }

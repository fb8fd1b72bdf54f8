/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of update.h. */
#include "kernel/optimizer/update.h"

#include "cpu/cpu.h"

static const laci_update_kernels *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_update_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_update_kernels *laci_update_variant(void) { return of_level[laci_cpu_level_in_force()]; }

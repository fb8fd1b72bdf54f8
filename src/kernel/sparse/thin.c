/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of thin.h. */
#include "kernel/sparse/thin.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_thin_add *const of_level[] = {
#define VARIANT(name, level) [level] = laci_thin_add_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_thin_add *laci_thin_add_now(void) { return of_level[laci_cpu()]; }

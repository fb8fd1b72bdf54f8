/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of lap_rows.h. */
#include "kernel/search/lap_rows.h"

#include "cpu/cpu.h"

static const laci_lap_rows *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_lap_rows_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_lap_rows *laci_lap_rows_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of gate.h. */
#include "kernel/pointwise/gate.h"

#include "cpu/cpu.h"

static laci_gate *const of_level[] = {
#define VARIANT(name, level) [level] = laci_gate_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_gate *laci_gate_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of fake_quantize.h. */
#include "kernel/pointwise/fake_quantize.h"

#include "cpu/cpu.h"

static laci_fake_quantize *const of_level[] = {
#define VARIANT(name, level) [level] = laci_fake_quantize_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_fake_quantize *laci_fake_quantize_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of fake_quantise.h. */
#include "kernel/pointwise/fake_quantise.h"

#include "cpu/cpu.h"

static laci_fake_quantise *const of_level[] = {
#define VARIANT(name, level) [level] = laci_fake_quantise_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_fake_quantise *laci_fake_quantise_now(void) { return of_level[laci_cpu()]; }

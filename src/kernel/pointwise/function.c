/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of function.h. */
#include "kernel/pointwise/function.h"

#include "cpu/cpu.h"

static laci_pointwise_apply *const of_level[] = {
#define VARIANT(name, level) [level] = laci_pointwise_apply_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_pointwise_apply *laci_pointwise_apply_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

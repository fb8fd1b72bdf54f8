/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of squared_error.h. */
#include "kernel/pointwise/squared_error.h"

#include "cpu/cpu.h"

static const laci_squared_error *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_squared_error_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_squared_error *laci_squared_error_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of rows.h. */
#include "kernel/pointwise/rows.h"

#include "cpu/cpu.h"

static laci_row_function *const *const of_level[] = {
#define VARIANT(name, level) [level] = laci_rows_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_row_function *laci_row_variant(laci_row_kind kind) {
  return of_level[laci_cpu_level_in_force()][kind];
}

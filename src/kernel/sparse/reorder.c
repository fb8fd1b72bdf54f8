/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of reorder.h (copies to another layout) for the SIMD level in force. */
#include "kernel/sparse/reorder.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_sparse_reorder_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_reorder_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_reorder_run *laci_sparse_reorder_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

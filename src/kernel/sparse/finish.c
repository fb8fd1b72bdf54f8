/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of laci_sparse_finish (product.h), which converts sums to results. */
#include "kernel/sparse/product.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_sparse_finish *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_finish_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_finish *laci_sparse_finish_variant(void) { return of_level[laci_cpu_level_in_force()]; }
